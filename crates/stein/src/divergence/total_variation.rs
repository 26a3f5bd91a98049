//! Total variation (Table 1, row 4), at most 1.
//!
//! ```text
//! D     = ½·∫ |p-q|
//! f(u)  = ½·|u-1|
//! f'(u) = ½·sign(u-1)                                                             0 at the kink
//! r(u)  = -½·sign(u-1)
//! ```
//!
//! The reward only says which policy is more frequent. The kernel is positive definite (Hein, Lal, Bousquet 2004); T =
//! 0.72 ≈ 1/log 4 makes it ¼ for disjoint policies.

use super::Divergence;

/// Total variation: bounded, symmetric, positive definite kernel.
#[derive(Clone, Copy, Debug)]
pub struct TotalVariation;

impl Divergence for TotalVariation {
    fn name(&self) -> &'static str {
        "tv"
    }

    fn f(&self, u: f64) -> f64 {
        0.5 * (u - 1.0).abs()
    }

    fn derivative(&self, u: f64) -> f64 {
        // Not signum, which is 1 at 0: at the kink neither side is preferred. The last branch propagates NaN.
        if u > 1.0 {
            0.5
        } else if u < 1.0 {
            -0.5
        } else {
            0.5 * (u - 1.0)
        }
    }

    fn reward(&self, u: f64) -> f64 {
        -self.derivative(u)
    }

    fn per_sample(&self, log_zeta: f64) -> (f64, f64) {
        let pooled = 0.5 * (0.5 * log_zeta).tanh().abs();
        (pooled, pooled)
    }

    fn symmetric(&self) -> bool {
        true
    }

    fn positive_definite(&self) -> bool {
        true
    }

    fn temperature(&self) -> f64 {
        0.72
    }
}
