//! Methods: what turns the rollouts of an ensemble into the directions its policies move in.
//!
//! A method says, each iteration, how task gradients are mixed and which further rewards each policy follows: its
//! [`Guidance`]. The update itself ([`crate::update`]) is the same for all of them.

pub mod diayn;
mod ppo;
pub mod qd;
pub mod si;
pub mod svpg;
pub mod weighting;

pub use diayn::{Diayn, DiaynConfig};
pub use ppo::IndependentPpo;
pub use qd::{Qd, QdConfig};
pub use si::{Si, SiConfig};
pub use svpg::{Svpg, SvpgConfig};
pub use weighting::Weighting;

use crate::env::Spec;
use crate::env::behaviour::Column;
use crate::error::{Error, Result};
use crate::policy::advantage::Units;
use crate::policy::{Ensemble, Rollout};
use crate::run::checkpoint::Checkpoint;
use crate::run::config::Config;

/// How the policies are to move in one iteration.
///
/// ```text
/// Δθ_i = Σ_j task_ij·g_j + Σ_s streams_is·∇(clipped surrogate of stream s) + drift_i
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Guidance {
    /// Weight of policy j's task gradient in the step of policy i: `[n][n]`.
    pub task: Vec<f32>,
    /// Weight of each further stream in the step of policy i: `[n][streams]`.
    pub streams: Vec<f32>,
    /// Rewards of the further streams: `[n][streams]` of one reward a step each.
    pub rewards: Vec<Vec<f32>>,
    /// Units of the advantages: of the task, and of each further stream.
    pub units: Vec<Units>,
    /// Added to the step of each policy as it is, `[n][parameters]`; empty for none.
    pub drift: Vec<f32>,
}

impl Guidance {
    /// Every policy follows its own task gradient and nothing else.
    pub fn independent(n: usize) -> Self {
        let mut task = vec![0.0; n * n];
        for i in 0..n {
            task[i * n + i] = 1.0;
        }
        Guidance {
            task,
            streams: Vec::new(),
            rewards: Vec::new(),
            units: vec![Units::Standard],
            drift: Vec::new(),
        }
    }
}

/// A way of training an ensemble.
pub trait Method: Send {
    /// Reward streams besides the task's, for each policy.
    fn streams(&self) -> usize {
        0
    }

    /// What of each state rollouts are to record as behaviour, for the method's own use.
    fn behaviour(&self) -> &[Column] {
        &[]
    }

    /// Learns from the rollouts of an iteration and says how the policies are to move.
    fn guide(&mut self, ensemble: &Ensemble, rollouts: &[Rollout], iteration: usize) -> Result<Guidance>;

    /// Multiplications and additions that [`Method::guide`] spends on ratio networks in one iteration.
    fn ratio_flops(&self) -> f64 {
        0.0
    }

    /// Names of the method's own metrics.
    fn metric_names(&self) -> Vec<String> {
        Vec::new()
    }

    /// Values of its metrics in the last iteration, in the order of their names.
    fn metrics(&self) -> Vec<f64> {
        Vec::new()
    }

    /// The kernel matrix k_ij of the last iteration, `[n][n]`, where the method has one.
    fn kernel(&self) -> Option<&[f64]> {
        None
    }

    /// Whether k_ij = k_ji.
    fn kernel_is_symmetric(&self) -> bool {
        true
    }

    /// Adds all state to a checkpoint.
    fn save(&self, _checkpoint: &mut Checkpoint) {}

    /// Takes all state from a checkpoint.
    fn restore(&mut self, _checkpoint: &mut Checkpoint) -> Result<()> {
        Ok(())
    }
}

/// Names of the methods.
pub const METHODS: &[&str] = &["qd", "ppo", "svpg", "diayn", "si"];

/// Makes the method that the settings name.
pub fn build(config: &Config, spec: &Spec) -> Result<Box<dyn Method>> {
    match config.method.as_str() {
        "qd" => Ok(Box::new(Qd::new(config, spec)?)),
        "diayn" => Ok(Box::new(Diayn::new(config, spec)?)),
        "si" => Ok(Box::new(Si::new(config, spec)?)),
        "svpg" => Ok(Box::new(Svpg::new(&config.svpg, config.ensemble))),
        "ppo" => Ok(Box::new(IndependentPpo { n: config.ensemble })),
        other => Err(Error::input(format!(
            "there is no method \"{other}\"; set method to one of: {}",
            METHODS.join(", ")
        ))),
    }
}
