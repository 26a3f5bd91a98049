//! DualDICE: a convex problem whose solution is the ratio, as a saddle point (Section 3.3 and Appendix A.2 of the paper).
//!
//! ```text
//! min_ν max_g  E_{ρ_b}[(ν(s,a) - γ·ν(s',a'))·g(s,a) - ½·g(s,a)²] - (1-γ)·E_{μ0,π_a}[ν(s0,a0)]
//! ζ_ab = g  (times the mass m_a where episodes terminate)          g = 1 + network, linear
//! ```
//!
//! g is linear: a softplus has regions without gradient in which cells of ζ die while `E[ζ]` stays 1.
//! Reference: Nachum et al. 2019.

use super::{DiceLoss, Outputs};

/// The loss of DualDICE.
pub struct DualDice;

impl DiceLoss for DualDice {
    const HAS_ZETA: bool = true;
    const AVERAGED: bool = false;
    const PENALISED: bool = false;

    fn derivatives(&self, o: &mut Outputs<'_>) -> f64 {
        let (share, first_share) = (1.0 / o.now.len() as f32, 1.0 / o.first.len() as f32);
        let mut objective = 0.0f64;
        for b in 0..o.now.len() {
            let weight = share * o.weights[b];
            let g = 1.0 + o.z[b];
            let residual = o.now[b] - o.gamma * o.next[b];
            o.d_now[b] = weight * g;
            o.d_next[b] = -o.gamma * weight * g;
            // g ascends: its network descends the negative.
            o.d_z[b] = -weight * (residual - g);
            objective += f64::from(weight * (residual * g - 0.5 * g * g));
        }
        for b in 0..o.first.len() {
            let weight = (1.0 - o.gamma) * first_share * o.first_weights[b];
            o.d_first[b] = -weight;
            objective -= f64::from(weight * o.first[b]);
        }
        objective
    }

    fn log_zeta(&self, _now: f32, _next: f32, z: f32, _gamma: f32) -> f32 {
        (1.0 + z).max(1e-6).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratio::pair::tests::check_derivatives;

    #[test]
    fn slopes_match_central_differences() {
        check_derivatives(&DualDice, -1.0);
    }
}
