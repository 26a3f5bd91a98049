//! Symmetric Kullback-Leibler divergence (Table 1, row 7), unbounded.
//!
//! ```text
//! D     = ∫ p·log(p/q) + q·log(q/p)
//! f(u)  = (u-1)·log u
//! f'(u) = log u + 1 - 1/u
//! r(u)  = 1 - u - log u                                                           Equation 4, right, plus 1
//! D     = E_{ρ_j}[log ζ] - E_{ρ_i}[log ζ]                                         Section 3.2
//! ```
//!
//! Its kernel is not positive definite: √D violates the triangle inequality.

use super::Divergence;

/// Symmetric Kullback-Leibler: the sum of both directions.
#[derive(Clone, Copy, Debug)]
pub struct SymmetricKl;

impl Divergence for SymmetricKl {
    fn name(&self) -> &'static str {
        "kls"
    }

    fn f(&self, u: f64) -> f64 {
        (u - 1.0) * u.ln()
    }

    fn derivative(&self, u: f64) -> f64 {
        u.ln() + 1.0 - 1.0 / u
    }

    fn reward(&self, u: f64) -> f64 {
        1.0 - u - u.ln()
    }

    fn per_sample(&self, log_zeta: f64) -> (f64, f64) {
        (-log_zeta, log_zeta)
    }

    fn symmetric(&self) -> bool {
        true
    }

    fn positive_definite(&self) -> bool {
        false
    }

    fn temperature(&self) -> f64 {
        1.0
    }
}
