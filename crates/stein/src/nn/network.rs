//! One network as the rest of the program sees it: something to pass batches through, forwards and backwards.
//!
//! Parameters stay inside `nn`. A loss reads the outputs of a [`Scratch`] and writes d(loss)/d(output) into it; what comes out
//! of the backward pass is a [`Gradient`], which can be summed and mixed, and which a [`super::Member`] descends.

use super::mlp::{backward, forward};
use super::penalty::{PenaltyScratch, gradient_penalty};
use super::{Real, Scratch, Shape};

/// A network to be evaluated and differentiated.
#[derive(Clone, Copy)]
pub struct Network<'a, T> {
    pub(super) shape: &'a Shape,
    pub(super) parameters: &'a [T],
}

impl<'a, T: Real> Network<'a, T> {
    /// Its shape.
    pub fn shape(&self) -> &'a Shape {
        self.shape
    }

    /// Its parameters beside those of the layers ([`Shape::with_extra`]): a policy's log-std, for example.
    pub fn extra(&self) -> &'a [T] {
        &self.parameters[self.shape.extra_offset()..]
    }

    /// Computes the outputs of the batch in `scratch`.
    pub fn forward(&self, scratch: &mut Scratch<T>) {
        forward(self.shape, self.parameters, scratch);
    }

    /// Adds the gradient of a loss, whose derivatives in the outputs are in `scratch` ([`Scratch::output_delta`]).
    pub fn backward(&self, scratch: &mut Scratch<T>, gradient: &mut Gradient<T>) {
        backward(self.shape, self.parameters, scratch, &mut gradient.values);
    }

    /// Adds the gradient of the gradient penalty at the batch in `scratch`, whose outputs have been computed; returns its value.
    pub fn penalise(
        &self,
        weight: T,
        scratch: &mut Scratch<T>,
        penalty: &mut PenaltyScratch<T>,
        gradient: &mut Gradient<T>,
    ) -> T {
        gradient_penalty(
            self.shape,
            self.parameters,
            weight,
            scratch,
            penalty,
            &mut gradient.values,
        )
    }

    /// All parameters, in the order of [`Frozen::new`]: for export and for tests.
    pub fn values(&self) -> &'a [T] {
        self.parameters
    }

    /// A copy that does not change when the network is trained on.
    pub fn frozen(&self) -> Frozen<T> {
        Frozen {
            shape: self.shape.clone(),
            parameters: self.parameters.to_vec(),
        }
    }
}

/// A network that is not trained any more.
#[derive(Clone, Debug, PartialEq)]
pub struct Frozen<T> {
    pub(super) shape: Shape,
    pub(super) parameters: Vec<T>,
}

impl<T: Real> Frozen<T> {
    /// A network of these parameters: layer after layer weights `[out][in]` and biases, then the extra ones.
    pub fn new(shape: Shape, parameters: Vec<T>) -> Self {
        assert_eq!(
            parameters.len(),
            shape.parameters(),
            "as many parameters as the shape has"
        );
        Frozen { shape, parameters }
    }

    /// The network.
    pub fn network(&self) -> Network<'_, T> {
        Network {
            shape: &self.shape,
            parameters: &self.parameters,
        }
    }
}

/// A sum of gradients of one network, or of networks of one shape.
#[derive(Clone, Debug, PartialEq)]
pub struct Gradient<T> {
    pub(super) values: Vec<T>,
    extra: usize,
}

impl<T: Real> Gradient<T> {
    /// Zero.
    pub fn new(shape: &Shape) -> Self {
        Gradient {
            values: vec![T::ZERO; shape.parameters()],
            extra: shape.extra_offset(),
        }
    }

    /// Back to zero.
    pub fn clear(&mut self) {
        self.values.fill(T::ZERO);
    }

    /// Takes the values of another one.
    pub fn copy_from(&mut self, other: &Gradient<T>) {
        self.values.copy_from_slice(&other.values);
    }

    /// Adds another one.
    pub fn add(&mut self, other: &Gradient<T>) {
        self.values
            .iter_mut()
            .zip(&other.values)
            .for_each(|(sum, &g)| *sum += g);
    }

    /// Adds `weight` times another one.
    pub fn add_scaled(&mut self, weight: T, other: &Gradient<T>) {
        let each = self.values.iter_mut().zip(&other.values);
        each.for_each(|(sum, &g)| *sum += weight * g);
    }

    /// Multiplies it.
    pub fn scale(&mut self, factor: T) {
        self.values.iter_mut().for_each(|g| *g *= factor);
    }

    /// Adds the gradient of ½·`weight`·‖θ‖².
    pub fn add_decay(&mut self, weight: T, network: Network<'_, T>) {
        let each = self.values.iter_mut().zip(network.parameters);
        each.for_each(|(sum, &theta)| *sum += weight * theta);
    }

    /// The part that belongs to [`Network::extra`].
    pub fn extra_mut(&mut self) -> &mut [T] {
        &mut self.values[self.extra..]
    }

    /// Whether all of it is 0.
    pub fn is_zero(&self) -> bool {
        self.values.iter().all(|g| *g == T::ZERO)
    }

    /// All partial derivatives, in the order of the parameters: for tests and records.
    pub fn values(&self) -> &[T] {
        &self.values
    }
}
