//! Stein variational policy gradient with a kernel on the parameters (Equation 2 of the paper; Liu et al. 2017).
//!
//! ```text
//! k_ij = exp(-‖θ_i - θ_j‖²/h),  h = median²/log(n+1)
//! Δθ_i = (1/n)·Σ_j [ k_ij·g_j + temperature·∇_{θ_j} k(θ_j, θ_i) ]
//! ```

use serde::{Deserialize, Serialize};

use super::{Guidance, Kind, Method};
use crate::check::real;
use crate::config::Config;
use crate::env::Spec;
use crate::error::Result;
use crate::kernel::rbf_kernel;
use crate::metric::Metric;
use crate::policy::{Ensemble, Rollout};

/// Settings of the method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SvpgConfig {
    /// Weight of the repulsion against the task gradients.
    pub temperature: f64,
}

impl Default for SvpgConfig {
    fn default() -> Self {
        SvpgConfig { temperature: 1.0 }
    }
}

impl SvpgConfig {
    /// Refuses impossible values.
    pub fn validate(&self) -> Result<()> {
        real("svpg.temperature", self.temperature, 0.0, 1e9)
    }
}

/// The method, before it is made.
pub struct SvpgKind;

impl Kind for SvpgKind {
    fn name(&self) -> &'static str {
        "svpg"
    }

    fn page(&self) -> &'static str {
        "algorithm.md"
    }

    fn sections(&self) -> &'static [&'static str] {
        &["svpg"]
    }

    fn streams(&self) -> usize {
        0
    }

    fn build(&self, config: &Config, _spec: &Spec) -> Result<Box<dyn Method>> {
        Ok(Box::new(Svpg::new(&config.svpg, config.ensemble)))
    }
}

/// The method.
pub struct Svpg {
    /// Its settings.
    pub config: SvpgConfig,
    /// Number of policies.
    pub n: usize,
    kernel: Vec<f64>,
    bandwidth: f64,
}

impl Svpg {
    /// For n policies.
    pub fn new(config: &SvpgConfig, n: usize) -> Self {
        Svpg {
            config: config.clone(),
            n,
            kernel: Vec::new(),
            bandwidth: 0.0,
        }
    }
}

impl Method for Svpg {
    fn guide(&mut self, ensemble: &Ensemble, _rollouts: &[Rollout], _iteration: usize) -> Result<Guidance> {
        let (n, policies) = (self.n, &ensemble.policies);
        let (kernel, bandwidth) = rbf_kernel(&policies.squared_distances(), n);
        // ∇_{θ_j} k_ij, summed over j.
        let strengths: Vec<f64> = kernel.iter().map(|k| 2.0 / bandwidth * k).collect();
        let mut drift = policies.repulsion(&strengths);
        let scale = (self.config.temperature / n as f64) as f32;
        drift.iter_mut().for_each(|drift| drift.scale(scale));
        let task = kernel.iter().map(|k| (k / n as f64) as f32).collect();
        (self.kernel, self.bandwidth) = (kernel, bandwidth);
        Ok(Guidance {
            task,
            drift,
            ..Guidance::independent(n)
        })
    }

    fn metrics(&self) -> Vec<(Metric, f64)> {
        let n = self.n as f64;
        vec![
            (
                Metric::of_diversity("kernel_row_mean", "mean over policies of Σ_{j≠i} k_ij, with k the RBF kernel on parameters"),
                self.kernel.iter().sum::<f64>() / n - 1.0,
            ),
            (
                Metric::of_diversity("kernel_bandwidth", "its h = median²/log(n + 1)"),
                self.bandwidth,
            ),
        ]
    }

    fn kernel(&self) -> Option<&[f64]> {
        Some(&self.kernel)
    }
}
