//! Reverse Kullback-Leibler divergence (Table 1, row 6), unbounded.
//!
//! ```text
//! D     = ∫ q·log(q/p) = KL(ρ_i‖ρ_j)
//! f(u)  = -log u
//! f'(u) = -1/u
//! r(u)  = 1 - log u
//! ```
//!
//! Table 1 prints u·log u here and -log u for the forward one: with D_f(p‖q) = ∫ q·f(p/q) they are swapped. The kernel
//! is neither symmetric nor positive definite.

use super::{Divergence, sigmoid};

/// Reverse Kullback-Leibler, KL(ρ_i‖ρ_j): policy i seeks what policy j hardly ever does.
#[derive(Clone, Copy, Debug)]
pub struct ReverseKl;

impl Divergence for ReverseKl {
    fn name(&self) -> &'static str {
        "rkl"
    }

    fn f(&self, u: f64) -> f64 {
        -u.ln()
    }

    fn derivative(&self, u: f64) -> f64 {
        -1.0 / u
    }

    fn reward(&self, u: f64) -> f64 {
        1.0 - u.ln()
    }

    fn per_sample(&self, log_zeta: f64) -> (f64, f64) {
        let pooled = -log_zeta * sigmoid(-log_zeta);
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
