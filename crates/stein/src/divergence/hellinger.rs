//! Squared Hellinger divergence (Table 1, row 3), at most 2.
//!
//! ```text
//! D     = ∫ (√p - √q)²
//! f(u)  = (√u - 1)²
//! f'(u) = 1 - 1/√u
//! r(u)  = 1 - √u
//! ```
//!
//! Its kernel is positive definite (Hein, Lal, Bousquet 2004); T = 1.44 ≈ 2/log 4 makes it ¼ for disjoint policies.

use super::Divergence;

/// Squared Hellinger: bounded, symmetric, positive definite kernel.
#[derive(Clone, Copy, Debug)]
pub struct Hellinger;

impl Divergence for Hellinger {
    fn name(&self) -> &'static str {
        "hellinger"
    }

    fn f(&self, u: f64) -> f64 {
        (u.sqrt() - 1.0).powi(2)
    }

    fn derivative(&self, u: f64) -> f64 {
        1.0 - 1.0 / u.sqrt()
    }

    fn reward(&self, u: f64) -> f64 {
        1.0 - u.sqrt()
    }

    fn per_sample(&self, log_zeta: f64) -> (f64, f64) {
        let pooled = 1.0 - 1.0 / (0.5 * log_zeta).cosh();
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
