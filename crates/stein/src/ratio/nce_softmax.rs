//! Noise-contrastive estimation by one n-way classifier: the O(n) form of NCE (`softmax.rs` has the network).
//!
//! ```text
//! min  -1/n·Σ_i E_{ρ_i}[ log softmax(l(s,a))_i ] + ratio.l2·‖θ‖²
//! log ζ_ab = l_a - l_b
//! ```
//!
//! At the optimum softmax_i = ρ_i/Σ_j ρ_j, as in the form with n densities (`nce.rs`). One trunk serves all policies, and
//! each sample is passed once instead of n times. Reference: Bishop 2006, section 4.2; Gutmann & Hyvärinen 2010.

use super::config::EstimatorConfig;
use super::policies::Policies;
use super::softmax::{FALL, Lessons, SPLIT, Softmax, differences};
use super::{Estimator, Round, Transitions};
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::parallel;
use crate::rng::{Purpose, stream};

/// One classifier of all policies.
pub struct NceSoftmax {
    settings: EstimatorConfig,
    net: Softmax,
}

impl NceSoftmax {
    /// Draws the network.
    pub fn new(settings: EstimatorConfig) -> Self {
        let ratio = &settings.ratio;
        let random = |p| stream(settings.seed, Purpose::RatioInit, p, 3);
        let (width, capacity) = (settings.width, ratio.minibatch);
        NceSoftmax {
            net: Softmax::new(settings.n, width, &ratio.hidden, ratio.weight_decay, capacity, random),
            settings,
        }
    }
}

/// Trains a classifier for one round, here and for the features of pooled DICE; returns the mean cross-entropy.
pub(crate) fn train(net: &mut Softmax, settings: &EstimatorConfig, round: &Round<'_>) -> f64 {
    let ratio = &settings.ratio;
    let features = parallel::map(round.data, |_, data| round.policies.features(data));
    let weights: Vec<&[f32]> = round.data.iter().map(|data| &data.weights[..]).collect();
    let mut randoms: Vec<_> = (0..settings.n)
        .map(|i| stream(round.seed, Purpose::RatioOrder, i, round.round))
        .collect();
    let rate = settings.learning_rate;
    let lessons = Lessons {
        features: &features,
        weights: &weights,
        updates: SPLIT * round.updates,
        each: ratio.minibatch.div_ceil(SPLIT),
        rate: (round.rate.0 * rate, FALL * round.rate.1 * rate),
        l2: ratio.l2,
        clip: ratio.gradient_clip,
    };
    net.train(&lessons, &mut randoms)
}

impl Estimator for NceSoftmax {
    fn update(&mut self, round: &Round<'_>) -> f64 {
        train(&mut self.net, &self.settings, round)
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
        let logits = self.net.logits(&policies.features(batch));
        logits[a].iter().zip(&logits[b]).map(|(a, b)| a - b).collect()
    }

    /// One pass for each policy's samples instead of two for each pair.
    fn log_zetas(
        &self,
        policies: &dyn Policies,
        batches: &[&Transitions],
        _seed: u64,
        _round: usize,
    ) -> Vec<(Vec<f32>, Vec<f32>)> {
        differences(&parallel::map(batches, |_, batch| {
            self.net.logits(&policies.features(batch))
        }))
    }

    fn update_flops(&self) -> f64 {
        self.net.update_flops(self.settings.ratio.minibatch)
    }

    fn save(&self, checkpoint: &mut Checkpoint) {
        self.net.save("ratio.softmax", checkpoint);
    }

    fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        self.net.restore("ratio.softmax", checkpoint)
    }
}
