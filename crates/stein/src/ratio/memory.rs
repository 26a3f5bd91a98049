//! What an ensemble remembers for ratio estimation: each policy's last rollouts, real initial states, feature statistics.

use super::config::{Occupancy, RatioConfig};
use super::data::Transitions;
use super::policies::join_rows;
use crate::error::Result;
use crate::nn::Normalizer;
use crate::policy::Rollout;
use crate::run::checkpoint::Checkpoint;

/// Initial states that are kept at the most.
const INITIAL_LIMIT: usize = 8192;

/// Memory of n policies.
pub struct Memory {
    config: RatioConfig,
    gamma: f64,
    state: usize,
    action: usize,
    /// Numbers of φ(s); 0 where ratios are of (s,a).
    behaviour: usize,
    /// The last rollouts of each policy, oldest first.
    recent: Vec<Vec<Transitions>>,
    /// First observations of real episodes, anybody's: they are of the environment, not of a policy.
    resets: Vec<f32>,
    /// Statistics of (s,a), or of φ(s), over all policies.
    pub features: Normalizer,
}

impl Memory {
    /// Nothing remembered yet.
    pub fn new(n: usize, state: usize, action: usize, behaviour: usize, gamma: f64, config: &RatioConfig) -> Self {
        let width = if behaviour > 0 { behaviour } else { state + action };
        Memory {
            config: config.clone(),
            gamma,
            state,
            action,
            behaviour,
            recent: vec![Vec::new(); n],
            resets: Vec::new(),
            features: Normalizer::new(width, 10.0),
        }
    }

    /// Takes in the rollouts of an iteration.
    pub fn remember(&mut self, rollouts: &[Rollout]) {
        let mut joined = Vec::new();
        for (recent, rollout) in self.recent.iter_mut().zip(rollouts) {
            let transitions = transitions(rollout, self.state, self.gamma, self.config.occupancy);
            if self.behaviour > 0 {
                self.features.update(&transitions.behaviour);
            } else {
                joined.resize(transitions.len() * (self.state + self.action), 0.0);
                join_rows(
                    &transitions.states,
                    self.state,
                    &transitions.actions,
                    self.action,
                    &mut joined,
                );
                self.features.update(&joined);
            }
            for &row in &rollout.initial {
                self.resets
                    .extend_from_slice(&rollout.observations[row as usize * self.state..][..self.state]);
            }
            recent.push(transitions);
            if recent.len() > self.config.rollouts {
                recent.remove(0);
            }
        }
        let surplus = self.resets.len().saturating_sub(INITIAL_LIMIT * self.state);
        self.resets.drain(..surplus);
    }

    /// The newest rollout of each policy.
    pub fn newest(&self) -> Vec<&Transitions> {
        self.recent.iter().filter_map(|recent| recent.last()).collect()
    }

    /// Each policy's remembered rollouts as one set of data, with initial states.
    pub fn data(&self) -> Vec<Transitions> {
        self.recent
            .iter()
            .map(|recent| {
                let mut all = Transitions::default();
                for part in recent {
                    all.states.extend_from_slice(&part.states);
                    all.actions.extend_from_slice(&part.actions);
                    all.behaviour.extend_from_slice(&part.behaviour);
                    all.next_states.extend_from_slice(&part.next_states);
                    all.terminated.extend_from_slice(&part.terminated);
                    all.weights.extend_from_slice(&part.weights);
                    all.mass += part.mass / recent.len() as f32;
                }
                all.initial = match self.config.occupancy {
                    Occupancy::Discounted => self.resets.clone(),
                    Occupancy::Visited => all.states.clone(),
                };
                all.initial_weights = vec![1.0; all.initial.len() / self.state];
                all.scale_weights();
                all
            })
            .collect()
    }

    /// Adds all of it to a checkpoint.
    pub fn save(&self, checkpoint: &mut Checkpoint) {
        let (state, action) = (self.state, self.action);
        for (i, recent) in self.recent.iter().enumerate() {
            checkpoint.insert_u64(&format!("memory.{i}.rollouts"), &[1], &[recent.len() as u64]);
            for (r, part) in recent.iter().enumerate() {
                let (name, len) = (|what: &str| format!("memory.{i}.{r}.{what}"), part.len());
                let terminated: Vec<u64> = part.terminated.iter().map(|&t| u64::from(t)).collect();
                checkpoint.insert_f32(&name("states"), &[len, state], &part.states);
                checkpoint.insert_f32(&name("actions"), &[len, action], &part.actions);
                checkpoint.insert_f32(&name("behaviour"), &[len, self.behaviour], &part.behaviour);
                checkpoint.insert_f32(&name("next_states"), &[len, state], &part.next_states);
                checkpoint.insert_u64(&name("terminated"), &[len], &terminated);
                checkpoint.insert_f32(&name("weights"), &[len], &part.weights);
                checkpoint.insert_f32(&name("mass"), &[1], &[part.mass]);
            }
        }
        checkpoint.insert_f32("memory.resets", &[self.resets.len() / state, state], &self.resets);
        checkpoint.insert_f64("memory.features.count", &[1], &[self.features.count]);
        let width = self.features.mean.len();
        checkpoint.insert_f64("memory.features.mean", &[width], &self.features.mean);
        checkpoint.insert_f64("memory.features.squares", &[width], &self.features.squares);
    }

    /// Takes all of it from a checkpoint.
    pub fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        let (state, action) = (self.state, self.action);
        let rows = |checkpoint: &Checkpoint, name: &str| checkpoint.shape(name).map_or(0, |shape| shape[0]);
        for (i, recent) in self.recent.iter_mut().enumerate() {
            recent.clear();
            let rollouts = checkpoint.take_u64(&format!("memory.{i}.rollouts"), &[1])?[0];
            for r in 0..rollouts {
                let name = |what: &str| format!("memory.{i}.{r}.{what}");
                let len = rows(checkpoint, &name("weights"));
                recent.push(Transitions {
                    states: checkpoint.take_f32(&name("states"), &[len, state])?,
                    actions: checkpoint.take_f32(&name("actions"), &[len, action])?,
                    behaviour: checkpoint.take_f32(&name("behaviour"), &[len, self.behaviour])?,
                    next_states: checkpoint.take_f32(&name("next_states"), &[len, state])?,
                    terminated: checkpoint
                        .take_u64(&name("terminated"), &[len])?
                        .iter()
                        .map(|&t| t != 0)
                        .collect(),
                    weights: checkpoint.take_f32(&name("weights"), &[len])?,
                    mass: checkpoint.take_f32(&name("mass"), &[1])?[0],
                    ..Transitions::default()
                });
            }
        }
        let resets = rows(checkpoint, "memory.resets");
        self.resets = checkpoint.take_f32("memory.resets", &[resets, state])?;
        let count = checkpoint.take_f64("memory.features.count", &[1])?[0];
        let width = self.features.mean.len();
        let mean = checkpoint.take_f64("memory.features.mean", &[width])?;
        let squares = checkpoint.take_f64("memory.features.squares", &[width])?;
        self.features = Normalizer::restore(count, mean, squares, 10.0);
        Ok(())
    }
}

/// The transitions of a rollout with their weights and the policy's mass.
fn transitions(rollout: &Rollout, state: usize, gamma: f64, occupancy: Occupancy) -> Transitions {
    let steps = rollout.steps();
    let next_states = rollout.next.iter().flat_map(|&row| {
        let row = row as usize * state;
        rollout.observations[row..row + state].iter().copied()
    });
    let weights = rollout.time.iter().map(|&t| match occupancy {
        Occupancy::Discounted => gamma.powi(t as i32) as f32,
        Occupancy::Visited => 1.0,
    });
    Transitions {
        states: rollout.observations[..steps * state].to_vec(),
        actions: rollout.actions.clone(),
        behaviour: rollout.behaviour.clone(),
        next_states: next_states.collect(),
        terminated: rollout.terminated.clone(),
        weights: weights.collect(),
        mass: mass(rollout, gamma, occupancy) as f32,
        ..Transitions::default()
    }
}

/// m = 1 - E[γ^T], T the steps from an initial state to termination (never: γ^T = 0).
///
/// Discounted: initial states are those of episodes. Visited: every state is one, and T counts from it.
fn mass(rollout: &Rollout, gamma: f64, occupancy: Occupancy) -> f64 {
    let (mut lost, mut starts) = (0.0, 0.0);
    match occupancy {
        Occupancy::Discounted => {
            for t in 0..rollout.steps() {
                if rollout.terminated[t] {
                    lost += gamma.powi(rollout.time[t] as i32 + 1);
                }
            }
            starts += rollout.episodes.len() as f64;
        }
        Occupancy::Visited => {
            let mut left = 0.0;
            for t in (0..rollout.steps()).rev() {
                if rollout.ended[t] {
                    left = 0.0;
                }
                left = if rollout.terminated[t] { gamma } else { gamma * left };
                lost += left;
                starts += 1.0;
            }
        }
    }
    if starts > 0.0 { 1.0 - lost / starts } else { 1.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rollout() -> Rollout {
        Rollout {
            observations: (0..14).map(|x| x as f32).collect(),
            actions: vec![0.5; 4],
            next: vec![1, 4, 5, 6],
            terminated: vec![false, true, false, false],
            ended: vec![false, true, true, true],
            time: vec![3, 4, 0, 0],
            initial: vec![2, 3],
            episodes: vec![(1.0, 5), (1.0, 1)],
            ..Rollout::default()
        }
    }

    #[test]
    fn transitions_pair_states_with_their_successors() {
        let made = transitions(&rollout(), 2, 0.5, Occupancy::Discounted);
        assert_eq!(made.states, [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0]);
        assert_eq!(made.next_states, [2.0, 3.0, 8.0, 9.0, 10.0, 11.0, 12.0, 13.0]);
        assert_eq!(made.weights, [0.125, 0.0625, 1.0, 1.0]);
        // One of two episodes terminated, after five steps.
        assert!((f64::from(made.mass) - (1.0 - 0.5f64.powi(5) / 2.0)).abs() < 1e-6);
        let visited = transitions(&rollout(), 2, 0.5, Occupancy::Visited);
        assert_eq!(visited.weights, [1.0; 4]);
        assert!((f64::from(visited.mass) - (1.0 - (0.25 + 0.5) / 4.0)).abs() < 1e-6);
    }

    #[test]
    fn memory_keeps_the_last_rollouts_and_survives_a_checkpoint() {
        let config = RatioConfig {
            rollouts: 2,
            ..RatioConfig::default()
        };
        let mut memory = Memory::new(2, 2, 1, 0, 0.5, &config);
        for _ in 0..3 {
            memory.remember(&[rollout(), rollout()]);
        }
        let data = memory.data();
        assert_eq!(data[0].len(), 8);
        assert_eq!(data[0].initial.len(), 3 * 2 * 2 * 2);
        let mean: f32 = data[1].weights.iter().sum::<f32>() / 8.0;
        assert!((mean - 1.0).abs() < 1e-6);
        let mut checkpoint = Checkpoint::new(1, "");
        memory.save(&mut checkpoint);
        let mut again = Memory::new(2, 2, 1, 0, 0.5, &config);
        again.restore(&mut checkpoint).unwrap();
        assert_eq!(again.data(), data);
        assert_eq!(again.features, memory.features);
    }
}
