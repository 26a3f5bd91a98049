//! A stack: P networks of one shape with their optimisers, parameters contiguous `[P][parameters]`.
//!
//! Training is [`Stack::train`]: networks in parallel, each with the whole of its minibatch loop as one task, while its weights
//! are in cache. The caller says what the inputs of a minibatch are and hands back d(loss)/d(output); passes, sums of gradients,
//! the clip and Adam are done here.

use super::init::initialise;
use super::network::{Frozen, Gradient, Network};
use super::penalty::PenaltyScratch;
use super::{Adam, AdamConfig, Pool, Real, Scratch, Shape, clip_norm};
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::parallel::{self, Parts, chunks};
use crate::rng::Stream;

/// P networks of one shape.
pub struct Stack<T> {
    /// Their common shape.
    pub shape: Shape,
    /// All parameters, network after network.
    parameters: Vec<T>,
    /// One optimiser a network.
    adam: Vec<Adam<T>>,
    config: AdamConfig,
    /// Samples in a pass, at the most.
    capacity: usize,
    pool: Pool<Buffers<T>>,
}

/// What one network needs while it is trained.
struct Buffers<T> {
    scratch: Scratch<T>,
    gradient: Gradient<T>,
    /// Made where a penalty is asked for.
    penalty: Option<PenaltyScratch<T>>,
}

impl<T: Real> Buffers<T> {
    fn new(shape: &Shape, capacity: usize) -> Self {
        Buffers {
            scratch: Scratch::new(shape, capacity),
            gradient: Gradient::new(shape),
            penalty: None,
        }
    }
}

/// Samples in a pass where nothing else is said.
pub const CAPACITY: usize = 512;

/// How a step is taken.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Step {
    /// Adam's learning rate.
    pub rate: f64,
    /// Largest norm of the gradient.
    pub clip: f64,
}

impl<T: Real> Clone for Stack<T> {
    fn clone(&self) -> Self {
        Stack {
            shape: self.shape.clone(),
            parameters: self.parameters.clone(),
            adam: self.adam.clone(),
            config: self.config,
            capacity: self.capacity,
            pool: Pool::default(),
        }
    }
}

impl<T: Real> Stack<T> {
    /// Draws `members` networks; `random(p)` is the stream for network p. Batches of a pass have [`CAPACITY`] samples.
    pub fn new(
        shape: Shape,
        members: usize,
        config: AdamConfig,
        (gain, output_gain): (f64, f64),
        random: impl Fn(usize) -> Stream,
    ) -> Self {
        let size = shape.parameters();
        let mut parameters = vec![T::ZERO; members * size];
        for (member, parameters) in parameters.chunks_exact_mut(size).enumerate() {
            initialise(&shape, gain, output_gain, &mut random(member), parameters);
        }
        Stack {
            adam: vec![Adam::new(size); members],
            shape,
            parameters,
            config,
            capacity: CAPACITY,
            pool: Pool::default(),
        }
    }

    /// The same networks, with passes of up to `capacity` samples.
    pub fn with_capacity(mut self, capacity: usize) -> Self {
        self.capacity = capacity;
        self.pool = Pool::default();
        self
    }

    /// Number of networks.
    pub fn members(&self) -> usize {
        self.adam.len()
    }

    /// Network `member`.
    pub fn network(&self, member: usize) -> Network<'_, T> {
        Network {
            shape: &self.shape,
            parameters: self.slice(member),
        }
    }

    fn slice(&self, member: usize) -> &[T] {
        let size = self.shape.parameters();
        &self.parameters[member * size..][..size]
    }

    fn slice_mut(&mut self, member: usize) -> &mut [T] {
        let size = self.shape.parameters();
        &mut self.parameters[member * size..][..size]
    }

    /// Passes rows of inputs through network `member` batch by batch, and shows each pass.
    pub fn pass(&self, member: usize, rows: &[T], mut show: impl FnMut(&Scratch<T>)) {
        let network = self.network(member);
        self.pool.with(
            || Buffers::new(&self.shape, self.capacity),
            |Buffers { scratch, .. }| {
                for rows in rows.chunks(self.capacity * self.shape.input()) {
                    scratch.load_input(rows);
                    network.forward(scratch);
                    show(scratch);
                }
            },
        );
    }

    /// Trains every network: `work` has it take its steps. In parallel over networks; results in their order.
    pub fn train<R: Send>(&mut self, work: impl Fn(usize, &mut Trainee<'_, T>) -> R + Sync + Send) -> Vec<R> {
        let (pool, capacity, shape) = (&self.pool, self.capacity, &self.shape);
        let members = Self::split(shape, &mut self.parameters, &mut self.adam, self.config);
        parallel::map(members, |p, member| {
            pool.with(
                || Buffers::new(shape, capacity),
                |buffers| work(p, &mut Trainee { member, buffers }),
            )
        })
    }

    /// One step of the only network, on a minibatch in parts that are passed in parallel: `work` adds the gradients of part k to
    /// its own of `gradients`. They are summed in the order of the parts; `decay`·θ is added; results in the order of the parts.
    pub fn train_shared<P: Parts, R: Send>(
        &mut self,
        gradients: &mut [Gradient<T>],
        parts: P,
        step: Step,
        decay: T,
        work: impl Fn(usize, &mut Chunk<'_, T>, P::Part) -> R + Sync + Send,
    ) -> Vec<R> {
        let results = parallel::map((&mut *gradients, parts), |k, (gradient, part)| {
            self.pool.with(
                || Buffers::new(&self.shape, self.capacity),
                |Buffers { scratch, .. }| {
                    gradient.clear();
                    let network = self.network(0);
                    let mut chunk = Chunk {
                        network,
                        scratch,
                        gradient,
                    };
                    work(k, &mut chunk, part)
                },
            )
        });
        let (sum, rest) = gradients.split_at_mut(1);
        rest.iter().for_each(|gradient| sum[0].add(gradient));
        if decay > T::ZERO {
            sum[0].add_decay(decay, self.network(0));
        }
        self.members_mut()[0].descend(&mut sum[0], step);
        results
    }

    /// All networks, to be trained by other means than [`Stack::train`].
    pub fn members_mut(&mut self) -> Vec<Member<'_, T>> {
        Self::split(&self.shape, &mut self.parameters, &mut self.adam, self.config)
    }

    fn split<'a>(
        shape: &'a Shape,
        parameters: &'a mut [T],
        adam: &'a mut [Adam<T>],
        config: AdamConfig,
    ) -> Vec<Member<'a, T>> {
        let each = parameters.chunks_exact_mut(shape.parameters()).zip(adam);
        each.map(|(parameters, adam)| Member {
            shape,
            parameters,
            adam,
            config,
        })
        .collect()
    }

    /// Passes batches through all networks, in parallel: `work` gets the network, a scratch and its own of `parts`, where it leaves
    /// gradients and whatever else it finds. Nothing is allocated.
    pub fn differentiate<P: Parts>(
        &self,
        parts: P,
        work: impl Fn(usize, Network<'_, T>, &mut Scratch<T>, P::Part) + Sync + Send,
    ) {
        parallel::for_each(parts, |p, part| {
            self.pool.with(
                || Buffers::new(&self.shape, self.capacity),
                |Buffers { scratch, .. }| work(p, self.network(p), scratch, part),
            );
        });
    }

    /// Every network takes the step that `work` says. In parallel; nothing is allocated.
    pub fn step_all<P: Parts>(&mut self, parts: P, work: impl Fn(usize, Member<'_, T>, P::Part) + Sync + Send) {
        let (shape, config) = (&self.shape, self.config);
        let own = (chunks(&mut self.parameters, shape.parameters()), &mut self.adam[..]);
        parallel::for_each((own, parts), |p, ((parameters, adam), part)| {
            let member = Member {
                shape,
                parameters,
                adam,
                config,
            };
            work(p, member, part);
        });
    }

    /// Sets the parameters beside those of the layers, of all networks.
    pub fn fill_extra(&mut self, value: T) {
        let extra = self.shape.extra_offset();
        for p in 0..self.members() {
            self.slice_mut(p)[extra..].fill(value);
        }
    }

    /// Takes the parameters of a network of another stack; the optimiser stays.
    pub fn copy_member(&mut self, member: usize, from: Network<'_, T>) {
        self.slice_mut(member).copy_from_slice(from.parameters);
    }

    /// All parameters, network after network: for tests and records.
    pub fn parameters(&self) -> &[T] {
        &self.parameters
    }
}

impl Stack<f32> {
    /// The output of network `member`, which has one, becomes `factor`·output + `shift`: PopArt's change of units.
    pub fn rescale_output(&mut self, member: usize, factor: f64, shift: f64) {
        let last = self.shape.layers() - 1;
        let (offset, (_, width)) = (self.shape.offset(last), self.shape.layer(last));
        let (weights, bias) = self.slice_mut(member)[offset..].split_at_mut(width);
        let scale = |weight: &mut f32| *weight = (f64::from(*weight) * factor) as f32;
        weights.iter_mut().for_each(scale);
        bias[0] = (f64::from(bias[0]) * factor + shift) as f32;
    }

    /// ‖θ_i - θ_j‖² of all pairs of networks, `[P][P]`.
    pub fn squared_distances(&self) -> Vec<f64> {
        let members = self.members();
        let mut squares = vec![0.0; members * members];
        for i in 0..members {
            for j in 0..i {
                let both = self.slice(i).iter().zip(self.slice(j));
                let square = both.map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2)).sum();
                squares[i * members + j] = square;
                squares[j * members + i] = square;
            }
        }
        squares
    }

    /// Σ_{j≠i} weights_ij·(θ_i - θ_j) of every network i; `weights` is `[P][P]`.
    pub fn repulsion(&self, weights: &[f64]) -> Vec<Gradient<f32>> {
        let members = self.members();
        assert_eq!(weights.len(), members * members, "one weight an ordered pair");
        let of_member = |i: usize| {
            let mut sum = Gradient::new(&self.shape);
            for j in (0..members).filter(|&j| j != i) {
                let weight = weights[i * members + j] as f32;
                let both = self.slice(i).iter().zip(self.slice(j));
                let each = sum.values.iter_mut().zip(both);
                each.for_each(|(sum, (mine, other))| *sum += weight * (mine - other));
            }
            sum
        };
        (0..members).map(of_member).collect()
    }

    /// Adds all networks, their optimisers included, to a checkpoint under `name`.
    pub fn save(&self, name: &str, checkpoint: &mut Checkpoint) {
        let (members, size) = (self.members(), self.shape.parameters());
        let moments =
            |pick: fn(&Adam<f32>) -> &Vec<f32>| self.adam.iter().flat_map(pick).copied().collect::<Vec<f32>>();
        let steps: Vec<u64> = self.adam.iter().map(|adam| adam.steps).collect();
        checkpoint.insert_f32(&format!("{name}.parameters"), &[members, size], &self.parameters);
        checkpoint.insert_f32(&format!("{name}.adam.m"), &[members, size], &moments(|adam| &adam.m));
        checkpoint.insert_f32(&format!("{name}.adam.v"), &[members, size], &moments(|adam| &adam.v));
        checkpoint.insert_u64(&format!("{name}.adam.steps"), &[members], &steps);
    }

    /// Takes all networks, their optimisers included, from a checkpoint.
    pub fn restore(&mut self, name: &str, checkpoint: &mut Checkpoint) -> Result<()> {
        let (members, size) = (self.members(), self.shape.parameters());
        self.parameters = checkpoint.take_f32(&format!("{name}.parameters"), &[members, size])?;
        let m = checkpoint.take_f32(&format!("{name}.adam.m"), &[members, size])?;
        let v = checkpoint.take_f32(&format!("{name}.adam.v"), &[members, size])?;
        let steps = checkpoint.take_u64(&format!("{name}.adam.steps"), &[members])?;
        let squares = v.iter().all(|&x| x >= 0.0);
        checkpoint.require(squares, &format!("{name}.adam.v"), "means of squares")?;
        let countable = steps.iter().all(|&steps| steps < Checkpoint::COUNTABLE);
        checkpoint.require(countable, &format!("{name}.adam.steps"), "counts")?;
        for (p, adam) in self.adam.iter_mut().enumerate() {
            adam.m.copy_from_slice(&m[p * size..][..size]);
            adam.v.copy_from_slice(&v[p * size..][..size]);
            adam.steps = steps[p];
        }
        Ok(())
    }
}

/// One network of a stack, to be trained.
pub struct Member<'a, T> {
    shape: &'a Shape,
    parameters: &'a mut [T],
    adam: &'a mut Adam<T>,
    config: AdamConfig,
}

impl<T: Real> Member<'_, T> {
    /// The network as it is now.
    pub fn network(&self) -> Network<'_, T> {
        Network {
            shape: self.shape,
            parameters: self.parameters,
        }
    }

    /// One step down a gradient, which is clipped; returns its norm before.
    pub fn descend(&mut self, gradient: &mut Gradient<T>, step: Step) -> f64 {
        let norm = clip_norm(&mut gradient.values, step.clip);
        self.adam
            .step(&self.config, step.rate, self.parameters, &gradient.values);
        norm
    }

    /// One step up a gradient, which is clipped; returns its norm before.
    pub fn ascend(&mut self, gradient: &mut Gradient<T>, step: Step) -> f64 {
        let norm = clip_norm(&mut gradient.values, step.clip);
        gradient.values.iter_mut().for_each(|g| *g = -*g);
        self.adam
            .step(&self.config, step.rate, self.parameters, &gradient.values);
        norm
    }

    /// Keeps the parameters beside those of the layers within bounds.
    pub fn clamp_extra(&mut self, least: T, largest: T) {
        for value in &mut self.parameters[self.shape.extra_offset()..] {
            *value = if *value < least {
                least
            } else if *value > largest {
                largest
            } else {
                *value
            };
        }
    }
}

/// A part of a minibatch of one network.
pub struct Chunk<'a, T> {
    network: Network<'a, T>,
    scratch: &'a mut Scratch<T>,
    gradient: &'a mut Gradient<T>,
}

impl<T: Real> Chunk<'_, T> {
    /// Adds the gradient of a loss on one batch, as [`Trainee::add`] does.
    pub fn add<R>(&mut self, input: impl FnOnce(&mut Scratch<T>), loss: impl FnOnce(&mut Scratch<T>) -> R) -> R {
        add(self.network, self.scratch, self.gradient, input, loss)
    }
}

/// A forward pass, the loss, and the backward pass.
fn add<T: Real, R>(
    network: Network<'_, T>,
    scratch: &mut Scratch<T>,
    gradient: &mut Gradient<T>,
    input: impl FnOnce(&mut Scratch<T>),
    loss: impl FnOnce(&mut Scratch<T>) -> R,
) -> R {
    input(scratch);
    network.forward(scratch);
    let value = loss(scratch);
    network.backward(scratch, gradient);
    value
}

/// A network in training, with its buffers.
pub struct Trainee<'a, T> {
    member: Member<'a, T>,
    buffers: &'a mut Buffers<T>,
}

impl<T: Real> Trainee<'_, T> {
    /// Forgets the gradients that were added since the last step.
    pub fn clear(&mut self) {
        self.buffers.gradient.clear();
    }

    /// Adds the gradient of a loss on one batch. `input` fills in the batch; `loss` reads the outputs, fills in its derivatives in
    /// them, and returns its value.
    pub fn add<R>(&mut self, input: impl FnOnce(&mut Scratch<T>), loss: impl FnOnce(&mut Scratch<T>) -> R) -> R {
        let Buffers { scratch, gradient, .. } = &mut *self.buffers;
        add(self.member.network(), scratch, gradient, input, loss)
    }

    /// Adds the gradient of the gradient penalty on one batch.
    pub fn add_penalty(&mut self, weight: T, input: impl FnOnce(&mut Scratch<T>)) {
        let Buffers {
            scratch,
            gradient,
            penalty,
        } = &mut *self.buffers;
        let network = self.member.network();
        let penalty = penalty.get_or_insert_with(|| PenaltyScratch::new(network.shape(), scratch.capacity()));
        input(scratch);
        network.forward(scratch);
        network.penalise(weight, scratch, penalty, gradient);
    }

    /// Steps down the sum of what was added since [`Trainee::clear`].
    pub fn step(&mut self, step: Step) {
        self.member.descend(&mut self.buffers.gradient, step);
    }

    /// A whole step on one minibatch: [`Trainee::clear`], [`Trainee::add`], [`Trainee::step`].
    pub fn minibatch<R>(
        &mut self,
        step: Step,
        input: impl FnOnce(&mut Scratch<T>),
        loss: impl FnOnce(&mut Scratch<T>) -> R,
    ) -> R {
        self.clear();
        let value = self.add(input, loss);
        self.step(step);
        value
    }

    /// Passes one batch without training.
    pub fn pass(&mut self, input: impl FnOnce(&mut Scratch<T>)) -> &Scratch<T> {
        let scratch = &mut self.buffers.scratch;
        input(scratch);
        self.member.network().forward(scratch);
        scratch
    }

    /// The network as it is now, to be kept.
    pub fn frozen(&self) -> Frozen<T> {
        self.member.network().frozen()
    }

    /// Goes back to a network that was kept; the optimiser stays.
    pub fn thaw(&mut self, kept: &Frozen<T>) {
        self.member.parameters.copy_from_slice(&kept.parameters);
    }
}

#[cfg(test)]
#[path = "stack_tests.rs"]
mod tests;
