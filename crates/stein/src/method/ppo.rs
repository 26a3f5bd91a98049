//! n independent PPO policies: the baseline without any diversity ("standard RL" in the paper's Figures 2 and 3).

use super::{Guidance, Kind, Method};
use crate::config::Config;
use crate::env::Spec;
use crate::error::Result;
use crate::policy::{Ensemble, Rollout};

/// The method, before it is made.
pub struct PpoKind;

impl Kind for PpoKind {
    fn name(&self) -> &'static str {
        "ppo"
    }

    fn page(&self) -> &'static str {
        "algorithm.md"
    }

    fn sections(&self) -> &'static [&'static str] {
        &[]
    }

    fn streams(&self) -> usize {
        0
    }

    fn build(&self, config: &Config, _spec: &Spec) -> Result<Box<dyn Method>> {
        Ok(Box::new(IndependentPpo { n: config.ensemble }))
    }
}

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
