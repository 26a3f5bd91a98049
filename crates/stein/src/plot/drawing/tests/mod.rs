//! Draws figures of every kind, ordinary and unusual, and reads the files back.

use super::*;
use crate::error::Error;
use crate::plot::{Curve, CurveStyle, Heatmap, Lines, Map, Panel, Ridges, Trail};
use crate::rng::{Purpose, Stream, stream};
use rand::RngExt;
use std::collections::HashSet;
use std::fs;
use std::io::Cursor;

mod heatmap;
mod lines;
mod map;
mod ridges;

/// Ways from the start to the goal through the gaps of the maze.
const WAYS: [&[[f64; 2]]; 5] = [
    &[[0.0, -1.7], [0.0, -0.9], [0.0, 0.0]],
    &[[0.0, -1.7], [-0.68, -1.1], [-0.68, -0.7], [-0.3, -0.3], [0.0, 0.0]],
    &[[0.0, -1.7], [0.68, -1.1], [0.68, -0.7], [0.3, -0.3], [0.0, 0.0]],
    &[
        [0.0, -1.7],
        [-1.5, -1.6],
        [-1.7, -0.6],
        [-1.4, 0.6],
        [-0.6, 0.7],
        [-0.3, 0.3],
        [0.0, 0.0],
    ],
    &[
        [0.0, -1.7],
        [1.5, -1.6],
        [1.8, -0.6],
        [1.4, 1.0],
        [0.4, 1.3],
        [-0.5, 1.2],
        [-0.6, 0.6],
        [-0.1, 0.4],
        [0.0, 0.0],
    ],
];

/// A path with noise, with its corners cut off (Chaikin 1974).
fn path(way: &[[f64; 2]], random: &mut Stream) -> Vec<[f64; 2]> {
    let mut points: Vec<_> = way
        .iter()
        .map(|[x, y]| [x + noise(random, 0.12), y + noise(random, 0.12)])
        .collect();
    points[0] = way[0];
    for _ in 0..4 {
        let (first, last) = (points[0], points[points.len() - 1]);
        let between =
            |a: [f64; 2], b: [f64; 2], share: f64| [a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])];
        let cut = points
            .windows(2)
            .flat_map(|pair| [0.25, 0.75].map(|share| between(pair[0], pair[1], share)));
        points = [first].into_iter().chain(cut).chain([last]).collect();
    }
    points
}

fn trail(policy: usize, points: Vec<[f64; 2]>) -> Trail {
    Trail {
        policy,
        points,
        failed: false,
    }
}

fn noise(random: &mut Stream, size: f64) -> f64 {
    size * (random.random::<f64>() - 0.5)
}

fn maze(policies: usize, episodes: usize) -> Map {
    let mut random = stream(7, Purpose::Evaluation, 0, 0);
    let mut paths = Vec::new();
    for policy in 0..policies {
        for _ in 0..episodes {
            paths.push(trail(policy, path(WAYS[policy % WAYS.len()], &mut random)));
        }
    }
    Map {
        title: format!("Paths of {policies} policies in the maze"),
        axes: ["x", "y"].map(str::to_owned),
        bounds: [-2.0, -2.0, 2.0, 2.0],
        walls: vec![
            [-1.4, -1.05, -0.85, -0.75],
            [-0.5, -1.05, -0.15, -0.75],
            [0.15, -1.05, 0.5, -0.75],
            [0.85, -1.05, 1.4, -0.75],
            [-0.8, -0.3, -0.6, 0.5],
            [0.6, -0.3, 0.8, 0.5],
            [-0.4, 0.7, 0.4, 0.9],
        ],
        start: [0.0, -1.7],
        goal: [0.0, 0.0, 0.1],
        paths,
        labels: vec![
            ([-1.95, -0.9], "west way".to_owned()),
            ([1.6, 1.6], "north & back".to_owned()),
        ],
    }
}

fn learning(policies: usize, iterations: usize) -> Lines {
    let mut random = stream(8, Purpose::Evaluation, 0, 0);
    let mut curves: Vec<Curve> = (0..policies)
        .map(|policy| {
            let speed = 0.02 + 0.05 * random.random::<f64>();
            let value = |index: usize| -400.0 + 380.0 * (1.0 - (-speed * index as f64).exp());
            let points = (0..iterations).map(|index| [2048.0 * index as f64, value(index) + noise(&mut random, 40.0)]);
            curve(
                Some(&format!("policy {policy}")),
                CurveStyle::Policy(policy),
                points.collect(),
            )
        })
        .collect();
    let over = |reduce: fn(Vec<f64>) -> f64| -> Vec<[f64; 2]> {
        let values = |index: usize| curves.iter().map(|curve| curve.points[index][1]).collect();
        (0..iterations)
            .map(|index| [2048.0 * index as f64, reduce(values(index))])
            .collect()
    };
    let mean = over(|values| values.iter().sum::<f64>() / values.len() as f64);
    let best = over(|values| values.into_iter().fold(f64::NEG_INFINITY, f64::max));
    curves.push(curve(Some("mean"), CurveStyle::Mean, mean));
    curves.push(curve(Some("best"), CurveStyle::Best, best));
    lines(curves)
}

fn curve(name: Option<&str>, style: CurveStyle, points: Vec<[f64; 2]>) -> Curve {
    Curve {
        name: name.map(str::to_owned),
        style,
        points,
    }
}

fn lines(curves: Vec<Curve>) -> Lines {
    let [title, x, y] = ["Return while training", "environment steps", "return"].map(str::to_owned);
    Lines { title, x, y, curves }
}

/// Size and set of colours of a PNG.
fn decode(bytes: &[u8]) -> ([u32; 2], HashSet<[u8; 3]>) {
    let mut reader = png::Decoder::new(Cursor::new(bytes)).read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size()];
    let info = reader.next_frame(&mut pixels).unwrap();
    assert_eq!(info.color_type, png::ColorType::Rgb);
    let colours = pixels
        .chunks_exact(3)
        .map(|pixel| [pixel[0], pixel[1], pixel[2]])
        .collect();
    ([info.width, info.height], colours)
}

/// Draws a figure, checks both files, and returns the colours of the PNG and the text of the SVG.
fn drawn(figure: &Figure) -> (HashSet<[u8; 3]>, String) {
    let folder = tempfile::tempdir().unwrap();
    let files = draw(figure, &folder.path().join("figure.v1")).unwrap();
    assert_eq!(
        files,
        ["figure.v1.png", "figure.v1.svg"].map(|name| folder.path().join(name))
    );
    assert_eq!(
        fs::read_dir(folder.path()).unwrap().count(),
        2,
        "temporary files are left over"
    );
    let ([width, height], colours) = decode(&fs::read(&files[0]).unwrap());
    assert_eq!([width, height], figure.size());
    let svg = fs::read_to_string(&files[1]).unwrap();
    assert!(
        svg.starts_with(&format!("<svg width=\"{width}\" height=\"{height}\" ")),
        "{}",
        &svg[..80]
    );
    assert!(svg.trim_end().ends_with("</svg>") && !svg.contains("NaN"));
    (colours, svg)
}

fn rgb(colour: plotters::style::RGBColor) -> [u8; 3] {
    [colour.0, colour.1, colour.2]
}

fn heatmap(panels: &[(&str, &[f64])]) -> Heatmap {
    let [title, columns, rows, scale] = ["Kernel of a run", "policy j", "policy i", "kernel"].map(str::to_owned);
    let panels = panels
        .iter()
        .map(|(title, values)| Panel {
            title: (*title).to_owned(),
            values: values.to_vec(),
        })
        .collect();
    Heatmap {
        title,
        columns,
        rows,
        scale,
        panels,
    }
}

fn ridges(rows: Vec<Vec<f64>>) -> Ridges {
    let [title, x, height] = ["Velocities", "m/s", "share of its steps"].map(str::to_owned);
    Ridges {
        title,
        x,
        height,
        low: -1.0,
        width: 0.5,
        rows,
    }
}

#[test]
fn every_heading_can_be_added_to() {
    for mut figure in [
        Figure::Map(maze(1, 1)),
        Figure::Lines(learning(1, 3)),
        Figure::Ridges(ridges(vec![vec![1.0]])),
        Figure::Heatmap(heatmap(&[("", &[1.0; 9]), ("", &[1.0; 9])])),
    ] {
        figure.add_to_title(" (hopper, seed 1)");
        let (_, svg) = drawn(&figure);
        assert!(svg.contains(" (hopper, seed 1)\n"), "{figure:?}");
    }
}

#[test]
fn a_long_legend_says_how_much_it_leaves_out() {
    let (_, svg) = drawn(&Figure::Map(maze(60, 1)));
    let shown = (0..60)
        .filter(|policy| svg.contains(&format!("\npolicy {policy}\n")))
        .count();
    assert!(
        shown > 10 && svg.contains(&format!("\n{} more\n", 60 - shown)),
        "{shown} shown"
    );
}

#[test]
fn drawing_again_replaces_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let stem = folder.path().join("figure");
    fs::write(with_ending(&stem, "png"), "old").unwrap();
    let first = draw(&Figure::Lines(learning(2, 5)), &stem).unwrap();
    let bytes = fs::read(&first[0]).unwrap();
    draw(&Figure::Lines(learning(2, 5)), &stem).unwrap();
    assert_eq!(
        fs::read(&first[0]).unwrap(),
        bytes,
        "the same figure gives the same bytes"
    );
}

#[test]
fn a_place_that_cannot_be_written_is_an_io_error_that_names_it() {
    let folder = tempfile::tempdir().unwrap();
    let figure = Figure::Lines(lines(vec![]));
    let error = draw(&figure, &folder.path().join("missing").join("figure")).unwrap_err();
    assert!(
        matches!(error, Error::Io { .. }) && error.to_string().contains("figure.png"),
        "{error}"
    );

    // A folder with the name of the file: the rename fails, and the temporary file must be removed.
    fs::create_dir(folder.path().join("taken.png")).unwrap();
    let error = draw(&figure, &folder.path().join("taken")).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
