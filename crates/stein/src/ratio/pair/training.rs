//! The minibatch loop of one pair. It is one parallel task, while its weights are in cache; nothing is allocated in it.

use rand::RngExt;
use rand::seq::SliceRandom;

use super::acted::Acted;
use super::loss::{DiceLoss, Outputs};
use crate::nn::average::Follower;
use crate::nn::penalty::PenaltyScratch;
use crate::nn::{Gradient, Member, Scratch, Shape, Step};
use crate::ratio::config::EstimatorConfig;
use crate::ratio::policies::Policies;
use crate::ratio::{Round, Transitions, pair_of};
use crate::rng::{Purpose, Stream, stream};

/// Buffers of one pair's minibatch loop.
pub(super) struct Buffers {
    pub(super) now: Scratch<f32>,
    pub(super) next: Acted,
    first: Acted,
    pub(super) zeta: Scratch<f32>,
    penalty: PenaltyScratch<f32>,
    value_gradient: Gradient<f32>,
    zeta_gradient: Gradient<f32>,
    order: Vec<u32>,
    first_order: Vec<u32>,
    weights: Vec<f32>,
    first_weights: Vec<f32>,
    pub(super) v_next: Vec<f32>,
    v_first: Vec<f32>,
    d_now: Vec<f32>,
    d_next: Vec<f32>,
    d_first: Vec<f32>,
    d_z: Vec<f32>,
}

impl Buffers {
    pub(super) fn new(settings: &EstimatorConfig, value: &Shape, zeta: &Shape, policies: &dyn Policies) -> Self {
        let (capacity, count) = (settings.ratio.minibatch, policies.action_count());
        let samples = || vec![0.0; capacity];
        Buffers {
            now: Scratch::new(value, capacity),
            next: Acted::new(value, policies, capacity, count.unwrap_or(settings.next_actions)),
            first: Acted::new(value, policies, capacity, count.unwrap_or(1)),
            zeta: Scratch::new(zeta, capacity),
            penalty: PenaltyScratch::new(zeta, capacity),
            value_gradient: Gradient::new(value),
            zeta_gradient: Gradient::new(zeta),
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

/// What the minibatch loops of all pairs have in common.
pub(super) struct Common<'a, L> {
    pub loss: &'a L,
    pub settings: &'a EstimatorConfig,
    pub round: &'a Round<'a>,
    /// (s,a) of every policy's data.
    pub features: Vec<Vec<f32>>,
}

impl<L: DiceLoss> Common<'_, L> {
    /// The whole minibatch loop of one pair; returns its mean objective.
    pub(super) fn train(
        &self,
        pair: usize,
        value: &mut Member<'_, f32>,
        mut zeta: Option<&mut Member<'_, f32>>,
        mut average: Option<Follower<'_>>,
        buffers: &mut Buffers,
    ) -> f64 {
        let (round, capacity) = (self.round, self.settings.ratio.minibatch);
        let (a, b) = pair_of(pair, self.settings.n);
        let (data, own) = (&round.data[b], &round.data[a]);
        let mut order_random = stream(round.seed, Purpose::RatioOrder, pair, round.round);
        let mut action_random = stream(round.seed, Purpose::RatioAction, pair, round.round);
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
                    average.follow(zeta, self.settings.ratio.gendice_average as f32);
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
        let (policies, network) = (self.round.policies, value.network());
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
        network.forward(now);
        let v_next = &mut buffers.v_next[..batch];
        next.forward(network, policies, a, &data.next_states, indices, random, v_next);
        end(v_next, data, indices);
        let v_first = &mut buffers.v_first[..firsts];
        first.forward(network, policies, a, &own.initial, first_order, random, v_first);
        if let Some(zeta) = zeta {
            z.gather_input(x, indices);
            zeta.network().forward(z);
        }
        for (weight, &index) in buffers.weights.iter_mut().zip(indices) {
            *weight = data.weights[index as usize];
        }
        for (weight, &index) in buffers.first_weights.iter_mut().zip(&*first_order) {
            *weight = own.initial_weights[index as usize];
        }
        buffers.value_gradient.clear();
        self.loss.derivatives(&mut Outputs {
            gamma: self.settings.gamma,
            mass: own.mass,
            lambda: self.settings.ratio.gendice_lambda as f32,
            u: network.extra()[0],
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
            d_u: &mut buffers.value_gradient.extra_mut()[0],
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
        let (network, ratio, batch) = (value.network(), &self.settings.ratio, indices.len());
        let (now, next, first, value_gradient, d_next) = (
            &mut buffers.now,
            &mut buffers.next,
            &mut buffers.first,
            &mut buffers.value_gradient,
            &mut buffers.d_next,
        );
        now.output_delta(0).copy_from_slice(&buffers.d_now[..batch]);
        network.backward(now, value_gradient);
        end(&mut d_next[..batch], data, indices);
        next.backward(network, &d_next[..batch], value_gradient);
        first.backward(network, &buffers.d_first[..buffers.first_order.len()], value_gradient);
        if L::PENALISED && ratio.gradient_penalty > 0.0 {
            interpolate(random, now, next.first_pass());
            network.forward(now);
            let weight = ratio.gradient_penalty as f32;
            network.penalise(weight, now, &mut buffers.penalty, value_gradient);
        }
        let step = Step {
            rate: factor * self.settings.learning_rate,
            clip: ratio.gradient_clip,
        };
        value.descend(value_gradient, step);
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
        zeta_gradient.clear();
        zeta.network().backward(z, zeta_gradient);
        let step = Step {
            rate: factor * self.settings.zeta_learning_rate,
            clip: self.settings.ratio.gradient_clip,
        };
        zeta.descend(zeta_gradient, step);
    }
}

/// What comes after a termination counts as 0.
pub(super) fn end(values: &mut [f32], data: &Transitions, indices: &[u32]) {
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
