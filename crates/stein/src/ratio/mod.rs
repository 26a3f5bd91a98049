//! Estimators of ζ_ab = ρ_a/ρ_b, the ratio of the stationary distributions of policies a and b, for all ordered pairs at
//! once.
//!
//! Notation: **ζ_ab = ρ_a/ρ_b always**. It is learned from b's transitions with a's next and initial actions, and
//! `E_{ρ_b}[ζ_ab] = 1` after [`normalise`]. Occupancies are normalised to 1 over non-terminal pairs (s,a).
//!
//! | estimator | file | networks |
//! |---|---|---|
//! | NCE | `nce.rs` | n log-densities |
//! | DualDICE | `dualdice.rs` | ν and g for each pair |
//! | ValueDICE | `valuedice.rs` | ν for each pair |
//! | GenDICE | `gendice.rs` | ζ, g and u for each pair |
//!
//! The three DICE estimators share the passes over (s,a), (s',a') and (s0,a0) in `dice.rs`; each file has its loss as a
//! pure function of network outputs. To add an estimator, write its file and add its line to [`build`].

pub mod acted;
pub mod classifier;
pub mod config;
pub mod data;
pub mod dice;
pub mod dualdice;
pub mod gendice;
pub mod memory;
pub mod nce;
pub mod policies;
pub mod valuedice;

pub use config::{EstimatorConfig, Occupancy, RatioConfig};
pub use data::Transitions;
pub use memory::Memory;
pub use policies::{GaussianPolicies, Policies, Workspace};

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
        "nce" => Box::new(nce::Nce::new(settings)),
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
    fn normalised_ratios_have_weighted_mean_one() {
        let (mut log_zeta, weights) = (vec![200.0f32, 201.0, 199.5], [1.0f32, 0.5, 2.0]);
        let mut other = vec![200.0f32];
        let log_mean = normalise(&mut log_zeta, &weights, &mut [&mut other]);
        let mean: f32 = log_zeta.iter().zip(&weights).map(|(l, w)| l.exp() * w).sum::<f32>() / 3.5;
        assert!((mean - 1.0).abs() < 1e-4);
        assert!((f64::from(other[0]) - (200.0 - log_mean)).abs() < 1e-3);
    }
}
