//! Noise-contrastive estimation: n log-densities, each told apart from the mixture of the others (Section 3.3).
//!
//! ```text
//! max_ω  E_{ρ_i} log[ρ̃_i/(ρ̃_i + p_N)] + E_{p_N} log[p_N/(ρ̃_i + p_N)],     p_N = 1/(n-1)·Σ_{j≠i} ρ̃_j  (held fixed)
//! ζ_ab = ρ̃_a/ρ̃_b
//! ```
//!
//! The noise is the mixture of the others' samples *and* of their present densities, through which no gradient flows.
//! Only ratios are identified: all densities may drift by a common factor, so they are never reported.
//! With l_i = log ρ̃_i - log p_N the loss is logistic: softplus(-l_i) on own samples, softplus(l_i) on noise.
//! Reference: Gutmann & Hyvärinen 2010.

use rand::RngExt;
use rand::seq::SliceRandom;

use super::config::EstimatorConfig;
use super::policies::Policies;
use super::{Estimator, Round, Transitions, pair_of};
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::nn::{AdamConfig, Scratch, Shape, Stack, Step};
use crate::parallel::{self, chunks};
use crate::rng::{Purpose, stream};

/// n log-density networks.
pub struct NceDensities {
    settings: EstimatorConfig,
    density: Stack<f32>,
}

impl NceDensities {
    /// Draws the networks.
    pub fn new(settings: EstimatorConfig) -> Self {
        let ratio = &settings.ratio;
        let shape = Shape::new(settings.width, &ratio.hidden, 1);
        let adam = AdamConfig {
            epsilon: 1e-8,
            weight_decay: ratio.weight_decay,
            ..AdamConfig::default()
        };
        let random = |p| stream(settings.seed, Purpose::RatioInit, p, 2);
        let density = Stack::new(shape, settings.n, adam, (1.0, 0.1), random).with_capacity(ratio.minibatch);
        NceDensities { density, settings }
    }

    /// log ρ̃_i of rows of features.
    fn evaluate(&self, i: usize, features: &[f32], out: &mut [f32]) {
        let mut places = out.chunks_mut(self.settings.ratio.minibatch);
        self.density.pass(i, features, |scratch| {
            if let Some(out) = places.next() {
                out.copy_from_slice(scratch.output(0));
            }
        });
    }
}

/// d(loss)/d(l) and the loss of one sample, per unit of weight; `own` says whose sample it is.
fn logistic(l: f32, own: bool) -> (f32, f32) {
    let x = if own { -l } else { l };
    let loss = x.max(0.0) + (-x.abs()).exp().ln_1p();
    let derivative = 1.0 / (1.0 + (-x).exp());
    (loss, if own { -derivative } else { derivative })
}

/// log of the mean of the other networks' densities: log p_N at one point, from all n log-densities there.
fn log_noise(logs: &[f32], stride: usize, at: usize, n: usize, i: usize) -> f32 {
    let others = || (0..n).filter(|&j| j != i).map(|j| logs[j * stride + at]);
    let largest = others().fold(f32::NEG_INFINITY, f32::max);
    let sum: f32 = others().map(|x| (x - largest).exp()).sum();
    largest + (sum / (n - 1) as f32).ln()
}

impl Estimator for NceDensities {
    fn update(&mut self, round: &Round<'_>) -> f64 {
        let (n, width) = (self.settings.n, self.settings.width);
        let ratio = self.settings.ratio.clone();
        // The pool of a minibatch holds samples of all policies; its size is one minibatch for each policy.
        let each = ratio
            .minibatch
            .min(round.data.iter().map(Transitions::len).max().unwrap_or(0));
        let features = parallel::map(round.data, |_, data| round.policies.features(data));
        let mut randoms: Vec<_> = (0..n)
            .map(|i| stream(round.seed, Purpose::RatioOrder, i, round.round))
            .collect();
        let mut orders: Vec<Vec<u32>> = round.data.iter().map(|data| (0..data.len() as u32).collect()).collect();
        let mut places: Vec<usize> = round.data.iter().map(Transitions::len).collect();
        let mut points: Vec<f32> = Vec::with_capacity(n * each * width);
        let mut weights: Vec<f32> = Vec::with_capacity(n * each);
        let mut owners: Vec<usize> = Vec::with_capacity(n * each);
        let mut logs = vec![0.0f32; n * n * each];
        let mut total = 0.0;
        for update in 0..round.updates {
            points.clear();
            weights.clear();
            owners.clear();
            for i in 0..n {
                let (data, order) = (&round.data[i], &mut orders[i]);
                if places[i] >= data.len() {
                    order.shuffle(&mut randoms[i]);
                    places[i] = 0;
                }
                let indices = &order[places[i]..(places[i] + each).min(data.len())];
                places[i] += indices.len();
                for &index in indices {
                    let index = index as usize;
                    points.extend_from_slice(&features[i][index * width..][..width]);
                    weights.push(data.weights[index] / indices.len() as f32);
                    owners.push(i);
                }
            }
            let count = owners.len();
            parallel::for_each(chunks(&mut logs, n * each), |i, logs| {
                self.evaluate(i, &points, &mut logs[..count]);
            });
            let done = update as f64 / round.updates as f64;
            let step = Step {
                rate: (round.rate.0 + (round.rate.1 - round.rate.0) * done) * self.settings.learning_rate,
                clip: ratio.gradient_clip,
            };
            let (capacity, logs, points, weights, owners) = (ratio.minibatch, &logs, &points, &weights, &owners);
            let losses: Vec<f64> = self.density.train(|i, network| {
                network.clear();
                let mut sum = 0.0;
                for first in (0..count).step_by(capacity) {
                    let last = (first + capacity).min(count);
                    let input = |scratch: &mut Scratch<f32>| scratch.load_input(&points[first * width..last * width]);
                    network.add(input, |scratch| {
                        for at in first..last {
                            let own = owners[at] == i;
                            let l = scratch.output(0)[at - first] - log_noise(logs, n * each, at, n, i);
                            let weight = weights[at] / if own { 1.0 } else { (n - 1) as f32 };
                            let (loss, derivative) = logistic(l, own);
                            scratch.output_delta(0)[at - first] = weight * derivative;
                            sum += f64::from(weight * loss);
                        }
                    });
                }
                if ratio.gradient_penalty > 0.0 {
                    let mut random = stream(round.seed, Purpose::RatioAction, i, round.round * 1_000_003 + update);
                    // Points between two samples of the pool, from any policy.
                    let ends: [usize; 2] = [random.random_range(0..count), random.random_range(1..count.max(2))];
                    let share: f32 = random.random();
                    network.add_penalty(ratio.gradient_penalty as f32, |scratch| {
                        scratch.fill_input(capacity.min(count), |feature, row| {
                            for (b, x) in row.iter_mut().enumerate() {
                                let p = (ends[0] + b) % count;
                                let q = (p + ends[1]) % count;
                                let (p, q) = (points[p * width + feature], points[q * width + feature]);
                                let t = (share + b as f32 * 0.618_034).fract();
                                *x = p + t * (q - p);
                            }
                        });
                    });
                }
                network.step(step);
                sum
            });
            total += losses.iter().sum::<f64>() / n as f64;
        }
        total / round.updates.max(1) as f64
    }

    fn log_zeta(
        &self,
        a: usize,
        b: usize,
        policies: &dyn Policies,
        batch: &Transitions,
        _seed: u64,
        _round: usize,
    ) -> Vec<f32> {
        let features = policies.features(batch);
        let (mut above, mut below) = (vec![0.0; batch.len()], vec![0.0; batch.len()]);
        self.evaluate(a, &features, &mut above);
        self.evaluate(b, &features, &mut below);
        above.iter().zip(&below).map(|(a, b)| a - b).collect()
    }

    /// n·n evaluations instead of one for each side of each pair.
    fn log_zetas(
        &self,
        policies: &dyn Policies,
        batches: &[&Transitions],
        _seed: u64,
        _round: usize,
    ) -> Vec<(Vec<f32>, Vec<f32>)> {
        let n = batches.len();
        let features = parallel::map(batches, |_, batch| policies.features(batch));
        let logs = parallel::map(0..n * n, |_, at| {
            let mut logs = vec![0.0; batches[at % n].len()];
            self.evaluate(at / n, &features[at % n], &mut logs);
            logs
        });
        let ratio = |a: usize, b: usize, on: usize| {
            let each = logs[a * n + on].iter().zip(&logs[b * n + on]);
            each.map(|(a, b)| a - b).collect()
        };
        let pairs = (0..n * (n - 1)).map(|p| pair_of(p, n));
        pairs.map(|(a, b)| (ratio(a, b, b), ratio(a, b, a))).collect()
    }

    fn update_flops(&self) -> f64 {
        let (shape, n) = (&self.density.shape, self.settings.n as f64);
        let pass = 2.0 * shape.forward_flops() + shape.backward_flops();
        n * n * self.settings.ratio.minibatch as f64 * pass
    }

    fn save(&self, checkpoint: &mut Checkpoint) {
        self.density.save("ratio.density", checkpoint);
    }

    fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        self.density.restore("ratio.density", checkpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn logistic_slope_matches_central_differences() {
        for own in [false, true] {
            for l in [-3.0f32, -0.2, 0.0, 1.0, 4.0] {
                let h = 1e-2;
                let numeric = (logistic(l + h, own).0 - logistic(l - h, own).0) / (2.0 * h);
                assert!((numeric - logistic(l, own).1).abs() < 1e-3);
            }
        }
        assert!(logistic(500.0, false).0 == 500.0 && logistic(-500.0, true).0 == 500.0);
    }

    #[test]
    fn noise_is_the_mean_density_of_the_others() {
        let densities = [2.0f32, 5.0, 0.5];
        let logs: Vec<f32> = densities.iter().map(|d| d.ln()).collect();
        assert!((log_noise(&logs, 1, 0, 3, 1) - 1.25f32.ln()).abs() < 1e-6);
    }
}
