//! What an ensemble remembers for ratio estimation: each policy's last rollouts, real initial states, feature statistics.

use super::config::{Occupancy, RatioConfig};
use super::data::Transitions;
use super::policies::join_rows;
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::nn::Normalizer;
use crate::policy::Rollout;
use crate::policy::ensemble::{restore_normalizer, save_normalizer};

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

    fn occupancy(&self) -> Occupancy {
        self.config.occupancy.unwrap_or(Occupancy::Discounted)
    }

    /// Takes in the rollouts of an iteration.
    pub fn remember(&mut self, rollouts: &[Rollout]) {
        let mut joined = Vec::new();
        let occupancy = self.occupancy();
        for (recent, rollout) in self.recent.iter_mut().zip(rollouts) {
            let transitions = transitions(rollout, self.state, self.gamma, occupancy);
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
                let begins = recent.iter().map(|part| part.begins).min().unwrap_or(0);
                for part in recent {
                    let late = self.gamma.powi((part.begins - begins) as i32);
                    all.states.extend_from_slice(&part.states);
                    all.actions.extend_from_slice(&part.actions);
                    all.behaviour.extend_from_slice(&part.behaviour);
                    all.next_states.extend_from_slice(&part.next_states);
                    all.terminated.extend_from_slice(&part.terminated);
                    let weights = part.weights.iter().map(|&weight| (late * f64::from(weight)) as f32);
                    all.weights.extend(weights);
                    all.mass += part.mass / recent.len() as f32;
                }
                all.initial = match self.occupancy() {
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
                // Rollouts in which an episode begins, as most do, have none.
                if part.begins > 0 {
                    checkpoint.insert_u64(&name("begins"), &[1], &[u64::from(part.begins)]);
                }
            }
        }
        checkpoint.insert_f32("memory.resets", &[self.resets.len() / state, state], &self.resets);
        save_normalizer("memory.features", &self.features, checkpoint);
    }

    /// Takes all of it from a checkpoint.
    pub fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        let (state, action) = (self.state, self.action);
        for (i, recent) in self.recent.iter_mut().enumerate() {
            recent.clear();
            let rollouts = checkpoint.take_u64(&format!("memory.{i}.rollouts"), &[1])?[0];
            for r in 0..rollouts {
                let name = |what: &str| format!("memory.{i}.{r}.{what}");
                let len = checkpoint.rows(&name("weights"));
                let weights = checkpoint.take_f32(&name("weights"), &[len])?;
                let good = !weights.is_empty() && weights.iter().all(|&weight| weight >= 0.0);
                checkpoint.require(good, &name("weights"), "weights of a rollout")?;
                let begins = match checkpoint.shape(&name("begins")) {
                    Some(_) => checkpoint.take_u64(&name("begins"), &[1])?[0],
                    None => 0,
                };
                checkpoint.require(begins <= u64::from(u32::MAX), &name("begins"), "times")?;
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
                    weights,
                    begins: begins as u32,
                    mass: checkpoint.take_f32(&name("mass"), &[1])?[0],
                    ..Transitions::default()
                });
            }
        }
        let resets = checkpoint.rows("memory.resets");
        self.resets = checkpoint.take_f32("memory.resets", &[resets, state])?;
        let idle = self.recent.iter().all(Vec::is_empty);
        checkpoint.require(idle || resets > 0, "memory.resets", "first observations of episodes")?;
        restore_normalizer("memory.features", &mut self.features, checkpoint)
    }
}

/// The transitions of a rollout with their weights and the policy's mass.
///
/// Samples and flow must tell the same story, else the ratio of a policy to itself is not 1.
///
/// ```text
/// discounted  an episode that ends, by itself or by its time limit, is over: what lies behind it has no mass in the data
///             (exact for ζ_ii; between policies a bias is left where γ^H is not small, for what lies ahead depends on
///             the time left)
/// visited     an episode that ends is followed by the first state of another; nothing is lost and the mass is 1
/// ```
fn transitions(rollout: &Rollout, state: usize, gamma: f64, occupancy: Occupancy) -> Transitions {
    let steps = rollout.steps();
    let over: Vec<bool> = (0..steps).map(|t| episode_ended(rollout, t)).collect();
    let begins = match occupancy {
        Occupancy::Discounted => rollout.time.iter().copied().min().unwrap_or(0),
        Occupancy::Visited => 0,
    };
    let weight = |&t: &u32| gamma.powi((t - begins) as i32) as f32;
    let mut weights: Vec<f32> = match occupancy {
        Occupancy::Discounted => rollout.time.iter().map(weight).collect(),
        Occupancy::Visited => vec![1.0; steps],
    };
    let mut next_states = Vec::with_capacity(steps * state);
    for t in 0..steps {
        let mut row = rollout.next[t] as usize;
        if occupancy == Occupancy::Visited && over[t] {
            // The episode that begins behind the last step is not seen yet: any other beginning is as good.
            let begun = (t + 1 < steps).then_some(t + 1);
            match begun.or(rollout.initial.last().map(|&row| row as usize)) {
                Some(first) => row = first,
                None => weights[t] = 0.0,
            }
        }
        next_states.extend_from_slice(&rollout.observations[row * state..][..state]);
    }
    Transitions {
        states: rollout.observations[..steps * state].to_vec(),
        actions: rollout.actions.clone(),
        behaviour: rollout.behaviour.clone(),
        next_states,
        mass: mass(rollout, &over, gamma, occupancy) as f32,
        terminated: match occupancy {
            Occupancy::Discounted => over,
            Occupancy::Visited => vec![false; steps],
        },
        weights,
        begins,
        ..Transitions::default()
    }
}

/// Whether the episode ended after step t, by itself or by its time limit; the end of the rollout is no end of an episode.
fn episode_ended(rollout: &Rollout, t: usize) -> bool {
    rollout.ended[t] && (t + 1 < rollout.steps() || rollout.next_is_new_episode)
}

/// m = 1 - E[γ^T], T the length of an episode; 1 where episodes are followed by others.
fn mass(rollout: &Rollout, over: &[bool], gamma: f64, occupancy: Occupancy) -> f64 {
    let ends = || (0..rollout.steps()).filter(|&t| over[t]);
    if occupancy == Occupancy::Visited || ends().next().is_none() {
        return 1.0;
    }
    let lost: f64 = ends().map(|t| gamma.powi(rollout.time[t] as i32 + 1)).sum();
    1.0 - lost / ends().count() as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

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
        // One of two episodes terminated after five steps, the other met its limit after one; the last goes on.
        assert_eq!(made.terminated, [false, true, true, false]);
        assert!((f64::from(made.mass) - (1.0 - (0.5f64.powi(5) + 0.5) / 2.0)).abs() < 1e-6);
        let visited = transitions(&rollout(), 2, 0.5, Occupancy::Visited);
        assert_eq!(visited.weights, [1.0; 4]);
        assert_eq!(visited.mass, 1.0);
        assert_eq!(visited.terminated, [false; 4]);
        // Both ends are followed by the beginnings of the next episodes.
        assert_eq!(visited.next_states, [2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 12.0, 13.0]);
    }

    /// Episodes of a walk over five places that end by a fall in place 4 or by a limit of 6 steps.
    fn walk(steps: usize) -> Rollout {
        let mut random = crate::rng::stream(5, crate::rng::Purpose::Truth, 0, 0);
        let mut rollout = Rollout::default();
        let (mut place, mut time, mut last) = (0usize, 0u32, Vec::new());
        for t in 0..steps {
            if time == 0 {
                place = random.random_range(0..2);
                rollout.initial.push(t as u32);
            }
            rollout.observations.push(place as f32);
            rollout.actions.push(0.0);
            rollout.time.push(time);
            place = (place + random.random_range(0..2)).min(4);
            time += 1;
            let (terminated, ended) = (place == 4, place == 4 || time == 6);
            rollout.terminated.push(terminated);
            rollout.ended.push(ended || t + 1 == steps);
            if ended || t + 1 == steps {
                rollout.next.push((steps + last.len()) as u32);
                last.push(place as f32);
            } else {
                rollout.next.push(t as u32 + 1);
            }
            rollout.next_is_new_episode = ended;
            if ended {
                rollout.episodes.push((0.0, time as usize));
                time = 0;
            }
        }
        rollout.observations.extend(last);
        rollout
    }

    /// How far ζ_ii = 1 is from solving the flow m·E_ρ[1_s(s) - γ·1_s(s')] = (1-γ)·μ0(s), at the worst of the places s.
    fn self_residual(data: &Transitions, initial: &[f32], gamma: f64) -> f64 {
        let total: f64 = data.weights.iter().map(|&w| f64::from(w)).sum();
        let at = |place: usize, state: f32| f64::from(u8::from(state == place as f32));
        let residual = |place: usize| {
            let flow: f64 = (0..data.len())
                .map(|t| {
                    let goes_on = f64::from(u8::from(!data.terminated[t]));
                    let ahead = goes_on * at(place, data.next_states[t]);
                    f64::from(data.weights[t]) * (at(place, data.states[t]) - gamma * ahead)
                })
                .sum();
            let first: f64 = initial.iter().map(|&state| at(place, state)).sum();
            f64::from(data.mass) * flow / total - (1.0 - gamma) * first / initial.len() as f64
        };
        (0..5).map(|place| residual(place).abs()).fold(0.0, f64::max)
    }

    #[test]
    fn the_ratio_of_a_policy_to_itself_is_one_with_falls_and_time_limits() {
        let gamma = 0.9;
        let rollout = walk(20_000);
        let data = transitions(&rollout, 1, gamma, Occupancy::Discounted);
        let initial: Vec<f32> = rollout
            .initial
            .iter()
            .map(|&row| rollout.observations[row as usize])
            .collect();
        // Only the episode that the rollout cuts off is left over.
        assert!(self_residual(&data, &initial, gamma) < 1e-3);
        let data = transitions(&rollout, 1, gamma, Occupancy::Visited);
        assert!(self_residual(&data, &data.states, gamma) < 1e-3);
    }

    /// A rollout from the middle of a long episode: γ^t alone would be 0 in f32 (and, from the second one on, in f64).
    fn late(begins: u32) -> Rollout {
        Rollout {
            time: vec![begins, begins + 1, begins + 2, begins + 3],
            terminated: vec![false; 4],
            ended: vec![false, false, false, true],
            next: vec![1, 2, 3, 4],
            initial: Vec::new(),
            episodes: Vec::new(),
            ..rollout()
        }
    }

    #[test]
    fn weights_of_long_episodes_do_not_vanish() {
        let config = RatioConfig {
            rollouts: 2,
            ..RatioConfig::default()
        };
        let mut memory = Memory::new(1, 2, 1, 0, 0.5, &config);
        memory.remember(&[rollout()]);
        let expected = [1.0, 0.5, 0.25, 0.125];
        for begins in [1_000, 1_002, 10_000] {
            memory.remember(&[late(begins)]);
            assert_eq!(memory.newest()[0].weights, expected);
            let sum: f32 = memory.data()[0].weights.iter().sum();
            assert!((sum - 8.0).abs() < 1e-4, "{sum}");
        }
        // Between rollouts they are to each other as γ^t is.
        memory.remember(&[late(500)]);
        memory.remember(&[late(502)]);
        let weights = &memory.data()[0].weights;
        assert!((weights[0] / weights[4] - 4.0).abs() < 1e-5, "{weights:?}");
        assert!((weights[2] / weights[4] - 1.0).abs() < 1e-5, "{weights:?}");
        let mut checkpoint = Checkpoint::new(1, "");
        memory.save(&mut checkpoint);
        let mut again = Memory::new(1, 2, 1, 0, 0.5, &config);
        again.restore(&mut checkpoint).unwrap();
        assert_eq!(again.data(), memory.data());
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
