//! Environments: the [`Env`] trait, the [`Task`] that creates and measures them, and the registry by name.
//!
//! To add an environment, write a settings struct that implements [`Task`] and a type that implements [`Env`], and
//! register it; `docs/environments.md` is a tutorial.

mod registry;

pub mod behaviour;
pub mod grid;
pub mod maze;

pub use grid::{Axis, Grid};
pub use registry::Registry;

use crate::error::Result;
use crate::plot::Figure;

/// Sizes, bounds and names of an environment, constant over its lifetime.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Length of an observation.
    pub observation: usize,
    /// Lower bound of each action dimension.
    pub action_low: Vec<f64>,
    /// Upper bound of each action dimension.
    pub action_high: Vec<f64>,
    /// Number of steps after which an episode is truncated.
    pub horizon: usize,
    /// Whether episodes can terminate before the horizon (a fall, for example).
    pub can_terminate: bool,
    /// Names of the signals of [`Env::signals`], e.g. `x`, `y`, `velocity`.
    pub signals: Vec<&'static str>,
}

impl Spec {
    /// Number of action dimensions.
    pub fn action(&self) -> usize {
        self.action_low.len()
    }
}

/// The result of one step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The task's reward.
    pub reward: f64,
    /// The episode terminated: the next state has no value.
    pub terminated: bool,
    /// The time limit was reached: the next state still has a value.
    pub truncated: bool,
}

/// One simulated world.
///
/// Everything after `reset(seed)` must depend on the seed and the actions only: a resumed run rebuilds its current
/// episode by repeating the actions, and stops with an error if an observation differs.
pub trait Env: Send {
    /// Sizes, bounds and names.
    fn spec(&self) -> &Spec;

    /// Starts an episode and writes its first observation.
    fn reset(&mut self, seed: u64, observation: &mut [f64]);

    /// Takes one step and writes the next observation. `action` is within the bounds of the spec.
    fn step(&mut self, action: &[f64], observation: &mut [f64]) -> Step;

    /// Writes the signals of the current state (for metrics, plots and `qd.behaviour`; policies do not see them).
    /// Evaluation calls it, training only if the behaviour uses signals; it must not change the episode.
    fn signals(&mut self, signals: &mut [f64]);

    /// Whether the last step terminated the episode because the simulation became unstable; training counts such
    /// episodes.
    fn unstable(&self) -> bool {
        false
    }

    /// The visible part of the current state: the numbers that [`Stage::draw`] needs. Empty if the world has no stage.
    fn pose(&self) -> &[f64] {
        &[]
    }

    /// This world with a settable state, if it has one; `stein replay` needs it.
    fn settable(&mut self) -> Option<&mut dyn SetState> {
        None
    }
}

/// A world whose state is given by positions and velocities and can be set.
pub trait SetState: Env {
    /// Number of positions and number of velocities.
    fn state_sizes(&self) -> (usize, usize);

    /// Starts an episode in this state and writes its first observation.
    fn set_state(&mut self, positions: &[f64], velocities: &[f64], observation: &mut [f64]);
}

/// Renders states of a world, for `stein video`.
pub trait Stage {
    /// Simulated time per step, in seconds.
    fn step_time(&self) -> f64;

    /// Renders a state, given by its [`Env::pose`], into `pixels`: rows from top to bottom, three bytes per pixel (red,
    /// green, blue), in the size that the stage was created with.
    fn draw(&mut self, pose: &[f64], pixels: &mut [u8]) -> Result<()>;
}

/// One recorded episode of one policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Episode {
    /// Reward of each of its T steps.
    pub rewards: Vec<f64>,
    /// Signals of its T+1 states, row after row.
    pub signals: Vec<f64>,
    /// Observations of its T+1 states, row after row, before normalisation.
    pub observations: Vec<f32>,
    /// Whether it terminated.
    pub terminated: bool,
}

impl Episode {
    /// Sum of the rewards.
    pub fn total(&self) -> f64 {
        self.rewards.iter().sum()
    }

    /// The signal with this index in each of the T+1 states; `width` is the number of signals.
    pub fn signal(&self, index: usize, width: usize) -> impl Iterator<Item = f64> + '_ {
        self.signals.iter().skip(index).step_by(width).copied()
    }
}

/// A named number, the result of an evaluation.
pub type Measure = (&'static str, f64);

/// A task: the settings of an environment, which create copies of it and define how episodes are evaluated.
pub trait Task: Send + Sync {
    /// Rejects invalid settings with a sentence that names the key (as in `env.horizon`) and the fix.
    fn validate(&self) -> Result<()>;

    /// Creates one environment. Called once per policy.
    fn make(&self) -> Result<Box<dyn Env>>;

    /// Names of the signals that are the behaviour φ(s) of this task, e.g. the pace of a runner: what policies should
    /// differ in with `qd.behaviour = "task"`, and what `policy_information` measures. Empty: the whole observation.
    fn behaviour(&self) -> &'static [&'static str] {
        &[]
    }

    /// The scale at which differences in behaviour count, in the units of its signals: the std of the noise that
    /// `qd.behaviour = "task"` adds. 0: any difference counts.
    fn resolution(&self) -> f64 {
        0.0
    }

    /// The grid over behaviour with which `stein eval` scores an ensemble; none: no score.
    fn grid(&self) -> Option<Grid> {
        None
    }

    /// Metrics of one policy for `stein eval`, besides its return.
    fn measure(&self, _episodes: &[Episode]) -> Vec<Measure> {
        Vec::new()
    }

    /// Metrics of the ensemble for `stein eval`: `policies[i]` are the episodes of policy i.
    fn measure_ensemble(&self, _policies: &[Vec<Episode>]) -> Vec<Measure> {
        Vec::new()
    }

    /// A picture of the empty world, for `stein envs NAME --draw STEM`.
    fn drawing(&self) -> Option<Figure> {
        None
    }

    /// Renders states of this world at `width` by `height` pixels; none if the world cannot be rendered, an error if
    /// something is missing on this machine.
    fn stage(&self, _width: u32, _height: u32) -> Result<Option<Box<dyn Stage>>> {
        Ok(None)
    }

    /// The outcome of an episode in two or three words, e.g. `x 23.4 m`, shown in videos after the return.
    fn outcome(&self, _episode: &Episode) -> Option<String> {
        None
    }

    /// Figures of these episodes, by file name without extension. `stein plot` draws them.
    fn figures(&self, _policies: &[Vec<Episode>]) -> Vec<(String, Figure)> {
        Vec::new()
    }
}
