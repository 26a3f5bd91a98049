//! Environments: the [`Env`] trait, the [`Task`] that makes and measures them, and the registry by name.
//!
//! To add an environment, write a settings struct that implements [`Task`] and a type that implements [`Env`], and
//! register it: `docs/environments.md` walks through one.

mod registry;

pub mod behaviour;
pub mod grid;
pub mod maze;

pub use grid::{Axis, Grid};
pub use registry::Registry;

use crate::error::Result;
use crate::plot::Figure;

/// Sizes, bounds and names of an environment. Fixed for its lifetime.
#[derive(Clone, Debug, PartialEq)]
pub struct Spec {
    /// Length of an observation.
    pub observation: usize,
    /// Least value of each action coordinate.
    pub action_low: Vec<f64>,
    /// Largest value of each action coordinate.
    pub action_high: Vec<f64>,
    /// Steps after which an episode is truncated.
    pub horizon: usize,
    /// Whether an episode can end by itself, before the horizon (a fall, say).
    pub can_terminate: bool,
    /// Names of the signals of [`Env::signals`], e.g. `x`, `y`, `velocity`.
    pub signals: Vec<&'static str>,
}

impl Spec {
    /// Number of action coordinates.
    pub fn action(&self) -> usize {
        self.action_low.len()
    }
}

/// What one step returned.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// The task's reward.
    pub reward: f64,
    /// The episode ended by itself: the state after it has no value.
    pub terminated: bool,
    /// The episode was cut off by its time limit: the state after it would have gone on.
    pub truncated: bool,
}

/// One simulated world.
///
/// Everything after `reset(seed)` must be a function of the seed and the actions alone: a resumed run rebuilds the
/// episode it was in by repeating its actions, and refuses to go on where that gives another observation.
pub trait Env: Send {
    /// Sizes, bounds and names.
    fn spec(&self) -> &Spec;

    /// Starts an episode and writes its first observation.
    fn reset(&mut self, seed: u64, observation: &mut [f64]);

    /// Takes one step and writes the next observation. `action` lies within the bounds of the spec.
    fn step(&mut self, action: &[f64], observation: &mut [f64]) -> Step;

    /// Writes the named signals of the present state (for metrics, plots and `qd.behaviour`, never seen by a policy).
    /// Evaluation asks for them, training only where behaviour is made of them; to ask must change nothing of what follows.
    fn signals(&mut self, signals: &mut [f64]);

    /// Whether the last step terminated the episode because the simulation broke down; training counts such episodes.
    fn unstable(&self) -> bool {
        false
    }

    /// What of the present state can be seen: the numbers that [`Stage::draw`] needs. None if the world has no stage.
    fn pose(&self) -> &[f64] {
        &[]
    }

    /// This world as one whose state can be set, if it is such a one; `stein replay` needs it.
    fn settable(&mut self) -> Option<&mut dyn SetState> {
        None
    }
}

/// A world whose whole state is positions and velocities, which can be set.
pub trait SetState: Env {
    /// Number of positions and number of velocities.
    fn state_sizes(&self) -> (usize, usize);

    /// Starts an episode in this state and writes its first observation.
    fn set_state(&mut self, positions: &[f64], velocities: &[f64], observation: &mut [f64]);
}

/// Draws states of a world; `stein video` makes films of them.
pub trait Stage {
    /// Time that passes in one step of the world, in seconds.
    fn step_time(&self) -> f64;

    /// Draws a state from its [`Env::pose`] into `pixels`: rows from top to bottom, three bytes a pixel (red, green,
    /// blue), of the size that the stage was made with.
    fn draw(&mut self, pose: &[f64], pixels: &mut [u8]) -> Result<()>;
}

/// One recorded episode of one policy.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Episode {
    /// Reward of each of its T steps.
    pub rewards: Vec<f64>,
    /// Signals of its T+1 states, row after row.
    pub signals: Vec<f64>,
    /// Observations of its T+1 states, row after row, as policies see them before they are normalised.
    pub observations: Vec<f32>,
    /// Whether it ended by itself.
    pub terminated: bool,
}

impl Episode {
    /// Sum of the rewards.
    pub fn total(&self) -> f64 {
        self.rewards.iter().sum()
    }

    /// Signal number `index` of each of the T+1 states; `width` is the number of signals.
    pub fn signal(&self, index: usize, width: usize) -> impl Iterator<Item = f64> + '_ {
        self.signals.iter().skip(index).step_by(width).copied()
    }
}

/// A named number of an evaluation.
pub type Measure = (&'static str, f64);

/// A task: the settings of an environment, which can make copies of it and say how episodes are to be judged.
pub trait Task: Send + Sync {
    /// Refuses impossible settings with a sentence that names the key (as in `env.horizon`) and the cure.
    fn validate(&self) -> Result<()>;

    /// Makes one environment. Called once per policy.
    fn make(&self) -> Result<Box<dyn Env>>;

    /// Names of the signals that this task calls behaviour φ(s), e.g. the pace of a runner: what
    /// `qd.behaviour = "task"` keeps different and `policy_information` measures. None: the whole observation.
    fn behaviour(&self) -> &'static [&'static str] {
        &[]
    }

    /// Which difference of behaviour counts, in the units of its signals: `qd.behaviour = "task"` sees them through normal
    /// noise of this deviation. 0: any.
    fn resolution(&self) -> f64 {
        0.0
    }

    /// The grid over behaviour by which `stein eval` scores an ensemble; none: it is not scored.
    fn grid(&self) -> Option<Grid> {
        None
    }

    /// What `stein eval` prints of one policy, besides its return.
    fn measure(&self, _episodes: &[Episode]) -> Vec<Measure> {
        Vec::new()
    }

    /// What `stein eval` prints of the ensemble: `policies[i]` are the episodes of policy i.
    fn measure_ensemble(&self, _policies: &[Vec<Episode>]) -> Vec<Measure> {
        Vec::new()
    }

    /// A picture of the world without anybody in it. `stein envs NAME --draw STEM` draws it.
    fn drawing(&self) -> Option<Figure> {
        None
    }

    /// What draws states of this world in pictures of `width` by `height` pixels; none if that cannot be done at all, an
    /// error if something that it takes is missing on this machine.
    fn stage(&self, _width: u32, _height: u32) -> Result<Option<Box<dyn Stage>>> {
        Ok(None)
    }

    /// What came of an episode, in two or three words, e.g. `x 23.4 m`: a film shows it beside the return.
    fn outcome(&self, _episode: &Episode) -> Option<String> {
        None
    }

    /// Pictures of these episodes, by file name without extension. `stein plot` draws them.
    fn figures(&self, _policies: &[Vec<Episode>]) -> Vec<(String, Figure)> {
        Vec::new()
    }
}
