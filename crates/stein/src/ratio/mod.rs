//! Estimators of ζ_ab = ρ_a/ρ_b, the ratio of the stationary distributions of policies a and b, for all ordered pairs at
//! once.
//!
//! Notation: **ζ_ab = ρ_a/ρ_b always**. It is learned from b's transitions with a's next and initial actions, and
//! its constant is set by [`bridge`] (both policies' samples) or [`normalise`] (b's alone). Occupancies are normalised to 1
//! over non-terminal pairs (s,a). NCE can have a behaviour φ(s) in place of (s,a) (`qd.behaviour`, `blur.rs`).
//!
//! | estimator | file | networks |
//! |---|---|---|
//! | NCE, `ratio.nce = "softmax"` (default) | `nce_softmax.rs` | one n-way classifier |
//! | NCE, `ratio.nce = "densities"` | `nce.rs` | n log-densities, the paper's form |
//! | DICE, `ratio.data = "pooled"` (default) | `pooled/` | one n-way classifier and n dense problems |
//! | DualDICE, `ratio.data = "pair"` | `dualdice.rs` | ν and g for each pair |
//! | ValueDICE, `ratio.data = "pair"` | `valuedice.rs` | ν for each pair |
//! | GenDICE, `ratio.data = "pair"` | `gendice.rs` | ζ, g and u for each pair |
//!
//! The three pairwise DICE estimators share the passes over (s,a), (s',a') and (s0,a0) in `dice.rs`; each file has its loss as a
//! pure function of network outputs. To add an estimator, write its file and add its line to [`build`].

pub mod acted;
pub mod blur;
pub mod classifier;
pub mod config;
pub mod data;
pub mod dice;
pub mod dualdice;
pub mod gendice;
pub mod memory;
pub mod nce;
pub mod nce_softmax;
pub mod policies;
pub mod pooled;
pub mod rank;
pub mod softmax;
pub mod valuedice;

pub use config::{Data, EstimatorConfig, NceForm, Occupancy, RatioConfig};
pub use data::Transitions;
pub use memory::Memory;
pub use policies::{GaussianPolicies, Policies, Workspace};

use rayon::prelude::*;

use self::pooled::Pooled;
use crate::error::{Error, Result};
use crate::run::checkpoint::Checkpoint;

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

    /// log ζ_ab, up to a constant, on each transition of `batch` (anybody's). The actions that ValueDICE draws come from
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
        let pairs = (0..n * (n - 1)).into_par_iter().map(|p| {
            let (a, b) = pair_of(p, n);
            let on_b = self.log_zeta(a, b, policies, batches[b], seed, 2 * round);
            (on_b, self.log_zeta(a, b, policies, batches[a], seed, 2 * round + 1))
        });
        pairs.collect()
    }

    /// Multiplications and additions of one minibatch update of all networks.
    fn update_flops(&self) -> f64;

    /// Adds all state to a checkpoint.
    fn save(&self, checkpoint: &mut Checkpoint);

    /// Takes all state from a checkpoint.
    fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()>;
}

/// Names of the estimators.
pub const ESTIMATORS: &[&str] = &["nce", "dualdice", "valuedice", "gendice"];

/// Makes the estimator `name` for n policies whose (s,a) have `width` features.
pub fn build(
    name: &str,
    n: usize,
    width: usize,
    gamma: f64,
    config: &RatioConfig,
    seed: u64,
) -> Result<Box<dyn Estimator>> {
    let settings = EstimatorConfig::new(name, n, width, gamma, config, seed)?;
    Ok(match name {
        "nce" => match config.nce {
            NceForm::Softmax => Box::new(nce_softmax::NceSoftmax::new(settings)),
            NceForm::Densities => Box::new(nce::Nce::new(settings)),
        },
        "dualdice" if config.data == Data::Pooled => Box::new(Pooled::new(settings, pooled::dualdice::DualDice)),
        "valuedice" if config.data == Data::Pooled => Box::new(Pooled::new(settings, pooled::valuedice::ValueDice)),
        "gendice" if config.data == Data::Pooled => Box::new(Pooled::new(settings, pooled::gendice::GenDice)),
        "dualdice" => Box::new(dice::Dice::new(settings, dualdice::DualDice)),
        "valuedice" => Box::new(dice::Dice::new(settings, valuedice::ValueDice)),
        "gendice" => Box::new(dice::Dice::new(settings, gendice::GenDice)),
        _ => return Err(unknown(name)),
    })
}

/// The estimator of this name among [`ESTIMATORS`].
pub fn known(name: &str) -> Result<&'static &'static str> {
    ESTIMATORS
        .iter()
        .find(|known| **known == name)
        .ok_or_else(|| unknown(name))
}

pub(crate) fn unknown(name: &str) -> Error {
    Error::input(format!(
        "there is no estimator \"{name}\"; choose one of: {}",
        ESTIMATORS.join(", ")
    ))
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

/// Divides ζ by its weighted mean over the data policy's samples, in logarithms; returns the logarithm of that mean.
/// `data` are log ζ on the data policy's own samples, `others` further values of the same ratio to be divided alike.
pub fn normalise(data: &mut [f32], weights: &[f32], others: &mut [&mut Vec<f32>]) -> f64 {
    let largest = data.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let (mut total, mut mass) = (0.0f64, 0.0f64);
    for (&log_zeta, &weight) in data.iter().zip(weights) {
        total += f64::from(weight) * f64::from(log_zeta - largest).exp();
        mass += f64::from(weight);
    }
    let log_mean = f64::from(largest) + (total / mass).ln();
    let shift = log_mean as f32;
    data.iter_mut().for_each(|x| *x -= shift);
    for other in others {
        other.iter_mut().for_each(|x| *x -= shift);
    }
    log_mean
}

/// The constant c by which log ζ_ab is off, from the samples of both policies: Bennett's acceptance ratio.
///
/// ```text
/// E_{ρ_b}[σ(x - c)] + E_{ρ_a}[σ(x - c)] = 1,    x = log ζ_ab + c,    σ(x) = 1/(1 + exp(-x))
/// ```
///
/// The identity holds exactly for the true ratio, since ∫(ρ_a + ρ_b)·ρ_a/(ρ_a + ρ_b) = 1. Unlike the mean of ζ over b's
/// samples alone ([`normalise`]), every term is bounded and nothing is lost where the policies hardly overlap: there the
/// mean over b sees none of a's mass, and dividing by it would make ζ = 1 of policies that never meet.
/// References: Bennett 1976; Meng & Wong 1996.
pub fn bridge(on_b: (&[f32], &[f32]), on_a: (&[f32], &[f32])) -> f64 {
    // Σ w·σ(x - c)/Σ w and its derivative in -c.
    let mean = |(logs, weights): (&[f32], &[f32]), c: f64| {
        let (mut value, mut slope, mut mass) = (0.0, 0.0, 0.0);
        for (&x, &weight) in logs.iter().zip(weights) {
            let (share, weight) = (1.0 / (1.0 + (c - f64::from(x)).exp()), f64::from(weight));
            value += weight * share;
            slope += weight * share * (1.0 - share);
            mass += weight;
        }
        (value / mass, slope / mass)
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
    }

    #[test]
    fn normalised_ratios_have_weighted_mean_one() {
        let (mut log_zeta, weights) = (vec![200.0f32, 201.0, 199.5], [1.0f32, 0.5, 2.0]);
        let mut other = vec![200.0f32];
        let log_mean = normalise(&mut log_zeta, &weights, &mut [&mut other]);
        let mean: f32 = log_zeta.iter().zip(&weights).map(|(l, w)| l.exp() * w).sum::<f32>() / 3.5;
        assert!((mean - 1.0).abs() < 1e-4);
        assert!((f64::from(other[0]) - (200.0 - log_mean)).abs() < 1e-3);
    }
}
