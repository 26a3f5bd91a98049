//! The maze as a whole: dynamics, ways and settings.

use super::collision::Point;
use super::*;
use crate::env::Registry;

/// Drives one episode; the controller sees the observation.
fn drive(maze: &MazeConfig, seed: u64, mut controller: impl FnMut(&[f64]) -> Point) -> Episode {
    let mut env = maze.make().unwrap();
    let width = env.spec().signals.len();
    let (mut observation, mut signals) = ([0.0; 4], vec![0.0; width]);
    let mut episode = Episode::default();
    env.reset(seed, &mut observation);
    env.signals(&mut signals);
    episode.signals.extend(&signals);
    loop {
        let step = env.step(&controller(&observation), &mut observation);
        env.signals(&mut signals);
        episode.signals.extend(&signals);
        episode.rewards.push(step.reward);
        assert!(!step.terminated);
        if step.truncated {
            return episode;
        }
    }
}

/// A controller that heads for one waypoint after another and brakes at the last.
fn follow(waypoints: &[Point]) -> impl FnMut(&[f64]) -> Point {
    let mut next = 0;
    move |state| {
        let target = waypoints[next];
        if next + 1 < waypoints.len() && distance([state[0], state[1]], target) < 0.12 {
            next += 1;
        }
        let target = waypoints[next];
        [0, 1].map(|axis| (6.0 * (target[axis] - state[axis]) - 2.0 * state[axis + 2]).clamp(-1.0, 1.0))
    }
}

fn length(path: &[Point]) -> f64 {
    path.windows(2).map(|leg| distance(leg[0], leg[1])).sum()
}

#[test]
fn a_straight_push_upwards_passes_the_goal_by_the_centre() {
    let maze = MazeConfig::default();
    for seed in 0..20 {
        let episode = drive(&maze, seed, |_| [0.0, 1.0]);
        let nearest = episode.signal(4, 5).fold(f64::INFINITY, f64::min);
        assert!(nearest <= maze.goal_radius, "seed {seed}: {nearest}");
        // The block above the goal stops it for good.
        let end = positions(&episode)[maze.horizon];
        assert_eq!(end[1], 0.7);
        let braking = drive(&maze, seed, follow(&[[0.0, 0.0]]));
        let way = maze.way(&[braking]).unwrap();
        assert_eq!(maze.name_of_way(&way), Some("centre"));
    }
}

#[test]
fn every_named_way_can_be_driven_and_has_its_own_signature() {
    let maze = MazeConfig::default();
    let mut ways: Vec<Way> = Vec::new();
    for (name, side, gate) in [
        ("outer left", -1.0, 1.7),
        ("inner left", -1.0, 0.675),
        ("centre", 1.0, 0.0),
        ("inner right", 1.0, 0.675),
        ("outer right", 1.0, 1.7),
    ] {
        let x = side * gate;
        let route = [[x, -1.2], [x, -0.55], [0.0, -0.5], [0.0, 0.0]];
        let episodes: Vec<Episode> = (0..5).map(|seed| drive(&maze, seed, follow(&route))).collect();
        assert_eq!(maze.measure(&episodes)[1], ("success_rate", 1.0), "{name}");
        let way = maze.way(&episodes).unwrap();
        assert_eq!(maze.name_of_way(&way), Some(name));
        assert!(!ways.contains(&way));
        ways.push(way);
    }
    assert_eq!([&ways[2], &ways[3], &ways[4]].map(Vec::len), [0, 1, 2]);
    // Through the outer gate and over the bar: an unnamed way.
    let over = [[1.7, -1.2], [1.7, -0.3], [1.1, 0.6], [0.5, 0.58], [0.0, 0.0]];
    let way = maze.way(&[drive(&maze, 1, follow(&over))]).unwrap();
    assert_eq!(maze.name_of_way(&way), None);
    assert!(!ways.contains(&way));
}

#[test]
fn the_shortest_paths_are_as_documented() {
    let maze = MazeConfig::default();
    let free = |a: Point, b: Point| {
        let solids = Solids::new(maze.half_width, &maze.walls);
        let (mut position, mut velocity) = (a, [b[0] - a[0], b[1] - a[1]]);
        let pushed = velocity;
        solids.advance(&mut position, &mut velocity, 1.0);
        velocity == pushed
    };
    for ((name, path), expected) in SHORTEST.iter().zip([3.431, 2.021, 1.7, 2.021, 3.431]) {
        assert!((length(path) - expected).abs() < 1e-3, "{name}: {}", length(path));
        assert!(path.windows(2).all(|leg| free(leg[0], leg[1])), "{name} is blocked");
        // Every bend is taut: any short cut across it hits a wall. A taut path is the shortest of its way.
        for bend in path.windows(3) {
            let short_cut = [0, 1].map(|i| bend[1][i] + 1e-3 * (0.5 * (bend[0][i] + bend[2][i]) - bend[1][i]));
            assert!(
                !free(bend[0], short_cut) || !free(short_cut, bend[2]),
                "{name} is slack"
            );
        }
    }
}

#[test]
fn same_seed_and_actions_give_the_same_bits() {
    let maze = MazeConfig::default();
    let noisy = |seed: u64| {
        let mut stream = Stream::seed_from_u64(9);
        drive(&maze, seed, move |_| [0, 1].map(|_| 2.0 * stream.random::<f64>() - 1.0))
    };
    let bits = |episode: &Episode| episode.signals.iter().map(|value| value.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&noisy(5)), bits(&noisy(5)));
    assert_ne!(bits(&noisy(5)), bits(&noisy(6)));
}

#[test]
fn starts_fill_the_noise_square_at_rest() {
    let maze = MazeConfig::default();
    let mut env = maze.make().unwrap();
    let mut observation = [0.0; 4];
    let (mut low, mut high) = ([f64::INFINITY; 2], [f64::NEG_INFINITY; 2]);
    for seed in 0..1000 {
        env.reset(seed, &mut observation);
        assert_eq!(observation[2..], [0.0, 0.0]);
        for axis in 0..2 {
            low[axis] = low[axis].min(observation[axis] - maze.start[axis]);
            high[axis] = high[axis].max(observation[axis] - maze.start[axis]);
        }
    }
    for axis in 0..2 {
        assert!(low[axis] >= -0.0501 && low[axis] < -0.049, "{low:?}");
        assert!(high[axis] <= 0.0501 && high[axis] > 0.049, "{high:?}");
    }
}

#[test]
fn one_step_follows_the_formula() {
    let maze = MazeConfig {
        start_noise: 0.0,
        ..MazeConfig::default()
    };
    let mut env = maze.make().unwrap();
    let (mut observation, mut signals) = ([0.0; 4], [0.0; 5]);
    env.reset(1, &mut observation);
    env.step(&[1.0, -0.5], &mut observation);
    let step = env.step(&[0.5, 0.5], &mut observation);
    // v1 = 0.2·(1, -0.5); v2 = v1 + 0.1·(2·(0.5, 0.5) - 2·v1); x = 0.1·(v1 + v2).
    let expected = [0.046, -1.708, 0.26, 0.02];
    for (value, expected) in observation.iter().zip(expected) {
        assert!((value - expected).abs() < 1e-12, "{observation:?}");
    }
    env.signals(&mut signals);
    assert_eq!(signals[..4], observation);
    assert!((signals[4] - 0.046f64.hypot(1.708)).abs() < 1e-12);
    assert_eq!(step.reward, (-signals[4]).exp());
}

#[test]
fn settings_come_from_toml_and_wrong_ones_are_refused() {
    let build = |text: &str| Registry::default().build("maze", text.parse().unwrap());
    let (_, resolved) = build("half_width = 3\nwalls = [[-1, -0.5, 1, -0.4]]").unwrap();
    assert_eq!(resolved["half_width"].as_float(), Some(3.0));
    assert_eq!(resolved["horizon"].as_integer(), Some(100));
    assert_eq!(build(&resolved.to_string()).unwrap().1, resolved);
    // The example of docs/maze.md.
    build("walls = [[-2, -1, 0.5, -0.8], [-0.5, -0.5, 2, -0.3]]").unwrap();
    for (text, expected) in [
        ("half_with = 3", "half_with"),
        ("walls = [[0, 0, 1]]", "env.walls"),
        ("horizon = -1", "env.horizon"),
        ("goal = [0, 9]", "env.goal"),
    ] {
        let sentence = build(text).err().expect(text).to_string();
        assert!(sentence.contains(expected), "{sentence}");
    }
}

#[test]
fn figures_show_every_episode() {
    let maze = MazeConfig::default();
    let policies: Vec<Vec<Episode>> = (0..3).map(|seed| vec![drive(&maze, seed, |_| [0.0, 1.0]); 2]).collect();
    let figures = maze.figures(&policies);
    let [(name, Figure::Map(map))] = &figures[..] else {
        panic!("one map was expected");
    };
    assert_eq!(name, "maze_trajectories");
    assert_eq!(
        map.paths.iter().map(|path| path.policy).collect::<Vec<_>>(),
        [0, 0, 1, 1, 2, 2]
    );
    assert_eq!(map.paths[0].points.len(), maze.horizon + 1);
}

#[test]
fn the_drawing_names_the_ways_of_the_default_maze_alone() {
    let labels = |maze: &MazeConfig| match maze.drawing() {
        Some(Figure::Map(map)) => map.labels.into_iter().map(|(_, name)| name).collect::<Vec<_>>(),
        other => panic!("a map was expected, not {other:?}"),
    };
    let mut maze = MazeConfig::default();
    assert_eq!(
        labels(&maze),
        ["outer left", "inner left", "centre", "inner right", "outer right"]
    );
    maze.walls.pop();
    assert!(labels(&maze).is_empty());
}
