//! A stack: P networks of one shape with their optimisers, parameters contiguous `[P][parameters]`.

use rayon::prelude::*;

use super::init::{Init, initialise};
use super::{Adam, AdamConfig, Real, Shape};
use crate::rng::Stream;

/// P networks of one shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Stack<T> {
    /// Their common shape.
    pub shape: Shape,
    /// All parameters, network after network.
    pub parameters: Vec<T>,
    /// One optimiser a network.
    pub adam: Vec<Adam<T>>,
    /// Settings of the optimisers.
    pub config: AdamConfig,
}

/// One network of a stack, to be trained.
pub struct Member<'a, T> {
    /// Its number.
    pub index: usize,
    /// Its parameters.
    pub parameters: &'a mut [T],
    /// Its optimiser.
    pub adam: &'a mut Adam<T>,
}

impl<T: Real> Stack<T> {
    /// Draws `members` networks; `random(p)` is the stream for network p.
    pub fn new(
        shape: Shape,
        members: usize,
        config: AdamConfig,
        init: Init,
        (gain, output_gain): (f64, f64),
        random: impl Fn(usize) -> Stream,
    ) -> Self {
        let size = shape.parameters();
        let mut parameters = vec![T::ZERO; members * size];
        for (member, parameters) in parameters.chunks_exact_mut(size).enumerate() {
            initialise(init, &shape, gain, output_gain, &mut random(member), parameters);
        }
        Stack {
            adam: vec![Adam::new(size); members],
            shape,
            parameters,
            config,
        }
    }

    /// Number of networks.
    pub fn members(&self) -> usize {
        self.adam.len()
    }

    /// Parameters of network `member`.
    pub fn member(&self, member: usize) -> &[T] {
        let size = self.shape.parameters();
        &self.parameters[member * size..][..size]
    }

    /// Parameters of network `member`, to be changed.
    pub fn member_mut(&mut self, member: usize) -> &mut [T] {
        let size = self.shape.parameters();
        &mut self.parameters[member * size..][..size]
    }

    /// All networks, to be worked on in parallel: each member's whole work is one task, while its weights are in cache.
    pub fn par_members(&mut self) -> impl IndexedParallelIterator<Item = Member<'_, T>> {
        let size = self.shape.parameters();
        let members = self.parameters.par_chunks_exact_mut(size).zip(self.adam.par_iter_mut());
        members.enumerate().map(|(index, (parameters, adam))| Member {
            index,
            parameters,
            adam,
        })
    }
}
