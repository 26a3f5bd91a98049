//! A judge for ratios: a softmax classifier of whose sample an (s,a) is, trained on one half of the data.
//!
//! ```text
//! log ρ_a/ρ_b ≈ logit_a - logit_b            (policies with equally many, equally weighted samples)
//! agreement  = correlation of log ζ_ab with logit_a - logit_b over the held-out half
//! ```
//!
//! An estimator never grades itself: that its `E[ζ]` is near 1 proves nothing, an agreement near 0 is a warning.

use rand::seq::SliceRandom;

use super::config::EstimatorConfig;
use super::dice::encode_all;
use super::{Policies, Transitions, pair_of};
use crate::divergence::LOG_CLAMP;
use crate::error::Result;
use crate::nn::init::Init;
use crate::nn::{AdamConfig, Scratch, Shape, Stack, backward, clip_norm, forward};
use crate::policy::ensemble::{restore_stack, save_stack};
use crate::rng::{Purpose, stream};
use crate::run::checkpoint::Checkpoint;

/// One network with an output for each policy.
pub struct Classifier {
    stack: Stack<f32>,
    scratch: Scratch<f32>,
    gradient: Vec<f32>,
    n: usize,
}

/// Passes over the training half in each round; the network goes on from round to round.
const EPOCHS: usize = 1;
const MINIBATCH: usize = 512;

impl Classifier {
    /// Draws the network.
    pub fn new(settings: &EstimatorConfig) -> Self {
        let shape = Shape::new(settings.width, &settings.ratio.hidden, settings.n);
        let adam = AdamConfig {
            epsilon: 1e-8,
            ..AdamConfig::default()
        };
        let random = |p| stream(settings.seed, Purpose::Classifier, p, 0);
        Classifier {
            scratch: Scratch::new(&shape, MINIBATCH),
            gradient: vec![0.0; shape.parameters()],
            stack: Stack::new(shape, 1, adam, Init::Orthogonal, (1.0, 0.1), random),
            n: settings.n,
        }
    }

    /// Whether sample t of a rollout is for training or held out: runs of 64, since neighbours in time are alike.
    pub fn held_out(t: usize) -> bool {
        t / 64 % 2 == 1
    }

    /// Trains on the training half.
    pub fn update(&mut self, policies: &dyn Policies, data: &[&Transitions], seed: u64, round: usize) {
        let features: Vec<Vec<f32>> = data.iter().map(|data| encode_all(policies, data)).collect();
        let width = self.stack.shape.input();
        let mut samples: Vec<(u32, u32)> = Vec::new();
        for (i, data) in data.iter().enumerate() {
            samples.extend(
                (0..data.len())
                    .filter(|&t| !Self::held_out(t))
                    .map(|t| (i as u32, t as u32)),
            );
        }
        let mut random = stream(seed, Purpose::Classifier, 0, round + 1);
        let shape = self.stack.shape.clone();
        let config = self.stack.config;
        for _ in 0..EPOCHS {
            samples.shuffle(&mut random);
            for batch in samples.chunks(MINIBATCH) {
                self.scratch.fill_input(batch.len(), |feature, row| {
                    for (x, &(i, t)) in row.iter_mut().zip(batch) {
                        *x = features[i as usize][t as usize * width + feature];
                    }
                });
                forward(&shape, &self.stack.parameters, &mut self.scratch);
                for (b, &(i, t)) in batch.iter().enumerate() {
                    let weight = data[i as usize].weights[t as usize] / batch.len() as f32;
                    let logits = (0..self.n).map(|j| self.scratch.output(j)[b]);
                    let largest = logits.clone().fold(f32::NEG_INFINITY, f32::max);
                    let sum: f32 = logits.map(|l| (l - largest).exp()).sum();
                    for j in 0..self.n {
                        let chance = (self.scratch.output(j)[b] - largest).exp() / sum;
                        let truth = f32::from(u8::from(j == i as usize));
                        self.scratch.output_delta(j)[b] = weight * (chance - truth);
                    }
                }
                self.gradient.fill(0.0);
                backward(&shape, &self.stack.parameters, &mut self.scratch, &mut self.gradient);
                clip_norm(&mut self.gradient, 1.0);
                self.stack.adam[0].step(&config, 1e-3, &mut self.stack.parameters, &self.gradient);
            }
        }
    }

    /// Logits of every policy on a batch: `[policy][sample]`.
    pub fn logits(&mut self, policies: &dyn Policies, batch: &Transitions) -> Vec<Vec<f32>> {
        let features = encode_all(policies, batch);
        let mut logits = vec![Vec::with_capacity(batch.len()); self.n];
        for rows in features.chunks(MINIBATCH * self.stack.shape.input()) {
            self.scratch.load_input(rows);
            forward(&self.stack.shape, &self.stack.parameters, &mut self.scratch);
            for (j, logits) in logits.iter_mut().enumerate() {
                logits.extend_from_slice(self.scratch.output(j));
            }
        }
        logits
    }

    /// Mean correlation of log ζ_ab with the logits over the held-out half of a's and b's samples, over all ordered pairs;
    /// `ratios` has log ζ_ab on b's and on a's samples in the order of pair numbers.
    pub fn agreement<R: AsRef<[f32]>>(
        &mut self,
        policies: &dyn Policies,
        newest: &[&Transitions],
        ratios: &[(R, R)],
    ) -> f64 {
        let logits: Vec<_> = newest.iter().map(|batch| self.logits(policies, batch)).collect();
        let clamp = |x: f32| x.clamp(-LOG_CLAMP as f32, LOG_CLAMP as f32);
        let mut total = 0.0;
        for (p, (on_b, on_a)) in ratios.iter().enumerate() {
            let (a, b) = pair_of(p, self.n);
            let (mut own, mut judge) = (Vec::new(), Vec::new());
            for (who, values) in [(b, on_b.as_ref()), (a, on_a.as_ref())] {
                for (t, &log_zeta) in values.iter().enumerate().filter(|(t, _)| Self::held_out(*t)) {
                    own.push(clamp(log_zeta));
                    judge.push(clamp(logits[who][a][t] - logits[who][b][t]));
                }
            }
            total += correlation(&own, &judge);
        }
        total / ratios.len() as f64
    }

    /// Adds all state to a checkpoint.
    pub fn save(&self, checkpoint: &mut Checkpoint) {
        save_stack("classifier", &self.stack, checkpoint);
    }

    /// Takes all state from a checkpoint.
    pub fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        restore_stack("classifier", &mut self.stack, checkpoint)
    }
}

/// Correlation coefficient; 0 where one side has no spread.
pub fn correlation(x: &[f32], y: &[f32]) -> f64 {
    let count = x.len() as f64;
    let mean = |v: &[f32]| v.iter().map(|&v| f64::from(v)).sum::<f64>() / count;
    let (mx, my) = (mean(x), mean(y));
    let (mut xx, mut yy, mut xy) = (0.0, 0.0, 0.0);
    for (&x, &y) in x.iter().zip(y) {
        let (x, y) = (f64::from(x) - mx, f64::from(y) - my);
        xx += x * x;
        yy += y * y;
        xy += x * y;
    }
    if xx * yy > 0.0 { xy / (xx * yy).sqrt() } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn correlation_by_hand() {
        assert!((correlation(&[1.0, 2.0, 3.0], &[2.0, 4.0, 6.0]) - 1.0).abs() < 1e-9);
        assert!((correlation(&[1.0, 2.0, 3.0], &[3.0, 2.0, 1.0]) + 1.0).abs() < 1e-9);
        assert_eq!(correlation(&[1.0, 1.0], &[1.0, 2.0]), 0.0);
    }
}
