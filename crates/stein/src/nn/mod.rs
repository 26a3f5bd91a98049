//! Stacked networks: many tanh networks of one shape, with explicit gradients. No automatic differentiation: a loss
//! hands back d(loss)/d(output), and this module does the rest: passes, sums of gradients, the clip, Adam, order and
//! parallelism ([`Stack::train`]). No other module sees a parameter; what others need of them has a name here. So this is where
//! another back end would plug in.

pub mod adam;
pub mod average;
pub mod init;
pub mod mlp;
pub mod network;
pub mod normalizer;
pub mod peak;
pub mod penalty;
pub mod pool;
pub mod product;
pub mod real;
pub mod single;
pub mod stack;

pub use adam::{Adam, AdamConfig, clip_norm};
pub use average::Average;
pub use mlp::{Scratch, Shape, backward, forward};
pub use network::{Frozen, Gradient, Network};
pub use normalizer::Normalizer;
pub use pool::Pool;
pub use real::Real;
pub use single::Single;
pub use stack::{Member, Stack, Step, Trainee};

#[cfg(test)]
pub(crate) mod test {
    use crate::rng::{Purpose, stream};
    use rand::RngExt;

    /// `len` numbers, uniform in ±scale.
    pub fn random_vector(seed: u64, len: usize, scale: f64) -> Vec<f64> {
        let mut random = stream(seed, Purpose::PolicyInit, 99, 0);
        (0..len).map(|_| random.random_range(-scale..scale)).collect()
    }

    /// Asserts that `gradient` is that of `loss` at `at`: every coordinate of up to 400, a spread of them beyond.
    pub fn central_difference(at: &[f64], gradient: &[f64], tolerance: f64, loss: impl Fn(&[f64]) -> f64) {
        assert_eq!(at.len(), gradient.len());
        let step = at.len().div_ceil(400);
        let mut at = at.to_vec();
        for index in (0..at.len()).step_by(step) {
            let (value, h) = (at[index], 1e-5);
            at[index] = value + h;
            let above = loss(&at);
            at[index] = value - h;
            let below = loss(&at);
            at[index] = value;
            let numeric = (above - below) / (2.0 * h);
            let error = (numeric - gradient[index]).abs() / (1.0 + numeric.abs());
            assert!(
                error < tolerance,
                "coordinate {index}: numeric {numeric}, written {}",
                gradient[index]
            );
        }
    }
}
