//! Transitions of a tabular process by geometric restarts, as counts.
//!
//! ```text
//! s ~ μ0;   a ~ π(·|s);   terminated with τ(s,a), else s' ~ P(·|s,a);   on with probability γ, else restart
//! ```
//!
//! There are few states, so a million transitions are a few hundred distinct ones with their counts.
//!
//! # The mass
//!
//! A restart gives Σ_t γ^t·P(T > t) = m/(1-γ) transitions on average, so m = (1-γ)·transitions/restarts. An episode
//! ends by stopping or by termination, so restarts/transitions estimates 1 - γ·(1-τ), where τ is the fraction of
//! transitions that terminate. γ is known, and estimating only τ from the data gives
//!
//! ```text
//! m = (1-γ) / (1 - γ·(1-τ))
//! ```
//!
//! without the noise of the stops and of the unfinished last episode; without termination it is exactly 1.

use std::collections::BTreeMap;

use rand::RngExt;

use super::tabular::TabularMdp;
use super::{Use, stream};

/// A distinct transition and how often it was drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TabularTransition {
    /// State s.
    pub state: usize,
    /// Action a.
    pub action: usize,
    /// Next state s'; equal to `state` and meaningless if `terminated`.
    pub next: usize,
    /// Whether the episode ended by termination after (s, a).
    pub terminated: bool,
    /// Its count.
    pub count: u64,
}

/// Transitions of one policy, unweighted, and its initial states.
#[derive(Clone, Debug, PartialEq)]
pub struct TabularData {
    /// The distinct transitions in ascending order; their counts sum to `samples`.
    pub transitions: Vec<TabularTransition>,
    /// The distinct initial states with their counts: the μ0 buffer.
    pub initial: Vec<(usize, u64)>,
    /// Number of transitions.
    pub samples: u64,
    /// Number of restarts: the counts of `initial` sum to it.
    pub restarts: u64,
    /// The estimate of the mass m = 1 - E[γ^T].
    pub mass: f64,
}

impl TabularMdp {
    /// Draws `samples` transitions of a policy by geometric restarts. Policies drawn with the same seed share their
    /// random numbers: give each its own.
    pub fn draw(&self, policy: &[f64], samples: usize, seed: u64) -> TabularData {
        let mut random = stream(seed, Use::Data, 0);
        let mut transitions = BTreeMap::new();
        let mut initial = BTreeMap::new();
        let mut terminations = 0;
        let mut current = None;
        for _ in 0..samples {
            let state = current.unwrap_or_else(|| {
                let state = choose(&self.initial, random.random());
                *initial.entry(state).or_insert(0) += 1;
                state
            });
            let action = choose(&policy[state * self.actions..][..self.actions], random.random());
            let pair = state * self.actions + action;
            let terminated = random.random::<f64>() < self.termination[pair];
            let next = if terminated {
                state
            } else {
                choose(self.next(pair), random.random())
            };
            *transitions.entry((state, action, next, terminated)).or_insert(0) += 1;
            terminations += u64::from(terminated);
            let on = !terminated && random.random::<f64>() < self.gamma;
            current = on.then_some(next);
        }
        let ending = terminations as f64 / samples.max(1) as f64;
        TabularData {
            transitions: transitions
                .into_iter()
                .map(|((state, action, next, terminated), count)| TabularTransition {
                    state,
                    action,
                    next,
                    terminated,
                    count,
                })
                .collect(),
            restarts: initial.values().sum(),
            initial: initial.into_iter().collect(),
            samples: samples as u64,
            mass: (1.0 - self.gamma) / (1.0 - self.gamma * (1.0 - ending)),
        }
    }
}

/// The outcome selected by a uniform number in [0, 1); never one of probability 0, whatever the rounding of the sum.
fn choose(probabilities: &[f64], uniform: f64) -> usize {
    let mut left = uniform;
    let mut last = 0;
    for (outcome, &probability) in probabilities.iter().enumerate() {
        if probability > 0.0 {
            last = outcome;
            left -= probability;
            if left < 0.0 {
                break;
            }
        }
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::truth::{Occupancy, Ring, TabularProblem};

    const SAMPLES: usize = 200_000;

    fn problem(termination: bool) -> TabularProblem {
        let ring = Ring {
            states: 20,
            actions: 3,
            gamma: 0.9,
            termination,
            deterministic: false,
        };
        ring.problem(3).unwrap()
    }

    fn counts(mdp: &TabularMdp, data: &TabularData) -> Vec<f64> {
        let mut counts = vec![0.0; mdp.states * mdp.actions];
        for transition in &data.transitions {
            counts[transition.state * mdp.actions + transition.action] += transition.count as f64;
        }
        counts
    }

    /// Pearson's χ² over its degrees of freedom. Samples of one episode are correlated, which multiplies it by up to
    /// (1+γ)/(1-γ) = 19 if one state holds an episode to its end; it does not grow with the number of samples.
    fn misfit(counts: &[f64], expected: &[f64]) -> f64 {
        let total: f64 = counts.iter().sum();
        let cells = counts.iter().zip(expected);
        let sum: f64 = cells.map(|(n, p)| (n - total * p).powi(2) / (total * p)).sum();
        sum / (counts.len() - 1) as f64
    }

    #[test]
    fn visits_are_samples_of_the_occupancy_and_of_no_other() {
        for termination in [false, true] {
            let TabularProblem { mdp, policies } = problem(termination);
            let visits = counts(&mdp, &mdp.draw(&policies[0], SAMPLES, 1));
            let right = misfit(&visits, &mdp.occupancy(&policies[0]).rho);
            assert!(right < 3.0, "{right}");
            let other = |gamma| {
                let mdp = TabularMdp { gamma, ..mdp.clone() };
                misfit(&visits, &mdp.occupancy(&policies[0]).rho)
            };
            let uniform = TabularMdp {
                initial: vec![1.0 / 20.0; 20],
                ..mdp.clone()
            };
            let wrong = [
                ("a lower discount", other(0.85)),
                ("a higher discount", other(0.93)),
                ("no discount", other(1.0 - 1e-9)),
                ("the other policy", misfit(&visits, &mdp.occupancy(&policies[1]).rho)),
                ("a uniform start", misfit(&visits, &uniform.occupancy(&policies[0]).rho)),
            ];
            for (name, wrong) in wrong {
                assert!(wrong > 20.0, "{name}: {wrong} against {right}");
            }
        }
    }

    #[test]
    fn next_states_terminations_and_restarts_follow_the_process() {
        let TabularProblem { mdp, policies } = problem(true);
        let data = mdp.draw(&policies[1], SAMPLES, 2);
        let pairs = counts(&mdp, &data);
        let within = |count: u64, of: f64, probability: f64| {
            let std = (of * probability * (1.0 - probability)).sqrt();
            assert!((count as f64 - of * probability).abs() <= 5.0 * std + 1e-9);
        };
        for t in &data.transitions {
            let pair = t.state * mdp.actions + t.action;
            let ending = mdp.termination[pair];
            let probability = if t.terminated {
                assert_eq!(t.next, t.state);
                ending
            } else {
                (1.0 - ending) * mdp.next(pair)[t.next]
            };
            assert!(probability > 0.0);
            within(t.count, pairs[pair], probability);
        }
        for &(state, count) in &data.initial {
            within(count, data.restarts as f64, mdp.initial[state]);
        }
        assert!(
            data.transitions
                .is_sorted_by_key(|t| (t.state, t.action, t.next, t.terminated))
        );
        assert_eq!(data.transitions.iter().map(|t| t.count).sum::<u64>(), data.samples);
        assert_eq!(data.initial.iter().map(|(_, count)| count).sum::<u64>(), data.restarts);
    }

    #[test]
    fn the_solve_agrees_with_restarts_and_with_whole_episodes() {
        let TabularProblem { mdp, policies } = problem(true);
        let Occupancy { rho, mass: exact } = mdp.occupancy(&policies[0]);
        assert!(exact < 0.9, "{exact} says little about termination");
        let data = mdp.draw(&policies[0], SAMPLES, 4);
        let by_restarts = (1.0 - mdp.gamma) * data.samples as f64 / data.restarts as f64;
        assert!((data.mass - exact).abs() < 0.01 * exact, "{} {exact}", data.mass);
        assert!((by_restarts - exact).abs() < 0.02 * exact, "{by_restarts} {exact}");

        // E[γ^T] and ρ from whole episodes, which only termination ends, weighted by γ^t.
        let mut random = stream(5, Use::Integral, 0);
        let episodes = 50_000;
        let mut sum = 0.0;
        let mut visits = vec![0.0; rho.len()];
        for _ in 0..episodes {
            let mut state = choose(&mdp.initial, random.random());
            let mut power = 1.0;
            loop {
                let pair = state * 3 + choose(&policies[0][state * 3..][..3], random.random());
                visits[pair] += power;
                power *= mdp.gamma;
                if random.random::<f64>() < mdp.termination[pair] {
                    break;
                }
                state = choose(mdp.next(pair), random.random());
            }
            sum += power;
        }
        let simulated = 1.0 - sum / f64::from(episodes);
        assert!((simulated - exact).abs() < 0.01, "{simulated} {exact}");
        let total: f64 = visits.iter().sum();
        let shares = visits.iter().zip(&rho);
        let miss: f64 = shares.map(|(visits, rho)| (visits / total - rho).abs()).sum();
        assert!(miss < 0.03, "{miss}");
    }

    #[test]
    fn without_termination_the_mass_is_one_and_with_gamma_zero_every_step_restarts() {
        let TabularProblem { mut mdp, policies } = problem(false);
        assert!((mdp.draw(&policies[0], 1000, 1).mass - 1.0).abs() < 1e-12);
        mdp.gamma = 0.0;
        let data = mdp.draw(&policies[0], 1000, 1);
        assert_eq!((data.samples, data.restarts), (1000, 1000));
        assert!(data.transitions.iter().all(|t| mdp.initial[t.state] > 0.0));
        let none = mdp.draw(&policies[0], 0, 1);
        assert!(none.transitions.is_empty() && none.restarts == 0 && none.mass == 1.0);
    }

    #[test]
    fn a_seed_gives_the_same_data() {
        let TabularProblem { mdp, policies } = problem(true);
        let draw = |seed| mdp.draw(&policies[0], 1000, seed);
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }

    #[test]
    fn choices_never_have_probability_zero() {
        assert_eq!(choose(&[0.0, 0.5, 0.0, 0.5, 0.0], 0.0), 1);
        assert_eq!(choose(&[0.0, 0.5, 0.0, 0.5, 0.0], 0.5), 3);
        assert_eq!(choose(&[0.3, 0.3, 0.0], 0.999), 1);
    }
}
