//! Estimators of ζ_ab = ρ_a/ρ_b, the ratio of the stationary distributions of policies a and b, for all ordered pairs at
//! once.
//!
//! Notation: **ζ_ab = ρ_a/ρ_b always**. It is learned from b's transitions with a's next and initial actions, and
//! its constant is set by [`bridge`] from both policies' samples (`ratios.rs`). Occupancies are normalised to 1
//! over non-terminal pairs (s,a). NCE can have a behaviour φ(s) in place of (s,a) (`qd.behaviour`, `blur.rs`).
//!
//! | estimator | forms | networks |
//! |---|---|---|
//! | NCE (`nce.rs`) | `ratio.nce = "softmax"` (default), `nce_softmax.rs` | one n-way classifier |
//! | | `ratio.nce = "densities"`, `nce_densities.rs` | n log-densities, the paper's form |
//! | DualDICE, ValueDICE, GenDICE | `ratio.data = "pooled"` (default), `pooled/` | one n-way classifier and n dense problems |
//! | (`dualdice.rs` and so on) | `ratio.data = "pair"`, `pair/` | one or two networks for each pair, the paper's form |
//!
//! To add an estimator, write its file, with a type that implements [`Kind`], and add its line to `estimators!` below.

pub mod blur;
pub mod classifier;
pub mod config;
pub mod data;
pub mod kind;
pub mod memory;
pub mod nce_densities;
pub mod nce_softmax;
pub mod pair;
pub mod policies;
pub mod pooled;
pub mod rank;
pub mod ratios;
pub mod softmax;

/// The estimators: a module each, in which a type implements [`Kind`], and a line here.
macro_rules! estimators {
    ($($module:ident::$kind:ident,)*) => {
        $(pub mod $module;)*

        /// All estimators; the first one is the default.
        pub static ESTIMATORS: &[&dyn Kind] = &[$(&$module::$kind),*];
    };
}

estimators! {
    nce::Nce,
    dualdice::DualDice,
    valuedice::ValueDice,
    gendice::GenDice,
}

pub use config::{Data, EstimatorConfig, NceForm, Occupancy, RatioConfig};
pub use data::Transitions;
pub use kind::{EstimatorChoice, Kind};
pub use memory::Memory;
pub use policies::{GaussianPolicies, Policies, Workspace};
pub use ratios::{PairRatio, Ratios, step};

use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::parallel;

/// What one round of training an estimator works on.
pub struct Round<'a> {
    /// The policies, for next and initial actions.
    pub policies: &'a dyn Policies,
    /// Transitions of every policy.
    pub data: &'a [Transitions],
    /// Seed of the run.
    pub seed: u64,
    /// Number of the round; each has random streams of its own.
    pub round: usize,
    /// Minibatch updates to make.
    pub updates: usize,
    /// Learning rates are multiplied by a factor that goes linearly from the first to the second over the round.
    pub rate: (f64, f64),
}

/// Learns ζ_ab for all ordered pairs of n policies.
pub trait Estimator: Send + Sync {
    /// Makes `round.updates` minibatch updates of every network; returns the mean loss.
    fn update(&mut self, round: &Round<'_>) -> f64;

    /// log ζ_ab, up to a constant, on each transition of `batch` (from any policy). The actions that ValueDICE draws come from
    /// `round`'s streams.
    fn log_zeta(
        &self,
        a: usize,
        b: usize,
        policies: &dyn Policies,
        batch: &Transitions,
        seed: u64,
        round: usize,
    ) -> Vec<f32>;

    /// log ζ_ab of every ordered pair on the samples of b and on those of a, in the order of pair numbers; `batches[i]`
    /// are samples of policy i.
    fn log_zetas(
        &self,
        policies: &dyn Policies,
        batches: &[&Transitions],
        seed: u64,
        round: usize,
    ) -> Vec<(Vec<f32>, Vec<f32>)> {
        let n = batches.len();
        parallel::map(0..n * (n - 1), |_, p| {
            let (a, b) = pair_of(p, n);
            let on_b = self.log_zeta(a, b, policies, batches[b], seed, 2 * round);
            (on_b, self.log_zeta(a, b, policies, batches[a], seed, 2 * round + 1))
        })
    }

    /// Multiplications and additions of one minibatch update of all networks.
    fn update_flops(&self) -> f64;

    /// Adds all state to a checkpoint.
    fn save(&self, checkpoint: &mut Checkpoint);

    /// Takes all state from a checkpoint.
    fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()>;
}

/// Makes an estimator for n policies whose (s,a), or φ(s), have `width` features.
pub fn build(
    kind: EstimatorChoice,
    n: usize,
    width: usize,
    gamma: f64,
    config: &RatioConfig,
    seed: u64,
) -> Result<Box<dyn Estimator>> {
    Ok(kind.build(EstimatorConfig::new(kind, n, width, gamma, config, seed)?))
}

/// Number of the ordered pair (a, b), a ≠ b, among n(n-1).
pub fn pair_number(a: usize, b: usize, n: usize) -> usize {
    a * (n - 1) + b - usize::from(b > a)
}

/// The ordered pair of a number.
pub fn pair_of(number: usize, n: usize) -> (usize, usize) {
    let (a, rest) = (number / (n - 1), number % (n - 1));
    (a, rest + usize::from(rest >= a))
}

/// log of the weighted mean of ζ, from log ζ.
pub fn log_mean(logs: &[f32], weights: &[f32]) -> f64 {
    let largest = logs.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let (mut total, mut mass) = (0.0f64, 0.0f64);
    for (&log_zeta, &weight) in logs.iter().zip(weights) {
        total += f64::from(weight) * f64::from(log_zeta - largest).exp();
        mass += f64::from(weight);
    }
    f64::from(largest) + (total / mass).ln()
}

/// The constant c by which log ζ_ab is off, from the samples of both policies: Bennett's acceptance ratio.
///
/// ```text
/// E_{ρ_b}[σ(x - c)] + E_{ρ_a}[σ(x - c)] = 1,    x = log ζ_ab + c,    σ(x) = 1/(1 + exp(-x))
/// ```
///
/// The identity holds exactly for the true ratio, since ∫(ρ_a + ρ_b)·ρ_a/(ρ_a + ρ_b) = 1. Unlike the mean of ζ over b's
/// samples alone ([`log_mean`]), every term is bounded and nothing is lost where the policies hardly overlap: there the
/// mean over b sees none of a's mass, and dividing by it would make ζ = 1 of policies that never meet.
/// References: Bennett 1976; Meng & Wong 1996.
pub fn bridge(on_b: (&[f32], &[f32]), on_a: (&[f32], &[f32])) -> f64 {
    // Networks that have left the numbers are told by the caller.
    if on_b.0.iter().chain(on_a.0).any(|x| !x.is_finite()) {
        return f64::NAN;
    }
    // Σ w·σ(x - c)/Σ w and its derivative in -c.
    let mean = |(logs, weights): (&[f32], &[f32]), c: f64| {
        let (mut value, mut derivative, mut mass) = (0.0, 0.0, 0.0);
        for (&x, &weight) in logs.iter().zip(weights) {
            let (share, weight) = (1.0 / (1.0 + (c - f64::from(x)).exp()), f64::from(weight));
            value += weight * share;
            derivative += weight * share * (1.0 - share);
            mass += weight;
        }
        (value / mass, derivative / mass)
    };
    let all = || on_b.0.iter().chain(on_a.0).map(|&x| f64::from(x));
    let (mut low, mut high) = (
        all().fold(f64::INFINITY, f64::min) - 1.0,
        all().fold(f64::NEG_INFINITY, f64::max) + 1.0,
    );
    // Estimators without an unknown constant are right at 0 already, and it is the answer where any c between would do.
    let mut c = 0.0f64.clamp(low, high);
    for _ in 0..60 {
        let ((b, slope_b), (a, slope_a)) = (mean(on_b, c), mean(on_a, c));
        let excess = b + a - 1.0;
        if excess.abs() < 1e-6 {
            break;
        }
        if excess > 0.0 {
            low = c
        } else {
            high = c
        }
        let newton = c + excess / (slope_a + slope_b);
        c = if newton > low && newton < high {
            newton
        } else {
            0.5 * (low + high)
        };
    }
    c
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_numbered_without_gaps() {
        for n in [2, 3, 10] {
            for number in 0..n * (n - 1) {
                let (a, b) = pair_of(number, n);
                assert!(a != b && a < n && b < n);
                assert_eq!(pair_number(a, b, n), number);
            }
        }
    }

    #[test]
    fn the_bridge_finds_the_constant_of_known_ratios() {
        // Two distributions over four outcomes as weighted samples; x = log ζ + 7.
        let (rho_a, rho_b) = ([0.1f32, 0.2, 0.3, 0.4], [0.4f32, 0.3, 0.25, 0.05]);
        let x: Vec<f32> = rho_a.iter().zip(&rho_b).map(|(a, b)| (a / b).ln() + 7.0).collect();
        assert!((bridge((&x, &rho_b), (&x, &rho_a)) - 7.0).abs() < 1e-4);
        let far: Vec<f32> = x.iter().map(|x| x - 507.0).collect();
        assert!((bridge((&far, &rho_b), (&far, &rho_a)) + 500.0).abs() < 1e-3);
        // Policies that never meet: log ζ is low on b's samples and high on a's, and stays so.
        let c = bridge((&[-9.0, -12.0], &[1.0, 1.0]), (&[9.0, 8.0], &[1.0, 1.0]));
        assert!(c.abs() < 5.0, "{c}");
        // What is no number has no constant.
        for odd in [f32::INFINITY, f32::NEG_INFINITY, f32::NAN] {
            assert!(bridge((&[odd, 1.0], &[1.0, 1.0]), (&[odd, odd], &[1.0, 1.0])).is_nan());
        }
    }

    #[test]
    fn the_mean_of_ratios_is_weighted_and_does_not_overflow() {
        let (logs, weights) = ([200.0f32, 201.0, 199.5], [1.0f32, 0.5, 2.0]);
        let mean = (1.0 + 0.5 * 1f64.exp() + 2.0 * (-0.5f64).exp()) / 3.5;
        assert!((log_mean(&logs, &weights) - (200.0 + mean.ln())).abs() < 1e-6);
    }
}
