//! Methods: what turns the rollouts of an ensemble into the directions its policies move in.
//!
//! A method says, each iteration, how task gradients are mixed and which further rewards each policy follows: its
//! [`Guidance`]. The update itself ([`crate::update`]) is the same for all of them.

/// The methods: a module each, in which a type implements [`Kind`], and a line here.
macro_rules! methods {
    ($($module:ident::$kind:ident,)*) => {
        $(pub mod $module;)*

        /// All methods; the first one is the default.
        pub static METHODS: &[&dyn Kind] = &[$(&$module::$kind),*];
    };
}

methods! {
    qd::QdKind,
    ppo::PpoKind,
    svpg::SvpgKind,
    diayn::DiaynKind,
    si::SiKind,
}
pub mod weighting;

pub use diayn::{Diayn, DiaynConfig};
pub use ppo::IndependentPpo;
pub use qd::{Qd, QdConfig};
pub use si::{Si, SiConfig};
pub use svpg::{Svpg, SvpgConfig};
pub use weighting::Weighting;

use crate::checkpoint::Checkpoint;
use crate::choice::{Choice, Listed};
use crate::config::Config;
use crate::env::behaviour::Column;
use crate::env::{Spec, Task};
use crate::error::Result;
use crate::metric::Metric;
use crate::nn::Gradient;
use crate::policy::advantage::Units;
use crate::policy::{Ensemble, Rollout};

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
    /// Added to the step of each policy as it is; empty for none.
    pub drift: Vec<Gradient<f32>>,
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

    /// Its own metrics with their values in the last iteration, NaN before the first one.
    fn metrics(&self) -> Vec<(Metric, f64)> {
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

/// A method of the list [`METHODS`], before it is made.
pub trait Kind: Sync {
    /// Its name in settings.
    fn name(&self) -> &'static str;

    /// Its page in docs/.
    fn page(&self) -> &'static str;

    /// Sections of the settings that have a part in it, besides those that every method has.
    fn sections(&self) -> &'static [&'static str];

    /// Reward streams besides the task's, for each policy.
    fn streams(&self) -> usize;

    /// Fills in settings that are absent and depend on the method and the task.
    fn resolve(&self, _config: &mut Config, _task: &dyn Task) -> Result<()> {
        Ok(())
    }

    /// Makes it.
    fn build(&self, config: &Config, spec: &Spec) -> Result<Box<dyn Method>>;
}

impl Listed for dyn Kind {
    const WHAT: &'static str = "method";

    fn list() -> &'static [&'static Self] {
        METHODS
    }

    fn label(&self) -> &'static str {
        self.name()
    }
}

/// The setting that names a method.
pub type MethodChoice = Choice<dyn Kind>;
