//! Drawing of [`Map`]: walls, start, goal, and the paths of the policies.

use plotters::prelude::DrawingBackend;
use plotters::style::{Color, WHITE};
use std::collections::BTreeMap;

use super::frame::{Axis, Entry, Frame, Sample, Window, drawable};
use super::page::{Anchor, Page, Point, fit, text_width};
use super::style::{GOAL, MAP_SIZE, Pen, START, TEXT, WALL};
use crate::error::{Error, Result};
use crate::plot::Map;

/// Draws the map on the page.
pub(super) fn draw<DB: DrawingBackend>(map: &Map, page: &Page<DB>) -> Result<()> {
    let bounds = padded(map)?;
    let [x_low, y_low, x_high, y_high] = bounds;
    let axis = |label: &str, low: f64, high: f64| Axis {
        label: label.to_owned(),
        low,
        high,
        whole: false,
    };
    let frame = Frame {
        title: map.title.clone(),
        x: axis(&map.axes[0], x_low, x_high),
        y: axis(&map.axes[1], y_low, y_high),
        equal: true,
        legend: legend(map),
    };
    let window = frame.draw(page)?;
    for wall in &map.walls {
        draw_wall(wall, bounds, &window, page)?;
    }
    let goal = goal(map, bounds, &window);
    if let Some((centre, radius)) = goal {
        page.disc(centre, radius, GOAL, WALL)?;
    }
    draw_paths(map, bounds, &window, page)?;
    if let Some((centre, radius)) = goal {
        // Most paths end here: the rim stays visible above their markers.
        page.ring(centre, radius, Pen::solid(WALL, 1.5))?;
    }
    if inside(map.start, bounds) {
        page.disc(window.place(map.start), 9.0, START, WALL)?;
    }
    map.labels
        .iter()
        .filter(|(point, _)| inside(*point, bounds))
        .try_for_each(|(point, text)| draw_label(text, window.place(*point), &window, page))
}

/// Width and height in pixels: wide maps need less height.
pub(super) fn size(map: &Map) -> [u32; 2] {
    let [width, height] = MAP_SIZE;
    let share = (map.bounds[3] - map.bounds[1]) / (map.bounds[2] - map.bounds[0]);
    // The window of a square map is about 140 pixels lower than the page; a legend always needs some height.
    let window = f64::from(height - 140);
    [width, height - (window * (1.0 - share).clamp(0.0, 0.5)) as u32]
}

/// The bounds of the map, with the short side widened if the map is too long to be legible.
fn padded(map: &Map) -> Result<[f64; 4]> {
    let [x_low, y_low, x_high, y_high] = map.bounds;
    let [wide, high] = [x_high - x_low, y_high - y_low];
    if !(wide > 0.0 && high > 0.0 && wide.is_finite() && high.is_finite()) {
        return Err(Error::input(format!(
            "the map '{}' has the bounds {:?}; give [x least, y least, x largest, y largest] with least below largest",
            map.title, map.bounds
        )));
    }
    let least = wide.max(high) / 5.0;
    let pad = |side: f64| (least - side).max(0.0) / 2.0;
    Ok([
        x_low - pad(wide),
        y_low - pad(high),
        x_high + pad(wide),
        y_high + pad(high),
    ])
}

/// Centre and radius of the goal on the page, large enough to be visible.
fn goal(map: &Map, bounds: [f64; 4], window: &Window) -> Option<(Point, f64)> {
    let [x, y, radius] = map.goal;
    let widest = (window.edges[2] - window.edges[0]).max(4.0);
    let seen = inside([x, y], bounds) && radius.is_finite();
    seen.then(|| (window.place([x, y]), (radius * window.zoom()).clamp(4.0, widest)))
}

fn legend(map: &Map) -> Vec<Entry> {
    let policies = episodes(map).into_keys().map(|policy| Entry {
        sample: Sample::Line(Pen::policy(policy, 1.0), Some(policy)),
        text: format!("policy {policy}"),
    });
    let entry = |sample: Sample, text: &str| Entry {
        sample,
        text: text.to_owned(),
    };
    let places = [entry(Sample::Start, "start"), entry(Sample::Goal, "goal")];
    let failed = map.paths.iter().any(|path| path.failed);
    let failed = failed.then(|| entry(Sample::Hollow, "failed"));
    places.into_iter().chain(failed).chain(policies).collect()
}

/// Number of paths of each policy.
fn episodes(map: &Map) -> BTreeMap<usize, usize> {
    let mut episodes = BTreeMap::new();
    for path in &map.paths {
        *episodes.entry(path.policy).or_insert(0) += 1;
    }
    episodes
}

fn inside([x, y]: [f64; 2], [x_low, y_low, x_high, y_high]: [f64; 4]) -> bool {
    (x_low..=x_high).contains(&x) && (y_low..=y_high).contains(&y)
}

fn draw_wall<DB: DrawingBackend>(wall: &[f64; 4], bounds: [f64; 4], window: &Window, page: &Page<DB>) -> Result<()> {
    let clamp = |x: f64, y: f64| [x.clamp(bounds[0], bounds[2]), y.clamp(bounds[1], bounds[3])];
    let [low, high] = [clamp(wall[0], wall[1]), clamp(wall[2], wall[3])];
    if low.iter().chain(&high).all(|value| value.is_finite()) && low[0] < high[0] && low[1] < high[1] {
        page.rectangle([window.place(low), window.place(high)], WALL)?;
    }
    Ok(())
}

/// Lines first, so that no line hides an end marker. The more paths, the fainter they are.
fn draw_paths<DB: DrawingBackend>(map: &Map, bounds: [f64; 4], window: &Window, page: &Page<DB>) -> Result<()> {
    let episodes = episodes(map);
    for path in &map.paths {
        let opacity = (2.4 / (episodes[&path.policy] as f64).sqrt()).clamp(0.2, 0.8);
        for piece in clipped(&path.points, bounds) {
            let points: Vec<Point> = piece.into_iter().map(|point| window.place(point)).collect();
            page.line(&points, Pen::policy(path.policy, opacity))?;
        }
    }
    for path in &map.paths {
        if let Some(end) = path.points.iter().rfind(|point| inside(**point, bounds)) {
            let radius = if path.failed { 5.5 } else { 4.5 };
            page.marker(window.place(*end), radius, path.policy, path.failed)?;
        }
    }
    Ok(())
}

/// The parts of a path inside the bounds. A non-finite point breaks the path.
fn clipped(path: &[[f64; 2]], bounds: [f64; 4]) -> Vec<Vec<[f64; 2]>> {
    let mut pieces: Vec<Vec<[f64; 2]>> = Vec::new();
    for pair in path.windows(2) {
        let Some([from, to]) = clip([pair[0], pair[1]], bounds) else {
            continue;
        };
        match pieces.last_mut() {
            Some(piece) if piece.last() == Some(&from) => piece.push(to),
            _ => pieces.push(vec![from, to]),
        }
    }
    pieces
}

/// The part of a segment inside the bounds (Liang and Barsky 1984).
fn clip([from, to]: [[f64; 2]; 2], bounds: [f64; 4]) -> Option<[[f64; 2]; 2]> {
    if !from.iter().chain(&to).all(|value| drawable(*value)) {
        return None;
    }
    let (mut enter, mut leave) = (0.0f64, 1.0f64);
    for axis in 0..2 {
        let run = to[axis] - from[axis];
        let [low, high] = [bounds[axis] - from[axis], bounds[axis + 2] - from[axis]];
        if run == 0.0 {
            if low > 0.0 || high < 0.0 {
                return None;
            }
            continue;
        }
        let [first, second] = if run > 0.0 {
            [low / run, high / run]
        } else {
            [high / run, low / run]
        };
        enter = enter.max(first);
        leave = leave.min(second);
    }
    // A whole segment keeps its exact endpoints, so that the next one joins it.
    let at = |share: f64| [from[0] + share * (to[0] - from[0]), from[1] + share * (to[1] - from[1])];
    let ends = [
        if enter == 0.0 { from } else { at(enter) },
        if leave == 1.0 { to } else { at(leave) },
    ];
    (enter <= leave).then_some(ends)
}

/// A text on a light background, moved inwards if it would leave the window.
fn draw_label<DB: DrawingBackend>(text: &str, [x, y]: Point, window: &Window, page: &Page<DB>) -> Result<()> {
    let [left, top, right, bottom] = window.edges;
    let text = fit(text, TEXT, right - left - 12.0)?;
    let [half, height] = [text_width(&text, TEXT)? / 2.0 + 4.0, TEXT / 2.0 + 2.0];
    let x = x.min(right - half).max(left + half);
    let y = y.min(bottom - height).max(top + height);
    page.rectangle([[x - half, y - height], [x + half, y + height]], WHITE.mix(0.75))?;
    page.text(&text, [x, y], TEXT, Anchor::Centre)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: [f64; 4] = [0.0, 0.0, 10.0, 10.0];

    #[test]
    fn paths_are_cut_at_the_bounds_and_at_points_that_are_not_finite() {
        let path = [
            [1.0, 1.0],
            [5.0, 5.0],
            [5.0, 15.0],
            [15.0, 15.0],
            [15.0, 5.0],
            [5.0, 5.0],
            [f64::NAN, 1.0],
            [2.0, 2.0],
        ];
        let pieces = clipped(&path, BOUNDS);
        assert_eq!(
            pieces,
            [vec![[1.0, 1.0], [5.0, 5.0], [5.0, 10.0]], vec![[10.0, 5.0], [5.0, 5.0]]]
        );
    }

    #[test]
    fn segments_outside_or_without_end_vanish() {
        assert_eq!(clip([[-1.0, 5.0], [-1.0, 6.0]], BOUNDS), None);
        assert_eq!(clip([[-5.0, 4.0], [4.0, -5.0]], BOUNDS), None);
        assert_eq!(clip([[5.0, -1e308], [5.0, 1e308]], BOUNDS), None);
        assert_eq!(clip([[0.0, 0.0], [f64::INFINITY, 1.0]], BOUNDS), None);
        assert_eq!(
            clip([[5.0, -9e299], [5.0, 9e299]], BOUNDS).map(|ends| ends.map(|end| end[0])),
            Some([5.0, 5.0])
        );
    }

    #[test]
    fn long_maps_are_padded_and_empty_ones_refused() {
        let map = |bounds| Map {
            title: "corridor".to_owned(),
            axes: ["x", "y"].map(str::to_owned),
            bounds,
            walls: vec![],
            start: [0.0, 0.0],
            goal: [0.0, 0.0, 1.0],
            paths: vec![],
            labels: vec![],
        };
        assert_eq!(padded(&map([0.0, 0.0, 100.0, 2.0])).unwrap(), [0.0, -9.0, 100.0, 11.0]);
        for bounds in [
            [1.0, 0.0, 1.0, 2.0],
            [2.0, 0.0, 1.0, 2.0],
            [0.0, f64::NAN, 1.0, 2.0],
            [0.0, 0.0, f64::INFINITY, 1.0],
        ] {
            let message = padded(&map(bounds)).unwrap_err().to_string();
            assert!(message.contains("corridor") && message.contains("bounds"), "{message}");
        }
    }
}
