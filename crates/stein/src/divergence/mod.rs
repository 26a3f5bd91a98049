//! f-divergences of stationary distributions, all in terms of the ratio ζ.
//!
//! ```text
//! D_f(p‖q) = ∫ q·f(p/q),   f convex, f(1) = 0                                         Table 1
//! D_ij     = D_f(ρ_j‖ρ_i) = E_{ρ_i}[f(ζ)],   ζ = ζ_ji = ρ_j/ρ_i                       divergence value in Equation 3
//! ∇_{θ_i} D_ij = ∫ ∇ρ_i·r(ζ),   r(u) = f(u) - u·f'(u)                                 Equation 4, for any f
//! ```
//!
//! Policy i moves away from policy j by maximising the reward r on its own steps. If episodes terminate, ρ is
//! normalised by a mass m_i that depends on the policy too, and the exact gradient is that of the *centred* reward,
//!
//! ```text
//! ∇_{θ_i} D_ij = ((1-γ)/m_i)·∇_{θ_i} E[Σ_t γ^t·(r_t - E_{ρ_i}[r])]                    Shift::Centred
//! ```
//!
//! Ratios are estimates, so |log ζ| is clamped before use (`qd.clamp`). Reference: Gangwani, Peng, Zhou 2020, Section
//! 3.2; positive definiteness: Hein, Lal, Bousquet 2004. `docs/divergences.md` has everything in one table.

/// The divergences: a module each, in which a type implements [`Divergence`], and a line here.
macro_rules! divergences {
    ($($module:ident::$kind:ident,)*) => {
        $(mod $module;)*
        $(pub use $module::$kind;)*

        /// All divergences; the first one is the default.
        pub static DIVERGENCES: &[&dyn Divergence] = &[$(&$kind),*];
    };
}

divergences! {
    js::JensenShannon,
    symmetric_kl::SymmetricKl,
    kl::Kl,
    reverse_kl::ReverseKl,
    hellinger::Hellinger,
    triangular::Triangular,
    total_variation::TotalVariation,
}

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::choice::{Choice, Listed};

/// The default bound on |log ζ|: ln 20. Symmetric, so that ζ_ji and 1/ζ_ij are clamped alike.
pub const LOG_CLAMP: f64 = 2.995732273553991;

/// The constant added to the diversity reward at every step of a rollout.
///
/// Without termination it has no effect; with termination it decides whether survival is rewarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Shift {
    /// Minus its mean over the policy's own samples: the exact gradient of the divergence, which rewards neither
    /// survival nor termination.
    #[serde(rename = "centred")]
    Centred,
    /// Nothing: r = f(ζ) - ζ·f'(ζ).
    #[serde(rename = "none")]
    None,
    /// So that r(1) = 0: steps that both policies take equally often earn nothing.
    #[serde(rename = "one")]
    AtOne,
    /// So that r = 0 at the largest ratio, hence r ≥ 0: no policy ends an episode to escape a penalty.
    #[serde(rename = "positive")]
    NonNegative,
}

/// An f-divergence: its generator and what follows from it.
pub trait Divergence: Send + Sync {
    /// Its name in settings.
    fn name(&self) -> &'static str;

    /// The generator at u > 0: convex, with f(1) = 0.
    fn f(&self, u: f64) -> f64;

    /// Its derivative f'(u).
    fn derivative(&self, u: f64) -> f64;

    /// The diversity reward of policy i at ζ_ji = u (Equation 4), up to a constant. Never increasing in u.
    fn reward(&self, u: f64) -> f64 {
        self.f(u) - u * self.derivative(u)
    }

    /// The contribution of samples with this log ζ_ji to the value: `D = E_{ρ_i}[first] + E_{ρ_j}[second]`.
    ///
    /// By default both are f(ζ)/(1+ζ): an expectation under the pooled samples (ρ_i + ρ_j)/2, where ρ_i is 2/(1+ζ) of
    /// the pool.
    fn per_sample(&self, log_zeta: f64) -> (f64, f64) {
        let zeta = log_zeta.exp();
        let pooled = self.f(zeta) / (1.0 + zeta);
        (pooled, pooled)
    }

    /// Whether D_f(p‖q) = D_f(q‖p).
    fn symmetric(&self) -> bool;

    /// Whether exp(-D/T) is a positive definite kernel for every T.
    fn positive_definite(&self) -> bool;

    /// The default temperature T of the kernel.
    fn temperature(&self) -> f64;
}

impl Listed for dyn Divergence {
    const WHAT: &'static str = "divergence";

    fn list() -> &'static [&'static Self] {
        DIVERGENCES
    }

    fn label(&self) -> &'static str {
        self.name()
    }
}

/// The setting that names a divergence.
pub type DivergenceChoice = Choice<dyn Divergence>;

/// Estimates D_ij from samples of both policies, each given as (log ζ_ji, weights), with |log ζ| clamped to `bound`.
///
/// Both are needed: samples of ρ_i alone miss what only policy j visits. Weights need not sum to 1. Sampling noise can
/// make the estimate negative. NaN if a ratio is NaN or a policy has no weight.
pub fn value(divergence: &dyn Divergence, bound: f64, on_i: (&[f32], &[f32]), on_j: (&[f32], &[f32])) -> f64 {
    let mean = |(log_zetas, weights): (&[f32], &[f32]), term: &dyn Fn(f64) -> f64| {
        assert_eq!(log_zetas.len(), weights.len(), "one weight a sample");
        weighted_mean(log_zetas.iter().map(|&x| term(clamped(x, bound))), weights)
    };
    mean(on_i, &|log_zeta| divergence.per_sample(log_zeta).0)
        + mean(on_j, &|log_zeta| divergence.per_sample(log_zeta).1)
}

/// The diversity rewards of policy i with respect to one neighbour: r from log ζ_ji at each of its steps, with |log ζ|
/// clamped to `bound`, plus the constant. `weights` are those of the steps in ρ_i.
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
