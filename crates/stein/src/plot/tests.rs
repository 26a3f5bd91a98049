//! Draws figures of every kind, ordinary and odd ones, and reads the files back.

use super::*;
use crate::error::Error;
use crate::rng::{Purpose, Stream, stream};
use rand::RngExt;
use std::collections::HashSet;
use std::fs;
use std::io::Cursor;

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

/// A way with noise at its corners, rounded by cutting corners off (Chaikin 1974).
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

#[test]
fn a_map_shows_walls_start_goal_paths_labels_and_legend() {
    let (colours, svg) = drawn(&Figure::Map(maze(10, 5)));
    for colour in [style::WALL, style::START, style::GOAL] {
        assert!(colours.contains(&rgb(colour)), "{colour:?} is missing");
    }
    for policy in 0..10 {
        assert!(
            colours.contains(&rgb(style::colour(policy))),
            "the marker of policy {policy} is missing"
        );
        assert!(
            svg.contains(&format!("\npolicy {policy}\n")),
            "policy {policy} is missing in the legend"
        );
    }
    for text in [
        "Paths of 10 policies in the maze",
        "start",
        "goal",
        "west way",
        "north &amp; back",
        "-1.5",
    ] {
        assert!(svg.contains(&format!("\n{text}\n")), "'{text}' is missing");
    }
}

#[test]
fn units_of_a_map_are_equally_long() {
    // Of the two walls, one is 1 wide and 2 high, the other 2 wide and 1 high.
    let walls = vec![[0.0, 0.0, 1.0, 2.0], [2.0, 2.0, 4.0, 3.0]];
    let map = Map {
        bounds: [0.0, 0.0, 10.0, 4.0],
        walls,
        paths: vec![],
        labels: vec![],
        ..maze(0, 0)
    };
    let svg = vector::svg(&Figure::Map(map)).unwrap();
    let side = |line: &str, name: &str| -> f64 {
        let (_, rest) = line.split_once(&format!(" {name}=\"")).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    };
    let walls: Vec<_> = svg
        .lines()
        .filter(|line| line.starts_with("<rect") && line.contains("#4D4D4D"))
        .collect();
    assert_eq!(walls.len(), 2);
    assert!((side(walls[0], "height") / side(walls[0], "width") - 2.0).abs() < 0.02);
    assert!((side(walls[1], "width") / side(walls[1], "height") - 2.0).abs() < 0.02);
}

#[test]
fn curves_show_policies_mean_best_and_legend() {
    let (colours, svg) = drawn(&Figure::Lines(learning(10, 100)));
    assert!(colours.contains(&[0, 0, 0]), "the mean is missing");
    assert!(colours.len() > 100, "only {} colours", colours.len());
    for text in [
        "Return while training",
        "environment steps",
        "return",
        "mean",
        "best",
        "policy 0",
        "policy 9",
        "100k",
    ] {
        assert!(svg.contains(&format!("\n{text}\n")), "'{text}' is missing");
    }
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

#[test]
fn a_heatmap_shows_values_numbers_titles_and_scale() {
    let values = [1.0, 0.3, f64::NAN, 0.3, 1.0, 0.0, 0.6, 0.0, 1.0];
    let (colours, svg) = drawn(&Figure::Heatmap(heatmap(&[
        ("iteration 1", &values),
        ("iteration 9", &[1.0; 9]),
    ])));
    for value in [0.0, 0.3, 0.6, 1.0] {
        assert!(colours.contains(&rgb(style::shade(value))), "no cell of {value}");
    }
    assert!(colours.contains(&rgb(style::MISSING)), "the NaN is not grey");
    for text in [
        "Kernel of a run",
        "policy i",
        "policy j",
        "kernel",
        "iteration 1",
        "iteration 9",
        "0.25",
        "2",
    ] {
        assert!(svg.contains(&format!("\n{text}\n")), "'{text}' is missing");
    }
    assert!(!svg.contains("\n3\n"), "three policies are 0, 1 and 2");
    assert_eq!(svg.matches("\npolicy i\n").count(), 1);
    assert_eq!(svg.matches("\npolicy j\n").count(), 2);
}

#[test]
fn rows_of_a_heatmap_go_down_and_columns_right() {
    // The one dark cell is that of row 0, column 2.
    let mut values = vec![0.0; 9];
    values[2] = 1.0;
    let svg = vector::svg(&Figure::Heatmap(heatmap(&[("", &values)]))).unwrap();
    let number = |line: &str, name: &str| -> f64 {
        let (_, rest) = line.split_once(&format!(" {name}=\"")).unwrap();
        rest.split('"').next().unwrap().parse().unwrap()
    };
    let side =
        |line: &&str| (number(line, "width") - number(line, "height")).abs() < 5.0 && number(line, "width") > 100.0;
    let cells: Vec<&str> = svg
        .lines()
        .filter(|line| line.starts_with("<rect"))
        .filter(side)
        .collect();
    let dark: Vec<&&str> = cells.iter().filter(|line| line.contains("#08306B")).collect();
    assert_eq!((cells.len(), dark.len()), (9, 1));
    let most = |name: &str| cells.iter().map(|line| number(line, name)).fold(f64::MIN, f64::max);
    let least = |name: &str| cells.iter().map(|line| number(line, name)).fold(f64::MAX, f64::min);
    assert_eq!((number(dark[0], "x"), number(dark[0], "y")), (most("x"), least("y")));
}

#[test]
fn odd_heatmaps_are_drawn_and_wrong_ones_refused() {
    drawn(&Figure::Heatmap(heatmap(&[])));
    drawn(&Figure::Heatmap(heatmap(&[("", &[])])));
    drawn(&Figure::Heatmap(heatmap(&[("one", &[0.5])])));
    drawn(&Figure::Heatmap(heatmap(&[(
        &"long ".repeat(50),
        &[f64::INFINITY, -3.0, f64::NAN, 7.0],
    )])));
    let (_, svg) = drawn(&Figure::Heatmap(heatmap(&[("many", &vec![0.5; 60 * 60])])));
    assert!(svg.contains("\n50\n") && !svg.contains("\n51\n"), "every tenth number");
    let error = vector::svg(&Figure::Heatmap(heatmap(&[("torn", &[0.5; 3])]))).unwrap_err();
    assert!(
        error.to_string().contains("torn") && error.to_string().contains("3 values"),
        "{error}"
    );
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
fn ridges_stand_on_the_number_of_their_policy() {
    let (colours, svg) = drawn(&Figure::Ridges(ridges(vec![vec![0.0, 0.5, 0.25], vec![1.0, 0.0, 0.0]])));
    for policy in [0, 1] {
        assert!(
            colours.contains(&rgb(style::colour(policy))),
            "no outline of policy {policy}"
        );
    }
    // The policies 0 and 1, and beside them the 0 of the other axis.
    let count = |number: &str| svg.matches(&format!("\n{number}\n")).count();
    assert_eq!([count("0"), count("1"), count("2")], [2, 1, 0]);
    // All corners of an outline as x and y, y upwards from the page's bottom.
    let corners = |colour: &str| -> Vec<[f64; 2]> {
        let lines = svg
            .lines()
            .filter(|line| line.starts_with("<polyline") && line.contains(colour));
        let points = lines.flat_map(|line| {
            line.split("points=\"")
                .nth(1)
                .unwrap()
                .split('"')
                .next()
                .unwrap()
                .split(' ')
        });
        let pairs = points.filter_map(|point| point.split_once(','));
        pairs
            .map(|(x, y)| [x.parse().unwrap(), -y.parse::<f64>().unwrap()])
            .collect()
    };
    let range = |points: &[[f64; 2]], axis: usize| {
        let values = points.iter().map(|point| point[axis]);
        [values.clone().fold(f64::MAX, f64::min), values.fold(f64::MIN, f64::max)]
    };
    let (first, second) = (corners("#0072B2"), corners("#E69F00"));
    let ([low, high], [base, top]) = (range(&first, 1), range(&second, 1));
    // The largest bars, of 0.5 and 1, are both 0.9 rows high, on lines one row apart; a bar of 0.25 is half as high.
    assert!(((top - base) / (high - low) - 1.0).abs() < 0.02, "{first:?} {second:?}");
    let half = |point: &[f64; 2]| ((point[1] - low) / (high - low) - 0.5).abs() < 0.02;
    assert!(first.iter().filter(|point| half(point)).count() >= 2, "{first:?}");
    assert!(
        ((base - low) / (top - base) - 1.0 / 0.9).abs() < 0.02,
        "{first:?} {second:?}"
    );
    // The first one has nothing where the second one is.
    assert!(range(&first, 0)[0] >= range(&second, 0)[1] - 1.0);
}

#[test]
fn odd_ridges_are_drawn() {
    let nan = f64::NAN;
    drawn(&Figure::Ridges(ridges(vec![])));
    drawn(&Figure::Ridges(ridges(vec![vec![]])));
    drawn(&Figure::Ridges(ridges(vec![
        vec![0.0; 4],
        vec![nan, f64::INFINITY, 1e-300],
    ])));
    drawn(&Figure::Ridges(Ridges {
        low: nan,
        ..ridges(vec![vec![1.0; 3]])
    }));
    drawn(&Figure::Ridges(Ridges {
        low: 1e17,
        width: 1e-3,
        ..ridges(vec![vec![1.0; 3]])
    }));
    let many = Figure::Ridges(ridges(vec![vec![1.0; 60]; 40]));
    assert!(many.size()[1] > style::LINES_SIZE[1]);
    let (_, svg) = drawn(&many);
    assert!((0..40).all(|policy| svg.contains(&format!("\n{policy}\n"))));
}

#[test]
fn ends_of_failed_episodes_are_hollow() {
    let mut map = maze(2, 1);
    let (_, svg) = drawn(&Figure::Map(map.clone()));
    let polygons = |svg: &str| svg.lines().filter(|line| line.starts_with("<polygon")).count();
    assert!(!svg.contains("\nfailed\n"));
    map.paths[1].failed = true;
    let (_, other) = drawn(&Figure::Map(map));
    assert!(other.contains("\nfailed\n"));
    assert_eq!(polygons(&other), polygons(&svg) + 1);
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
fn unnamed_curves_have_no_row_in_the_legend() {
    let points = vec![[0.0, 0.0], [1.0, 1.0]];
    let named = curve(Some("policies"), CurveStyle::Policy(0), points.clone());
    let (colours, svg) = drawn(&Figure::Lines(lines(vec![
        named,
        curve(None, CurveStyle::Policy(1), points),
    ])));
    assert_eq!(svg.matches("policies").count(), 1);
    assert!(!svg.contains("policy"));
    assert!(colours.len() > 10);
}

#[test]
fn points_that_are_not_finite_break_a_curve() {
    let mean = |points: &[[f64; 2]]| {
        let svg = vector::svg(&Figure::Lines(lines(vec![curve(
            None,
            CurveStyle::Mean,
            points.to_vec(),
        )])))
        .unwrap();
        let shapes = |tag: &str| {
            svg.lines()
                .filter(|line| line.starts_with(tag) && line.contains("#000000"))
                .count()
        };
        (shapes("<polyline"), shapes("<circle"))
    };
    assert_eq!(mean(&[[0.0, 1.0], [1.0, 2.0], [2.0, 3.0], [3.0, 4.0]]), (1, 0));
    assert_eq!(
        mean(&[[0.0, 1.0], [1.0, 2.0], [2.0, f64::NAN], [3.0, 2.0], [4.0, 3.0]]),
        (2, 0)
    );
    assert_eq!(mean(&[[0.0, f64::INFINITY], [1.0, 2.0], [f64::NAN, 0.0]]).0, 0);
    assert!(
        mean(&[[0.0, f64::INFINITY], [1.0, 2.0], [f64::NAN, 0.0]]).1 > 0,
        "a lone point is a dot"
    );
}

#[test]
fn a_lone_point_is_a_dot_in_the_legend_too() {
    let dots = |name: Option<&str>| {
        let figure = Figure::Lines(lines(vec![curve(name, CurveStyle::Mean, vec![[1.0, 2.0]])]));
        let svg = vector::svg(&figure).unwrap();
        let black = |tag: &str| {
            svg.lines()
                .filter(|line| line.starts_with(tag) && line.contains("#000000"))
                .count()
        };
        (black("<circle"), black("<polyline"))
    };
    let (unnamed, named) = (dots(None), dots(Some("target")));
    assert!(unnamed.0 > 0);
    assert_eq!(named, (2 * unnamed.0, unnamed.1));
}

#[test]
fn odd_curves_are_drawn() {
    let nan = f64::NAN;
    let odd: [&[[f64; 2]]; 8] = [
        &[],
        &[[0.0, 0.0]],
        &[[5.0, -3.0], [5.0, -3.0]],
        &[[0.0, 7.0], [1.0, 7.0], [2.0, 7.0]],
        &[[nan, nan], [nan, 1.0], [1.0, nan]],
        &[[0.0, f64::MAX], [1.0, f64::MIN], [2.0, f64::INFINITY]],
        &[[0.0, 1e-12], [1.0, 2e-12]],
        &[[0.0, 9e299], [1.0, -9e299], [2.0, 1.0]],
    ];
    for points in odd {
        for style in [
            CurveStyle::Policy(0),
            CurveStyle::Policy(12),
            CurveStyle::Policy(usize::MAX),
            CurveStyle::Best,
            CurveStyle::Level,
        ] {
            drawn(&Figure::Lines(lines(vec![curve(Some("odd"), style, points.to_vec())])));
        }
    }
    drawn(&Figure::Lines(lines(vec![])));
}

#[test]
fn odd_maps_are_drawn() {
    let nan = f64::NAN;
    drawn(&Figure::Map(Map {
        walls: vec![],
        labels: vec![],
        ..maze(0, 0)
    }));
    let (_, svg) = drawn(&Figure::Map(Map {
        title: "a very long heading ".repeat(20),
        axes: ["a very long label ".repeat(20), String::new()],
        bounds: [0.0, 0.0, 1000.0, 1.0],
        walls: vec![
            [nan, 0.0, 1.0, 1.0],
            [-1e308, -1e308, 1e308, 1e308],
            [3.0, 3.0, 2.0, 2.0],
        ],
        start: [nan, 0.0],
        goal: [5.0, 0.5, nan],
        paths: vec![
            trail(3, vec![]),
            trail(4, vec![[0.5, 0.5]]),
            trail(
                usize::MAX,
                vec![
                    [nan, 0.0],
                    [1e308, -1e308],
                    [0.1, 0.1],
                    [f64::INFINITY, 0.0],
                    [2.0, 1.0],
                ],
            ),
        ],
        labels: vec![
            ([999.0, 0.9], "a label\u{0} at the edge".repeat(20)),
            ([nan, 0.0], "nowhere".to_owned()),
        ],
    }));
    assert!(!svg.contains('\0') && !svg.contains("nowhere") && svg.contains('…'));
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

    // A folder where the file should be: the rename fails, and the temporary file must not stay.
    fs::create_dir(folder.path().join("taken.png")).unwrap();
    let error = draw(&figure, &folder.path().join("taken")).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}
