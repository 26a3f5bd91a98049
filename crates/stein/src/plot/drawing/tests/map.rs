//! Maps: walls, paths and their ends, equal units.

use super::*;

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
