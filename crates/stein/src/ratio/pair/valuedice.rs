//! ValueDICE: the Donsker-Varadhan form of the KL divergence (Section 3.3 and Appendix A.3 of the paper).
//!
//! ```text
//! min_ν  m_a·log E_{ρ_b}[exp(x(s,a))] - (1-γ)·E_{μ0,π_a}[ν(s0,a0)],      x = ν(s,a) - γ·E_{a'~π_a}[ν(s',a')]
//! log ζ_ab = x + constant                              (the constant goes when ζ is normalised)
//! ```
//!
//! The logarithm is of a mean over the minibatch with the largest x taken out first. Several next actions are averaged
//! inside x. m_a is the mass of a's occupancy: 1 without termination; with it, the factor keeps the problem bounded (a
//! constant added to x changes the first term by m_a·c and the second by the same).
//! Known weakness: the expectation over s' stands inside the exponential, so that with one sampled s' the objective is
//! biased where the dynamics are stochastic. Reference: Kostrikov et al. 2020.

use super::{DiceLoss, Outputs};

/// The loss of ValueDICE.
pub struct ValueDice;

impl DiceLoss for ValueDice {
    const HAS_ZETA: bool = false;
    const AVERAGED: bool = false;
    const PENALISED: bool = true;

    fn derivatives(&self, o: &mut Outputs<'_>) -> f64 {
        let x = |o: &Outputs<'_>, b: usize| o.now[b] - o.gamma * o.next[b];
        let mut largest = f32::NEG_INFINITY;
        for b in (0..o.now.len()).filter(|&b| o.weights[b] > 0.0) {
            largest = largest.max(x(o, b));
        }
        let (mut sum, mut mass) = (0.0f32, 0.0f32);
        for b in 0..o.now.len() {
            // A sample without weight may have any x.
            let term = match o.weights[b] {
                0.0 => 0.0,
                weight => weight * (x(o, b) - largest).exp(),
            };
            o.d_now[b] = term;
            sum += term;
            mass += o.weights[b];
        }
        // A minibatch of which no sample has any weight says nothing of E_d[exp(x)].
        let says = sum > 0.0;
        for b in 0..o.now.len() {
            o.d_now[b] *= if says { o.mass / sum } else { 0.0 };
            o.d_next[b] = -o.gamma * o.d_now[b];
        }
        let log_mean = if says { largest + (sum / mass).ln() } else { 0.0 };
        let mut objective = f64::from(o.mass) * f64::from(log_mean);
        let first_share = 1.0 / o.first.len() as f32;
        for b in 0..o.first.len() {
            let weight = (1.0 - o.gamma) * first_share * o.first_weights[b];
            o.d_first[b] = -weight;
            objective -= f64::from(weight * o.first[b]);
        }
        objective
    }

    fn log_zeta(&self, now: f32, next: f32, _z: f32, gamma: f32) -> f32 {
        now - gamma * next
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratio::pair::tests::check_derivatives;

    #[test]
    fn slopes_match_central_differences() {
        check_derivatives(&ValueDice, 1.0);
    }
}
