//! What the DICE estimators share: for every ordered pair (a, b), a value-like network v evaluated on b's (s,a), on
//! (s', a' ~ π_a) and on (s0, a0 ~ π_a), and a ζ-like network z on b's (s,a).
//!
//! ```text
//! v_next = [not terminated]·Σ_k w_k·v(s', a'_k)              k next actions, averaged (or summed with their probability)
//! loss   = L(v_now, v_next, v_first, z; weights)            a pure function: dualdice.rs, valuedice.rs, gendice.rs
//! ```
//!
//! Each pair's whole minibatch loop is one parallel task, while its weights are in cache; nothing is allocated in it.

use rand::RngExt;
use rand::seq::SliceRandom;
use rayon::prelude::*;

use super::acted::Acted;
use super::config::EstimatorConfig;
use super::policies::Policies;
use super::{Estimator, Round, Transitions, pair_number, pair_of};
use crate::error::Result;
use crate::nn::init::Init;
use crate::nn::penalty::{PenaltyScratch, gradient_penalty};
use crate::nn::stack::Member;
use crate::nn::{AdamConfig, Pool, Scratch, Shape, Stack, backward, clip_norm, forward};
use crate::policy::ensemble::{restore_stack, save_stack};
use crate::rng::{Purpose, Stream, stream};
use crate::run::checkpoint::Checkpoint;

/// Outputs of the networks on one minibatch, and the derivatives of the loss in them.
pub struct Outputs<'a> {
    /// Discount γ.
    pub gamma: f32,
    /// Mass m_a of the numerator policy's occupancy.
    pub mass: f32,
    /// λ of GenDICE's constraint.
    pub lambda: f32,
    /// The extra scalar u of the value-like network.
    pub u: f32,
    /// Weights of the transitions, of mean about 1.
    pub weights: &'a [f32],
    /// v(s,a).
    pub now: &'a [f32],
    /// v_next, 0 after termination.
    pub next: &'a [f32],
    /// z(s,a); empty for estimators without a ζ network.
    pub z: &'a [f32],
    /// Weights of the initial states.
    pub first_weights: &'a [f32],
    /// v(s0,a0).
    pub first: &'a [f32],
    /// d(loss)/d(now).
    pub d_now: &'a mut [f32],
    /// d(loss)/d(next).
    pub d_next: &'a mut [f32],
    /// d(loss)/d(z), of the loss that the ζ network descends.
    pub d_z: &'a mut [f32],
    /// d(loss)/d(first).
    pub d_first: &'a mut [f32],
    /// d(loss)/d(u).
    pub d_u: &'a mut f32,
}

/// One of the DICE losses. The value-like network descends d_now, d_next, d_first, d_u; the ζ-like network d_z.
pub trait DiceLoss: Send + Sync + 'static {
    /// Whether there is a ζ-like network.
    const HAS_ZETA: bool;

    /// Whether the ζ-like network is read from an exponential average of its weights.
    const AVERAGED: bool;

    /// Whether the value-like network takes the gradient penalty.
    const PENALISED: bool;

    /// Fills in the derivatives and returns the value of the objective.
    fn slopes(&self, outputs: &mut Outputs<'_>) -> f64;

    /// log ζ (up to a constant) from the outputs on one transition; `next` is v_next.
    fn log_zeta(&self, now: f32, next: f32, z: f32, gamma: f32) -> f32;
}

/// A DICE estimator for all ordered pairs.
pub struct Dice<L> {
    loss: L,
    settings: EstimatorConfig,
    value: Stack<f32>,
    /// One member a pair, or none where the loss has no ζ network.
    zeta: Stack<f32>,
    /// Exponential average of the ζ networks' parameters, and its total weight.
    average: Vec<f32>,
    average_weight: f64,
    pool: Pool<Buffers>,
}

/// Buffers of one pair's minibatch loop.
struct Buffers {
    now: Scratch<f32>,
    next: Acted,
    first: Acted,
    zeta: Scratch<f32>,
    penalty: PenaltyScratch<f32>,
    value_gradient: Vec<f32>,
    zeta_gradient: Vec<f32>,
    order: Vec<u32>,
    first_order: Vec<u32>,
    weights: Vec<f32>,
    first_weights: Vec<f32>,
    v_next: Vec<f32>,
    v_first: Vec<f32>,
    d_now: Vec<f32>,
    d_next: Vec<f32>,
    d_first: Vec<f32>,
    d_z: Vec<f32>,
}

impl Buffers {
    fn new(settings: &EstimatorConfig, value: &Shape, zeta: &Shape, policies: &dyn Policies) -> Self {
        let (capacity, count) = (settings.ratio.minibatch, policies.action_count());
        let samples = || vec![0.0; capacity];
        Buffers {
            now: Scratch::new(value, capacity),
            next: Acted::new(value, policies, capacity, count.unwrap_or(settings.next_actions)),
            first: Acted::new(value, policies, capacity, count.unwrap_or(1)),
            zeta: Scratch::new(zeta, capacity),
            penalty: PenaltyScratch::new(zeta, capacity),
            value_gradient: vec![0.0; value.parameters()],
            zeta_gradient: vec![0.0; zeta.parameters()],
            order: Vec::new(),
            first_order: Vec::new(),
            weights: samples(),
            first_weights: samples(),
            v_next: samples(),
            v_first: samples(),
            d_now: samples(),
            d_next: samples(),
            d_first: samples(),
            d_z: samples(),
        }
    }
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
            Stack::new(shape, members, adam, Init::Orthogonal, (1.0, 0.1), random)
        };
        let shape = Shape::new(settings.width, &ratio.hidden, 1);
        let value = draw(shape.clone().with_extra(1), pairs, 0);
        let zeta = draw(shape, if L::HAS_ZETA { pairs } else { 0 }, 1);
        let average = if L::AVERAGED {
            vec![0.0; zeta.parameters.len()]
        } else {
            Vec::new()
        };
        Dice {
            loss,
            value,
            zeta,
            average,
            average_weight: 0.0,
            pool: Pool::default(),
            settings,
        }
    }

    /// The parameters that pair `p`'s ζ is read from.
    fn zeta_parameters(&self, p: usize) -> Vec<f32> {
        if !L::AVERAGED || self.average_weight == 0.0 {
            return self.zeta.member(p).to_vec();
        }
        let size = self.zeta.shape.parameters();
        let scale = (1.0 / self.average_weight) as f32;
        self.average[p * size..][..size].iter().map(|x| x * scale).collect()
    }
}

/// What the minibatch loops of all pairs have in common.
struct Common<'a, L> {
    loss: &'a L,
    settings: &'a EstimatorConfig,
    round: &'a Round<'a>,
    adam: AdamConfig,
    value_shape: &'a Shape,
    zeta_shape: &'a Shape,
    /// (s,a) of every policy's data.
    features: Vec<Vec<f32>>,
}

impl<L: DiceLoss> Common<'_, L> {
    /// The whole minibatch loop of one pair; returns its mean objective.
    fn train_pair(
        &self,
        value: &mut Member<'_, f32>,
        mut zeta: Option<&mut Member<'_, f32>>,
        mut average: Option<&mut [f32]>,
        buffers: &mut Buffers,
    ) -> f64 {
        let (round, capacity) = (self.round, self.settings.ratio.minibatch);
        let (a, b) = pair_of(value.index, self.settings.n);
        let (data, own) = (&round.data[b], &round.data[a]);
        let mut order_random = stream(round.seed, Purpose::RatioOrder, value.index, round.round);
        let mut action_random = stream(round.seed, Purpose::RatioAction, value.index, round.round);
        let mut order = std::mem::take(&mut buffers.order);
        order.clear();
        order.extend(0..data.len() as u32);
        let firsts = own.initial_weights.len();
        buffers.first_order.clear();
        buffers.first_order.extend(0..firsts.min(capacity) as u32);
        let (mut total, mut at) = (0.0, data.len());
        for update in 0..round.updates {
            if at >= data.len() {
                order.shuffle(&mut order_random);
                at = 0;
            }
            let indices = &order[at..(at + capacity).min(data.len())];
            at += indices.len();
            if firsts > capacity {
                let draw = |index: &mut u32| *index = order_random.random_range(0..firsts as u32);
                buffers.first_order.iter_mut().for_each(draw);
            }
            let done = update as f64 / round.updates as f64;
            let factor = round.rate.0 + (round.rate.1 - round.rate.0) * done;
            total += self.objective(value, zeta.as_deref(), a, b, indices, &mut action_random, buffers);
            self.step_value(value, data, indices, factor, &mut order_random, buffers);
            if let Some(zeta) = &mut zeta {
                self.step_zeta(zeta, factor, buffers);
                if let Some(average) = &mut average {
                    let (keep, add) = (
                        self.settings.ratio.gendice_average as f32,
                        1.0 - self.settings.ratio.gendice_average as f32,
                    );
                    for (average, &x) in average.iter_mut().zip(zeta.parameters.iter()) {
                        *average = keep * *average + add * x;
                    }
                }
            }
        }
        buffers.order = order;
        total / round.updates.max(1) as f64
    }

    /// Forward passes of one minibatch, then the loss and its derivatives.
    #[allow(clippy::too_many_arguments)]
    fn objective(
        &self,
        value: &Member<'_, f32>,
        zeta: Option<&Member<'_, f32>>,
        a: usize,
        b: usize,
        indices: &[u32],
        random: &mut Stream,
        buffers: &mut Buffers,
    ) -> f64 {
        let (policies, shape) = (self.round.policies, self.value_shape);
        let (data, own, x) = (&self.round.data[b], &self.round.data[a], &self.features[b]);
        let (now, next, first, z, first_order) = (
            &mut buffers.now,
            &mut buffers.next,
            &mut buffers.first,
            &mut buffers.zeta,
            &mut buffers.first_order,
        );
        let (batch, firsts) = (indices.len(), first_order.len());
        now.gather_input(x, indices);
        forward(shape, value.parameters, now);
        let v_next = &mut buffers.v_next[..batch];
        next.forward(
            shape,
            value.parameters,
            policies,
            a,
            &data.next_states,
            indices,
            random,
            v_next,
        );
        end(v_next, data, indices);
        let v_first = &mut buffers.v_first[..firsts];
        first.forward(
            shape,
            value.parameters,
            policies,
            a,
            &own.initial,
            first_order,
            random,
            v_first,
        );
        if let Some(zeta) = zeta {
            z.gather_input(x, indices);
            forward(self.zeta_shape, zeta.parameters, z);
        }
        for (weight, &index) in buffers.weights.iter_mut().zip(indices) {
            *weight = data.weights[index as usize];
        }
        for (weight, &index) in buffers.first_weights.iter_mut().zip(&*first_order) {
            *weight = own.initial_weights[index as usize];
        }
        let u = shape.extra_offset();
        buffers.value_gradient.fill(0.0);
        self.loss.slopes(&mut Outputs {
            gamma: self.settings.gamma,
            mass: own.mass,
            lambda: self.settings.ratio.gendice_lambda as f32,
            u: value.parameters[u],
            weights: &buffers.weights[..batch],
            now: now.output(0),
            next: v_next,
            z: if L::HAS_ZETA { z.output(0) } else { &[] },
            first_weights: &buffers.first_weights[..firsts],
            first: v_first,
            d_now: &mut buffers.d_now[..batch],
            d_next: &mut buffers.d_next[..batch],
            d_z: if L::HAS_ZETA {
                &mut buffers.d_z[..batch]
            } else {
                &mut []
            },
            d_first: &mut buffers.d_first[..firsts],
            d_u: &mut buffers.value_gradient[u],
        })
    }

    /// Backward passes and one step of the value-like network.
    fn step_value(
        &self,
        value: &mut Member<'_, f32>,
        data: &Transitions,
        indices: &[u32],
        factor: f64,
        random: &mut Stream,
        buffers: &mut Buffers,
    ) {
        let (shape, ratio, batch) = (self.value_shape, &self.settings.ratio, indices.len());
        let (now, next, first, value_gradient, d_next) = (
            &mut buffers.now,
            &mut buffers.next,
            &mut buffers.first,
            &mut buffers.value_gradient,
            &mut buffers.d_next,
        );
        now.output_delta(0).copy_from_slice(&buffers.d_now[..batch]);
        backward(shape, value.parameters, now, value_gradient);
        end(&mut d_next[..batch], data, indices);
        next.backward(shape, value.parameters, &d_next[..batch], value_gradient);
        first.backward(
            shape,
            value.parameters,
            &buffers.d_first[..buffers.first_order.len()],
            value_gradient,
        );
        if L::PENALISED && ratio.gradient_penalty > 0.0 {
            interpolate(random, now, next.first_pass());
            forward(shape, value.parameters, now);
            let weight = ratio.gradient_penalty as f32;
            gradient_penalty(
                shape,
                value.parameters,
                weight,
                now,
                &mut buffers.penalty,
                value_gradient,
            );
        }
        clip_norm(value_gradient, ratio.gradient_clip);
        value.adam.step(
            &self.adam,
            factor * self.settings.learning_rate,
            value.parameters,
            value_gradient,
        );
    }

    /// Backward pass and one step of the ζ-like network.
    fn step_zeta(&self, zeta: &mut Member<'_, f32>, factor: f64, buffers: &mut Buffers) {
        let Buffers {
            zeta: z,
            zeta_gradient,
            d_z,
            ..
        } = buffers;
        let batch = z.batch();
        z.output_delta(0).copy_from_slice(&d_z[..batch]);
        zeta_gradient.fill(0.0);
        backward(self.zeta_shape, zeta.parameters, z, zeta_gradient);
        clip_norm(zeta_gradient, self.settings.ratio.gradient_clip);
        zeta.adam.step(
            &self.adam,
            factor * self.settings.zeta_learning_rate,
            zeta.parameters,
            zeta_gradient,
        );
    }
}

impl<L: DiceLoss> Estimator for Dice<L> {
    fn update(&mut self, round: &Round<'_>) -> f64 {
        let size = self.zeta.shape.parameters();
        let (value_shape, zeta_shape) = (self.value.shape.clone(), self.zeta.shape.clone());
        let common = Common {
            loss: &self.loss,
            settings: &self.settings,
            round,
            adam: self.value.config,
            value_shape: &value_shape,
            zeta_shape: &zeta_shape,
            features: round
                .data
                .par_iter()
                .map(|data| encode_all(round.policies, data))
                .collect(),
        };
        let mut zetas: Vec<_> = self.zeta.par_members().map(Some).collect();
        zetas.resize_with(self.value.adam.len(), || None);
        let mut averages: Vec<_> = self.average.chunks_exact_mut(size).map(Some).collect();
        averages.resize_with(self.value.adam.len(), || None);
        let (pool, settings) = (&self.pool, &self.settings);
        let make = || Buffers::new(settings, &value_shape, &zeta_shape, round.policies);
        let tasks = self.value.par_members().zip(zetas).zip(averages);
        let losses: Vec<f64> = tasks
            .map(|((mut value, mut zeta), average)| {
                pool.with(make, |buffers| {
                    common.train_pair(&mut value, zeta.as_mut(), average, buffers)
                })
            })
            .collect();
        if L::AVERAGED {
            let decay = self.settings.ratio.gendice_average;
            let power = decay.powi(round.updates.min(i32::MAX as usize) as i32);
            self.average_weight = 1.0 - (1.0 - self.average_weight) * power;
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
        let features = encode_all(policies, batch);
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
                let zeta_parameters = if L::HAS_ZETA {
                    self.zeta_parameters(p)
                } else {
                    Vec::new()
                };
                for indices in rows.chunks(settings.ratio.minibatch) {
                    if L::HAS_ZETA {
                        zeta.gather_input(&features, indices);
                        forward(zeta_shape, &zeta_parameters, zeta);
                        result.extend(
                            zeta.output(0)
                                .iter()
                                .map(|&z| self.loss.log_zeta(0.0, 0.0, z, settings.gamma)),
                        );
                    } else {
                        let parameters = self.value.member(p);
                        now.gather_input(&features, indices);
                        forward(value_shape, parameters, now);
                        let v_next = &mut v_next[..indices.len()];
                        let states = &batch.next_states;
                        next.forward(
                            value_shape,
                            parameters,
                            policies,
                            a,
                            states,
                            indices,
                            &mut random,
                            v_next,
                        );
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
        save_stack("ratio.value", &self.value, checkpoint);
        save_stack("ratio.zeta", &self.zeta, checkpoint);
        checkpoint.insert_f32("ratio.average", &[self.average.len()], &self.average);
        checkpoint.insert_f64("ratio.average_weight", &[1], &[self.average_weight]);
    }

    fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        restore_stack("ratio.value", &mut self.value, checkpoint)?;
        restore_stack("ratio.zeta", &mut self.zeta, checkpoint)?;
        self.average = checkpoint.take_f32("ratio.average", &[self.average.len()])?;
        self.average_weight = checkpoint.take_f64("ratio.average_weight", &[1])?[0];
        Ok(())
    }
}

/// Features of all samples of the data.
pub(crate) fn encode_all(policies: &dyn Policies, data: &Transitions) -> Vec<f32> {
    policies.features(data)
}

/// What comes after a termination counts as 0.
fn end(values: &mut [f32], data: &Transitions, indices: &[u32]) {
    for (value, &index) in values.iter_mut().zip(indices) {
        if data.terminated[index as usize] {
            *value = 0.0;
        }
    }
}

/// Replaces the inputs of `now` by random points between them and those of `other`.
fn interpolate(random: &mut Stream, now: &mut Scratch<f32>, other: &Scratch<f32>) {
    let row = now.row;
    for b in 0..now.batch() {
        let t: f32 = random.random();
        for (x, y) in now.h[0]
            .iter_mut()
            .skip(b)
            .step_by(row)
            .zip(other.h[0].iter().skip(b).step_by(row))
        {
            *x += t * (y - *x);
        }
    }
}

#[cfg(test)]
#[path = "dice_test.rs"]
pub(crate) mod test;
