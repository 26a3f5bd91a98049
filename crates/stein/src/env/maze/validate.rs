//! Validation of maze settings.

use super::MazeConfig;
use super::collision::{Point, Rectangle, crack, overlap};
use super::measure::{cells_of_side, distance};
use super::regions::Regions;
use crate::error::{Error, Result};

/// The largest size, force or time: above it products of settings could overflow.
const LARGEST: f64 = 1e6;

/// Longest episode.
const LONGEST: usize = 1_000_000;

/// Most cells of the coverage grid.
const CELLS: usize = 10_000_000;

/// Most walls.
const WALLS: usize = 1000;

/// Rejects invalid settings.
pub fn validate(maze: &MazeConfig) -> Result<()> {
    numbers(maze)?;
    walls(maze)?;
    start_and_goal(maze)
}

fn refuse<T>(sentence: String) -> Result<T> {
    Err(Error::input(sentence))
}

fn numbers(maze: &MazeConfig) -> Result<()> {
    for (key, value) in [
        ("half_width", maze.half_width),
        ("goal_radius", maze.goal_radius),
        ("force", maze.force),
        ("dt", maze.dt),
        ("cell", maze.cell),
    ] {
        if !(value > 0.0 && value <= LARGEST) {
            return refuse(format!(
                "env.{key} is {value}; choose a number above 0 and up to {LARGEST:e}"
            ));
        }
    }
    for (key, value) in [("start_noise", maze.start_noise), ("drag", maze.drag)] {
        if !(0.0..=LARGEST).contains(&value) {
            return refuse(format!("env.{key} is {value}; choose a number from 0 to {LARGEST:e}"));
        }
    }
    for (key, [x, y]) in [("start", maze.start), ("goal", maze.goal)] {
        if !(x.is_finite() && y.is_finite()) {
            return refuse(format!("env.{key} is [{x}, {y}]; write two finite numbers"));
        }
    }
    if maze.horizon == 0 || maze.horizon > LONGEST {
        return refuse(format!("env.horizon is {}; choose 1 to {LONGEST} steps", maze.horizon));
    }
    if maze.drag * maze.dt > 1.0 {
        return refuse(format!(
            "env.drag times env.dt is {}, so a step would reverse the velocity; lower one of them until the product \
             is at most 1",
            maze.drag * maze.dt
        ));
    }
    if maze.cell > 2.0 * maze.half_width {
        return refuse(format!(
            "env.cell is {}, wider than the arena; choose at most {}",
            maze.cell,
            2.0 * maze.half_width
        ));
    }
    let side = cells_of_side(maze.half_width, maze.cell);
    if side.saturating_mul(side) > CELLS {
        return refuse(format!(
            "env.cell is {}, which makes {side} × {side} cells; choose a larger one (at most {CELLS} cells)",
            maze.cell
        ));
    }
    Ok(())
}

fn walls(maze: &MazeConfig) -> Result<()> {
    if maze.walls.len() > WALLS {
        return refuse(format!(
            "env.walls has {} walls; draw at most {WALLS}",
            maze.walls.len()
        ));
    }
    let h = maze.half_width;
    for (index, wall) in maze.walls.iter().enumerate() {
        if !wall.iter().all(|value| value.is_finite()) {
            return refuse(format!("env.walls[{index}] is {wall:?}; write four finite numbers"));
        }
        if wall[0] >= wall[2] || wall[1] >= wall[3] {
            return refuse(format!(
                "env.walls[{index}] is {wall:?}, which has no area; write [x0, y0, x1, y1] with x0 < x1 and y0 < y1"
            ));
        }
        if !overlap(wall, &[-h, -h, h, h]) {
            return refuse(format!(
                "env.walls[{index}] is {wall:?}, outside of the arena of half-width {h}; remove it, or raise env.half_width"
            ));
        }
    }
    match crack(h, &maze.walls) {
        Some(point) => refuse(format!(
            "env.walls has two walls that touch only by their corners at {point:?}; let them overlap, or leave a gap"
        )),
        None => Ok(()),
    }
}

fn start_and_goal(maze: &MazeConfig) -> Result<()> {
    let (h, n) = (maze.half_width, maze.start_noise);
    let [x, y] = maze.start;
    let square = [x - n, y - n, x + n, y + n];
    if square.iter().any(|value| value.abs() > h) {
        return refuse(format!(
            "env.start is {:?}, which with env.start_noise {n} reaches out of the arena of half-width {h}; move it inwards",
            maze.start
        ));
    }
    if let Some((index, wall)) = find(&maze.walls, |wall| meets(&square, wall)) {
        return refuse(format!(
            "env.start is {:?}, which with env.start_noise {n} reaches into env.walls[{index}] = {wall:?}; move one of them, \
             or lower env.start_noise",
            maze.start
        ));
    }
    // Slightly smaller, so that a circle may touch a wall whatever the rounding of decimals.
    let (radius, clear) = (maze.goal_radius, maze.goal_radius * (1.0 - 1e-9));
    if maze.goal.iter().any(|value| value.abs() + clear > h) {
        return refuse(format!(
            "env.goal is {:?}, whose circle of env.goal_radius {radius} reaches out of the arena of half-width {h}; move it \
             inwards, or lower env.goal_radius",
            maze.goal
        ));
    }
    if let Some((index, wall)) = find(&maze.walls, |wall| {
        distance(maze.goal, nearest(maze.goal, wall)) < clear
    }) {
        return refuse(format!(
            "env.goal is {:?}, whose circle of env.goal_radius {radius} reaches into env.walls[{index}] = {wall:?}; move one \
             of them, or lower env.goal_radius",
            maze.goal
        ));
    }
    if !Regions::new(h, &maze.walls).connected(maze.start, maze.goal) {
        return refuse(format!(
            "env.goal {:?} cannot be reached from env.start {:?}; open a gap between the env.walls",
            maze.goal, maze.start
        ));
    }
    Ok(())
}

fn find(walls: &[Rectangle], wrong: impl Fn(&Rectangle) -> bool) -> Option<(usize, &Rectangle)> {
    walls.iter().enumerate().find(|(_, wall)| wrong(wall))
}

/// Whether a square, possibly a single point, overlaps a wall.
fn meets(square: &Rectangle, wall: &Rectangle) -> bool {
    (0..2).all(|axis| square[axis] < wall[axis + 2] && square[axis + 2] > wall[axis])
}

/// The point of a rectangle that is nearest to a point.
fn nearest(point: Point, rectangle: &Rectangle) -> Point {
    [0, 1].map(|axis| point[axis].clamp(rectangle[axis], rectangle[axis + 2]))
}

#[cfg(test)]
mod tests {
    use super::*;

    type Change = fn(&mut MazeConfig);

    #[test]
    fn every_impossible_setting_is_refused_by_name() {
        let cases: [(&str, Change); 26] = [
            ("env.half_width is 0", |maze| maze.half_width = 0.0),
            ("env.half_width is inf", |maze| maze.half_width = f64::INFINITY),
            ("env.goal_radius is -1", |maze| maze.goal_radius = -1.0),
            ("env.force is 0", |maze| maze.force = 0.0),
            ("env.dt is NaN", |maze| maze.dt = f64::NAN),
            ("env.cell is 0", |maze| maze.cell = 0.0),
            ("env.cell is 5", |maze| maze.cell = 5.0),
            ("env.cell is 0.0001", |maze| maze.cell = 1e-4),
            ("env.cell is 0.000", |maze| maze.cell = 1e-300),
            ("env.start_noise is -0.1", |maze| maze.start_noise = -0.1),
            ("env.drag is NaN", |maze| maze.drag = f64::NAN),
            ("env.drag times env.dt is 1.2", |maze| maze.drag = 12.0),
            ("env.start is [NaN, 0]", |maze| maze.start = [f64::NAN, 0.0]),
            ("env.goal is [0, -inf]", |maze| maze.goal = [0.0, f64::NEG_INFINITY]),
            ("env.horizon is 0", |maze| maze.horizon = 0),
            ("env.horizon is 1000001", |maze| maze.horizon = 1_000_001),
            ("env.walls has 1001 walls", |maze| {
                maze.walls = vec![[1.0, 1.0, 1.1, 1.1]; 1001]
            }),
            ("env.walls[7] is [NaN", |maze| {
                maze.walls.push([f64::NAN, 0.0, 1.0, 1.0])
            }),
            ("env.walls[7] is [1.0, 0.0, 1.0, 1.0], which has no area", |maze| {
                maze.walls.push([1.0, 0.0, 1.0, 1.0])
            }),
            ("env.walls[7] is [2.0, 0.0, 3.0, 1.0], outside", |maze| {
                maze.walls.push([2.0, 0.0, 3.0, 1.0])
            }),
            (
                "env.walls has two walls that touch only by their corners at [1.4, -0.75]",
                |maze| maze.walls.push([1.4, -0.75, 1.6, -0.5]),
            ),
            ("env.start is [0.0, -1.96]", |maze| maze.start = [0.0, -1.96]),
            (
                "env.start is [0.3, -1.09], which with env.start_noise 0.05 reaches into env.walls[2]",
                |maze| maze.start = [0.3, -1.09],
            ),
            ("env.goal is [1.95, 0.0]", |maze| maze.goal = [1.95, 0.0]),
            (
                "env.goal is [0.55, 0.0], whose circle of env.goal_radius 0.1 reaches into env.walls[5]",
                |maze| maze.goal = [0.55, 0.0],
            ),
            ("env.goal [0.0, 0.0] cannot be reached", |maze| {
                maze.walls.push([-2.0, -1.2, 2.0, -1.1])
            }),
        ];
        validate(&MazeConfig::default()).unwrap();
        for (expected, change) in cases {
            let mut maze = MazeConfig::default();
            change(&mut maze);
            let sentence = validate(&maze).expect_err(expected).to_string();
            assert!(sentence.starts_with(expected), "{sentence:?} instead of {expected:?}");
            assert!(sentence.contains("; "), "{sentence:?} names no cure");
        }
    }

    #[test]
    fn touching_is_allowed() {
        let mut maze = MazeConfig {
            start_noise: 0.0,
            start: [0.15, -0.9],
            goal: [0.0, 0.6],
            ..MazeConfig::default()
        };
        validate(&maze).unwrap();
        maze.walls.push([-2.0, 1.0, 2.0, 2.0]);
        validate(&maze).unwrap();
    }
}
