//! Critics: S value networks for each policy, one a reward stream (stream 0 is the task's; `qd` has one more, of diversity).
//!
//! ```text
//! V(s) = mean + std·net(s)              mean, std: running statistics of the critic's own return targets
//! loss = ½·max((v - R̂)², (clip(v, v_old ± c) - R̂)²)     in units of the std; v_old before the update
//! ```
//!
//! Returns of a task can be near 100 while those of a diversity reward are near 0: each critic learns standardised
//! targets, and when the statistics move, the last layer is rescaled so that V(s) stays what it was (PopArt, van Hasselt
//! et al. 2016).

use serde::{Deserialize, Serialize};

use super::advantage::{Units, gae, is_silent};
use super::ppo::PpoConfig;
use super::rollout::Rollout;
use crate::check::{layers, real};
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::nn::{AdamConfig, Scratch, Shape, Stack, Step};
use crate::parallel;
use crate::rng::{Purpose, stream};

/// Settings of the critics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CriticConfig {
    /// Widths of the tanh layers.
    pub hidden: Vec<usize>,
    /// The critics' learning rate is that of the policies times this.
    pub learning_rate_factor: f64,
    /// Bound on how far a value moves in one iteration, in standard stds of its targets; 0 for none.
    pub value_clip: f64,
    /// Whether each critic learns standardised targets (PopArt).
    pub normalize_targets: bool,
}

impl Default for CriticConfig {
    fn default() -> Self {
        CriticConfig {
            hidden: vec![64, 64],
            learning_rate_factor: 3.0,
            value_clip: 0.2,
            normalize_targets: true,
        }
    }
}

impl CriticConfig {
    /// Refuses impossible values.
    pub fn validate(&self) -> Result<()> {
        layers("critic.hidden", &self.hidden)?;
        real("critic.learning_rate_factor", self.learning_rate_factor, 0.0, 1e6)?;
        real("critic.value_clip", self.value_clip, 0.0, 1e9)
    }
}

/// Rate at which the statistics of the targets follow new iterations.
const SCALE_RATE: f64 = 0.1;

/// n·S critics; that of stream s of policy i is number i·S + s.
pub struct Critics {
    stack: Stack<f32>,
    streams: usize,
    scales: Vec<Scale>,
    config: CriticConfig,
    minibatch: usize,
}

/// Mean and mean square of a critic's targets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Scale {
    count: f64,
    mean: f64,
    square: f64,
}

impl Scale {
    fn std(&self) -> f64 {
        if self.count == 0.0 {
            return 1.0;
        }
        (self.square - self.mean * self.mean).max(0.0).sqrt().max(1e-4)
    }

    /// Follows the statistics of new targets; returns the factor and the shift of the critic's output by which no value changes.
    fn follow(&mut self, targets: &[f32]) -> Option<(f64, f64)> {
        let (old_mean, old_std) = (self.mean, self.std());
        let count = targets.len() as f64;
        let mean = targets.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
        let square = targets.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / count;
        let rate = if self.count == 0.0 { 1.0 } else { SCALE_RATE };
        self.count += 1.0;
        self.mean += rate * (mean - self.mean);
        self.square += rate * (square - self.square);
        if self.count == 1.0 {
            // The first values mean nothing yet: let them be the targets' mean rather than keep them.
            return None;
        }
        let ratio = old_std / self.std();
        Some((ratio, (old_mean - self.mean) / self.std()))
    }
}

/// What the critics make of the rollouts of one iteration, by critic number.
#[derive(Default)]
pub struct Advantages {
    /// Values of all observation rows.
    pub values: Vec<Vec<f32>>,
    /// Advantages, in the units that the method asks for.
    pub advantages: Vec<Vec<f32>>,
    /// Return targets.
    pub targets: Vec<Vec<f32>>,
}

impl Advantages {
    /// 1 - Var(R - V)/Var(R) of one critic: how much of the spread of its targets it foresaw.
    pub fn explained_variance(&self, critic: usize) -> f64 {
        let (targets, values) = (&self.targets[critic], &self.values[critic]);
        let total = variance(targets.iter().map(|&r| f64::from(r)));
        let left = variance(targets.iter().zip(values).map(|(&r, &v)| f64::from(r) - f64::from(v)));
        if total > 0.0 { 1.0 - left / total } else { f64::NAN }
    }

    /// Deviation of the advantages of one critic.
    pub fn size(&self, critic: usize) -> f64 {
        variance(self.advantages[critic].iter().map(|&a| f64::from(a))).sqrt()
    }
}

fn variance(values: impl Iterator<Item = f64>) -> f64 {
    let (mut count, mut mean, mut squares) = (0.0, 0.0, 0.0);
    for x in values {
        count += 1.0;
        let delta = x - mean;
        mean += delta / count;
        squares += delta * (x - mean);
    }
    squares / f64::max(count, 1.0)
}

impl Critics {
    /// Draws n·S critics.
    pub fn new(
        n: usize,
        streams: usize,
        width: usize,
        config: &CriticConfig,
        ppo: &PpoConfig,
        steps: usize,
        seed: u64,
    ) -> Self {
        let shape = Shape::new(width, &config.hidden, 1);
        let adam = AdamConfig {
            epsilon: ppo.adam_epsilon,
            ..AdamConfig::default()
        };
        let gains = (std::f64::consts::SQRT_2, 1.0);
        let minibatch = ppo.minibatch(steps);
        let random = |p| stream(seed, Purpose::CriticInit, p, 0);
        // Values are computed in larger batches than the updates need.
        let stack = Stack::new(shape, n * streams, adam, gains, random).with_capacity(minibatch.max(512));
        Critics {
            stack,
            streams,
            scales: vec![Scale::default(); n * streams],
            config: config.clone(),
            minibatch,
        }
    }

    /// Multiplications and additions of one update of all critics: `epochs` passes over `steps` samples each.
    pub fn flops(&self, steps: usize, epochs: usize) -> f64 {
        let shape = &self.stack.shape;
        let epoch = shape.forward_flops() + shape.backward_flops();
        self.stack.members() as f64 * steps as f64 * epochs as f64 * epoch
    }

    /// Values of every row, then advantages and targets of every stream. `rewards(i, s)` are those of stream s of policy
    /// i, `units(s)` the units of its advantages; the task is stream 0. A stream that says nothing has the advantage 0: what
    /// its critic errs by is no guide. The task is heard once and for all, since later its critic knows of more than one
    /// rollout; further streams are made anew in each.
    pub fn advantages<'a>(
        &self,
        rollouts: &[Rollout],
        rewards: impl Fn(usize, usize) -> &'a [f32] + Sync,
        ppo: &PpoConfig,
        units: impl Fn(usize) -> Units + Sync,
    ) -> Advantages {
        let (gamma, lambda) = (ppo.gamma as f32, ppo.lambda as f32);
        let judged = parallel::map(0..self.stack.members(), |_, critic| {
            let (i, s) = (critic / self.streams, critic % self.streams);
            let rollout = &rollouts[i];
            let values = self.values(critic, &rollout.normalized);
            let mut advantage = vec![0.0; rollout.steps()];
            gae(rollout, rewards(i, s), &values, gamma, lambda, &mut advantage);
            let targets = advantage.iter().zip(&values).map(|(a, v)| a + v).collect();
            let silent = match s {
                0 => rollout.silent,
                _ => is_silent(rollout, rewards(i, s)),
            };
            if silent {
                advantage.fill(0.0);
            } else {
                units(s).apply(&mut advantage);
            }
            (values, advantage, targets)
        });
        let mut advantages = Advantages::default();
        for (values, advantage, targets) in judged {
            advantages.values.push(values);
            advantages.advantages.push(advantage);
            advantages.targets.push(targets);
        }
        advantages
    }

    fn values(&self, critic: usize, observations: &[f32]) -> Vec<f32> {
        let scale = &self.scales[critic];
        let (mean, std) = (scale.mean as f32, scale.std() as f32);
        let mut values = Vec::with_capacity(observations.len() / self.stack.shape.input());
        self.stack.pass(critic, observations, |scratch| {
            values.extend(scratch.output(0).iter().map(|v| mean + std * v));
        });
        values
    }

    /// Fits every critic to its targets; `orders[i]` are the sample numbers of policy i, epoch after epoch. Returns the
    /// mean value loss of stream 0.
    pub fn update(
        &mut self,
        rollouts: &[Rollout],
        advantages: &Advantages,
        orders: &[Vec<u32>],
        ppo: &PpoConfig,
        rate: f64,
    ) -> f64 {
        if self.config.normalize_targets {
            for (critic, scale) in self.scales.iter_mut().enumerate() {
                if let Some((factor, shift)) = scale.follow(&advantages.targets[critic]) {
                    self.stack.rescale_output(critic, factor, shift);
                }
            }
        }
        let (streams, minibatch) = (self.streams, self.minibatch);
        let (scales, settings) = (&self.scales, &self.config);
        // Values from before the first statistics are no reason to hold the new ones back.
        let first = scales[0].count == 1.0;
        let value_clip = if first { 0.0 } else { settings.value_clip as f32 };
        let step = Step {
            rate: rate * settings.learning_rate_factor,
            clip: ppo.gradient_clip,
        };
        let losses: Vec<f64> = self.stack.train(|critic, network| {
            let i = critic / streams;
            let (mean, std) = (scales[critic].mean as f32, scales[critic].std() as f32);
            let (targets, old) = (&advantages.targets[critic], &advantages.values[critic]);
            let mut total = 0.0;
            for epoch in orders[i].chunks_exact(rollouts[i].steps()) {
                for indices in epoch.chunks(minibatch) {
                    let input = |scratch: &mut Scratch<f32>| scratch.gather_input(&rollouts[i].normalized, indices);
                    network.minibatch(step, input, |scratch| {
                        let share = 1.0 / indices.len() as f32;
                        for (b, &t) in indices.iter().enumerate() {
                            let target = (targets[t as usize] - mean) / std;
                            let before = (old[t as usize] - mean) / std;
                            let value = scratch.output(0)[b];
                            let (loss, derivative) = value_loss(value, before, target, value_clip);
                            scratch.output_delta(0)[b] = share * derivative;
                            total += f64::from(share * loss);
                        }
                    });
                }
            }
            total / (orders[i].len().div_ceil(minibatch)) as f64
        });
        let task = losses.iter().step_by(streams);
        task.sum::<f64>() / (losses.len() / streams) as f64
    }

    /// Adds all state to a checkpoint.
    pub fn save(&self, checkpoint: &mut Checkpoint) {
        self.stack.save("critic", checkpoint);
        let scales: Vec<f64> = self.scales.iter().flat_map(|s| [s.count, s.mean, s.square]).collect();
        checkpoint.insert_f64("critic.scales", &[self.scales.len(), 3], &scales);
    }

    /// Takes all state from a checkpoint.
    pub fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        self.stack.restore("critic", checkpoint)?;
        let scales = checkpoint.take_f64("critic.scales", &[self.scales.len(), 3])?;
        let good = scales.chunks_exact(3).all(|s| s[0] >= 0.0 && s[2] >= 0.0);
        checkpoint.require(good, "critic.scales", "counts, means and mean squares")?;
        for (scale, saved) in self.scales.iter_mut().zip(scales.chunks_exact(3)) {
            *scale = Scale {
                count: saved[0],
                mean: saved[1],
                square: saved[2],
            };
        }
        Ok(())
    }
}

/// The clipped value loss of one sample and its derivative in `value`; `clip` 0 means no clip.
fn value_loss(value: f32, before: f32, target: f32, clip: f32) -> (f32, f32) {
    let error = value - target;
    let (loss, derivative) = (0.5 * error * error, error);
    if clip == 0.0 {
        return (loss, derivative);
    }
    let clipped = before + (value - before).clamp(-clip, clip) - target;
    let clipped_loss = 0.5 * clipped * clipped;
    if clipped_loss > loss {
        (clipped_loss, 0.0)
    } else {
        (loss, derivative)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_loss_matches_central_differences() {
        for (value, before, target, clip) in [
            (1.0f32, 0.9, 2.0, 0.2),
            (1.0, 0.5, 2.0, 0.2),
            (1.0, 0.5, 0.0, 0.2),
            (1.0, 0.5, 0.0, 0.0),
            (-1.0, 0.0, 3.0, 0.5),
        ] {
            let h = 1e-3;
            let loss = |v| f64::from(value_loss(v, before, target, clip).0);
            let numeric = (loss(value + h) - loss(value - h)) / (2.0 * f64::from(h));
            let written = f64::from(value_loss(value, before, target, clip).1);
            assert!(
                (numeric - written).abs() < 1e-3,
                "{value} {before} {target} {clip}: {numeric} {written}"
            );
        }
    }

    #[test]
    fn following_the_targets_changes_no_value() {
        let mut scale = Scale::default();
        assert_eq!(
            scale.follow(&[1.0, 2.0, 3.0]),
            None,
            "the first values mean nothing yet"
        );
        let output = 0.65;
        let before = scale.mean + scale.std() * output;
        let (factor, shift) = scale.follow(&[100.0, 250.0, 180.0]).unwrap();
        let after = scale.mean + scale.std() * (factor * output + shift);
        assert!((before - after).abs() < 1e-9);
        assert!(scale.std() > 10.0);
    }

    #[test]
    fn errors_of_a_critic_are_no_advantages() {
        let (config, ppo, steps) = (CriticConfig::default(), PpoConfig::default(), 64);
        let critics = Critics::new(1, 2, 2, &config, &ppo, steps, 1);
        let rollout = Rollout {
            normalized: crate::nn::test::random_vector(1, (steps + 1) * 2, 1.5)
                .iter()
                .map(|&x| x as f32)
                .collect(),
            next: (1..=steps as u32).collect(),
            terminated: vec![false; steps],
            ended: (1..=steps).map(|t| t == steps).collect(),
            silent: true,
            ..Rollout::default()
        };
        let rewards = [vec![0.0; steps], (0..steps).map(|t| t as f32).collect::<Vec<f32>>()];
        for units in [Units::Standard, Units::Centred, Units::Raw] {
            let judged = critics.advantages(std::slice::from_ref(&rollout), |_, s| &rewards[s], &ppo, |_| units);
            assert!(
                judged.advantages[0].iter().all(|&a| a == 0.0),
                "{units:?}: constant rewards are silent"
            );
            assert!(judged.advantages[1].iter().any(|&a| a != 0.0));
            let swapped = critics.advantages(std::slice::from_ref(&rollout), |_, s| &rewards[1 - s], &ppo, |_| units);
            assert!(
                swapped.advantages[1].iter().all(|&a| a == 0.0),
                "{units:?}: also those of diversity"
            );
        }
    }

    #[test]
    fn critics_learn_their_targets() {
        let (n, streams, steps) = (2, 3, 256);
        let (config, ppo) = (
            CriticConfig::default(),
            PpoConfig {
                learning_rate: 1e-3,
                ..PpoConfig::default()
            },
        );
        let mut critics = Critics::new(n, streams, 2, &config, &ppo, steps, 1);
        let mut rollouts = Vec::new();
        let mut orders = Vec::new();
        for i in 0..n {
            let normalized: Vec<f32> = crate::nn::test::random_vector(i as u64, (steps + 1) * 2, 1.5)
                .iter()
                .map(|&x| x as f32)
                .collect();
            rollouts.push(Rollout {
                observations: normalized.clone(),
                normalized,
                next: (1..=steps as u32).collect(),
                terminated: vec![true; steps],
                ended: vec![true; steps],
                ..Rollout::default()
            });
            orders.push(
                (0..steps as u32 * 5)
                    .map(|k| (k * 7 + k / 256) % 256)
                    .collect::<Vec<u32>>(),
            );
        }
        // Every step terminates, so the value of a state is its reward: 50·x, -3·x·y, 1000 + y.
        let rewards: Vec<Vec<f32>> = (0..n * streams)
            .map(|critic| {
                let rows = rollouts[critic / streams].normalized.chunks_exact(2).take(steps);
                rows.map(|o| [50.0 * o[0], -3.0 * o[0] * o[1], 1000.0 + o[1]][critic % streams])
                    .collect()
            })
            .collect();
        let compute = |critics: &Critics| {
            critics.advantages(&rollouts, |i, s| &rewards[i * streams + s], &ppo, |_| Units::Standard)
        };
        for _ in 0..60 {
            let advantages = compute(&critics);
            critics.update(&rollouts, &advantages, &orders, &ppo, ppo.learning_rate);
        }
        let advantages = compute(&critics);
        for critic in 0..n * streams {
            let explained = advantages.explained_variance(critic);
            assert!(explained > 0.95, "critic {critic} explains {explained}");
        }
    }
}
