//! Stein variational policy gradient with a kernel on the parameters (Equation 2 of the paper; Liu et al. 2017).
//!
//! ```text
//! k_ij = exp(-‖θ_i - θ_j‖²/h),  h = median²/log(n+1)
//! Δθ_i = (1/n)·Σ_j [ k_ij·g_j + temperature·∇_{θ_j} k(θ_j, θ_i) ]
//! ```

use serde::{Deserialize, Serialize};

use super::{Guidance, Method};
use crate::error::Result;
use crate::kernel::{rbf_kernel, rbf_repulsion};
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
        let (n, parameters) = (self.n, &ensemble.policies.parameters);
        let (kernel, bandwidth) = rbf_kernel(parameters, n);
        let mut drift = rbf_repulsion(parameters, n, &kernel, bandwidth);
        let scale = (self.config.temperature / n as f64) as f32;
        drift.iter_mut().for_each(|x| *x *= scale);
        let task = kernel.iter().map(|k| (k / n as f64) as f32).collect();
        (self.kernel, self.bandwidth) = (kernel, bandwidth);
        Ok(Guidance {
            task,
            drift,
            ..Guidance::independent(n)
        })
    }

    fn metric_names(&self) -> Vec<String> {
        ["kernel_row_mean", "kernel_bandwidth"].map(String::from).to_vec()
    }

    fn metrics(&self) -> Vec<f64> {
        let n = self.n as f64;
        vec![self.kernel.iter().sum::<f64>() / n - 1.0, self.bandwidth]
    }

    fn kernel(&self) -> Option<&[f64]> {
        Some(&self.kernel)
    }
}
