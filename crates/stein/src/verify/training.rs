//! Estimators under the conditions of training: little data, few updates, policies that move.
//!
//! ```text
//! world      a ring of 20 states and 3 actions, γ = .9 (truth/ring.rs)
//! policies   n softmax tables; policy i climbs the exact natural gradient of the ring's reward plus a hill of its own:
//!            θ_i(s,a) ← θ_i(s,a) + step·A_i(s,a), so that policies start alike and part
//! each iteration: `samples` new transitions of every policy, the estimator updated as in Algorithm 1 on the last
//!            `ratio.rollouts` of them by `ratio.epochs` and `ratio.warmup_updates`, its ζ set by the bridge of training
//! scores     over the second half of the iterations and all ordered pairs, on the newest samples of both policies:
//!            correlation of clamped log ζ with the exact one, and with the held-out classifier; |ΔD_JS|; D_JS itself
//! ```
//!
//! `stein verify --training` prints them; the defaults of `[ratio]` were chosen by it (docs/verify.md).

use rand::seq::SliceRandom;
use rand_distr::{Distribution, StandardNormal};
use serde::Serialize;

use super::tabular::TabularPolicies;
use crate::divergence::{JensenShannon, LOG_CLAMP, value};
use crate::error::Result;
use crate::ratio::classifier::{Classifier, correlation};
use crate::ratio::{self, EstimatorChoice, EstimatorConfig, PairRatio, RatioConfig, Ratios, Round, Transitions};
use crate::rng::{Purpose, stream};
use crate::truth::dense::{Matrix, solve};
use crate::truth::tabular::Occupancy;
use crate::truth::{Ring, TabularData, TabularMdp, TabularPolicy};

/// The ensemble whose ratios are followed.
#[derive(Clone, Debug)]
pub struct Course {
    /// Policies.
    pub ensemble: usize,
    /// Iterations.
    pub iterations: usize,
    /// Transitions of each policy per iteration.
    pub samples: usize,
    /// Step of the natural gradient.
    pub step: f64,
}

impl Default for Course {
    fn default() -> Self {
        Course {
            ensemble: 4,
            iterations: 100,
            samples: 2048,
            step: 0.02,
        }
    }
}

/// How well one estimator followed the course.
#[derive(Clone, Debug, Serialize)]
pub struct Followed {
    /// The estimator.
    pub estimator: String,
    /// The seed.
    pub seed: u64,
    /// Correlation of log ζ with the exact ratio.
    pub exact: f64,
    /// Correlation of log ζ with the held-out classifier: what training can see.
    pub classifier: f64,
    /// Mean |D̂_JS - D_JS|.
    pub js_error: f64,
    /// Mean exact D_JS.
    pub js: f64,
}

/// Lets an estimator follow the course of a seed.
pub fn follow(course: &Course, estimator: EstimatorChoice, config: &RatioConfig, seed: u64) -> Result<Followed> {
    let n = course.ensemble;
    let mdp = world(seed)?;
    let width = mdp.states * mdp.actions;
    let settings = EstimatorConfig::new(estimator, n, width, mdp.gamma, config, seed)?;
    let mut classifier = Classifier::new(&settings);
    let mut learner = ratio::build(estimator, n, width, mdp.gamma, config, seed)?;
    let mut parameters = first_parameters(&mdp, n, seed);
    let rewards: Vec<Vec<f64>> = (0..n).map(|i| own_reward(&mdp, i, n)).collect();
    let mut recent: Vec<Vec<Transitions>> = vec![Vec::new(); n];
    let mut scores = Vec::new();
    for iteration in 0..course.iterations {
        let tables: Vec<TabularPolicy> = parameters.iter().map(|theta| softmax(theta, mdp.actions)).collect();
        let policies = TabularPolicies {
            mdp: &mdp,
            policies: &tables,
        };
        for (i, recent) in recent.iter_mut().enumerate() {
            let number = iteration * n + i;
            let data = mdp.draw(
                &tables[i],
                course.samples,
                seed.wrapping_mul(1 << 20).wrapping_add(number as u64),
            );
            recent.push(single(&data, seed, number));
            if recent.len() > config.rollouts {
                recent.remove(0);
            }
        }
        let data: Vec<Transitions> = recent.iter().map(|parts| joined(parts)).collect();
        let newest: Vec<&Transitions> = recent.iter().filter_map(|parts| parts.last()).collect();
        let round = Round {
            policies: &policies,
            data: &data,
            seed,
            round: iteration,
            updates: config.updates(data[0].len(), iteration == 0),
            rate: (1.0, 1.0),
        };
        let (_, ratios) = ratio::step(learner.as_mut(), &round, &newest);
        classifier.update(&policies, &newest, seed, iteration);
        if 2 * iteration >= course.iterations {
            let judged = classifier.agreement(&policies, &newest, &ratios.on_own());
            scores.push(score(&mdp, &tables, &newest, &ratios, judged));
        }
        for (theta, (table, reward)) in parameters.iter_mut().zip(tables.iter().zip(&rewards)) {
            let advantages = advantages(&mdp, table, reward);
            theta
                .iter_mut()
                .zip(advantages)
                .for_each(|(x, a)| *x += course.step * a);
        }
    }
    let mean = |k: usize| scores.iter().map(|score: &[f64; 4]| score[k]).sum::<f64>() / scores.len() as f64;
    Ok(Followed {
        estimator: estimator.to_string(),
        seed,
        exact: mean(0),
        classifier: mean(1),
        js_error: mean(2),
        js: mean(3),
    })
}

/// Correlation with the exact ratio, with the classifier (given), error of D_JS and D_JS, averaged over pairs.
fn score(
    mdp: &TabularMdp,
    tables: &[TabularPolicy],
    newest: &[&Transitions],
    ratios: &Ratios,
    judged: f64,
) -> [f64; 4] {
    let occupancies: Vec<Occupancy> = tables.iter().map(|table| mdp.occupancy(table)).collect();
    let clamp = |x: f32| x.clamp(-LOG_CLAMP as f32, LOG_CLAMP as f32);
    let mut total = [0.0, judged, 0.0, 0.0];
    let share = 1.0 / ratios.iter().count() as f64;
    for ((a, b), PairRatio { on_b, on_a, .. }) in ratios.iter() {
        let zeta = occupancies[a].zeta(&occupancies[b]);
        let exact = |batch: &Transitions| -> Vec<f32> {
            let pairs = batch.states.iter().zip(&batch.actions);
            pairs
                .map(|(&s, &x)| clamp(zeta[s as usize * mdp.actions + x as usize].ln() as f32))
                .collect()
        };
        let truth = [exact(newest[b]), exact(newest[a])].concat();
        let learned: Vec<f32> = on_b.iter().chain(on_a).map(|&x| clamp(x)).collect();
        let js_exact = occupancies[a].jensen_shannon(&occupancies[b]);
        let js = value(
            &JensenShannon,
            LOG_CLAMP,
            (on_b, &newest[b].weights),
            (on_a, &newest[a].weights),
        )
        .max(0.0);
        total[0] += share * correlation(&learned, &truth);
        total[2] += share * (js - js_exact).abs();
        total[3] += share * js_exact;
    }
    total
}

fn world(seed: u64) -> Result<TabularMdp> {
    let ring = Ring {
        states: 20,
        actions: 3,
        gamma: 0.9,
        termination: false,
        deterministic: false,
    };
    Ok(ring.problem(1000 * seed)?.mdp)
}

fn first_parameters(mdp: &TabularMdp, n: usize, seed: u64) -> Vec<Vec<f64>> {
    let draw = |i: usize| {
        let mut random = stream(seed, Purpose::Truth, 4, i);
        let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
        (0..mdp.states * mdp.actions).map(|_| 0.1 * normal()).collect()
    };
    (0..n).map(draw).collect()
}

/// The ring's reward and a hill of height 1 at the place of policy i.
fn own_reward(mdp: &TabularMdp, i: usize, n: usize) -> Vec<f64> {
    let place = i as f64 / n as f64;
    let hill = |state: usize| {
        let turn = state as f64 / mdp.states as f64 - place;
        (0.5 * (1.0 + (turn * std::f64::consts::TAU).cos())).powi(4)
    };
    let pairs = mdp.reward.iter().enumerate();
    pairs.map(|(pair, r)| 0.5 * r + hill(pair / mdp.actions)).collect()
}

fn softmax(theta: &[f64], actions: usize) -> TabularPolicy {
    let mut policy = theta.to_vec();
    for row in policy.chunks_exact_mut(actions) {
        let largest = row.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        row.iter_mut().for_each(|x| *x = (*x - largest).exp());
        let total: f64 = row.iter().sum();
        row.iter_mut().for_each(|x| *x /= total);
    }
    policy
}

/// A(s,a) = r(s,a) + γ·Σ P(s'|s,a)·V(s') - V(s) of a process without termination, by a linear solve.
fn advantages(mdp: &TabularMdp, policy: &[f64], reward: &[f64]) -> Vec<f64> {
    let (states, actions) = (mdp.states, mdp.actions);
    let mut system = Matrix::scaled_identity(states, 1.0);
    let mut right = vec![0.0; states];
    for (pair, &probability) in policy.iter().enumerate() {
        let state = pair / actions;
        right[state] += probability * reward[pair];
        for (next, chance) in mdp.next(pair).iter().enumerate() {
            system.entries[state * states + next] -= mdp.gamma * probability * chance;
        }
    }
    let values = solve(system, right).expect("I - γ·P is strictly diagonally dominant since γ < 1");
    let ahead = |pair: usize| -> f64 { mdp.next(pair).iter().zip(&values).map(|(p, v)| p * v).sum() };
    let pairs = reward.iter().enumerate();
    pairs
        .map(|(pair, r)| r + mdp.gamma * ahead(pair) - values[pair / actions])
        .collect()
}

/// Counted transitions as single ones of weight 1 in random order, as estimators take them.
fn single(data: &TabularData, seed: u64, number: usize) -> Transitions {
    let counted = data.transitions.iter();
    let mut rows: Vec<_> = counted
        .flat_map(|row| std::iter::repeat_n(row, row.count as usize))
        .collect();
    rows.shuffle(&mut stream(seed, Purpose::Truth, 5, number));
    let first = data.initial.iter();
    let initial: Vec<f32> = first
        .flat_map(|&(state, count)| std::iter::repeat_n(state as f32, count as usize))
        .collect();
    Transitions {
        begins: 0,
        behaviour: Vec::new(),
        states: rows.iter().map(|row| row.state as f32).collect(),
        actions: rows.iter().map(|row| row.action as f32).collect(),
        next_states: rows.iter().map(|row| row.next as f32).collect(),
        terminated: vec![false; rows.len()],
        weights: vec![1.0; rows.len()],
        initial_weights: vec![1.0; initial.len()],
        initial,
        mass: 1.0,
    }
}

/// Several rollouts as one.
pub(super) fn joined(parts: &[Transitions]) -> Transitions {
    let join = |of: fn(&Transitions) -> &[f32]| parts.iter().flat_map(|part| of(part).iter().copied()).collect();
    Transitions {
        begins: 0,
        behaviour: Vec::new(),
        states: join(|part| &part.states),
        actions: join(|part| &part.actions),
        next_states: join(|part| &part.next_states),
        terminated: parts.iter().flat_map(|part| part.terminated.iter().copied()).collect(),
        weights: join(|part| &part.weights),
        initial: join(|part| &part.initial),
        initial_weights: join(|part| &part.initial_weights),
        mass: 1.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advantages_have_mean_zero_and_raise_the_return() {
        let mdp = world(1).unwrap();
        let theta = first_parameters(&mdp, 2, 1).remove(1);
        let (policy, reward) = (softmax(&theta, mdp.actions), own_reward(&mdp, 1, 2));
        let advantages = advantages(&mdp, &policy, &reward);
        for (row, chances) in advantages.chunks(mdp.actions).zip(policy.chunks(mdp.actions)) {
            let mean: f64 = row.iter().zip(chances).map(|(a, p)| a * p).sum();
            assert!(mean.abs() < 1e-12);
        }
        let with = TabularMdp {
            reward: reward.clone(),
            ..mdp.clone()
        };
        let stepped: Vec<f64> = theta.iter().zip(&advantages).map(|(x, a)| x + 0.02 * a).collect();
        assert!(with.value(&softmax(&stepped, mdp.actions)) > with.value(&policy) + 1e-5);
    }

    #[test]
    fn classification_follows_moving_policies_and_untrained_ratios_do_not() {
        let course = Course {
            iterations: 30,
            ..Course::default()
        };
        let followed = follow(&course, EstimatorChoice::default(), &RatioConfig::default(), 1).unwrap();
        assert!(followed.js > 0.02, "the policies part: {followed:?}");
        assert!(followed.exact > 0.8 && followed.classifier > 0.7, "{followed:?}");
        assert!(followed.js_error < 0.5 * followed.js, "{followed:?}");
        let still = RatioConfig {
            learning_rate: Some(1e-9),
            ..RatioConfig::default()
        };
        let untrained = follow(&course, EstimatorChoice::default(), &still, 1).unwrap();
        assert!(untrained.exact < 0.5, "{untrained:?}");
    }
}
