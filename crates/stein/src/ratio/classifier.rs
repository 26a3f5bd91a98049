//! A reference for ratios: an n-way classifier of whose sample an (s,a), or a behaviour φ(s), is, trained on one half of the data.
//!
//! ```text
//! log ρ_a/ρ_b ≈ logit_a - logit_b                       every policy has the same total weight (softmax.rs)
//! agreement  = mean over ordered pairs (i, j) of the rank correlation of log ζ_ji with logit_j - logit_i
//!              over the held-out half of policy i's own samples
//! ```
//!
//! What a diversity reward uses is the order within a policy's own samples. Over the samples of both policies together, noise
//! that only knows whose sample it is would score .95. An estimator never grades itself: that its `E[ζ]` is near 1 proves
//! nothing, an agreement near 0 is a warning.

use super::config::EstimatorConfig;
use super::rank::rank_correlation;
use super::softmax::{Lessons, Softmax};
use super::{Policies, Transitions, pair_of};
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::parallel;
use crate::rng::{Purpose, stream};

/// One network with an output for each policy.
pub struct Classifier {
    net: Softmax,
    n: usize,
}

/// Passes over the training half in each round; the network goes on from round to round.
const EPOCHS: usize = 1;
const MINIBATCH: usize = 512;
const RATE: f64 = 1e-3;
/// Weight of ‖θ‖²: judges without it agree with each other poorly.
const L2: f64 = 1e-3;

impl Classifier {
    /// Draws the network.
    pub fn new(settings: &EstimatorConfig) -> Self {
        let random = |p| stream(settings.seed, Purpose::Classifier, p, 0);
        let (n, width, hidden) = (settings.n, settings.width, &settings.ratio.hidden);
        Classifier {
            net: Softmax::new(n, width, hidden, 0.0, MINIBATCH, random),
            n,
        }
    }

    /// Whether sample t of a rollout is for training or held out: runs of 64, since neighbours in time are alike.
    pub fn held_out(t: usize) -> bool {
        t / 64 % 2 == 1
    }

    /// Trains on the training half.
    pub fn update(&mut self, policies: &dyn Policies, data: &[&Transitions], seed: u64, round: usize) {
        let features = parallel::map(data, |_, data| policies.features(data));
        // Samples of weight 0 are never drawn.
        let mask = |data: &&Transitions| -> Vec<f32> {
            let weights = data.weights.iter().enumerate();
            weights.map(|(t, &w)| if Self::held_out(t) { 0.0 } else { w }).collect()
        };
        let weights: Vec<Vec<f32>> = data.iter().map(mask).collect();
        let weights: Vec<&[f32]> = weights.iter().map(|weights| &weights[..]).collect();
        let each = (MINIBATCH / self.n).max(1);
        let mut randoms: Vec<_> = (0..self.n)
            .map(|i| stream(seed, Purpose::Classifier, i, round + 1))
            .collect();
        let lessons = Lessons {
            features: &features,
            weights: &weights,
            updates: EPOCHS * data[0].len().div_ceil(2 * each),
            each,
            rate: (RATE, RATE),
            l2: L2,
            clip: 1.0,
        };
        self.net.train(&lessons, &mut randoms);
    }

    /// Logits of every policy on a batch: `[policy][sample]`.
    pub fn logits(&self, policies: &dyn Policies, batch: &Transitions) -> Vec<Vec<f32>> {
        self.net.logits(&policies.features(batch))
    }

    /// The agreement of ratios with the classifier; `on_b` has log ζ_ab on b's samples, up to a constant, in the order of pair
    /// numbers.
    pub fn agreement(&self, policies: &dyn Policies, newest: &[&Transitions], on_b: &[&[f32]]) -> f64 {
        let logits = parallel::map(newest, |_, batch| self.logits(policies, batch));
        within_own(&logits, on_b)
    }

    /// Adds all state to a checkpoint.
    pub fn save(&self, checkpoint: &mut Checkpoint) {
        self.net.save("classifier", checkpoint);
    }

    /// Takes all state from a checkpoint.
    pub fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        self.net.restore("classifier", checkpoint)
    }
}

/// Mean over ordered pairs of the rank correlation of log ζ_ab with the logits within b's held-out samples; a pair whose
/// ratio is constant counts 0. `logits[on][policy][sample]`; `on_b` in the order of pair numbers.
fn within_own(logits: &[Vec<Vec<f32>>], on_b: &[&[f32]]) -> f64 {
    let ranks = parallel::map(on_b, |p, log_zeta| {
        let (a, b) = pair_of(p, logits.len());
        let held_out = (0..log_zeta.len()).filter(|&t| Classifier::held_out(t));
        let pairs = held_out.map(|t| (f64::from(log_zeta[t]), f64::from(logits[b][a][t] - logits[b][b][t])));
        let (own, reference): (Vec<f64>, Vec<f64>) = pairs.unzip();
        let rank = rank_correlation(&own, &reference);
        if rank.is_finite() { rank } else { 0.0 }
    });
    ranks.iter().sum::<f64>() / on_b.len() as f64
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

    /// Two policies that the reference tells apart by ±3 and, within each, by what log ζ is to say.
    fn judged(log_zeta: impl Fn(usize, f32) -> f32) -> f64 {
        let steps = 4096;
        let order: Vec<Vec<f32>> = (0..2)
            .map(|i| {
                crate::nn::test::random_vector(60 + i, steps, 1.0)
                    .iter()
                    .map(|&x| x as f32)
                    .collect()
            })
            .collect();
        // logits[on][policy]: policy 1's are 0, so that the difference on b's samples is ∓3 and a little more.
        let logits: Vec<Vec<Vec<f32>>> = (0..2)
            .map(|on| {
                let side = if on == 0 { 3.0 } else { -3.0 };
                vec![order[on].iter().map(|x| side + x).collect(), vec![0.0; steps]]
            })
            .collect();
        let on_b: Vec<Vec<f32>> = (0..2)
            .map(|p| {
                let (a, b) = pair_of(p, 2);
                let difference = (0..steps).map(|t| logits[b][a][t] - logits[b][b][t]);
                difference.enumerate().map(|(t, l)| log_zeta(t, l)).collect()
            })
            .collect();
        within_own(&logits, &[&on_b[0], &on_b[1]])
    }

    #[test]
    fn noise_that_only_knows_whose_sample_it_is_does_not_agree() {
        let noise = crate::nn::test::random_vector(70, 4096, 1.0);
        let agreement = judged(|t, l| 3.0 * l.signum() + noise[t] as f32);
        assert!(agreement.abs() < 0.05, "{agreement}");
        assert!((judged(|_, l| 0.3 * l + 1.0) - 1.0).abs() < 1e-9);
        assert_eq!(judged(|_, _| 0.0), 0.0);
    }
}
