//! A linear system with Gaussian noise and linear-Gaussian policies, whose occupancy is a mixture of known Gaussians.
//!
//! ```text
//! s_0 ~ N(m0, P0)        a = K·s + k0 + N(0, R)        s' = F·s + G·a + N(0, Q)
//! m_{t+1} = M·m_t + G·k0       P_{t+1} = M·P_t·Mᵀ + G·R·Gᵀ + Q       M = F + G·K
//! ρ(s,a) = π(a|s) · (1-γ)·Σ_t γ^t·N(s; m_t, P_t)
//! ```
//!
//! The sum ends when γ^t < 1e-9 or the Gaussians no longer change; the last one gets the remaining weight, so ρ
//! integrates to 1. There is no termination.
//! Reference: Anderson and Moore 1979, "Optimal Filtering", section 4.1.

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use super::dense::{Matrix, dot, invert_lower, plus};
use super::{Use, stream};
use crate::error::{Error, Result};
use crate::rng::Stream;

/// The weight γ^t below which later steps share one Gaussian.
const NEGLIGIBLE: f64 = 1e-9;

/// The relative change of mean and covariance below which the Gaussians count as converged.
const SETTLED: f64 = 1e-13;

/// The system, with n-dimensional states and m-dimensional actions.
#[derive(Clone, Debug, PartialEq)]
pub struct LinearGaussian {
    /// F: the state's own dynamics, n × n.
    pub f: Matrix,
    /// G: the effect of the action on the state, n × m.
    pub g: Matrix,
    /// Q: covariance of the state noise, n × n, positive definite.
    pub q: Matrix,
    /// m0: mean of the initial state, n.
    pub m0: Vec<f64>,
    /// P0: covariance of the initial state, n × n, positive definite.
    pub p0: Matrix,
    /// Discount γ in [0, 1).
    pub gamma: f64,
}

/// A policy a = K·s + k0 + N(0, R).
#[derive(Clone, Debug, PartialEq)]
pub struct LinearGaussianPolicy {
    /// K: gain, m × n.
    pub k: Matrix,
    /// k0: offset, m.
    pub k0: Vec<f64>,
    /// R: covariance of the action, m × m, positive definite.
    pub r: Matrix,
}

/// N(mean, L·Lᵀ), ready for densities and samples.
#[derive(Clone, Debug)]
struct Gaussian {
    mean: Vec<f64>,
    lower: Matrix,
    /// L⁻¹: it whitens x - mean.
    whiten: Matrix,
    /// L⁻¹·mean.
    whitened_mean: Vec<f64>,
    /// Log density at the mean.
    log_peak: f64,
}

/// The exact occupancy ρ of a policy.
#[derive(Clone, Debug)]
pub struct GaussianOccupancy {
    gamma: f64,
    /// The state after t steps; the last represents all later ones.
    states: Vec<Gaussian>,
    /// log w_t: w_t = (1-γ)·γ^t, and γ^t for the last.
    log_weights: Vec<f64>,
    gain: Matrix,
    offset: Vec<f64>,
    /// The action noise.
    noise: Gaussian,
}

/// Transitions of one policy by geometric restarts, unweighted; none terminates.
#[derive(Clone, Debug, PartialEq)]
pub struct GaussianData {
    /// States s, `[samples][n]`.
    pub states: Vec<f64>,
    /// Actions a, `[samples][m]`.
    pub actions: Vec<f64>,
    /// Next states s', `[samples][n]`.
    pub next: Vec<f64>,
    /// Initial states, `[restarts][n]`: the μ0 buffer.
    pub initial: Vec<f64>,
}

/// A Monte-Carlo estimate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Its value.
    pub mean: f64,
    /// Its standard error.
    pub error: f64,
}

impl Gaussian {
    /// Fails if the covariance, called `name`, is not positive definite.
    fn new(mean: Vec<f64>, covariance: &Matrix, name: &str) -> Result<Gaussian> {
        let lower = covariance.cholesky().ok_or_else(|| {
            Error::failed(format!(
                "the covariance {name} of a linear-Gaussian system is not positive definite; choose another"
            ))
        })?;
        let scale: f64 = (0..mean.len()).map(|i| lower.row(i)[i].ln()).sum();
        let log_peak = -scale - 0.5 * mean.len() as f64 * std::f64::consts::TAU.ln();
        let whiten = invert_lower(&lower);
        Ok(Gaussian {
            whitened_mean: whiten.apply(&mean),
            mean,
            lower,
            whiten,
            log_peak,
        })
    }

    fn log_density(&self, x: &[f64]) -> f64 {
        // Row by row: a mixture needs hundreds of these, and allocating each time would dominate.
        let white = |(row, &mean): (usize, &f64)| (dot(self.whiten.row(row), x) - mean).powi(2);
        self.log_peak - 0.5 * self.whitened_mean.iter().enumerate().map(white).sum::<f64>()
    }

    fn sample(&self, random: &mut Stream) -> Vec<f64> {
        let normal: Vec<f64> = self.mean.iter().map(|_| StandardNormal.sample(random)).collect();
        plus(&self.mean, &self.lower.apply(&normal))
    }
}

impl LinearGaussian {
    /// M = F + G·K: the dynamics of the state under a policy.
    pub fn closed_loop(&self, policy: &LinearGaussianPolicy) -> Matrix {
        self.f.plus(&self.g.times(&policy.k))
    }

    /// The exact occupancy of a policy. Fails if a covariance is not positive definite.
    pub fn occupancy(&self, policy: &LinearGaussianPolicy) -> Result<GaussianOccupancy> {
        let transition = self.closed_loop(policy);
        let drift = self.g.apply(&policy.k0);
        let noise = self.g.sandwich(&policy.r).plus(&self.q);
        let (mut mean, mut covariance) = (self.m0.clone(), self.p0.clone());
        let mut states = vec![Gaussian::new(mean.clone(), &covariance, "P0")?];
        let mut weight = self.gamma;
        while weight > 0.0 {
            let next_mean = plus(&transition.apply(&mean), &drift);
            let next_covariance = transition.sandwich(&covariance).plus(&noise);
            let settled = near(&mean, &next_mean) && near(&covariance.entries, &next_covariance.entries);
            (mean, covariance) = (next_mean, next_covariance);
            states.push(Gaussian::new(mean.clone(), &covariance, "P_t")?);
            if settled || weight < NEGLIGIBLE {
                break;
            }
            weight *= self.gamma;
        }
        let last = states.len() - 1;
        let weight = |t: usize| self.gamma.powi(t as i32) * if t == last { 1.0 } else { 1.0 - self.gamma };
        Ok(GaussianOccupancy {
            gamma: self.gamma,
            log_weights: (0..=last).map(|t| weight(t).ln()).collect(),
            states,
            gain: policy.k.clone(),
            offset: policy.k0.clone(),
            noise: Gaussian::new(vec![0.0; policy.k0.len()], &policy.r, "R")?,
        })
    }

    /// Draws `samples` transitions of a policy by geometric restarts. Policies drawn with the same seed share their
    /// random numbers: give each its own. Fails if a covariance is not positive definite.
    pub fn draw(&self, policy: &LinearGaussianPolicy, samples: usize, seed: u64) -> Result<GaussianData> {
        let zeros = |length: usize| vec![0.0; length];
        let first = Gaussian::new(self.m0.clone(), &self.p0, "P0")?;
        let state_noise = Gaussian::new(zeros(self.m0.len()), &self.q, "Q")?;
        let action_noise = Gaussian::new(zeros(policy.k0.len()), &policy.r, "R")?;
        let mut random = stream(seed, Use::Data, 0);
        let mut data = GaussianData {
            states: Vec::with_capacity(samples * self.m0.len()),
            actions: Vec::with_capacity(samples * policy.k0.len()),
            next: Vec::with_capacity(samples * self.m0.len()),
            initial: Vec::new(),
        };
        let mut current = None;
        for _ in 0..samples {
            let state = current.take().unwrap_or_else(|| {
                let state = first.sample(&mut random);
                data.initial.extend_from_slice(&state);
                state
            });
            let wish = plus(&policy.k.apply(&state), &policy.k0);
            let action = plus(&wish, &action_noise.sample(&mut random));
            let pushed = plus(&self.f.apply(&state), &self.g.apply(&action));
            let next = plus(&pushed, &state_noise.sample(&mut random));
            data.states.extend(state);
            data.actions.extend(action);
            data.next.extend_from_slice(&next);
            current = (random.random::<f64>() < self.gamma).then_some(next);
        }
        Ok(data)
    }
}

/// Whether two vectors are equal up to rounding.
fn near(a: &[f64], b: &[f64]) -> bool {
    let size = a.iter().chain(b).fold(0.0f64, |size, x| size.max(x.abs()));
    a.iter().zip(b).all(|(a, b)| (a - b).abs() <= SETTLED * size)
}

impl GaussianOccupancy {
    /// log ρ(s,a).
    pub fn log_density(&self, state: &[f64], action: &[f64]) -> f64 {
        let expected = plus(&self.gain.apply(state), &self.offset);
        let noise: Vec<f64> = action.iter().zip(&expected).map(|(a, expected)| a - expected).collect();
        self.log_state_density(state) + self.noise.log_density(&noise)
    }

    /// The log-density of the state alone.
    pub fn log_state_density(&self, state: &[f64]) -> f64 {
        let weighted = self.log_weights.iter().zip(&self.states);
        let terms: Vec<f64> = weighted
            .map(|(weight, gaussian)| weight + gaussian.log_density(state))
            .collect();
        // Relative to the largest term, so that a remote state has a finite log-density.
        let largest = terms.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        largest + terms.iter().map(|term| (term - largest).exp()).sum::<f64>().ln()
    }

    /// log ζ(s,a) = log ρ_self - log ρ_b.
    pub fn log_zeta(&self, b: &GaussianOccupancy, state: &[f64], action: &[f64]) -> f64 {
        self.log_density(state, action) - b.log_density(state, action)
    }

    /// An independent sample (s, a) of ρ.
    pub fn sample(&self, random: &mut Stream) -> (Vec<f64>, Vec<f64>) {
        // P(t ≥ k) = γ^k; a discount of 0 divides by minus infinity and gives step 0.
        let uniform = 1.0 - random.random::<f64>();
        let t = (uniform.ln() / self.gamma.ln()) as usize;
        let state = self.states[t.min(self.states.len() - 1)].sample(random);
        let expected = plus(&self.gain.apply(&state), &self.offset);
        let action = plus(&expected, &self.noise.sample(random));
        (state, action)
    }

    /// D_JS by Monte Carlo, from `samples` independent samples of each distribution.
    pub fn jensen_shannon(&self, other: &GaussianOccupancy, samples: usize, seed: u64) -> Estimate {
        // log 2 + log(p/(p+q)) under p, for both in turn.
        let half = |p: &GaussianOccupancy, q: &GaussianOccupancy, number| {
            let mut random = stream(seed, Use::Integral, number);
            let (mut sum, mut squares) = (0.0, 0.0);
            for _ in 0..samples {
                let (state, action) = p.sample(&mut random);
                let term = std::f64::consts::LN_2 - softplus(q.log_zeta(p, &state, &action));
                sum += term;
                squares += term * term;
            }
            let mean = sum / samples as f64;
            (mean, (squares / samples as f64 - mean * mean).max(0.0))
        };
        let ((a, spread_a), (b, spread_b)) = (half(self, other, 0), half(other, self, 1));
        Estimate {
            mean: 0.5 * (a + b),
            error: 0.5 * ((spread_a + spread_b) / samples as f64).sqrt(),
        }
    }
}

/// log(1 + e^x) without overflow.
fn softplus(x: f64) -> f64 {
    x.max(0.0) + (-x.abs()).exp().ln_1p()
}

#[cfg(test)]
#[path = "linear_gaussian_tests.rs"]
mod tests;
