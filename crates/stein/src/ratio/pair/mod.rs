//! What the DICE estimators share: for every ordered pair (a, b), a value-like network v evaluated on b's (s,a), on
//! (s', a' ~ π_a) and on (s0, a0 ~ π_a), and a ζ-like network z on b's (s,a).
//!
//! ```text
//! v_next = [not terminated]·Σ_k w_k·v(s', a'_k)              k next actions, averaged (or summed with their probability)
//! loss   = L(v_now, v_next, v_first, z; weights)            a pure function: dualdice.rs, valuedice.rs, gendice.rs
//! ```
//!
//! | estimator | file | networks of a pair |
//! |---|---|---|
//! | DualDICE | `dualdice.rs` | ν and g |
//! | ValueDICE | `valuedice.rs` | ν |
//! | GenDICE | `gendice.rs` | ζ, g and u |
//!
//! `loss.rs` has what a loss is, `training.rs` the minibatch loop of a pair, `acted.rs` the passes with actions of a policy.

pub mod acted;
pub mod dualdice;
pub mod gendice;
pub mod loss;
mod training;
pub mod valuedice;

pub use loss::{DiceLoss, Outputs};

use self::training::{Buffers, Common, end};
use super::config::EstimatorConfig;
use super::policies::Policies;
use super::{Estimator, Round, Transitions, pair_number};
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::nn::{AdamConfig, Average, Frozen, Pool, Shape, Stack};
use crate::parallel;
use crate::rng::{Purpose, stream};

/// The setting of this form.
pub const FORM: &str = "ratio.data=pair";

/// A DICE estimator for all ordered pairs.
pub struct Dice<L> {
    loss: L,
    settings: EstimatorConfig,
    value: Stack<f32>,
    /// One member a pair, or none where the loss has no ζ network.
    zeta: Stack<f32>,
    /// Exponential average of the ζ networks.
    average: Average,
    pool: Pool<Buffers>,
}

impl<L: DiceLoss> Dice<L> {
    /// Draws the networks of all ordered pairs.
    pub fn new(settings: EstimatorConfig, loss: L) -> Self {
        let pairs = settings.n * (settings.n - 1);
        let ratio = &settings.ratio;
        let adam = AdamConfig {
            epsilon: 1e-8,
            weight_decay: ratio.weight_decay,
            ..AdamConfig::default()
        };
        let draw = |shape: Shape, members: usize, number: usize| {
            let random = |p| stream(settings.seed, Purpose::RatioInit, p, number);
            Stack::new(shape, members, adam, (1.0, 0.1), random)
        };
        let shape = Shape::new(settings.width, &ratio.hidden, 1);
        let value = draw(shape.clone().with_extra(1), pairs, 0);
        let zeta = draw(shape, if L::HAS_ZETA { pairs } else { 0 }, 1);
        let average = Average::new(&zeta.shape, if L::AVERAGED { zeta.members() } else { 0 });
        Dice {
            loss,
            value,
            zeta,
            average,
            pool: Pool::default(),
            settings,
        }
    }

    /// The network that pair `p`'s ζ is read from.
    fn zeta_network(&self, p: usize) -> Frozen<f32> {
        let present = self.zeta.network(p);
        if L::AVERAGED {
            self.average.read(p, present)
        } else {
            present.frozen()
        }
    }
}

impl<L: DiceLoss> Estimator for Dice<L> {
    fn update(&mut self, round: &Round<'_>) -> f64 {
        let pairs = self.value.members();
        let (value_shape, zeta_shape) = (self.value.shape.clone(), self.zeta.shape.clone());
        let common = Common {
            loss: &self.loss,
            settings: &self.settings,
            round,
            features: parallel::map(round.data, |_, data| round.policies.features(data)),
        };
        let mut zetas: Vec<_> = self.zeta.members_mut().into_iter().map(Some).collect();
        zetas.resize_with(pairs, || None);
        let mut averages: Vec<_> = self.average.members_mut().into_iter().map(Some).collect();
        averages.resize_with(pairs, || None);
        let (pool, settings) = (&self.pool, &self.settings);
        let make = || Buffers::new(settings, &value_shape, &zeta_shape, round.policies);
        let tasks = (self.value.members_mut(), zetas, averages);
        let losses: Vec<f64> = parallel::map(tasks, |p, (mut value, mut zeta, average)| {
            pool.with(make, |buffers| {
                common.train(p, &mut value, zeta.as_mut(), average, buffers)
            })
        });
        if L::AVERAGED {
            self.average.count(round.updates, self.settings.ratio.gendice_average);
        }
        losses.iter().sum::<f64>() / losses.len().max(1) as f64
    }

    fn log_zeta(
        &self,
        a: usize,
        b: usize,
        policies: &dyn Policies,
        batch: &Transitions,
        seed: u64,
        round: usize,
    ) -> Vec<f32> {
        let (settings, p) = (&self.settings, pair_number(a, b, self.settings.n));
        let (value_shape, zeta_shape) = (&self.value.shape, &self.zeta.shape);
        let features = policies.features(batch);
        let rows: Vec<u32> = (0..batch.len() as u32).collect();
        // Streams of their own, behind those of the updates.
        let mut random = stream(seed, Purpose::RatioAction, settings.n * settings.n + p, round);
        let mut result = Vec::with_capacity(batch.len());
        let make = || Buffers::new(settings, value_shape, zeta_shape, policies);
        self.pool.with(
            make,
            |Buffers {
                 now,
                 next,
                 zeta,
                 v_next,
                 ..
             }| {
                let zeta_network = L::HAS_ZETA.then(|| self.zeta_network(p));
                for indices in rows.chunks(settings.ratio.minibatch) {
                    if let Some(network) = &zeta_network {
                        zeta.gather_input(&features, indices);
                        network.network().forward(zeta);
                        result.extend(
                            zeta.output(0)
                                .iter()
                                .map(|&z| self.loss.log_zeta(0.0, 0.0, z, settings.gamma)),
                        );
                    } else {
                        let network = self.value.network(p);
                        now.gather_input(&features, indices);
                        network.forward(now);
                        let v_next = &mut v_next[..indices.len()];
                        let states = &batch.next_states;
                        next.forward(network, policies, a, states, indices, &mut random, v_next);
                        end(v_next, batch, indices);
                        let each = now.output(0).iter().zip(v_next);
                        result.extend(each.map(|(&now, next)| self.loss.log_zeta(now, *next, 0.0, settings.gamma)));
                    }
                }
            },
        );
        result
    }

    fn update_flops(&self) -> f64 {
        let shape = &self.value.shape;
        let pass = shape.forward_flops() + shape.backward_flops();
        let passes = 2.0 + self.settings.next_actions as f64 + f64::from(u8::from(L::HAS_ZETA));
        pass * passes * (self.settings.ratio.minibatch * self.value.members()) as f64
    }

    fn save(&self, checkpoint: &mut Checkpoint) {
        self.value.save("ratio.value", checkpoint);
        self.zeta.save("ratio.zeta", checkpoint);
        self.average.save("ratio.average", checkpoint);
    }

    fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        self.value.restore("ratio.value", checkpoint)?;
        self.zeta.restore("ratio.zeta", checkpoint)?;
        self.average.restore("ratio.average", checkpoint)
    }
}

#[cfg(test)]
pub(crate) mod tests;
