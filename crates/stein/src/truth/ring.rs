//! Random tabular problems with local moves, to test ratio estimators on.
//!
//! The states form a ring; an action moves by a displacement of -2 … 2 drawn for each pair, with noise unless
//! `deterministic`; episodes start in one or two neighbouring states. Local moves and a concentrated start matter: in a
//! process that mixes fast, an estimator with a wrong γ or wrong initial states is not noticed.
//!
//! The two policies are random softmax policies, moved towards their mean until their ratio can be learned from a few
//! hundred thousand samples, within the bounds of [`Ring::problem`].

use rand::RngExt;
use rand::seq::SliceRandom;
use rand_distr::{Distribution, StandardNormal};

use super::json::TabularProblem;
use super::tabular::{TabularMdp, TabularPolicy};
use super::{Use, stream};
use crate::error::{Error, Result};
use crate::rng::Stream;

/// D_JS between the two policies.
const JENSEN_SHANNON: std::ops::RangeInclusive<f64> = 0.02..=0.3;

/// Largest ratio, in either direction.
const LARGEST_RATIO: f64 = 5.0;

/// Smallest ρ(s,a) of either policy, as a fraction of the mean over pairs.
const RAREST: f64 = 0.05;

/// Problems tried before giving up.
const ATTEMPTS: usize = 1000;

/// The fraction of the policies' difference that is left after moving them together once.
const CLOSER: f64 = 0.9;

/// The largest probability of termination of a pair.
const TERMINATION: f64 = 0.15;

/// The fraction of moves that are noise.
const NOISE: f64 = 0.3;

/// Settings of a random ring.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ring {
    /// Number of states, at least 1.
    pub states: usize,
    /// Number of actions, at least 1.
    pub actions: usize,
    /// Discount γ in [0, 1).
    pub gamma: f64,
    /// Whether pairs can end the episode (each with its own probability up to 15 %).
    pub termination: bool,
    /// Whether a pair has a single next state.
    pub deterministic: bool,
}

impl Ring {
    /// The problem of a seed: D_JS in [.02, .3], every ratio at most 5 in both directions, and every ρ(s,a) at least 5
    /// % of its mean. Fails if no ring with these settings qualifies (too many states for the horizon, one action).
    pub fn problem(&self, seed: u64) -> Result<TabularProblem> {
        let acceptable = |attempt| self.attempt(&mut stream(seed, Use::Problem, attempt));
        (0..ATTEMPTS).find_map(acceptable).ok_or_else(|| {
            Error::failed(format!(
                "no ring of {} states and {} actions with γ = {} has two policies whose ratio can be learned; use at least 2 \
                 actions, and fewer states or a greater γ",
                self.states, self.actions, self.gamma
            ))
        })
    }

    /// One random problem, or none if its policies cannot be brought within the bounds.
    fn attempt(&self, random: &mut Stream) -> Option<TabularProblem> {
        let mdp = self.process(random);
        let mut policies = [self.policy(random), self.policy(random)];
        loop {
            let [a, b] = policies.each_ref().map(|policy| mdp.occupancy(policy));
            let divergence = a.jensen_shannon(&b);
            if divergence < *JENSEN_SHANNON.start() {
                return None;
            }
            let rarest = RAREST / a.rho.len() as f64;
            let common = a.rho.iter().chain(&b.rho).all(|&rho| rho >= rarest);
            let ratios = || a.zeta(&b).into_iter().chain(b.zeta(&a));
            if common && JENSEN_SHANNON.contains(&divergence) && ratios().all(|zeta| zeta <= LARGEST_RATIO) {
                return Some(TabularProblem { mdp, policies });
            }
            draw_together(&mut policies);
        }
    }

    fn process(&self, random: &mut Stream) -> TabularMdp {
        let (states, pairs) = (self.states, self.states * self.actions);
        let mut transition = Vec::with_capacity(pairs * states);
        for state in 0..states {
            // Shuffled, so that the actions of a state have different effects as long as there are moves left.
            let mut moves: [usize; 5] = [0, 1, 2, 3, 4];
            moves.shuffle(random);
            for action in 0..self.actions {
                let mut chances = [0.0; 5];
                if !self.deterministic {
                    chances = std::array::from_fn(|_| random.random::<f64>());
                    let sum: f64 = chances.iter().sum();
                    chances = chances.map(|chance| NOISE * chance / sum);
                }
                chances[moves[action % 5]] += 1.0 - chances.iter().sum::<f64>();
                let mut row = vec![0.0; states];
                for (index, chance) in chances.into_iter().enumerate() {
                    row[(state + 2 * states + index - 2) % states] += chance;
                }
                transition.extend(row);
            }
        }
        let termination = |random: &mut Stream| TERMINATION * random.random::<f64>();
        TabularMdp {
            states,
            actions: self.actions,
            gamma: self.gamma,
            initial: self.start(random),
            transition,
            reward: (0..pairs).map(|_| random.random_range(-1.0..1.0)).collect(),
            termination: (0..pairs)
                .map(|_| if self.termination { termination(random) } else { 0.0 })
                .collect(),
        }
    }

    /// One state, or two neighbours.
    fn start(&self, random: &mut Stream) -> Vec<f64> {
        let mut initial = vec![0.0; self.states];
        let first = random.random_range(0..self.states);
        let share = if random.random() {
            1.0
        } else {
            random.random_range(0.3..0.7)
        };
        initial[first] += share;
        initial[(first + 1) % self.states] += 1.0 - share;
        initial
    }

    /// A softmax of normal preferences.
    fn policy(&self, random: &mut Stream) -> TabularPolicy {
        let mut policy: Vec<f64> = (0..self.states * self.actions)
            .map(|_| f64::exp(StandardNormal.sample(random)))
            .collect();
        for row in policy.chunks_exact_mut(self.actions) {
            let sum: f64 = row.iter().sum();
            row.iter_mut().for_each(|probability| *probability /= sum);
        }
        policy
    }
}

/// Mixes each policy with the other; their mean is unchanged.
fn draw_together([a, b]: &mut [TabularPolicy; 2]) {
    for (a, b) in a.iter_mut().zip(b) {
        let (mean, half) = (0.5 * (*a + *b), 0.5 * CLOSER * (*a - *b));
        (*a, *b) = (mean + half, mean - half);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rings() -> Vec<Ring> {
        let mut rings = Vec::new();
        for (states, actions, gamma) in [(20, 3, 0.9), (16, 4, 0.95)] {
            for (termination, deterministic) in [(false, false), (false, true), (true, false), (true, true)] {
                rings.push(Ring {
                    states,
                    actions,
                    gamma,
                    termination,
                    deterministic,
                });
            }
        }
        rings
    }

    fn sums_to_one(values: &[f64]) {
        assert!((values.iter().sum::<f64>() - 1.0).abs() < 1e-12, "{values:?}");
        assert!(values.iter().all(|&value| value >= 0.0), "{values:?}");
    }

    #[test]
    fn every_problem_is_within_the_bounds() {
        for ring in rings() {
            for seed in 0..10 {
                let TabularProblem { mdp, policies } = ring.problem(seed).unwrap();
                let [a, b] = policies.each_ref().map(|policy| mdp.occupancy(policy));
                let divergence = a.jensen_shannon(&b);
                assert!((0.02..=0.3).contains(&divergence), "{ring:?} {seed}: D_JS {divergence}");
                for zeta in a.zeta(&b).into_iter().chain(b.zeta(&a)) {
                    assert!(zeta <= 5.0, "{ring:?} {seed}: ratio {zeta}");
                }
                let pairs = mdp.states * mdp.actions;
                let rarest = a.rho.iter().chain(&b.rho).copied().fold(1.0, f64::min);
                assert!(rarest * pairs as f64 >= 0.05, "{ring:?} {seed}: rarest pair {rarest}");
                if ring.termination {
                    assert!(a.mass < 0.8 && b.mass < 0.8);
                }
            }
        }
    }

    #[test]
    fn moves_are_local_starts_concentrated_and_rows_distributions() {
        for ring in rings() {
            let TabularProblem { mdp, policies } = ring.problem(7).unwrap();
            let states = ring.states;
            sums_to_one(&mdp.initial);
            assert!(mdp.initial.iter().filter(|&&mu| mu > 0.0).count() <= 2);
            for pair in 0..states * ring.actions {
                let row = mdp.next(pair);
                sums_to_one(row);
                let moves: Vec<usize> = (0..states).filter(|&next| row[next] > 0.0).collect();
                assert_eq!(moves.len(), if ring.deterministic { 1 } else { 5 });
                for next in moves {
                    let ahead = (next + states - pair / ring.actions) % states;
                    assert!(ahead.min(states - ahead) <= 2);
                }
            }
            for row in policies.iter().flat_map(|policy| policy.chunks(ring.actions)) {
                sums_to_one(row);
            }
            assert_eq!(mdp.termination.iter().any(|&ending| ending > 0.0), ring.termination);
        }
    }

    #[test]
    fn a_seed_gives_one_problem() {
        let ring = rings()[0];
        assert_eq!(ring.problem(1).unwrap(), ring.problem(1).unwrap());
        assert_ne!(ring.problem(1).unwrap(), ring.problem(2).unwrap());
    }

    #[test]
    fn a_ring_without_such_policies_is_refused() {
        let one_action = Ring {
            actions: 1,
            ..rings()[0]
        };
        let one_step = Ring {
            gamma: 0.0,
            ..rings()[0]
        };
        for ring in [one_action, one_step] {
            let sentence = ring.problem(1).unwrap_err().to_string();
            assert!(sentence.starts_with("no ring of 20 states"), "{sentence}");
        }
    }
}
