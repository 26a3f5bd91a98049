//! n independent PPO policies: the baseline without any diversity ("standard RL" in the paper's Figures 2 and 3).

use super::{Guidance, Method};
use crate::error::Result;
use crate::policy::{Ensemble, Rollout};

/// Policies that do not know of each other.
pub struct IndependentPpo {
    /// Number of policies.
    pub n: usize,
}

impl Method for IndependentPpo {
    fn guide(&mut self, _ensemble: &Ensemble, _rollouts: &[Rollout], _iteration: usize) -> Result<Guidance> {
        Ok(Guidance::independent(self.n))
    }
}
