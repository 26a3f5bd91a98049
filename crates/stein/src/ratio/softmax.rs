//! An n-way softmax classifier of whose sample an (s,a), or a behaviour φ(s), is: one trunk, an output for each policy.
//!
//! ```text
//! min  -1/n·Σ_i E_{ρ_i}[ log softmax(l(s,a))_i ] + l2·‖θ‖²            log ρ_a/ρ_b = l_a - l_b
//! ```
//!
//! Every policy has the same share of a minibatch, and its samples are drawn with probabilities proportional to their
//! weights: priors are equal however long episodes are, and a sample that hardly counts costs nothing. Draws are
//! stratified along the cumulative weights, so that a minibatch has something of every stretch of the data.
//!
//! The samples of one policy are one chunk of a minibatch. Chunks are passed in parallel and their gradients are summed in the
//! order of the policies, so the result does not depend on the number of threads. It is NCE's default form
//! (`nce_softmax.rs`), the features of pooled DICE, and the reference classifier of them all (`classifier.rs`).

use rand::RngExt;

use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::nn::{AdamConfig, Gradient, Scratch, Shape, Stack, Step};
use crate::parallel;
use crate::rng::Stream;

/// A classifier makes so many updates where other networks make one, with as many times fewer samples: for the same work it
/// follows moving policies better.
pub const SPLIT: usize = 8;

/// Within each round of training the learning rate falls to this share of it, so that what is read afterwards has little noise.
pub const FALL: f64 = 0.1;

/// What a classifier is trained on, and how.
pub struct Lessons<'a> {
    /// Features of the samples of each policy, row after row.
    pub features: &'a [Vec<f32>],
    /// Weights of the samples of each policy.
    pub weights: &'a [&'a [f32]],
    /// Minibatches.
    pub updates: usize,
    /// Samples of each policy in a minibatch.
    pub each: usize,
    /// Adam's learning rate, going linearly from the first to the second.
    pub rate: (f64, f64),
    /// Weight of ‖θ‖² in the loss.
    pub l2: f64,
    /// Largest norm of a gradient.
    pub clip: f64,
}

/// The network.
pub struct Softmax {
    net: Stack<f32>,
    capacity: usize,
    /// Gradients of the chunks of a minibatch, one a policy.
    gradients: Vec<Gradient<f32>>,
}

impl Softmax {
    /// Draws a network with `n` outputs that is passed over up to `capacity` samples at once.
    pub fn new(
        n: usize,
        width: usize,
        hidden: &[usize],
        weight_decay: f64,
        capacity: usize,
        random: impl Fn(usize) -> Stream,
    ) -> Self {
        let shape = Shape::new(width, hidden, n);
        let adam = AdamConfig {
            epsilon: 1e-8,
            weight_decay,
            ..AdamConfig::default()
        };
        Softmax {
            gradients: vec![Gradient::new(&shape); n],
            net: Stack::new(shape, 1, adam, (1.0, 0.1), random).with_capacity(capacity),
            capacity,
        }
    }

    /// Number of policies.
    pub fn policies(&self) -> usize {
        self.net.shape.output()
    }

    /// Multiplications and additions of one minibatch of `each` samples a policy.
    pub fn update_flops(&self, each: usize) -> f64 {
        let shape = &self.net.shape;
        (shape.forward_flops() + shape.backward_flops()) * (each * self.policies()) as f64
    }

    /// Trains on minibatches drawn with the streams of the policies; returns the mean cross-entropy.
    pub fn train(&mut self, lessons: &Lessons<'_>, randoms: &mut [Stream]) -> f64 {
        let (n, capacity) = (self.policies(), self.capacity);
        let draws: Vec<Draws> = lessons.weights.iter().map(|weights| Draws::new(weights)).collect();
        let mut chosen = vec![vec![0u32; lessons.each]; n];
        let mut total = 0.0;
        for update in 0..lessons.updates {
            let done = update as f64 / lessons.updates as f64;
            let step = Step {
                rate: lessons.rate.0 + (lessons.rate.1 - lessons.rate.0) * done,
                clip: lessons.clip,
            };
            let each = (&mut chosen[..], &mut randoms[..]);
            let losses = self.net.train_shared(
                &mut self.gradients,
                each,
                step,
                2.0 * lessons.l2 as f32,
                |i, chunk, (chosen, random)| {
                    draws[i].draw(random, chosen);
                    let share = 1.0 / (n * lessons.each) as f32;
                    let each = chosen.chunks(capacity).map(|rows| {
                        let input = |scratch: &mut Scratch<f32>| scratch.gather_input(&lessons.features[i], rows);
                        chunk.add(input, |scratch| cross_entropy(scratch, n, i, share))
                    });
                    each.sum::<f64>()
                },
            );
            total += losses.iter().sum::<f64>();
        }
        total / lessons.updates.max(1) as f64
    }

    /// The outputs of every policy on rows of features: `[policy][sample]`.
    pub fn logits(&self, features: &[f32]) -> Vec<Vec<f32>> {
        let mut logits = vec![Vec::with_capacity(features.len() / self.net.shape.input()); self.policies()];
        self.pass(features, |scratch| {
            for (j, logits) in logits.iter_mut().enumerate() {
                logits.extend_from_slice(scratch.output(j));
            }
        });
        logits
    }

    /// Passes rows of features batch by batch and shows each pass.
    pub(crate) fn pass(&self, features: &[f32], show: impl FnMut(&Scratch<f32>)) {
        self.net.pass(0, features, show);
    }

    /// Adds all state to a checkpoint under `name`.
    pub fn save(&self, name: &str, checkpoint: &mut Checkpoint) {
        self.net.save(name, checkpoint);
    }

    /// Takes all state from a checkpoint.
    pub fn restore(&mut self, name: &str, checkpoint: &mut Checkpoint) -> Result<()> {
        self.net.restore(name, checkpoint)
    }
}

/// log ζ_ab of every ordered pair on b's and on a's samples, from the logarithms of all policies' densities (up to a common
/// term) on the samples of each: `logs[on][policy][sample]`.
pub fn differences(logs: &[Vec<Vec<f32>>]) -> Vec<(Vec<f32>, Vec<f32>)> {
    let n = logs.len();
    let ratio = |a: usize, b: usize, on: usize| -> Vec<f32> {
        let both = logs[on][a].iter().zip(&logs[on][b]);
        both.map(|(a, b)| a - b).collect()
    };
    parallel::map(0..n * (n - 1), |_, p| {
        let (a, b) = super::pair_of(p, n);
        (ratio(a, b, b), ratio(a, b, a))
    })
}

/// Sum of the cross-entropies of a pass over samples of policy `own`, each of weight `share`; fills in the derivatives.
fn cross_entropy(scratch: &mut Scratch<f32>, n: usize, own: usize, share: f32) -> f64 {
    let mut loss = 0.0f64;
    for b in 0..scratch.batch() {
        let mut largest = f32::NEG_INFINITY;
        for j in 0..n {
            largest = largest.max(scratch.output(j)[b]);
        }
        let mut sum = 0.0;
        for j in 0..n {
            let term = (scratch.output(j)[b] - largest).exp();
            scratch.output_delta(j)[b] = term;
            sum += term;
        }
        loss += f64::from(largest + sum.ln() - scratch.output(own)[b]);
        for j in 0..n {
            let chance = scratch.output_delta(j)[b] / sum;
            scratch.output_delta(j)[b] = share * (chance - f32::from(u8::from(j == own)));
        }
    }
    loss * f64::from(share)
}

/// Draws samples with probabilities proportional to their weights.
pub(super) struct Draws {
    /// Sums of the weights up to and with each sample.
    cumulative: Vec<f64>,
}

impl Draws {
    pub(super) fn new(weights: &[f32]) -> Self {
        let mut sum = 0.0;
        let cumulative = weights.iter().map(|&weight| {
            sum += f64::from(weight);
            sum
        });
        Draws {
            cumulative: cumulative.collect(),
        }
    }

    /// One sample out of each of as many equal parts of the weight as there are places.
    pub(super) fn draw(&self, random: &mut Stream, places: &mut [u32]) {
        let last = self.cumulative.len() - 1;
        let part = self.cumulative[last] / places.len() as f64;
        for (k, place) in places.iter_mut().enumerate() {
            let target = (k as f64 + random.random::<f64>()) * part;
            *place = self.cumulative.partition_point(|&sum| sum <= target).min(last) as u32;
        }
    }
}

#[cfg(test)]
#[path = "softmax_tests.rs"]
mod tests;
