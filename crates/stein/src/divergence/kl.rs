//! Kullback-Leibler divergence (Table 1, row 5), unbounded.
//!
//! ```text
//! D     = ∫ p·log(p/q) = KL(ρ_j‖ρ_i)
//! f(u)  = u·log u
//! f'(u) = log u + 1
//! r(u)  = -u
//! ```
//!
//! Table 1 prints -log u here and u·log u for the reverse: with D_f(p‖q) = ∫ q·f(p/q) they are swapped. The kernel is
//! neither symmetric nor positive definite.

use super::{Divergence, sigmoid};

/// Kullback-Leibler, KL(ρ_j‖ρ_i): policy i avoids what policy j does far more often.
#[derive(Clone, Copy, Debug)]
pub struct Kl;

impl Divergence for Kl {
    fn name(&self) -> &'static str {
        "kl"
    }

    fn f(&self, u: f64) -> f64 {
        u * u.ln()
    }

    fn derivative(&self, u: f64) -> f64 {
        u.ln() + 1.0
    }

    fn reward(&self, u: f64) -> f64 {
        -u
    }

    fn per_sample(&self, log_zeta: f64) -> (f64, f64) {
        let pooled = log_zeta * sigmoid(log_zeta);
        (pooled, pooled)
    }

    fn symmetric(&self) -> bool {
        false
    }

    fn positive_definite(&self) -> bool {
        false
    }

    fn temperature(&self) -> f64 {
        1.0
    }
}
