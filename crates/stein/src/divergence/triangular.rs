//! Triangular discrimination (Table 1, row 2), at most 2.
//!
//! ```text
//! D     = ∫ (p-q)²/(p+q)
//! f(u)  = (u-1)²/(u+1)
//! f'(u) = (u-1)(u+3)/(u+1)²
//! r(u)  = (1-u)(1+3u)/(1+u)²
//! ```
//!
//! Its kernel is positive definite (Hein, Lal, Bousquet 2004); T = 1.44 ≈ 2/log 4 makes it ¼ for disjoint policies.

use super::Divergence;

/// Triangular discrimination: bounded, symmetric, positive definite kernel.
#[derive(Clone, Copy, Debug)]
pub struct Triangular;

impl Divergence for Triangular {
    fn name(&self) -> &'static str {
        "triangular"
    }

    fn f(&self, u: f64) -> f64 {
        (u - 1.0).powi(2) / (u + 1.0)
    }

    fn derivative(&self, u: f64) -> f64 {
        (u - 1.0) * (u + 3.0) / (u + 1.0).powi(2)
    }

    fn reward(&self, u: f64) -> f64 {
        (1.0 - u) * (1.0 + 3.0 * u) / (1.0 + u).powi(2)
    }

    fn per_sample(&self, log_zeta: f64) -> (f64, f64) {
        let pooled = (0.5 * log_zeta).tanh().powi(2);
        (pooled, pooled)
    }

    fn symmetric(&self) -> bool {
        true
    }

    fn positive_definite(&self) -> bool {
        true
    }

    fn temperature(&self) -> f64 {
        1.44
    }
}
