//! `stein compare`, `stein report` and `stein eval --checkpoint`, on small runs of the maze. Reports are opened in Chromium where
//! there is one.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;
use support::{assert_refused, object, run, snapshot, stein, succeed, train};

/// A short run in `place`.
fn trained(place: &Path, name: &str, extra: &[&str]) -> PathBuf {
    let folder = place.join(name);
    succeed(train(&folder, extra));
    folder
}

#[test]
fn runs_are_put_side_by_side() {
    let place = tempfile::tempdir().unwrap();
    let (a, b) = (
        trained(place.path(), "a", &[]),
        trained(place.path(), "b", &["--method=qd"]),
    );
    let before = snapshot(&a);
    let stem = place.path().join("both/compare");
    let [a, b, out] = [&a, &b, &stem].map(|path| path.to_str().unwrap());
    let text = succeed(stein(&["compare", a, b, "--episodes=2", "--out", out])).stdout;
    assert_eq!(fs::read_to_string(stem.with_extension("md")).unwrap(), text);
    for words in [
        "| run | task | method |",
        "\n| a | maze | ppo | ",
        "\n| b | maze | qd | ",
        "coverage",
        "return_best",
    ] {
        assert!(text.contains(words), "no {words} in {text}");
    }
    let curves = fs::read_to_string(stem.with_extension("svg")).unwrap();
    assert!(curves.contains("<polygon") && curves.contains("environment steps of all policies"));
    assert!(stem.with_extension("png").exists());
    assert!(
        snapshot(Path::new(a)) == before,
        "to compare a run changes nothing in it"
    );
    assert_refused(
        &run(stein(&["compare", "nowhere"])),
        2,
        &["nowhere", "is not a run folder"],
    );
}

#[test]
fn earlier_policies_can_be_evaluated() {
    let place = tempfile::tempdir().unwrap();
    let folder = trained(place.path(), "a", &["--set=checkpoint.every=4"]);
    let folder = folder.to_str().unwrap();
    let earned = |extra: &[&str]| {
        let finished = succeed(stein(&[&["eval", folder, "--json"], extra].concat()));
        object(&finished.stdout)["policies"].clone()
    };
    assert_eq!(earned(&["--checkpoint=12"]), earned(&[]));
    assert_ne!(earned(&["--checkpoint=4"]), earned(&[]));
    assert_refused(
        &run(stein(&["eval", folder, "--checkpoint=5"])),
        2,
        &["no checkpoint after iteration 5", "4, 8, 12"],
    );
}

#[test]
fn a_report_is_one_file_that_opens() {
    let place = tempfile::tempdir().unwrap();
    let a = trained(place.path(), "a", &["--method=qd"]);
    let b = trained(place.path(), "b", &[]);
    let [one, two] = [&a, &b].map(|path| path.to_str().unwrap());
    let html = |arguments: &[&str]| {
        let stdout = succeed(stein(arguments)).stdout;
        fs::read_to_string(stdout.trim()).unwrap()
    };
    let alone = html(&["report", one]);
    for words in [
        "maze by qd, seed",
        "policies earn",
        "steps = 256    (default 2048)",
        "policy 2",
        "data:image/png;base64,",
        "How it was made",
    ] {
        assert!(alone.contains(words), "no {words}");
    }
    assert!(!alone.contains("qd.estimator ="), "a default is no difference");
    let file = place.path().join("both.html");
    let both = html(&["report", one, two, "--out", file.to_str().unwrap()]);
    assert!(both.contains("2 runs side by side") && both.contains("Mean return on maze"));

    let out = place.path().join("experiment");
    let experiment = [
        "reproduce",
        "maze",
        "--scale=smoke",
        "--only",
        "ppo",
        "nce-js",
        "--out",
        out.to_str().unwrap(),
    ];
    succeed(stein(&experiment));
    let made = fs::read_to_string(out.join("report.html")).unwrap();
    for words in [
        "how many ways to the goal",
        "coverage is largest for",
        "NCE, Jensen-Shannon, seed 2",
        "Every seed",
    ] {
        assert!(made.contains(words), "no {words}");
    }
    assert_eq!(html(&["report", out.to_str().unwrap()]), made);
    for text in [&alone, &both, &made] {
        assert!(text.len() < 5_000_000, "{} bytes", text.len());
        let outside = text.matches("src=\"").count() - text.matches("src=\"data:").count();
        assert_eq!(outside, 0, "something is loaded from elsewhere");
    }
    opens(&alone, place.path());
    opens(&both, place.path());
    opens(&made, place.path());
}

#[test]
fn a_folder_without_a_run_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().to_str().unwrap();
    assert_refused(&run(stein(&["report", folder])), 2, &["is not a run folder"]);
    fs::write(place.path().join("table.json"), "{}").unwrap();
    assert_refused(&run(stein(&["report", folder])), 2, &["table.json", "stein reproduce"]);
}

/// Listens for errors from the beginning on.
const LISTEN: &str = "<head><script>
window.troubles = [];
window.addEventListener('error', event => window.troubles.push(String(event.message || event.target.src)), true);
const error = console.error; console.error = (...words) => { window.troubles.push(words.join(' ')); error(...words); };
</script>";

/// Looks at pictures, clicks on the heads of the first table, moves over the first chart, and writes down what it saw.
const LOOK: &str = "<script>
window.addEventListener('load', () => {
  const pictures = [...document.images];
  const table = document.querySelector('table.sorts');
  const column = table.tHead.rows[0].cells.length - 1;
  const button = table.tHead.rows[0].cells[column].querySelector('button');
  const values = () => [...table.tBodies[0].rows].map(row => parseFloat(row.cells[column].dataset.value));
  button.click(); const up = values();
  button.click(); const down = values();
  const chart = document.querySelector('.chart'), box = chart.querySelector('svg').getBoundingClientRect();
  const curve = JSON.parse(chart.querySelector('script').textContent).curves.at(-1);
  let tip = '';
  for (let x = 0.1; x < 1; x += 0.05) for (let y = 0.1; y < 1; y += 0.05) {
    chart.querySelector('svg').dispatchEvent(new PointerEvent('pointermove',
      { clientX: box.left + x * box.width, clientY: box.top + y * box.height }));
    tip ||= chart.querySelector('.tip').textContent;
  }
  const seen = { pictures: pictures.length, broken: pictures.filter(p => !(p.complete && p.naturalWidth)).length,
    up, down, tip, curves: document.querySelectorAll('.chart path').length, troubles: window.troubles,
    wide: document.documentElement.scrollWidth > window.innerWidth };
  const note = document.createElement('pre');
  note.id = 'seen'; note.textContent = JSON.stringify(seen);
  document.body.append(note);
});
</script></body>";

/// Opens a report in Chromium, at the width of a phone: no error, every picture there, the table sorts, curves tell their values.
fn opens(html: &str, place: &Path) {
    let browser = ["chromium", "chromium-browser", "google-chrome"]
        .into_iter()
        .find(|name| {
            Command::new(name)
                .arg("--version")
                .output()
                .is_ok_and(|o| o.status.success())
        });
    let Some(browser) = browser else {
        eprintln!("skipped: there is no chromium to open the report in");
        return;
    };
    let file = place.join("watched.html");
    let watched = html.replacen("<head>", LISTEN, 1).replacen("</body>", LOOK, 1);
    fs::write(&file, watched).unwrap();
    let profile = tempfile::tempdir().unwrap();
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--window-size=400,800",
            "--virtual-time-budget=10000",
        ])
        .arg(format!("--user-data-dir={}", profile.path().display()))
        .arg("--dump-dom")
        .arg(format!("file://{}", file.display()))
        .output()
        .unwrap();
    let dom = String::from_utf8_lossy(&output.stdout);
    let seen = dom
        .split("<pre id=\"seen\">")
        .nth(1)
        .and_then(|rest| rest.split("</pre>").next());
    let seen = seen.unwrap_or_else(|| panic!("{browser} saw nothing: {}", String::from_utf8_lossy(&output.stderr)));
    let seen: Value =
        serde_json::from_str(&seen.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&")).unwrap();
    assert_eq!(seen["troubles"], serde_json::json!([]), "{seen}");
    assert_eq!(seen["broken"], 0, "{seen}");
    assert_eq!(seen["wide"], false, "the page is wider than a phone: {seen}");
    assert!(seen["curves"].as_u64().unwrap() >= 2, "{seen}");
    assert!(seen["tip"].as_str().unwrap().contains(" at "), "{seen}");
    let column = |key: &str| -> Vec<f64> {
        let values = seen[key].as_array().unwrap();
        values.iter().filter_map(Value::as_f64).collect()
    };
    assert!(column("up").is_sorted() && !column("up").is_empty(), "{seen}");
    assert!(column("down").is_sorted_by(|a, b| a >= b), "{seen}");
}
