"use strict";
// Tables: a click on the head of a column sorts by it, a second one the other way round. Cells without a number come last.
for (const table of document.querySelectorAll("table.sorts")) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => head.querySelector("button").addEventListener("click", () => {
    const down = head.getAttribute("aria-sort") === "ascending";
    heads.forEach(other => other.removeAttribute("aria-sort"));
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const value = row => row.cells[column].dataset.value ?? row.cells[column].textContent;
    const compare = (a, b) => {
      const [x, y] = [value(a), value(b)];
      const [p, q] = [parseFloat(x), parseFloat(y)];
      if (isNaN(p) && isNaN(q)) return down ? y.localeCompare(x) : x.localeCompare(y);
      if (isNaN(p) || isNaN(q)) return isNaN(p) ? 1 : -1;
      return down ? q - p : p - q;
    };
    const body = table.tBodies[0];
    [...body.rows].sort(compare).forEach(row => body.append(row));
  }));
}

// Charts: curves over a common axis; the one nearest to the pointer tells its name and value.
const HEIGHT = 440, LEFT = 70, RIGHT = 15, TOP = 15, BOTTOM = 50;
const svg = (name, attributes, parent) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (parent) parent.append(element);
  return element;
};
const ticks = (low, high) => {
  const span = high - low || 1, power = 10 ** Math.floor(Math.log10(span / 5));
  const step = [1, 2, 5, 10].map(k => k * power).find(step => span / step <= 6);
  const found = [];
  for (let k = Math.ceil(low / step); k * step <= high + 1e-9 * span; k++) found.push(k * step);
  return found;
};
const short = x => {
  const size = Math.abs(x);
  if (size >= 1e6) return +(x / 1e6).toPrecision(4) + "M";
  if (size >= 1e4) return +(x / 1e3).toPrecision(4) + "k";
  return String(+x.toPrecision(4));
};
for (const chart of document.querySelectorAll(".chart")) {
  const data = JSON.parse(chart.querySelector("script").textContent);
  const all = data.curves.flatMap(curve => curve.points);
  if (!all.length) continue;
  const range = axis => {
    let low = Infinity, high = -Infinity;
    for (const point of all) { low = Math.min(low, point[axis]); high = Math.max(high, point[axis]); }
    const room = axis ? 0.05 * (high - low || Math.abs(high) || 1) : 0;
    return [low - room, high + room];
  };
  const [[x0, x1], [y0, y1]] = [range(0), range(1)];
  // As wide as it is shown, so that letters have their size on a phone too.
  const WIDTH = Math.max(340, Math.min(900, chart.clientWidth));
  const px = x => LEFT + (WIDTH - LEFT - RIGHT) * (x - x0) / (x1 - x0 || 1);
  const py = y => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * (y - y0) / (y1 - y0 || 1);
  const picture = svg("svg", { viewBox: `0 0 ${WIDTH} ${HEIGHT}`, role: "img", "aria-label": data.title });
  for (const x of ticks(x0, x1).filter((_, k) => WIDTH > 600 || k % 2 === 0)) {
    svg("line", { class: "grid", x1: px(x), x2: px(x), y1: TOP, y2: HEIGHT - BOTTOM }, picture);
    svg("text", { x: px(x), y: HEIGHT - BOTTOM + 18, "text-anchor": "middle" }, picture).textContent = short(x);
  }
  for (const y of ticks(y0, y1)) {
    svg("line", { class: "grid", x1: LEFT, x2: WIDTH - RIGHT, y1: py(y), y2: py(y) }, picture);
    svg("text", { x: LEFT - 8, y: py(y) + 4, "text-anchor": "end" }, picture).textContent = short(y);
  }
  svg("text", { x: (LEFT + WIDTH) / 2, y: HEIGHT - 10, "text-anchor": "middle" }, picture).textContent = data.x;
  const label = svg("text", { transform: `translate(16 ${(TOP + HEIGHT - BOTTOM) / 2}) rotate(-90)`, "text-anchor": "middle" }, picture);
  label.textContent = data.y;
  const paths = data.curves.map(curve => {
    const d = curve.points.map(([x, y], k) => `${k ? "L" : "M"}${px(x).toFixed(1)} ${py(y).toFixed(1)}`).join("");
    const path = svg("path", { d, class: curve.style ?? "" }, picture);
    if (curve.colour) path.style.stroke = curve.colour;
    if (curve.faint) path.style.opacity = 0.35;
    return path;
  });
  const dot = svg("circle", { r: 5, visibility: "hidden" }, picture);
  chart.insertBefore(picture, chart.firstChild);
  const tip = chart.querySelector(".tip");
  const leave = () => {
    tip.style.display = "none";
    dot.setAttribute("visibility", "hidden");
    paths.forEach(path => path.classList.remove("off"));
  };
  picture.addEventListener("pointerleave", leave);
  picture.addEventListener("pointermove", event => {
    const box = picture.getBoundingClientRect(), scale = WIDTH / box.width;
    const [mx, my] = [(event.clientX - box.left) * scale, (event.clientY - box.top) * scale];
    let best = null;
    data.curves.forEach((curve, number) => curve.points.forEach(([x, y]) => {
      const distance = Math.hypot(px(x) - mx, py(y) - my);
      if (!best || distance < best.distance) best = { distance, number, x, y };
    }));
    if (!best || best.distance > 60) return leave();
    const curve = data.curves[best.number];
    paths.forEach((path, k) => path.classList.toggle("off", k !== best.number));
    dot.setAttribute("cx", px(best.x));
    dot.setAttribute("cy", py(best.y));
    dot.setAttribute("fill", curve.colour ?? "currentColor");
    dot.setAttribute("visibility", "visible");
    tip.textContent = `${curve.name}: ${short(best.y)} at ${short(best.x)}`;
    tip.style.display = "block";
    const left = Math.min(px(best.x) / scale + 12, box.width - tip.offsetWidth - 4);
    tip.style.left = `${Math.max(left, 0)}px`;
    tip.style.top = `${Math.max(py(best.y) / scale - 34, 0)}px`;
  });
}
