//! Ratios of two policies of a linear-Gaussian system, learned by the estimators that training uses.
//!
//! ```text
//! features   (s, a), normalised to mean 0 and std 1 over both policies' data
//! data       200,000 transitions by geometric restarts; minibatches of them, with sampled actions
//! r(s,a)     s_1 (the first coordinate), for off-policy evaluation
//! ```
//!
//! Exact densities are sums of up to hundreds of Gaussians, so rank correlation and error are taken over every 20th
//! transition; D_JS and D_KLS from ζ̂ use them all. Ratios are clamped to [1/20, 20] in the error, as
//! they are by default where they are used (`qd.clamp`).

use rand_distr::{Distribution, StandardNormal};

use super::score::{Compared, divergences, rank_correlation, weighted_rmse};
use super::{DIRECTIONS, Preset, SAMPLES, Score, learn};
use crate::divergence::LOG_CLAMP;
use crate::error::{Error, Result};
use crate::nn::Normalizer;
use crate::ratio::policies::join_rows;
use crate::ratio::{self, EstimatorChoice, Policies, Transitions, Workspace};
use crate::rng::{Purpose, Stream, stream};
use crate::truth::dense::{Matrix, dot};
use crate::truth::linear_gaussian::GaussianData;
use crate::truth::{LinearGaussianPolicy, pair};

/// One transition in so many is compared with its exact ratio.
const STRIDE: usize = 20;

/// Samples of each policy for what has no closed form.
const INTEGRAL: usize = 50_000;

/// Linear-Gaussian policies as estimators see them.
pub struct GaussianSystemPolicies {
    policies: Vec<LinearGaussianPolicy>,
    /// L of R = L·Lᵀ for each policy.
    noise: Vec<Matrix>,
    normalizer: Normalizer,
}

impl GaussianSystemPolicies {
    /// The policies with features normalised over `data`. Fails where an action's covariance is not positive definite.
    pub fn new(policies: &[LinearGaussianPolicy], data: &[Transitions]) -> Result<Self> {
        let factor = |policy: &LinearGaussianPolicy| {
            policy.r.cholesky().ok_or_else(|| {
                Error::failed("the covariance R of a policy is not positive definite; choose another".to_string())
            })
        };
        let (states, actions) = (policies[0].k.columns, policies[0].k.rows);
        let mut normalizer = Normalizer::new(states + actions, 10.0);
        for data in data {
            let mut rows = vec![0.0; data.len() * (states + actions)];
            join_rows(&data.states, states, &data.actions, actions, &mut rows);
            normalizer.update(&rows);
        }
        Ok(GaussianSystemPolicies {
            policies: policies.to_vec(),
            noise: policies.iter().map(factor).collect::<Result<_>>()?,
            normalizer,
        })
    }
}

impl Policies for GaussianSystemPolicies {
    fn state_width(&self) -> usize {
        self.policies[0].k.columns
    }

    fn action_width(&self) -> usize {
        self.policies[0].k.rows
    }

    fn width(&self) -> usize {
        self.state_width() + self.action_width()
    }

    fn encode(&self, states: &[f32], actions: &[f32], features: &mut [f32]) {
        join_rows(states, self.state_width(), actions, self.action_width(), features);
        self.normalizer.apply_in_place(features);
    }

    fn act(
        &self,
        policy: usize,
        states: &[f32],
        _draw: usize,
        random: &mut Stream,
        _workspace: &mut Workspace,
        actions: &mut [f32],
        weights: &mut [f32],
    ) {
        let (policy, lower) = (&self.policies[policy], &self.noise[policy]);
        let rows = states.chunks_exact(self.state_width());
        for (state, action) in rows.zip(actions.chunks_exact_mut(self.action_width())) {
            for (d, action) in action.iter_mut().enumerate() {
                let gains = policy.k.row(d).iter().zip(state);
                let mean: f64 = policy.k0[d] + gains.map(|(k, &s)| k * f64::from(s)).sum::<f64>();
                *action = mean as f32;
            }
            for column in 0..action.len() {
                let epsilon: f64 = StandardNormal.sample(random);
                for (d, action) in action.iter_mut().enumerate().skip(column) {
                    *action += (lower.row(d)[column] * epsilon) as f32;
                }
            }
        }
        weights.fill(1.0);
    }

    fn workspace(&self, _capacity: usize) -> Workspace {
        Workspace {
            scratch: None,
            normalized: Vec::new(),
        }
    }
}

/// Drawn transitions as estimators take them.
pub fn transitions(data: &GaussianData, states: usize) -> Transitions {
    let narrow = |values: &[f64]| values.iter().map(|&x| x as f32).collect::<Vec<f32>>();
    let (samples, restarts) = (data.states.len() / states, data.initial.len() / states);
    Transitions {
        begins: 0,
        behaviour: Vec::new(),
        states: narrow(&data.states),
        actions: narrow(&data.actions),
        next_states: narrow(&data.next),
        terminated: vec![false; samples],
        weights: vec![1.0; samples],
        initial: narrow(&data.initial),
        initial_weights: vec![1.0; restarts],
        mass: 1.0,
    }
}

/// Draws the system of a seed and its data, lets an estimator learn both ratios and scores them.
pub fn verify(system: &str, estimator: EstimatorChoice, preset: &Preset, seed: u64) -> Result<[Score; 2]> {
    let problem = pair(seed)?;
    let width = problem.system.m0.len();
    let draw = |i: usize| -> Result<Transitions> {
        // Each policy has random numbers of its own.
        let seed = seed.wrapping_mul(2).wrapping_add(i as u64);
        Ok(transitions(
            &problem.system.draw(&problem.policies[i], SAMPLES, seed)?,
            width,
        ))
    };
    let data = [draw(0)?, draw(1)?];
    let policies = GaussianSystemPolicies::new(&problem.policies, &data)?;
    let gamma = problem.system.gamma;
    let mut estimator_of_pair = ratio::build(estimator, 2, policies.width(), gamma, &preset.ratio, seed)?;
    let ratios = learn(estimator_of_pair.as_mut(), &policies, &data, preset.updates, seed);
    let occupancies = &problem.occupancies;
    let js_exact = occupancies[0].jensen_shannon(&occupancies[1], INTEGRAL, seed).mean;
    let exact_on = |b: usize, a: usize| -> Vec<f64> {
        let wide = |values: &[f32]| values.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
        let rows = data[b]
            .states
            .chunks_exact(width)
            .zip(data[b].actions.chunks_exact(policies.action_width()));
        rows.step_by(STRIDE)
            .map(|(state, action)| occupancies[a].log_zeta(&occupancies[b], &wide(state), &wide(action)))
            .collect()
    };
    let exact = [exact_on(1, 0), exact_on(0, 1)];
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    // E_{ρ_a}[log ζ_ab] + E_{ρ_b}[log ζ_ba]
    let kls_exact = -mean(&exact[0]) - mean(&exact[1]);
    let (js, kls) = divergences(&ratios, &data);
    Ok(DIRECTIONS.map(|(a, b)| {
        let ratio = ratios.of(a, b);
        let learned: Vec<f64> = ratio.on_b.iter().step_by(STRIDE).map(|&x| f64::from(x)).collect();
        let clamped = |log_zeta: &f64| log_zeta.clamp(-LOG_CLAMP, LOG_CLAMP).exp();
        let both = exact[a].iter().zip(&learned);
        let mut random = stream(seed, Purpose::Truth, 3, a);
        let returns: Vec<f64> = (0..INTEGRAL).map(|_| occupancies[a].sample(&mut random).0[0]).collect();
        let zetas: Vec<f64> = ratio.on_b.iter().map(|&x| clamped(&f64::from(x))).collect();
        let rewards: Vec<f64> = data[b].states.iter().step_by(width).map(|&x| f64::from(x)).collect();
        Score {
            system: system.into(),
            seed,
            estimator: estimator.to_string(),
            direction: if a == 0 { "01" } else { "10" },
            rmse: weighted_rmse(both.map(|(exact, learned)| (1.0, clamped(exact), clamped(learned)))),
            rank: rank_correlation(&exact[a], &learned),
            js: Compared::new(js_exact, js),
            kls: Compared::new(kls_exact, kls),
            mean: (estimator.mean().value(1.0)).map(|mean| Compared::new(mean, ratio.log_mean.exp())),
            value: Compared::new(mean(&returns), dot(&zetas, &rewards) / rewards.len() as f64),
            judged: !estimator.is_biased_by_chance(),
            missed: Vec::new(),
        }
        .check(false)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn actions_have_the_mean_and_the_spread_of_the_policy() {
        let problem = pair(1).unwrap();
        let data = problem.system.draw(&problem.policies[0], 100, 1).unwrap();
        let rows = transitions(&data, 2);
        let policies = GaussianSystemPolicies::new(&problem.policies, std::slice::from_ref(&rows)).unwrap();
        let (count, state) = (20_000, [0.7f32, -0.4]);
        let states: Vec<f32> = state.iter().copied().cycle().take(2 * count).collect();
        let (mut actions, mut weights) = (vec![0.0; count], vec![0.0; count]);
        let mut random = stream(1, Purpose::RatioAction, 0, 0);
        let mut workspace = policies.workspace(count);
        policies.act(1, &states, 0, &mut random, &mut workspace, &mut actions, &mut weights);
        let policy = &problem.policies[1];
        let expected = policy.k0[0] + dot(policy.k.row(0), &state.map(f64::from));
        let mean = actions.iter().map(|&a| f64::from(a)).sum::<f64>() / count as f64;
        let squares: f64 = actions.iter().map(|&a| (f64::from(a) - mean).powi(2)).sum();
        assert!((mean - expected).abs() < 0.02, "{mean} {expected}");
        assert!((squares / count as f64 - policy.r.entries[0]).abs() < 0.01);
        assert!(weights.iter().all(|&weight| weight == 1.0));
    }

    #[test]
    fn features_are_normalised() {
        let problem = pair(1).unwrap();
        let rows = transitions(&problem.system.draw(&problem.policies[0], 5000, 1).unwrap(), 2);
        let policies = GaussianSystemPolicies::new(&problem.policies, std::slice::from_ref(&rows)).unwrap();
        let mut features = vec![0.0; 3 * rows.len()];
        policies.encode(&rows.states, &rows.actions, &mut features);
        for column in 0..3 {
            let values = || features.iter().skip(column).step_by(3).map(|&x| f64::from(x));
            let mean = values().sum::<f64>() / 5000.0;
            assert!(mean.abs() < 1e-3);
            assert!((values().map(|x| x * x).sum::<f64>() / 5000.0 - 1.0).abs() < 1e-2);
        }
    }

    #[test]
    fn noise_contrastive_estimation_is_within_the_bounds() {
        let nce = EstimatorChoice::named("nce").unwrap();
        for score in verify("linear-gaussian", nce, &Preset::gaussian(nce), 1).unwrap() {
            assert_eq!(score.complaint(), None, "{score:?}");
            assert!(score.value.error.abs() < 0.1);
        }
    }
}
