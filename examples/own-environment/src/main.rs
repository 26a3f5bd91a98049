//! The smallest task there is: a point on a line, pushed left or right, is rewarded for being near a target. Explained
//! in docs/environments.md of stein: `cargo run --release -- train line`.

use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use stein::env::{Episode, Measure, Spec, Step};
use stein::rng::Stream;
use stein::{Env, Error, Registry, Result, Task};

/// Settings: the keys of `[env]`.
#[derive(Clone, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct LineConfig {
    /// Where the point should be.
    target: f64,
    /// Steps of an episode.
    horizon: usize,
}

impl Default for LineConfig {
    fn default() -> Self {
        LineConfig {
            target: 1.0,
            horizon: 50,
        }
    }
}

impl Task for LineConfig {
    fn validate(&self) -> Result<()> {
        if !self.target.is_finite() {
            return Err(Error::input(format!(
                "env.target = {} is no place: give a number",
                self.target
            )));
        }
        if !(1..=100_000).contains(&self.horizon) {
            return Err(Error::input("env.horizon is out of range: set it between 1 and 100000"));
        }
        Ok(())
    }

    fn make(&self) -> Result<Box<dyn Env>> {
        Ok(Box::new(Line {
            spec: Spec {
                observation: 1,
                action_low: vec![-0.1],
                action_high: vec![0.1],
                horizon: self.horizon,
                can_terminate: false,
                signals: vec!["x"],
            },
            target: self.target,
            x: 0.0,
            steps: 0,
        }))
    }

    fn measure(&self, episodes: &[Episode]) -> Vec<Measure> {
        let ends = episodes.iter().filter_map(|episode| episode.signal(0, 1).last());
        let total: f64 = ends.map(|x| (x - self.target).abs()).sum();
        vec![("final_distance", total / episodes.len() as f64)]
    }
}

struct Line {
    spec: Spec,
    target: f64,
    x: f64,
    steps: usize,
}

impl Env for Line {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, observation: &mut [f64]) {
        // All randomness of an episode comes from its seed.
        self.x = Stream::seed_from_u64(seed).random_range(-0.5..0.5);
        self.steps = 0;
        observation[0] = self.x;
    }

    fn step(&mut self, action: &[f64], observation: &mut [f64]) -> Step {
        self.x += action[0];
        self.steps += 1;
        observation[0] = self.x;
        Step {
            reward: -(self.x - self.target).abs(),
            terminated: false,
            truncated: self.steps >= self.spec.horizon,
        }
    }

    fn signals(&mut self, signals: &mut [f64]) {
        signals[0] = self.x;
    }
}

fn main() {
    let mut registry = Registry::default();
    registry.register::<LineConfig>("line", "a point on a line that should be near a target");
    stein_cli::main_with(registry)
}
