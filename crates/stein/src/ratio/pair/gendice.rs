//! GenDICE: the Bellman flow constraint in χ² divergence, with a penalty on the mean of ζ (Section 3.3 and Appendix A.4).
//!
//! ```text
//! min_ζ max_{g,u}  (1-γ)·E_{μ0,π_a}[g(s0,a0)] + γ·E_{ρ_b}[ζ(s,a)·g(s',a')] - E_{ρ_b}[ζ·(g + ¼·g²)]
//!                  + λ·(u·(E_{ρ_b}[ζ] - m_a) - ½·u²)                                ζ = softplus(network + c) ≥ 0
//! ```
//!
//! c is such that ζ begins at 1. The constraint aims at the mass m_a of a's occupancy over non-terminal pairs (1 without
//! termination). The adversary must be faster than ζ: equal learning rates were seen to fail. Reference: Zhang et al. 2020.

use super::{DiceLoss, Outputs};

/// The loss of GenDICE.
pub struct GenDice;

/// softplus(c) = 1.
const OFFSET: f32 = 0.541_324_85;

fn softplus(x: f32) -> f32 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

fn sigmoid(x: f32) -> f32 {
    1.0 / (1.0 + (-x).exp())
}

impl DiceLoss for GenDice {
    const HAS_ZETA: bool = true;
    const AVERAGED: bool = true;
    const PENALISED: bool = false;

    fn derivatives(&self, o: &mut Outputs<'_>) -> f64 {
        let (share, first_share) = (1.0 / o.now.len() as f32, 1.0 / o.first.len() as f32);
        let mut objective = 0.0f64;
        let mut mean = 0.0f32;
        for b in 0..o.now.len() {
            let weight = share * o.weights[b];
            let zeta = softplus(o.z[b] + OFFSET);
            let (g, next) = (o.now[b], o.next[b]);
            // The adversary ascends: its network descends the negative.
            o.d_now[b] = weight * zeta * (1.0 + 0.5 * g);
            o.d_next[b] = -o.gamma * weight * zeta;
            let in_zeta = o.gamma * next - g - 0.25 * g * g + o.lambda * o.u;
            o.d_z[b] = weight * in_zeta * sigmoid(o.z[b] + OFFSET);
            mean += weight * zeta;
            objective += f64::from(weight * zeta * (o.gamma * next - g - 0.25 * g * g));
        }
        *o.d_u = -o.lambda * (mean - o.mass - o.u);
        objective += f64::from(o.lambda * (o.u * (mean - o.mass) - 0.5 * o.u * o.u));
        for b in 0..o.first.len() {
            let weight = (1.0 - o.gamma) * first_share * o.first_weights[b];
            o.d_first[b] = -weight;
            objective += f64::from(weight * o.first[b]);
        }
        objective
    }

    fn log_zeta(&self, _now: f32, _next: f32, z: f32, _gamma: f32) -> f32 {
        softplus(z + OFFSET).max(1e-12).ln()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratio::pair::tests::{Sign, check_derivatives_signed};

    #[test]
    fn zeta_begins_at_one() {
        assert!((softplus(OFFSET) - 1.0).abs() < 1e-6);
    }

    #[test]
    fn slopes_match_central_differences() {
        check_derivatives_signed(&GenDice, Sign { value: -1.0, zeta: 1.0 });
    }
}
