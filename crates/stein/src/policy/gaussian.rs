//! Tanh-squashed diagonal Gaussian policy with a state-independent log-standard-std.
//!
//! ```text
//! μ = 2·tanh(network(s)/2),  u = μ + σ·ε,  ε ~ N(0, I),  a = tanh(u) ∈ (-1, 1)
//! log π(a|s) = Σ_d [ -½·ε_d² - log σ_d - ½·log 2π ] - Σ_d log(1 - tanh²(u_d))
//! log(1 - tanh²(u)) = 2·(log 2 - u - softplus(-2u))                    (stable for large |u|)
//! ```
//!
//! The unsquashed u is kept with every sample: the last sum does not depend on θ, so ratios π_new/π_old and gradients
//! need the Gaussian part alone:  ∂log π/∂μ = ε/σ,  ∂log π/∂log σ = ε² - 1.
//!
//! The mean is bounded: where a reward drives the network's output far out, tanh(u) would be ±1 whatever ε, so that no
//! noise is left to learn by when another reward takes over (diversity first, the task later).

use rand_distr::{Distribution, StandardNormal};

use crate::nn::real::rational_tanh;
use crate::nn::{Network, Single};
use crate::rng::Stream;

/// Least log-standard-std.
pub const LOG_STD_LEAST: f32 = -10.0;
/// Largest log-standard-std.
pub const LOG_STD_LARGEST: f32 = 2.0;

/// Bound on the mean before squashing: tanh(2) = 0.964.
pub const MEAN_BOUND: f32 = 2.0;

/// The mean from the network's output.
#[inline(always)]
pub fn bounded_mean(output: f32) -> f32 {
    MEAN_BOUND * rational_tanh(output * (1.0 / MEAN_BOUND))
}

/// d(mean)/d(output), in terms of the mean.
pub fn bounded_derivative(mean: f32) -> f32 {
    let share = mean * (1.0 / MEAN_BOUND);
    1.0 - share * share
}

/// log of one over the square root of 2π.
const LOG_NORMAL: f32 = -0.918_938_5;

/// log(1 - tanh²(u)), exact in the tails too.
pub fn log_tanh_derivative(u: f32) -> f32 {
    let x = -2.0 * u;
    let softplus = x.max(0.0) + (-x.abs()).exp().ln_1p();
    2.0 * (std::f32::consts::LN_2 - u - softplus)
}

/// Gaussian part of log π: of the sample `u` under mean `mu` and log-standard-stds `log_std`.
pub fn gaussian_log_density(u: &[f32], mu: impl IntoIterator<Item = f32>, log_std: &[f32]) -> f32 {
    let mut total = 0.0;
    for ((&u, mu), &log_std) in u.iter().zip(mu).zip(log_std) {
        let epsilon = (u - mu) * (-log_std).exp();
        total += -0.5 * epsilon * epsilon - log_std + LOG_NORMAL;
    }
    total
}

/// log π(a|s) of the squashed sample a = tanh(u).
pub fn log_density(u: &[f32], mu: impl IntoIterator<Item = f32>, log_std: &[f32]) -> f32 {
    gaussian_log_density(u, mu, log_std) - u.iter().map(|&u| log_tanh_derivative(u)).sum::<f32>()
}

/// A policy that acts: the forward pass of one observation.
pub struct Actor {
    network: Single,
    log_std: Vec<f32>,
    mean: Vec<f32>,
}

impl Actor {
    /// Copies a policy: a network with one extra parameter, its log-std, for each action coordinate.
    pub fn new(policy: Network<'_, f32>) -> Self {
        Actor {
            network: Single::new(policy),
            log_std: policy.extra().to_vec(),
            mean: vec![0.0; policy.shape().output()],
        }
    }

    /// μ(s) of a normalised observation.
    pub fn mean(&mut self, observation: &[f32]) -> &[f32] {
        self.mean
            .copy_from_slice(self.network.forward(observation, bounded_mean));
        &self.mean
    }

    /// Draws u, writes u and tanh(u), and returns log π.
    pub fn sample(&mut self, observation: &[f32], random: &mut Stream, u: &mut [f32], action: &mut [f32]) -> f32 {
        self.mean(observation);
        let mu = &self.mean[..];
        for (d, u) in u.iter_mut().enumerate() {
            let epsilon: f32 = StandardNormal.sample(random);
            *u = mu[d] + self.log_std[d].exp() * epsilon;
        }
        squash(u, action);
        log_density(u, mu.iter().copied(), &self.log_std)
    }

    /// Writes the action of the mean, tanh(μ(s)).
    pub fn act(&mut self, observation: &[f32], action: &mut [f32]) {
        squash(self.mean(observation), action);
    }
}

fn squash(u: &[f32], action: &mut [f32]) {
    for (action, &u) in action.iter_mut().zip(u) {
        *action = u.tanh();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::test::random_vector;
    use crate::nn::{Frozen, Scratch, Shape};
    use crate::rng::{Purpose, stream};

    #[test]
    fn log_slope_is_stable_and_right() {
        for u in [-3.0f32, -0.5, 0.0, 0.1, 2.0, 4.0] {
            let exact = (1.0 - f64::from(u).tanh().powi(2)).ln();
            assert!(
                (f64::from(log_tanh_derivative(u)) - exact).abs() < 2e-5 * (1.0 + exact.abs()),
                "{u}"
            );
        }
        // Far out 1 - tanh² underflows, its logarithm does not: 2·log 2 - 2|u|.
        assert!((log_tanh_derivative(50.0) - (2.0 * std::f32::consts::LN_2 - 100.0)).abs() < 1e-4);
        assert!((log_tanh_derivative(-50.0) - (2.0 * std::f32::consts::LN_2 - 100.0)).abs() < 1e-4);
    }

    #[test]
    fn density_of_the_squashed_action_integrates_to_one() {
        let (mu, log_std) = ([0.4f32], [-0.3f32]);
        let steps = 200_000;
        let mut total = 0.0f64;
        for step in 0..steps {
            let action = -1.0 + 2.0 * (step as f64 + 0.5) / steps as f64;
            let u = action.atanh() as f32;
            total += f64::from(log_density(&[u], mu, &log_std).exp()) * 2.0 / steps as f64;
        }
        assert!((total - 1.0).abs() < 1e-4, "{total}");
    }

    #[test]
    fn derivatives_match_central_differences() {
        let (u, mu, log_std, h) = ([0.7f32], 0.2f32, -0.4f32, 1e-2f32);
        let epsilon = (u[0] - mu) / log_std.exp();
        let numeric = (gaussian_log_density(&u, [mu + h], &[log_std]) - gaussian_log_density(&u, [mu - h], &[log_std]))
            / (2.0 * h);
        assert!((numeric - epsilon / log_std.exp()).abs() < 1e-3);
        let numeric = (gaussian_log_density(&u, [mu], &[log_std + h]) - gaussian_log_density(&u, [mu], &[log_std - h]))
            / (2.0 * h);
        assert!((numeric - (epsilon * epsilon - 1.0)).abs() < 1e-3);
    }

    #[test]
    fn means_are_bounded_and_their_slope_is_right() {
        for output in [-50.0f32, -3.0, -0.4, 0.0, 1.0, 6.0] {
            let (mean, h) = (bounded_mean(output), 1e-2);
            let numeric = (bounded_mean(output + h) - bounded_mean(output - h)) / (2.0 * h);
            assert!(mean.abs() <= MEAN_BOUND && (numeric - bounded_derivative(mean)).abs() < 1e-3);
        }
    }

    #[test]
    fn actor_agrees_with_the_batched_network_and_samples_its_density() {
        let shape = Shape::new(4, &[64, 64], 2).with_extra(2);
        let mut parameters: Vec<f32> = random_vector(21, shape.parameters(), 0.3)
            .iter()
            .map(|&x| x as f32)
            .collect();
        let extra = shape.extra_offset();
        parameters[extra..].copy_from_slice(&[-0.5, 0.2]);
        let observation = [0.3f32, -1.0, 0.5, 2.0];
        let policy = Frozen::new(shape.clone(), parameters.clone());
        let mut actor = Actor::new(policy.network());
        let mean = actor.mean(&observation).to_vec();
        let mut scratch = Scratch::new(&shape, 1);
        scratch.load_input(&observation);
        policy.network().forward(&mut scratch);
        for (d, mean) in mean.iter().enumerate() {
            assert!((mean - bounded_mean(scratch.output(d)[0])).abs() < 1e-5);
        }
        let mut random = stream(1, Purpose::Rollout, 0, 0);
        let (mut u, mut action, draws) = ([0.0; 2], [0.0; 2], 20_000);
        let (mut first, mut second) = ([0.0f64; 2], [0.0f64; 2]);
        for _ in 0..draws {
            let log_pi = actor.sample(&observation, &mut random, &mut u, &mut action);
            assert!((log_pi - log_density(&u, mean.iter().copied(), &parameters[extra..])).abs() < 1e-5);
            assert!((action[0] - u[0].tanh()).abs() < 1e-6);
            for d in 0..2 {
                first[d] += f64::from(u[d]) / f64::from(draws);
                second[d] += f64::from(u[d]).powi(2) / f64::from(draws);
            }
        }
        for d in 0..2 {
            let std = (second[d] - first[d] * first[d]).sqrt();
            assert!((first[d] - f64::from(mean[d])).abs() < 0.03);
            assert!((std - f64::from(parameters[extra + d].exp())).abs() < 0.03);
        }
    }
}
