//! A program with an environment of its own: `stein` with a pendulum that is to be swung up and held upright.
//!
//! ```text
//! ω̇ = (3g / 2l)·sin θ + 3u / l²              θ = 0 is upright, |u| ≤ torque, too little to lift it at once
//! r = -(θ² + 0.1·ω² + 0.001·u²)              θ in [-π, π]; the dynamics and the reward of Gymnasium's Pendulum-v1
//! ```
//!
//! Try `cargo run --release --example pendulum -- train pendulum`. All commands of `stein` know the environment:
//! `envs`, `train`, `eval`, `plot`, `bench`.

use std::f64::consts::{PI, TAU};

use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use stein::env::{Env, Episode, Measure, Registry, Spec, Step, Task};
use stein::rng::Stream;
use stein::{Error, Result};

/// Settings: the keys of `[env]` in a file and of `--set env.KEY=VALUE`.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Pendulum {
    /// Largest torque u.
    torque: f64,
    /// Length l; the mass is 1.
    length: f64,
    /// Time of one step.
    dt: f64,
    /// Steps of an episode.
    horizon: usize,
    /// For trying out what a broken environment does: from this step of an episode on, observations are NaN. 0 for never.
    nan_after: usize,
}

impl Default for Pendulum {
    fn default() -> Self {
        Pendulum {
            torque: 2.0,
            length: 1.0,
            dt: 0.05,
            horizon: 200,
            nan_after: 0,
        }
    }
}

impl Task for Pendulum {
    fn validate(&self) -> Result<()> {
        for (key, value) in [("torque", self.torque), ("length", self.length), ("dt", self.dt)] {
            if !(1e-3..=1e3).contains(&value) {
                return Err(Error::input(format!("env.{key} is {value}; choose 0.001 to 1000")));
            }
        }
        if !(1..=1_000_000).contains(&self.horizon) {
            let horizon = self.horizon;
            return Err(Error::input(format!("env.horizon is {horizon}; choose 1 to 1000000")));
        }
        Ok(())
    }

    fn make(&self) -> Result<Box<dyn Env>> {
        let spec = Spec {
            observation: 3,
            action_low: vec![-self.torque],
            action_high: vec![self.torque],
            horizon: self.horizon,
            can_terminate: false,
            signals: vec!["angle", "velocity"],
        };
        Ok(Box::new(World {
            spec,
            task: self.clone(),
            angle: PI,
            velocity: 0.0,
            steps: 0,
        }))
    }

    /// How far from upright the episodes end, on average.
    fn measure(&self, episodes: &[Episode]) -> Vec<Measure> {
        let last = |episode: &Episode| episode.signal(0, 2).last().unwrap_or(PI).abs();
        let mean = episodes.iter().map(last).sum::<f64>() / episodes.len() as f64;
        vec![("final_angle", mean)]
    }
}

/// One pendulum.
struct World {
    spec: Spec,
    task: Pendulum,
    /// In [-π, π]; 0 is upright.
    angle: f64,
    velocity: f64,
    steps: usize,
}

impl World {
    fn observe(&self, observation: &mut [f64]) {
        observation.copy_from_slice(&[self.angle.cos(), self.angle.sin(), self.velocity]);
        if self.task.nan_after > 0 && self.steps >= self.task.nan_after {
            observation.fill(f64::NAN);
        }
    }
}

impl Env for World {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    /// All randomness comes from the seed: a resumed run repeats its episode and must find the same states.
    fn reset(&mut self, seed: u64, observation: &mut [f64]) {
        let mut random = Stream::seed_from_u64(seed);
        self.angle = random.random_range(-PI..PI);
        self.velocity = random.random_range(-1.0..1.0);
        self.steps = 0;
        self.observe(observation);
    }

    fn step(&mut self, action: &[f64], observation: &mut [f64]) -> Step {
        let (u, task) = (action[0], &self.task);
        let reward = -(self.angle.powi(2) + 0.1 * self.velocity.powi(2) + 0.001 * u * u);
        let pull = 1.5 * 10.0 / task.length * self.angle.sin();
        let push = 3.0 * u / task.length.powi(2);
        self.velocity = (self.velocity + task.dt * (pull + push)).clamp(-8.0, 8.0);
        self.angle = (self.angle + task.dt * self.velocity + PI).rem_euclid(TAU) - PI;
        self.steps += 1;
        self.observe(observation);
        Step {
            reward,
            terminated: false,
            truncated: self.steps >= self.spec.horizon,
        }
    }

    fn signals(&mut self, signals: &mut [f64]) {
        signals.copy_from_slice(&[self.angle, self.velocity]);
    }
}

fn main() {
    let mut registry = Registry::default();
    registry.register::<Pendulum>("pendulum", "a pendulum to be swung up and held upright");
    stein_cli::main_with(registry);
}
