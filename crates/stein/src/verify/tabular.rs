//! Ratios of two policies of a tabular process, learned by the estimators that training uses.
//!
//! ```text
//! features of (s,a)      one-hot, S·A wide
//! data                   200,000 transitions by geometric restarts, as distinct ones with their counts for weights
//! ζ(s,a)                 Σ_{s'} n(s,a,s')·ζ(s,a,s') / n(s,a)          (only ValueDICE's ζ depends on s')
//! ```
//!
//! Next and initial actions are summed over with their probabilities. A process of 60 pairs has a few hundred distinct
//! transitions, so an update sees all of the data at once and the gradients are free of noise.

use crate::error::Result;
use crate::ratio::{self, EstimatorChoice, Policies, Ratios, Transitions, Workspace};
use crate::rng::Stream;
use crate::truth::{Ring, TabularData, TabularMdp, TabularPolicy, TabularProblem};

use super::score::{Compared, divergences, rank_correlation, weighted_rmse};
use super::telling::telling_ring;
use super::{DIRECTIONS, Preset, SAMPLES, Score, learn};

/// Policies of one tabular process, as estimators see them: a state and an action are their numbers.
pub struct TabularPolicies<'a> {
    /// The process.
    pub mdp: &'a TabularMdp,
    /// The policies.
    pub policies: &'a [TabularPolicy],
}

impl Policies for TabularPolicies<'_> {
    fn state_width(&self) -> usize {
        1
    }

    fn action_width(&self) -> usize {
        1
    }

    fn width(&self) -> usize {
        self.mdp.states * self.mdp.actions
    }

    fn encode(&self, states: &[f32], actions: &[f32], features: &mut [f32]) {
        features.fill(0.0);
        let rows = features.chunks_exact_mut(self.width());
        for ((row, &state), &action) in rows.zip(states).zip(actions) {
            row[state as usize * self.mdp.actions + action as usize] = 1.0;
        }
    }

    fn action_count(&self) -> Option<usize> {
        Some(self.mdp.actions)
    }

    fn act(
        &self,
        policy: usize,
        states: &[f32],
        draw: usize,
        _random: &mut Stream,
        _workspace: &mut Workspace,
        actions: &mut [f32],
        weights: &mut [f32],
    ) {
        actions.fill(draw as f32);
        for (weight, &state) in weights.iter_mut().zip(states) {
            *weight = self.policies[policy][state as usize * self.mdp.actions + draw] as f32;
        }
    }

    fn workspace(&self, _capacity: usize) -> Workspace {
        Workspace {
            scratch: None,
            normalized: Vec::new(),
        }
    }
}

/// Drawn transitions as estimators take them: the distinct ones, weighted by their counts.
pub fn transitions(data: &TabularData) -> Transitions {
    let rows = &data.transitions;
    let mut transitions = Transitions {
        begins: 0,
        behaviour: Vec::new(),
        states: rows.iter().map(|row| row.state as f32).collect(),
        actions: rows.iter().map(|row| row.action as f32).collect(),
        next_states: rows.iter().map(|row| row.next as f32).collect(),
        terminated: rows.iter().map(|row| row.terminated).collect(),
        weights: rows.iter().map(|row| row.count as f32).collect(),
        initial: data.initial.iter().map(|&(state, _)| state as f32).collect(),
        initial_weights: data.initial.iter().map(|&(_, count)| count as f32).collect(),
        mass: data.mass as f32,
    };
    transitions.scale_weights();
    transitions
}

/// Draws the data of both policies.
pub fn draw(problem: &TabularProblem, samples: usize, seed: u64) -> [TabularData; 2] {
    // Each policy has random numbers of its own.
    let seeds = [seed.wrapping_mul(2), seed.wrapping_mul(2).wrapping_add(1)];
    [0, 1].map(|i| problem.mdp.draw(&problem.policies[i], samples, seeds[i]))
}

/// What one estimator learned about a tabular problem.
pub struct TabularRatios {
    /// ζ_01 and ζ_10 on the distinct transitions.
    pub ratios: Ratios,
    /// ζ_01 and ζ_10 for every pair `[S][A]`; none where the data have no visit of the policy below.
    pub zeta: [Vec<Option<f64>>; 2],
}

/// Learns both ratios from the data.
pub fn estimate(
    problem: &TabularProblem,
    data: &[TabularData; 2],
    estimator: EstimatorChoice,
    preset: &Preset,
    seed: u64,
) -> Result<TabularRatios> {
    let (mdp, width) = (&problem.mdp, problem.mdp.states * problem.mdp.actions);
    let policies = TabularPolicies {
        mdp,
        policies: &problem.policies,
    };
    let rows = data.each_ref().map(transitions);
    let mut settings = preset.ratio.clone();
    let longest = rows.iter().map(Transitions::len).max().unwrap_or(1);
    settings.minibatch = longest.clamp(1, settings.minibatch);
    let mut learner = ratio::build(estimator, 2, width, mdp.gamma, &settings, seed)?;
    let ratios = learn(learner.as_mut(), &policies, &rows, preset.updates, seed);
    let zeta = DIRECTIONS.map(|(a, b)| {
        let (mut sums, mut counts) = (vec![0.0; width], vec![0.0; width]);
        for (row, &log_zeta) in data[b].transitions.iter().zip(&ratios.of(a, b).on_b) {
            let pair = row.state * mdp.actions + row.action;
            sums[pair] += row.count as f64 * f64::from(log_zeta).exp();
            counts[pair] += row.count as f64;
        }
        let mean = |(sum, count): (f64, f64)| (count > 0.0).then(|| sum / count);
        sums.into_iter().zip(counts).map(mean).collect()
    });
    Ok(TabularRatios { ratios, zeta })
}

/// The exact ζ_01 and ζ_10 for every pair `[S][A]`; none where the policy below never goes, so that there is no ratio.
pub fn exact(problem: &TabularProblem) -> [Vec<Option<f64>>; 2] {
    let occupancies = problem.policies.each_ref().map(|policy| problem.mdp.occupancy(policy));
    DIRECTIONS.map(|(a, b)| {
        let zeta = occupancies[a].zeta(&occupancies[b]);
        let visited = occupancies[b].rho.iter().map(|&rho| rho > 0.0);
        zeta.into_iter()
            .zip(visited)
            .map(|(zeta, visited)| visited.then_some(zeta))
            .collect()
    })
}

/// Whether every pair has a single next state and never ends an episode by chance.
pub fn is_deterministic(mdp: &TabularMdp) -> bool {
    let certain = |probability: &f64| *probability == 0.0 || *probability == 1.0;
    mdp.transition.iter().chain(&mdp.termination).all(certain)
}

/// Scores what an estimator learned about a tabular problem.
pub fn scores(
    system: &str,
    problem: &TabularProblem,
    data: &[TabularData; 2],
    learned: &TabularRatios,
    estimator: EstimatorChoice,
    seed: u64,
) -> [Score; 2] {
    let TabularProblem { mdp, policies } = problem;
    let occupancies = policies.each_ref().map(|policy| mdp.occupancy(policy));
    let (js, kls) = divergences(&learned.ratios, &data.each_ref().map(transitions));
    DIRECTIONS.map(|(a, b)| {
        let (exact, rho) = (occupancies[a].zeta(&occupancies[b]), &occupancies[b].rho);
        // Pairs that b visits: the others have no ratio.
        let known = || {
            let pairs = exact.iter().zip(&learned.zeta[a]).enumerate();
            pairs.filter_map(|(pair, (&exact, zeta))| zeta.map(|zeta| (pair, exact, zeta)))
        };
        let mean = estimator.mean().value(occupancies[a].mass);
        let mean = mean.map(|mean| Compared::new(mean, learned.ratios.of(a, b).log_mean.exp()));
        let logs = |of: fn((usize, f64, f64)) -> f64| known().map(of).map(f64::ln).collect::<Vec<_>>();
        let value: f64 = known().map(|(pair, _, zeta)| rho[pair] * zeta * mdp.reward[pair]).sum();
        Score {
            system: system.into(),
            seed,
            estimator: estimator.to_string(),
            direction: if a == 0 { "01" } else { "10" },
            rmse: weighted_rmse(known().map(|(pair, exact, zeta)| (rho[pair], exact, zeta))),
            rank: rank_correlation(&logs(|(_, exact, _)| exact), &logs(|(_, _, zeta)| zeta)),
            js: Compared::new(occupancies[a].jensen_shannon(&occupancies[b]), js),
            kls: Compared::new(occupancies[a].symmetric_kl(&occupancies[b]), kls),
            mean,
            value: Compared::new(mdp.value(&policies[a]), value),
            judged: !estimator.is_biased_by_chance() || is_deterministic(mdp),
            missed: Vec::new(),
        }
        .check(true)
    })
}

/// Draws the ring of a seed and its data, lets an estimator learn both ratios and scores them.
pub fn verify(system: &str, ring: &Ring, estimator: EstimatorChoice, preset: &Preset, seed: u64) -> Result<[Score; 2]> {
    let problem = telling_ring(ring, seed)?;
    let data = draw(&problem, SAMPLES, seed);
    let learned = estimate(&problem, &data, estimator, preset, seed)?;
    Ok(scores(system, &problem, &data, &learned, estimator, seed))
}

#[cfg(test)]
#[path = "tabular_tests.rs"]
mod tests;
