//! The policy update: clipped PPO surrogates, mixed over the ensemble as the method's guidance says.
//!
//! ```text
//! L_s(θ_i) = mean_b min(ϱ·A_s, clip(ϱ, 1±ε)·A_s),   ϱ = π_θ(a|s)/π_old(a|s)
//! Δθ_i     = Σ_j task_ij·∇L_0(θ_j) + ∇ Σ_s streams_is·L_s(θ_i) + drift_i + entropy bonus
//! ```
//!
//! Per minibatch all policies compute their gradients, then each takes its step, clipped in norm after the combination.
//! All streams of a policy share ∇log π, so they are one backward pass with summed coefficients; only where the
//! neighbours' task gradients enter are two passes needed. Reference: Schulman et al. 2017.
//!
//! The clip bounds what a sample can gain, not how far the policy moves: with a small std of actions a few steps of Adam
//! are many stds, and a policy that had the task solved can lose it. So a policy stops where a minibatch shows
//! KL(π_old ‖ π) above `ppo.kl_limit`, until the next iteration.

use crate::method::Guidance;
use crate::nn::{Gradient, Network, Scratch, Shape, Step};
use crate::parallel;
use crate::policy::critic::Advantages;
use crate::policy::gaussian::{
    LOG_STD_LARGEST, LOG_STD_LEAST, bounded_derivative, bounded_mean, gaussian_log_density, log_tanh_derivative,
};
use crate::policy::{Ensemble, PpoConfig, Rollout};

/// What happened in the update of one policy, averaged over the minibatches before it stopped.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct UpdateReport {
    /// Mean of the log ratio's quadratic estimate of KL(π_old ‖ π).
    pub approximate_kl: f64,
    /// Share of samples whose ratio lay outside 1 ± ε.
    pub clip_fraction: f64,
    /// Norm of the combined gradient before it was clipped.
    pub gradient_norm: f64,
    /// Share of the steps that were taken: below 1 where `ppo.kl_limit` ended the update.
    pub steps_taken: f64,
    minibatches: usize,
    stopped: bool,
}

impl UpdateReport {
    /// Adds what a minibatch shows, and stops the policy if that is beyond the limit.
    fn note(&mut self, moved: Moved, kl_limit: f64) {
        if !self.stopped {
            self.approximate_kl += moved.kl;
            self.clip_fraction += moved.clipped;
            self.minibatches += 1;
            self.stopped = moved.kl > kl_limit;
        }
    }
}

/// How far a policy is from the one that acted, on a minibatch: KL and the share of samples outside 1 ± ε.
#[derive(Clone, Copy, Debug, Default)]
struct Moved {
    kl: f64,
    clipped: f64,
}

/// The update, with its buffers, which are allocated once.
pub struct Updater {
    /// Gradients of the policies' tasks, where neighbours need them.
    task: Vec<Gradient<f32>>,
    /// Gradients of all that each policy follows.
    own: Vec<Gradient<f32>>,
    minibatch: usize,
}

impl Updater {
    /// Buffers for n policies of this shape with `steps` samples each.
    pub fn new(n: usize, shape: &Shape, steps: usize, ppo: &PpoConfig) -> Self {
        Updater {
            task: vec![Gradient::new(shape); n],
            own: vec![Gradient::new(shape); n],
            minibatch: ppo.minibatch(steps),
        }
    }

    /// Moves every policy. `orders[i]` are the sample numbers of policy i, epoch after epoch.
    #[allow(clippy::too_many_arguments)]
    pub fn update(
        &mut self,
        ensemble: &mut Ensemble,
        rollouts: &[Rollout],
        advantages: &Advantages,
        guidance: &Guidance,
        orders: &[Vec<u32>],
        ppo: &PpoConfig,
        rate: f64,
    ) -> Vec<UpdateReport> {
        let n = ensemble.n();
        let shared = (0..n * n).any(|at| at / n != at % n && guidance.task[at] != 0.0);
        let streams = guidance.streams.len() / n;
        let limit = if ppo.kl_limit > 0.0 {
            ppo.kl_limit
        } else {
            f64::INFINITY
        };
        let step = Step {
            rate,
            clip: ppo.gradient_clip,
        };
        let steps = rollouts[0].steps();
        let per_epoch = steps.div_ceil(self.minibatch);
        let minibatches = orders[0].len() / steps * per_epoch;
        let mut reports = vec![UpdateReport::default(); n];
        for number in 0..minibatches {
            let first = number / per_epoch * steps + number % per_epoch * self.minibatch;
            let last = (first + self.minibatch).min((number / per_epoch + 1) * steps);
            let parts = (&mut self.task[..], &mut self.own[..], &mut reports[..]);
            ensemble
                .policies
                .differentiate(parts, |i, network, scratch, (task, own, report)| {
                    // Neighbours may need the task gradient of a policy that has stopped.
                    if report.stopped && !shared {
                        return;
                    }
                    let sample = Minibatch {
                        rollout: &rollouts[i],
                        indices: &orders[i][first..last],
                        advantages: &advantages.advantages[i * (streams + 1)..][..streams + 1],
                    };
                    let own_task = if shared { 0.0 } else { guidance.task[i * n + i] };
                    let weights = &guidance.streams[i * streams..][..streams];
                    sample.forward(network, scratch);
                    let mut moved = Moved::default();
                    if shared {
                        task.clear();
                        moved = sample.gradient(network, 1.0, &[], ppo, scratch, task);
                        // The backward pass overwrites the deltas, not the activations: no second forward pass.
                    }
                    own.clear();
                    if !shared || streams > 0 {
                        moved = sample.gradient(network, own_task, weights, ppo, scratch, own);
                    }
                    report.note(moved, limit);
                    entropy_bonus(ppo.entropy as f32, own);
                });
            if reports.iter().all(|report| report.stopped) {
                break;
            }
            if shared {
                self.mix(guidance, n);
            }
            let parts = (&mut self.own[..], &mut reports[..]);
            ensemble.policies.step_all(parts, |i, mut policy, (own, report)| {
                if report.stopped {
                    return;
                }
                if !guidance.drift.is_empty() {
                    own.add(&guidance.drift[i]);
                }
                report.gradient_norm += policy.ascend(own, step);
                report.steps_taken += 1.0;
                policy.clamp_extra(LOG_STD_LEAST, LOG_STD_LARGEST);
            });
        }
        for report in &mut reports {
            let count = report.minibatches as f64;
            report.approximate_kl /= count;
            report.clip_fraction /= count;
            report.gradient_norm /= report.steps_taken.max(1.0);
            report.steps_taken /= minibatches as f64;
        }
        reports
    }

    /// Adds the neighbours' task gradients to each policy's own.
    fn mix(&mut self, guidance: &Guidance, n: usize) {
        let tasks = &self.task;
        parallel::for_each(&mut self.own[..], |i, own| {
            for (j, task) in tasks.iter().enumerate() {
                let weight = guidance.task[i * n + j];
                if weight != 0.0 {
                    own.add_scaled(weight, task);
                }
            }
        });
    }
}

/// Gradient of `weight` · (entropy of the Gaussian before squashing): 1 for each log-std.
fn entropy_bonus(weight: f32, gradient: &mut Gradient<f32>) {
    if weight != 0.0 {
        gradient.extra_mut().iter_mut().for_each(|g| *g += weight);
    }
}

/// The derivative of the clipped surrogate in log π of one sample; 0 where the clip holds it.
pub fn surrogate_derivative(ratio: f32, advantage: f32, clip: f32) -> f32 {
    let held = (advantage > 0.0 && ratio > 1.0 + clip) || (advantage < 0.0 && ratio < 1.0 - clip);
    if held { 0.0 } else { ratio * advantage }
}

/// Mean entropy of a squashed policy, estimated on its samples: -mean log π(a|s).
pub fn entropy(rollout: &Rollout) -> f64 {
    -rollout.log_probs.iter().map(|&l| f64::from(l)).sum::<f64>() / rollout.steps() as f64
}

struct Minibatch<'a> {
    rollout: &'a Rollout,
    indices: &'a [u32],
    /// Advantages of the task, then of the further streams.
    advantages: &'a [Vec<f32>],
}

impl Minibatch<'_> {
    fn forward(&self, network: Network<'_, f32>, scratch: &mut Scratch<f32>) {
        scratch.gather_input(&self.rollout.normalized, self.indices);
        network.forward(scratch);
    }

    /// Adds the gradient of `task`·L_0 + Σ_s streams_s·L_s.
    fn gradient(
        &self,
        network: Network<'_, f32>,
        task: f32,
        streams: &[f32],
        ppo: &PpoConfig,
        scratch: &mut Scratch<f32>,
        gradient: &mut Gradient<f32>,
    ) -> Moved {
        let coordinates = network.shape().output();
        let log_std = network.extra();
        let clip = ppo.clip as f32;
        let share = 1.0 / self.indices.len() as f32;
        let (mut kl, mut clipped) = (0.0f64, 0u32);
        for (b, &t) in self.indices.iter().enumerate() {
            let t = t as usize;
            let u = &self.rollout.unsquashed[t * coordinates..][..coordinates];
            let density =
                gaussian_log_density(u, (0..coordinates).map(|d| bounded_mean(scratch.output(d)[b])), log_std);
            let log_prob = density - u.iter().map(|&u| log_tanh_derivative(u)).sum::<f32>();
            let log_ratio = log_prob - self.rollout.log_probs[t];
            let ratio = log_ratio.exp();
            let mut derivative = task * surrogate_derivative(ratio, self.advantages[0][t], clip);
            for (weight, advantages) in streams.iter().zip(&self.advantages[1..]) {
                derivative += weight * surrogate_derivative(ratio, advantages[t], clip);
            }
            kl += f64::from(ratio - 1.0 - log_ratio);
            clipped += u32::from((ratio - 1.0).abs() > clip);
            for d in 0..coordinates {
                let inverse = (-log_std[d]).exp();
                let mean = bounded_mean(scratch.output(d)[b]);
                let epsilon = (u[d] - mean) * inverse;
                scratch.output_delta(d)[b] = share * derivative * epsilon * inverse * bounded_derivative(mean);
                gradient.extra_mut()[d] += share * derivative * (epsilon * epsilon - 1.0);
            }
        }
        network.backward(scratch, gradient);
        Moved {
            kl: kl * f64::from(share),
            clipped: f64::from(clipped) * f64::from(share),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::Frozen;
    use crate::nn::test::{central_difference, random_vector};

    const CLIP: f64 = 0.2;
    const COORDINATES: usize = 2;

    fn narrow(values: &[f64]) -> Vec<f32> {
        values.iter().map(|&x| x as f32).collect()
    }

    /// 40 samples with random actions, advantages of two streams, and old log-probabilities off by up to ±0.6, so that
    /// the clip holds for some of them on either side.
    fn samples(shape: &Shape, parameters: &[f64]) -> (Rollout, Vec<Vec<f32>>) {
        let steps = 40;
        let mut rollout = Rollout {
            normalized: narrow(&random_vector(31, steps * shape.input(), 1.0)),
            unsquashed: narrow(&random_vector(32, steps * COORDINATES, 1.5)),
            next: vec![0; steps],
            ..Rollout::default()
        };
        let offsets = random_vector(33, steps, 0.6);
        rollout.log_probs = (0..steps)
            .map(|t| (log_prob(shape, parameters, &rollout, t) + offsets[t]) as f32)
            .collect();
        let advantages = vec![
            narrow(&random_vector(34, steps, 1.0)),
            narrow(&random_vector(35, steps, 1.0)),
        ];
        (rollout, advantages)
    }

    /// log π(a_t|s_t) in f64, written from its definition.
    fn log_prob(shape: &Shape, parameters: &[f64], rollout: &Rollout, t: usize) -> f64 {
        let mut scratch = Scratch::<f64>::new(shape, 1);
        let observation: Vec<f64> = rollout.normalized[t * shape.input()..][..shape.input()]
            .iter()
            .map(|&x| f64::from(x))
            .collect();
        scratch.load_input(&observation);
        crate::nn::forward(shape, parameters, &mut scratch);
        let mut total = 0.0;
        for d in 0..COORDINATES {
            let (u, log_std) = (
                f64::from(rollout.unsquashed[t * COORDINATES + d]),
                parameters[shape.extra_offset() + d],
            );
            let std = log_std.exp();
            let mean = 2.0 * (scratch.output(d)[0] / 2.0).tanh();
            let density = (-(u - mean).powi(2) / (2.0 * std * std)).exp() / (std * (2.0 * std::f64::consts::PI).sqrt());
            total += density.ln() - (1.0 - u.tanh().powi(2)).ln();
        }
        total
    }

    #[test]
    fn gradient_of_the_mixed_clipped_surrogates_matches_central_differences() {
        let shape = Shape::new(3, &[6, 5], COORDINATES).with_extra(COORDINATES);
        let parameters: Vec<f64> = random_vector(36, shape.parameters(), 0.5)
            .iter()
            .map(|&x| f64::from(x as f32))
            .collect();
        let (rollout, advantages) = samples(&shape, &parameters);
        let indices: Vec<u32> = (0..40).collect();
        let (task, stream) = (0.7, 0.4);
        let minibatch = Minibatch {
            rollout: &rollout,
            indices: &indices,
            advantages: &advantages,
        };
        let mut scratch = Scratch::new(&shape, 40);
        let (policy, mut gradient) = (Frozen::new(shape.clone(), narrow(&parameters)), Gradient::new(&shape));
        minibatch.forward(policy.network(), &mut scratch);
        let ppo = PpoConfig {
            clip: CLIP,
            ..PpoConfig::default()
        };
        let moved = minibatch.gradient(policy.network(), task, &[stream], &ppo, &mut scratch, &mut gradient);
        assert!(moved.clipped > 0.2 && moved.clipped < 0.9, "{moved:?}");

        let objective = |parameters: &[f64]| {
            let sum: f64 = (0..40)
                .map(|t| {
                    let ratio = (log_prob(&shape, parameters, &rollout, t) - f64::from(rollout.log_probs[t])).exp();
                    let surrogate = |a: f32| {
                        let a = f64::from(a);
                        (ratio * a).min(ratio.clamp(1.0 - CLIP, 1.0 + CLIP) * a)
                    };
                    f64::from(task) * surrogate(advantages[0][t]) + f64::from(stream) * surrogate(advantages[1][t])
                })
                .sum();
            sum / 40.0
        };
        let gradient: Vec<f64> = gradient.values().iter().map(|&g| f64::from(g)).collect();
        central_difference(&parameters, &gradient, 2e-4, objective);
    }

    #[test]
    fn one_backward_pass_equals_the_sum_of_separate_ones() {
        let shape = Shape::new(3, &[6], COORDINATES).with_extra(COORDINATES);
        let parameters = random_vector(37, shape.parameters(), 0.5);
        let (rollout, advantages) = samples(&shape, &parameters);
        let indices: Vec<u32> = (0..40).collect();
        let policy = Frozen::new(shape.clone(), narrow(&parameters));
        let minibatch = Minibatch {
            rollout: &rollout,
            indices: &indices,
            advantages: &advantages,
        };
        let gradient_of = |task: f32, streams: &[f32]| {
            let (mut scratch, mut gradient) = (Scratch::new(&shape, 40), Gradient::new(&shape));
            minibatch.forward(policy.network(), &mut scratch);
            let ppo = PpoConfig::default();
            minibatch.gradient(policy.network(), task, streams, &ppo, &mut scratch, &mut gradient);
            gradient.values().to_vec()
        };
        let (task, stream, both) = (
            gradient_of(1.0, &[0.0]),
            gradient_of(0.0, &[1.0]),
            gradient_of(0.3, &[0.9]),
        );
        for ((task, stream), both) in task.iter().zip(&stream).zip(&both) {
            assert!((0.3 * task + 0.9 * stream - both).abs() < 1e-5);
        }
    }

    #[test]
    fn the_clip_holds_only_what_has_moved_too_far_the_right_way() {
        assert_eq!(surrogate_derivative(1.5, 1.0, 0.2), 0.0);
        assert_eq!(surrogate_derivative(1.5, -1.0, 0.2), -1.5);
        assert_eq!(surrogate_derivative(0.5, -1.0, 0.2), 0.0);
        assert_eq!(surrogate_derivative(0.5, 1.0, 0.2), 0.5);
    }
}
