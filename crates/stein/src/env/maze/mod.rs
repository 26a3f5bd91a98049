//! A point with inertia in a 2-D maze with several ways to the goal.
//!
//! ```text
//! v ← v + dt·(force·a - drag·v)              a in [-1, 1]²
//! x ← x + dt·v                               impacts stop the normal velocity; the point slides along the wall
//! r = exp(-|x - goal|)
//! ```
//!
//! Start, goal and reward are those of Section 5 of the paper; walls, dynamics and horizon are unpublished and ours.
//! `docs/maze.md` has a drawing and the definition of every metric.

pub mod collision;
mod measure;
mod regions;
#[cfg(test)]
mod tests;
mod validate;
pub mod ways;

use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};

use self::collision::{Point, Rectangle, Solids};
use self::measure::{distance, positions};
use self::ways::{Way, Ways};
use super::{Axis, Env, Episode, Grid, Measure, Spec, Step, Task};
use crate::error::Result;
use crate::plot::{Figure, Map, Trail};
use crate::rng::Stream;

/// Description for `stein envs`.
pub const ABOUT: &str = "a point with inertia in a 2-D maze; reward exp(-distance to the goal)";

/// Names of the signals.
const SIGNALS: [&str; 5] = ["x", "y", "vx", "vy", "distance"];

/// The shortest path of each named way of the default maze.
const SHORTEST: [(&str, &[Point]); 5] = [
    ("outer left", &[[0.0, -1.7], [-1.4, -1.05], [-1.4, -0.75], [0.0, 0.0]]),
    ("inner left", &[[0.0, -1.7], [-0.5, -1.05], [-0.5, -0.75], [0.0, 0.0]]),
    ("centre", &[[0.0, -1.7], [0.0, 0.0]]),
    ("inner right", &[[0.0, -1.7], [0.5, -1.05], [0.5, -0.75], [0.0, 0.0]]),
    ("outer right", &[[0.0, -1.7], [1.4, -1.05], [1.4, -0.75], [0.0, 0.0]]),
];

/// Settings of the maze.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MazeConfig {
    /// Half the side of the square arena, whose centre is the origin. Its border is solid.
    pub half_width: f64,
    /// Solid rectangles [x0, y0, x1, y1].
    pub walls: Vec<[f64; 4]>,
    /// Where episodes start, at rest.
    pub start: [f64; 2],
    /// Maximum noise on each coordinate of the start; uniform.
    pub start_noise: f64,
    /// Centre of the goal circle.
    pub goal: [f64; 2],
    /// Radius of the goal circle.
    pub goal_radius: f64,
    /// Acceleration at full action.
    pub force: f64,
    /// Deceleration per unit of velocity.
    pub drag: f64,
    /// Time per step.
    pub dt: f64,
    /// Steps per episode.
    pub horizon: usize,
    /// Side of the cells used for coverage.
    pub cell: f64,
}

impl Default for MazeConfig {
    fn default() -> Self {
        MazeConfig {
            half_width: 2.0,
            walls: vec![
                // A comb across the way up, with gates between its teeth and around its ends.
                [-1.4, -1.05, -0.85, -0.75],
                [-0.5, -1.05, -0.15, -0.75],
                [0.15, -1.05, 0.5, -0.75],
                [0.85, -1.05, 1.4, -0.75],
                // Bars beside the goal.
                [-0.8, -0.3, -0.6, 0.5],
                [0.6, -0.3, 0.8, 0.5],
                // A block above it.
                [-0.4, 0.7, 0.4, 0.9],
            ],
            start: [0.0, -1.7],
            start_noise: 0.05,
            goal: [0.0, 0.0],
            goal_radius: 0.1,
            force: 2.0,
            drag: 2.0,
            dt: 0.1,
            horizon: 100,
            cell: 0.1,
        }
    }
}

impl MazeConfig {
    /// The maze from above, without paths; the ways of the default maze are labelled at their gates.
    pub fn map(&self) -> Map {
        let h = self.half_width;
        let below_gates = [-1.7, -0.675, 0.0, 0.675, 1.7].map(|x| [x, -1.2]);
        let names = SHORTEST.iter().map(|(name, _)| name.to_string());
        Map {
            title: "Maze".into(),
            axes: ["x", "y"].map(str::to_owned),
            bounds: [-h, -h, h, h],
            walls: self.walls.clone(),
            start: self.start,
            goal: [self.goal[0], self.goal[1], self.goal_radius],
            paths: Vec::new(),
            labels: if self.has_named_ways() {
                below_gates.into_iter().zip(names).collect()
            } else {
                Vec::new()
            },
        }
    }

    /// The way of most of a policy's successful episodes; none if no episode ends inside the goal circle.
    pub fn way(&self, episodes: &[Episode]) -> Option<Way> {
        measure::way_of_policy(self, &Ways::new(self.half_width, &self.walls), episodes)
    }

    /// The name of a way ("centre", "inner left", …), if it is one of the five simple ways of the default maze.
    pub fn name_of_way(&self, way: &Way) -> Option<&'static str> {
        let ways = Ways::new(self.half_width, &self.walls);
        let named = SHORTEST.iter().find(|(_, path)| ways.of(path) == *way);
        named.filter(|_| self.has_named_ways()).map(|(name, _)| *name)
    }

    /// Whether start, goal and walls are the defaults, for which the names of the ways hold.
    fn has_named_ways(&self) -> bool {
        let default = MazeConfig::default();
        let place = |maze: &MazeConfig| (maze.half_width, maze.start, maze.goal);
        place(self) == place(&default) && self.walls == default.walls
    }
}

impl Task for MazeConfig {
    fn validate(&self) -> Result<()> {
        validate::validate(self)
    }

    fn make(&self) -> Result<Box<dyn Env>> {
        self.validate()?;
        Ok(Box::new(Maze::new(self)))
    }

    fn behaviour(&self) -> &'static [&'static str] {
        &["x", "y"]
    }

    fn resolution(&self) -> f64 {
        0.01
    }

    /// The mean position of a path, in 20 × 20 cells.
    fn grid(&self) -> Option<Grid> {
        let axis = |signal| Axis {
            signal,
            low: -self.half_width,
            high: self.half_width,
            cells: 20,
        };
        Some(Grid {
            axes: vec![axis("x"), axis("y")],
            at_end: false,
        })
    }

    fn measure(&self, episodes: &[Episode]) -> Vec<Measure> {
        measure::of_policy(self, episodes)
    }

    fn measure_ensemble(&self, policies: &[Vec<Episode>]) -> Vec<Measure> {
        measure::of_ensemble(self, policies)
    }

    fn drawing(&self) -> Option<Figure> {
        Some(Figure::Map(self.map()))
    }

    fn figures(&self, policies: &[Vec<Episode>]) -> Vec<(String, Figure)> {
        let paths = policies.iter().enumerate().flat_map(|(policy, episodes)| {
            episodes.iter().map(move |episode| Trail {
                policy,
                points: positions(episode),
                failed: false,
            })
        });
        let map = Map {
            title: "Trajectories".into(),
            paths: paths.collect(),
            labels: Vec::new(),
            ..self.map()
        };
        vec![("maze_trajectories".into(), Figure::Map(map))]
    }
}

/// The maze as an environment. Created by [`MazeConfig`], which checks the settings first.
#[derive(Clone, Debug)]
struct Maze {
    spec: Spec,
    solids: Solids,
    start: Point,
    start_noise: f64,
    goal: Point,
    force: f64,
    drag: f64,
    dt: f64,
    position: Point,
    velocity: Point,
    steps: usize,
}

impl Maze {
    fn new(config: &MazeConfig) -> Self {
        let walls: &[Rectangle] = &config.walls;
        Maze {
            spec: Spec {
                observation: 4,
                action_low: vec![-1.0; 2],
                action_high: vec![1.0; 2],
                horizon: config.horizon,
                can_terminate: false,
                signals: SIGNALS.to_vec(),
            },
            solids: Solids::new(config.half_width, walls),
            start: config.start,
            start_noise: config.start_noise,
            goal: config.goal,
            force: config.force,
            drag: config.drag,
            dt: config.dt,
            position: config.start,
            velocity: [0.0; 2],
            steps: 0,
        }
    }

    fn observe(&self, observation: &mut [f64]) {
        observation[..2].copy_from_slice(&self.position);
        observation[2..].copy_from_slice(&self.velocity);
    }
}

impl Env for Maze {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, observation: &mut [f64]) {
        let mut stream = Stream::seed_from_u64(seed);
        self.position = self
            .start
            .map(|centre| centre + self.start_noise * (2.0 * stream.random::<f64>() - 1.0));
        self.velocity = [0.0; 2];
        self.steps = 0;
        self.observe(observation);
    }

    fn step(&mut self, action: &[f64], observation: &mut [f64]) -> Step {
        for (velocity, action) in self.velocity.iter_mut().zip(action) {
            *velocity += self.dt * (self.force * action - self.drag * *velocity);
        }
        self.solids.advance(&mut self.position, &mut self.velocity, self.dt);
        self.steps += 1;
        self.observe(observation);
        Step {
            reward: (-distance(self.position, self.goal)).exp(),
            terminated: false,
            truncated: self.steps >= self.spec.horizon,
        }
    }

    fn signals(&mut self, signals: &mut [f64]) {
        self.observe(&mut signals[..4]);
        signals[4] = distance(self.position, self.goal);
    }
}
