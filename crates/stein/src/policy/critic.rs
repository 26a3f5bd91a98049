//! Critics: S value networks for each policy, one a reward stream (stream 0 is the task's; `qd` has one more, of diversity).
//!
//! ```text
//! V(s) = mean + deviation·net(s)              mean, deviation: running statistics of the critic's own return targets
//! loss = ½·max((v - R̂)², (clip(v, v_old ± c) - R̂)²)     in units of the deviation; v_old before the update
//! ```
//!
//! Returns of a task can be near 100 while those of a diversity reward are near 0: each critic learns standardised
//! targets, and when the statistics move, the last layer is rescaled so that V(s) stays what it was (PopArt, van Hasselt
//! et al. 2016).

use rayon::prelude::*;

use super::advantage::{Units, advantages, is_silent};
use super::ensemble::{restore_stack, save_stack};
use super::rollout::Rollout;
use crate::error::Result;
use crate::nn::init::Init;
use crate::nn::{AdamConfig, Pool, Scratch, Shape, Stack, backward, clip_norm, forward};
use crate::rng::{Purpose, stream};
use crate::run::checkpoint::Checkpoint;
use crate::run::config::{CriticConfig, PpoConfig};

/// Rate at which the statistics of the targets follow new iterations.
const SCALE_RATE: f64 = 0.1;

/// n·S critics; that of stream s of policy i is number i·S + s.
pub struct Critics {
    stack: Stack<f32>,
    streams: usize,
    scales: Vec<Scale>,
    config: CriticConfig,
    pool: Pool<Buffers>,
    minibatch: usize,
}

struct Buffers {
    scratch: Scratch<f32>,
    gradient: Vec<f32>,
}

impl Buffers {
    fn new(shape: &Shape, minibatch: usize) -> Self {
        // Values are computed in larger batches than the updates need.
        Buffers {
            scratch: Scratch::new(shape, minibatch.max(512)),
            gradient: vec![0.0; shape.parameters()],
        }
    }
}

/// Mean and mean square of a critic's targets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Scale {
    count: f64,
    mean: f64,
    square: f64,
}

impl Scale {
    fn deviation(&self) -> f64 {
        if self.count == 0.0 {
            return 1.0;
        }
        (self.square - self.mean * self.mean).max(0.0).sqrt().max(1e-4)
    }

    /// Follows the statistics of new targets and rescales the output layer so that no value changes.
    fn follow(&mut self, targets: &[f32], weights: &mut [f32], bias: &mut f32) {
        let (old_mean, old_deviation) = (self.mean, self.deviation());
        let count = targets.len() as f64;
        let mean = targets.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
        let square = targets.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>() / count;
        let rate = if self.count == 0.0 { 1.0 } else { SCALE_RATE };
        self.count += 1.0;
        self.mean += rate * (mean - self.mean);
        self.square += rate * (square - self.square);
        if self.count == 1.0 {
            // The first values mean nothing yet: let them be the targets' mean rather than keep them.
            return;
        }
        let ratio = old_deviation / self.deviation();
        weights
            .iter_mut()
            .for_each(|weight| *weight = (f64::from(*weight) * ratio) as f32);
        *bias = (f64::from(*bias) * ratio + (old_mean - self.mean) / self.deviation()) as f32;
    }
}

/// What the critics make of the rollouts of one iteration, by critic number.
#[derive(Default)]
pub struct Judgement {
    /// Values of all observation rows.
    pub values: Vec<Vec<f32>>,
    /// Advantages, in the units that the method asks for.
    pub advantages: Vec<Vec<f32>>,
    /// Return targets.
    pub targets: Vec<Vec<f32>>,
}

impl Judgement {
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
        let minibatch = steps.div_ceil(ppo.minibatches);
        Critics {
            stack: Stack::new(shape, n * streams, adam, Init::Orthogonal, gains, |p| {
                stream(seed, Purpose::CriticInit, p, 0)
            }),
            streams,
            scales: vec![Scale::default(); n * streams],
            config: config.clone(),
            pool: Pool::default(),
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
    pub fn judge<'a>(
        &self,
        rollouts: &[Rollout],
        rewards: impl Fn(usize, usize) -> &'a [f32] + Sync,
        ppo: &PpoConfig,
        units: impl Fn(usize) -> Units + Sync,
    ) -> Judgement {
        let (gamma, lambda) = (ppo.gamma as f32, ppo.lambda as f32);
        let judged: Vec<_> = (0..self.stack.members())
            .into_par_iter()
            .map(|critic| {
                let (i, s) = (critic / self.streams, critic % self.streams);
                let rollout = &rollouts[i];
                let values = self.values(critic, &rollout.normalized);
                let mut advantage = vec![0.0; rollout.steps()];
                advantages(rollout, rewards(i, s), &values, gamma, lambda, &mut advantage);
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
            })
            .collect();
        let mut judgement = Judgement::default();
        for (values, advantage, targets) in judged {
            judgement.values.push(values);
            judgement.advantages.push(advantage);
            judgement.targets.push(targets);
        }
        judgement
    }

    fn values(&self, critic: usize, observations: &[f32]) -> Vec<f32> {
        let shape = &self.stack.shape;
        let scale = &self.scales[critic];
        let (mean, deviation) = (scale.mean as f32, scale.deviation() as f32);
        self.pool.with(
            || Buffers::new(shape, self.minibatch),
            |buffers| {
                let mut values = Vec::with_capacity(observations.len() / shape.input());
                for rows in observations.chunks(buffers.scratch.capacity() * shape.input()) {
                    buffers.scratch.load_input(rows);
                    forward(shape, self.stack.member(critic), &mut buffers.scratch);
                    values.extend(buffers.scratch.output(0).iter().map(|v| mean + deviation * v));
                }
                values
            },
        )
    }

    /// Fits every critic to its targets; `orders[i]` are the sample numbers of policy i, epoch after epoch. Returns the
    /// mean value loss of stream 0.
    pub fn update(
        &mut self,
        rollouts: &[Rollout],
        judgement: &Judgement,
        orders: &[Vec<u32>],
        ppo: &PpoConfig,
        rate: f64,
    ) -> f64 {
        let shape = self.stack.shape.clone();
        let last = shape.offset(shape.layers() - 1);
        let width = shape.layer(shape.layers() - 1).1;
        if self.config.normalize_targets {
            for (critic, scale) in self.scales.iter_mut().enumerate() {
                let (weights, bias) = self.stack.member_mut(critic)[last..].split_at_mut(width);
                scale.follow(&judgement.targets[critic], weights, &mut bias[0]);
            }
        }
        let (config, streams, minibatch) = (self.stack.config, self.streams, self.minibatch);
        let (pool, scales, settings) = (&self.pool, &self.scales, &self.config);
        // Values from before the first statistics are no reason to hold the new ones back.
        let first = scales[0].count == 1.0;
        let value_clip = if first { 0.0 } else { settings.value_clip as f32 };
        let rate = rate * settings.learning_rate_factor;
        let losses: Vec<f64> = self
            .stack
            .par_members()
            .map(|member| {
                let (i, critic) = (member.index / streams, member.index);
                let (mean, deviation) = (scales[critic].mean as f32, scales[critic].deviation() as f32);
                let (targets, old) = (&judgement.targets[critic], &judgement.values[critic]);
                let steps = rollouts[i].steps();
                let mut total = 0.0;
                pool.with(
                    || Buffers::new(&shape, minibatch),
                    |Buffers { scratch, gradient }| {
                        for epoch in orders[i].chunks_exact(steps) {
                            for indices in epoch.chunks(minibatch) {
                                scratch.gather_input(&rollouts[i].normalized, indices);
                                forward(&shape, member.parameters, scratch);
                                let share = 1.0 / indices.len() as f32;
                                for (b, &t) in indices.iter().enumerate() {
                                    let target = (targets[t as usize] - mean) / deviation;
                                    let before = (old[t as usize] - mean) / deviation;
                                    let value = scratch.output(0)[b];
                                    let (loss, slope) = value_loss(value, before, target, value_clip);
                                    scratch.output_delta(0)[b] = share * slope;
                                    total += f64::from(share * loss);
                                }
                                gradient.fill(0.0);
                                backward(&shape, member.parameters, scratch, gradient);
                                clip_norm(gradient, ppo.gradient_clip);
                                member.adam.step(&config, rate, member.parameters, gradient);
                            }
                        }
                    },
                );
                total / (orders[i].len().div_ceil(minibatch)) as f64
            })
            .collect();
        let task = losses.iter().step_by(streams);
        task.sum::<f64>() / (losses.len() / streams) as f64
    }

    /// Adds all state to a checkpoint.
    pub fn save(&self, checkpoint: &mut Checkpoint) {
        save_stack("critic", &self.stack, checkpoint);
        let scales: Vec<f64> = self.scales.iter().flat_map(|s| [s.count, s.mean, s.square]).collect();
        checkpoint.insert_f64("critic.scales", &[self.scales.len(), 3], &scales);
    }

    /// Takes all state from a checkpoint.
    pub fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        restore_stack("critic", &mut self.stack, checkpoint)?;
        let scales = checkpoint.take_f64("critic.scales", &[self.scales.len(), 3])?;
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
    let (loss, slope) = (0.5 * error * error, error);
    if clip == 0.0 {
        return (loss, slope);
    }
    let clipped = before + (value - before).clamp(-clip, clip) - target;
    let clipped_loss = 0.5 * clipped * clipped;
    if clipped_loss > loss {
        (clipped_loss, 0.0)
    } else {
        (loss, slope)
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
        scale.follow(&[1.0, 2.0, 3.0], &mut [0.0], &mut 0.0);
        let (mut weights, mut bias, h) = ([0.5f32], 0.25f32, 0.8f32);
        let value =
            |scale: &Scale, weight: f32, bias: f32| scale.mean + scale.deviation() * f64::from(weight * h + bias);
        let before = value(&scale, weights[0], bias);
        scale.follow(&[100.0, 250.0, 180.0], &mut weights, &mut bias);
        assert!((before - value(&scale, weights[0], bias)).abs() < 1e-4);
        assert!(scale.deviation() > 10.0);
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
            let judged = critics.judge(std::slice::from_ref(&rollout), |_, s| &rewards[s], &ppo, |_| units);
            assert!(
                judged.advantages[0].iter().all(|&a| a == 0.0),
                "{units:?}: constant rewards are silent"
            );
            assert!(judged.advantages[1].iter().any(|&a| a != 0.0));
            let swapped = critics.judge(std::slice::from_ref(&rollout), |_, s| &rewards[1 - s], &ppo, |_| units);
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
        let judge =
            |critics: &Critics| critics.judge(&rollouts, |i, s| &rewards[i * streams + s], &ppo, |_| Units::Standard);
        for _ in 0..60 {
            let judgement = judge(&critics);
            critics.update(&rollouts, &judgement, &orders, &ppo, ppo.learning_rate);
        }
        let judgement = judge(&critics);
        for critic in 0..n * streams {
            let explained = judgement.explained_variance(critic);
            assert!(explained > 0.95, "critic {critic} explains {explained}");
        }
    }
}
