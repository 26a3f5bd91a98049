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
//! The clip bounds what a sample can gain, not how far the policy moves: with a small deviation of actions a few steps of Adam
//! are many deviations, and a policy that had the task solved can lose it. So a policy stops where a minibatch shows
//! KL(π_old ‖ π) above `ppo.kl_limit`, until the next iteration.

use rayon::prelude::*;

use crate::method::Guidance;
use crate::nn::{Pool, Scratch, Shape, backward, clip_norm, forward};
use crate::policy::critic::Judgement;
use crate::policy::gaussian::{
    LOG_STD_LARGEST, LOG_STD_LEAST, bounded_mean, bounded_slope, gaussian_log_density, log_slope,
};
use crate::policy::{Ensemble, Rollout};
use crate::run::config::PpoConfig;

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

/// Buffers of the update, allocated once.
pub struct Updater {
    pool: Pool<Scratch<f32>>,
    /// Task gradients and own (combined) gradients, `[n][parameters]` each.
    task: Vec<f32>,
    own: Vec<f32>,
    step: Vec<f32>,
    minibatch: usize,
}

impl Updater {
    /// Buffers for n policies of this shape with `steps` samples each.
    pub fn new(n: usize, shape: &Shape, steps: usize, ppo: &PpoConfig) -> Self {
        let minibatch = steps.div_ceil(ppo.minibatches);
        let gradients = || vec![0.0; n * shape.parameters()];
        Updater {
            pool: Pool::default(),
            task: gradients(),
            own: gradients(),
            step: gradients(),
            minibatch,
        }
    }

    /// Moves every policy. `orders[i]` are the sample numbers of policy i, epoch after epoch.
    #[allow(clippy::too_many_arguments)]
    pub fn update(
        &mut self,
        ensemble: &mut Ensemble,
        rollouts: &[Rollout],
        judgement: &Judgement,
        guidance: &Guidance,
        orders: &[Vec<u32>],
        ppo: &PpoConfig,
        rate: f64,
    ) -> Vec<UpdateReport> {
        let n = ensemble.n();
        let shape = ensemble.policies.shape.clone();
        let size = shape.parameters();
        let shared = (0..n * n).any(|at| at / n != at % n && guidance.task[at] != 0.0);
        let streams = guidance.streams.len() / n;
        let mut reports = vec![UpdateReport::default(); n];
        let limit = if ppo.kl_limit > 0.0 {
            ppo.kl_limit
        } else {
            f64::INFINITY
        };
        let steps = rollouts[0].steps();
        let per_epoch = steps.div_ceil(self.minibatch);
        let minibatches = orders[0].len() / steps * per_epoch;
        for step in 0..minibatches {
            let first = step / per_epoch * steps + step % per_epoch * self.minibatch;
            let last = (first + self.minibatch).min((step / per_epoch + 1) * steps);
            let (pool, policies, capacity) = (&self.pool, &ensemble.policies, self.minibatch);
            let make = || Scratch::new(&shape, capacity);
            self.task
                .par_chunks_exact_mut(size)
                .zip(self.own.par_chunks_exact_mut(size))
                .zip(reports.par_iter_mut())
                .enumerate()
                .for_each(|(i, ((task, own), report))| {
                    // Neighbours may need the task gradient of a policy that has stopped.
                    if report.stopped && !shared {
                        return;
                    }
                    pool.with(make, |scratch| {
                        let sample = Minibatch {
                            rollout: &rollouts[i],
                            indices: &orders[i][first..last],
                            advantages: &judgement.advantages[i * (streams + 1)..][..streams + 1],
                        };
                        let own_task = if shared { 0.0 } else { guidance.task[i * n + i] };
                        let weights = &guidance.streams[i * streams..][..streams];
                        let parameters = policies.member(i);
                        sample.forward(&shape, parameters, scratch);
                        let mut moved = Moved::default();
                        if shared {
                            task.fill(0.0);
                            moved = sample.gradient(&shape, parameters, 1.0, &[], ppo, scratch, task);
                            // The backward pass overwrites the deltas, not the activations: no second forward pass.
                        }
                        own.fill(0.0);
                        if !shared || streams > 0 {
                            moved = sample.gradient(&shape, parameters, own_task, weights, ppo, scratch, own);
                        }
                        report.note(moved, limit);
                        entropy_bonus(&shape, ppo.entropy as f32, own);
                    });
                });
            if reports.iter().all(|report| report.stopped) {
                break;
            }
            let (task, own, config) = (&self.task, &self.own, ensemble.policies.config);
            ensemble
                .policies
                .par_members()
                .zip(self.step.par_chunks_exact_mut(size))
                .zip(reports.par_iter_mut())
                .for_each(|((member, step), report)| {
                    if report.stopped {
                        return;
                    }
                    let i = member.index;
                    step.copy_from_slice(&own[i * size..][..size]);
                    if shared {
                        for (j, gradient) in task.chunks_exact(size).enumerate() {
                            let weight = guidance.task[i * n + j];
                            if weight != 0.0 {
                                step.iter_mut().zip(gradient).for_each(|(step, &g)| *step += weight * g);
                            }
                        }
                    }
                    if !guidance.drift.is_empty() {
                        let drift = &guidance.drift[i * size..][..size];
                        step.iter_mut().zip(drift).for_each(|(step, &d)| *step += d);
                    }
                    report.gradient_norm += clip_norm(step, ppo.gradient_clip);
                    report.steps_taken += 1.0;
                    // Gradients here are of what is maximised; Adam descends.
                    step.iter_mut().for_each(|g| *g = -*g);
                    member.adam.step(&config, rate, member.parameters, step);
                    for log_std in &mut member.parameters[shape.extra_offset()..] {
                        *log_std = log_std.clamp(LOG_STD_LEAST, LOG_STD_LARGEST);
                    }
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
}

/// Gradient of `weight` · (entropy of the Gaussian before squashing): 1 for each log-std.
fn entropy_bonus(shape: &Shape, weight: f32, gradient: &mut [f32]) {
    if weight != 0.0 {
        gradient[shape.extra_offset()..].iter_mut().for_each(|g| *g += weight);
    }
}

/// The derivative of the clipped surrogate in log π of one sample; 0 where the clip holds it.
pub fn surrogate_slope(ratio: f32, advantage: f32, clip: f32) -> f32 {
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
    fn forward(&self, shape: &Shape, parameters: &[f32], scratch: &mut Scratch<f32>) {
        scratch.gather_input(&self.rollout.normalized, self.indices);
        forward(shape, parameters, scratch);
    }

    /// Adds the gradient of `task`·L_0 + Σ_s streams_s·L_s.
    #[allow(clippy::too_many_arguments)]
    fn gradient(
        &self,
        shape: &Shape,
        parameters: &[f32],
        task: f32,
        streams: &[f32],
        ppo: &PpoConfig,
        scratch: &mut Scratch<f32>,
        gradient: &mut [f32],
    ) -> Moved {
        let coordinates = shape.output();
        let log_std = &parameters[shape.extra_offset()..];
        let clip = ppo.clip as f32;
        let share = 1.0 / self.indices.len() as f32;
        let (mut kl, mut clipped) = (0.0f64, 0u32);
        for (b, &t) in self.indices.iter().enumerate() {
            let t = t as usize;
            let u = &self.rollout.unsquashed[t * coordinates..][..coordinates];
            let density =
                gaussian_log_density(u, (0..coordinates).map(|d| bounded_mean(scratch.output(d)[b])), log_std);
            let log_prob = density - u.iter().map(|&u| log_slope(u)).sum::<f32>();
            let log_ratio = log_prob - self.rollout.log_probs[t];
            let ratio = log_ratio.exp();
            let mut slope = task * surrogate_slope(ratio, self.advantages[0][t], clip);
            for (weight, advantages) in streams.iter().zip(&self.advantages[1..]) {
                slope += weight * surrogate_slope(ratio, advantages[t], clip);
            }
            kl += f64::from(ratio - 1.0 - log_ratio);
            clipped += u32::from((ratio - 1.0).abs() > clip);
            for d in 0..coordinates {
                let inverse = (-log_std[d]).exp();
                let mean = bounded_mean(scratch.output(d)[b]);
                let epsilon = (u[d] - mean) * inverse;
                scratch.output_delta(d)[b] = share * slope * epsilon * inverse * bounded_slope(mean);
                gradient[shape.extra_offset() + d] += share * slope * (epsilon * epsilon - 1.0);
            }
        }
        backward(shape, parameters, scratch, gradient);
        Moved {
            kl: kl * f64::from(share),
            clipped: f64::from(clipped) * f64::from(share),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        forward(shape, parameters, &mut scratch);
        let mut total = 0.0;
        for d in 0..COORDINATES {
            let (u, log_std) = (
                f64::from(rollout.unsquashed[t * COORDINATES + d]),
                parameters[shape.extra_offset() + d],
            );
            let deviation = log_std.exp();
            let mean = 2.0 * (scratch.output(d)[0] / 2.0).tanh();
            let density = (-(u - mean).powi(2) / (2.0 * deviation * deviation)).exp()
                / (deviation * (2.0 * std::f64::consts::PI).sqrt());
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
        let (parameters32, mut gradient) = (narrow(&parameters), vec![0.0; shape.parameters()]);
        minibatch.forward(&shape, &parameters32, &mut scratch);
        let ppo = PpoConfig {
            clip: CLIP,
            ..PpoConfig::default()
        };
        let moved = minibatch.gradient(
            &shape,
            &parameters32,
            task,
            &[stream],
            &ppo,
            &mut scratch,
            &mut gradient,
        );
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
        let gradient: Vec<f64> = gradient.iter().map(|&g| f64::from(g)).collect();
        central_difference(&parameters, &gradient, 2e-4, objective);
    }

    #[test]
    fn one_backward_pass_equals_the_sum_of_separate_ones() {
        let shape = Shape::new(3, &[6], COORDINATES).with_extra(COORDINATES);
        let parameters = random_vector(37, shape.parameters(), 0.5);
        let (rollout, advantages) = samples(&shape, &parameters);
        let indices: Vec<u32> = (0..40).collect();
        let parameters = narrow(&parameters);
        let minibatch = Minibatch {
            rollout: &rollout,
            indices: &indices,
            advantages: &advantages,
        };
        let gradient_of = |task: f32, streams: &[f32]| {
            let (mut scratch, mut gradient) = (Scratch::new(&shape, 40), vec![0.0; shape.parameters()]);
            minibatch.forward(&shape, &parameters, &mut scratch);
            let ppo = PpoConfig::default();
            minibatch.gradient(&shape, &parameters, task, streams, &ppo, &mut scratch, &mut gradient);
            gradient
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
        assert_eq!(surrogate_slope(1.5, 1.0, 0.2), 0.0);
        assert_eq!(surrogate_slope(1.5, -1.0, 0.2), -1.5);
        assert_eq!(surrogate_slope(0.5, -1.0, 0.2), 0.0);
        assert_eq!(surrogate_slope(0.5, 1.0, 0.2), 0.5);
    }
}
