//! f-divergences of stationary distributions, all in terms of the ratio ζ.
//!
//! ```text
//! D_f(p‖q) = ∫ q·f(p/q),   f convex, f(1) = 0                                         Table 1
//! D_ij     = D_f(ρ_j‖ρ_i) = E_{ρ_i}[f(ζ)],   ζ = ζ_ji = ρ_j/ρ_i                       divergence value in Equation 3
//! ∇_{θ_i} D_ij = ∫ ∇ρ_i·r(ζ),   r(u) = f(u) - u·f'(u)                                 Equation 4, for any f
//! ```
//!
//! Policy i is pushed away from policy j by maximising the reward r on its own steps. Where episodes terminate, ρ is
//! normalised by a mass m_i that the policy changes as well, and the exact gradient is that of the *centred* reward,
//!
//! ```text
//! ∇_{θ_i} D_ij = ((1-γ)/m_i)·∇_{θ_i} E[Σ_t γ^t·(r_t - E_{ρ_i}[r])]                    Shift::Centred
//! ```
//!
//! The ratios are learned, so |log ζ| is bounded where they are used here (`qd.clamp`). Reference: Gangwani, Peng, Zhou
//! 2020, Section 3.2; positive definiteness: Hein, Lal, Bousquet 2004. `docs/divergences.md` has all of it in one table.

mod hellinger;
mod js;
mod kl;
mod reverse_kl;
mod symmetric_kl;
#[cfg(test)]
mod tests;
mod total_variation;
mod triangular;

pub use hellinger::Hellinger;
pub use js::JensenShannon;
pub use kl::Kl;
pub use reverse_kl::ReverseKl;
pub use symmetric_kl::SymmetricKl;
pub use total_variation::TotalVariation;
pub use triangular::Triangular;

use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};

/// The usual bound on |log ζ|: ln 20. It is symmetric, so that ζ_ji and 1/ζ_ij are cut alike.
pub const LOG_CLAMP: f64 = 2.995732273553991;

/// What is added to the diversity reward, the same number at every step of a rollout.
///
/// A constant changes nothing in a task without termination; with it, it decides whether living on pays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shift {
    /// Minus its mean over the policy's own samples: the exact gradient of the divergence, which neither pays for living
    /// on nor for dying.
    #[serde(rename = "centred")]
    Centred,
    /// Nothing: r = f(ζ) - ζ·f'(ζ).
    #[serde(rename = "none")]
    None,
    /// Such that r(1) = 0: steps that both policies take alike are worth nothing.
    #[serde(rename = "one")]
    AtOne,
    /// Such that r = 0 at the largest ratio, so never negative: no policy ends its episode to escape a penalty.
    #[serde(rename = "positive")]
    NonNegative,
}

/// One f-divergence: its generator and what follows from it.
pub trait Divergence: Send + Sync {
    /// Its name in settings, one of [`NAMES`].
    fn name(&self) -> &'static str;

    /// The generator at u > 0: convex, with f(1) = 0.
    fn f(&self, u: f64) -> f64;

    /// Its derivative f'(u).
    fn derivative(&self, u: f64) -> f64;

    /// The diversity reward of policy i where ζ_ji = u (Equation 4), up to a constant. It never rises with u.
    fn reward(&self, u: f64) -> f64 {
        self.f(u) - u * self.derivative(u)
    }

    /// What samples with this log ζ_ji add to the value: `D = E_{ρ_i}[first] + E_{ρ_j}[second]`.
    ///
    /// Unless there is a formula of its own, both are f(ζ)/(1+ζ): an expectation under the pooled samples
    /// (ρ_i + ρ_j)/2, where ρ_i is 2/(1+ζ) of the pool.
    fn per_sample(&self, log_zeta: f64) -> (f64, f64) {
        let zeta = log_zeta.exp();
        let pooled = self.f(zeta) / (1.0 + zeta);
        (pooled, pooled)
    }

    /// Whether D_f(p‖q) = D_f(q‖p).
    fn symmetric(&self) -> bool;

    /// Whether exp(-D/T) is a positive definite kernel for every T.
    fn positive_definite(&self) -> bool;

    /// The usual temperature T of the kernel.
    fn temperature(&self) -> f64;
}

/// Names of the divergences.
pub const NAMES: &[&str] = &["js", "kls", "kl", "rkl", "hellinger", "triangular", "tv"];

/// The divergence of this name.
pub fn by_name(name: &str) -> Result<Box<dyn Divergence>> {
    Ok(match name {
        "js" => Box::new(JensenShannon),
        "kls" => Box::new(SymmetricKl),
        "kl" => Box::new(Kl),
        "rkl" => Box::new(ReverseKl),
        "hellinger" => Box::new(Hellinger),
        "triangular" => Box::new(Triangular),
        "tv" => Box::new(TotalVariation),
        other => {
            return Err(Error::input(format!(
                "there is no divergence \"{other}\"; set divergence to one of: {}",
                NAMES.join(", ")
            )));
        }
    })
}

/// Estimates D_ij from samples of both policies, each given as (log ζ_ji, weights), with |log ζ| at most `bound`.
///
/// Both are needed: ρ_i's samples alone miss what only policy j visits. Weights need not sum to 1. Sampling noise can
/// make the estimate negative. It is NaN if a ratio is, or if a policy has no weight at all.
pub fn value(divergence: &dyn Divergence, bound: f64, on_i: (&[f32], &[f32]), on_j: (&[f32], &[f32])) -> f64 {
    let mean = |(log_zetas, weights): (&[f32], &[f32]), term: &dyn Fn(f64) -> f64| {
        assert_eq!(log_zetas.len(), weights.len(), "one weight a sample");
        weighted_mean(log_zetas.iter().map(|&x| term(clamped(x, bound))), weights)
    };
    mean(on_i, &|log_zeta| divergence.per_sample(log_zeta).0)
        + mean(on_j, &|log_zeta| divergence.per_sample(log_zeta).1)
}

/// The diversity rewards of policy i against one neighbour: r of each of its steps from log ζ_ji, |log ζ| at most `bound`,
/// with their constant. `weights` are those of the steps in ρ_i.
pub fn rewards(divergence: &dyn Divergence, shift: Shift, bound: f64, log_zetas: &[f32], weights: &[f32]) -> Vec<f32> {
    let raw: Vec<f64> = log_zetas
        .iter()
        .map(|&x| divergence.reward(clamped(x, bound).exp()))
        .collect();
    let constant = match shift {
        Shift::Centred => weighted_mean(raw.iter().copied(), weights),
        Shift::None => 0.0,
        Shift::AtOne => divergence.reward(1.0),
        Shift::NonNegative => divergence.reward(bound.exp()),
    };
    raw.iter().map(|r| (r - constant) as f32).collect()
}

fn clamped(log_zeta: f32, bound: f64) -> f64 {
    f64::from(log_zeta).clamp(-bound, bound)
}

fn weighted_mean(values: impl Iterator<Item = f64>, weights: &[f32]) -> f64 {
    let (sum, total) = values.zip(weights).fold((0.0, 0.0), |(sum, total), (value, &weight)| {
        (sum + f64::from(weight) * value, total + f64::from(weight))
    });
    sum / total
}

/// log(1 + eˣ) without overflow.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

/// 1/(1 + e⁻ˣ).
fn sigmoid(x: f64) -> f64 {
    0.5 + 0.5 * (0.5 * x).tanh()
}
