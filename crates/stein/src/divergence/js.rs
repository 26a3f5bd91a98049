//! Jensen-Shannon divergence (Table 1, row 1), at most log 2.
//!
//! ```text
//! D     = ∫ p/2·log(2p/(p+q)) + q/2·log(2q/(p+q))
//! f(u)  = u/2·log u - (1+u)/2·log((1+u)/2)
//! f'(u) = ½·log(2u/(1+u))
//! r(u)  = -½·log((1+u)/2)                                                         Equation 4, left, plus ½·log 2
//! D     = ½E_{ρ_i}[-log(1+ζ)] + ½E_{ρ_j}[log(ζ/(1+ζ))] + log 2                    Section 3.2
//! ```
//!
//! Its kernel is positive definite (Hein, Lal, Bousquet 2004); T = 0.5 makes it ¼ for disjoint policies.

use std::f64::consts::LN_2;

use super::{Divergence, softplus};

/// Jensen-Shannon: bounded, symmetric, positive definite kernel.
#[derive(Clone, Copy, Debug)]
pub struct JensenShannon;

impl Divergence for JensenShannon {
    fn name(&self) -> &'static str {
        "js"
    }

    fn f(&self, u: f64) -> f64 {
        0.5 * u * u.ln() - 0.5 * (1.0 + u) * (0.5 * (1.0 + u)).ln()
    }

    fn derivative(&self, u: f64) -> f64 {
        0.5 * (2.0 * u / (1.0 + u)).ln()
    }

    fn reward(&self, u: f64) -> f64 {
        -0.5 * (0.5 * (1.0 + u)).ln()
    }

    fn per_sample(&self, log_zeta: f64) -> (f64, f64) {
        (0.5 * (LN_2 - softplus(log_zeta)), 0.5 * (LN_2 - softplus(-log_zeta)))
    }

    fn symmetric(&self) -> bool {
        true
    }

    fn positive_definite(&self) -> bool {
        true
    }

    fn temperature(&self) -> f64 {
        0.5
    }
}
