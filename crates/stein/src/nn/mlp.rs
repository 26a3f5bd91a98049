//! One tanh network: forward pass and hand-written backward pass over a batch.
//!
//! ```text
//! h_0 = x,   h_l = tanh(W_l·h_{l-1} + b_l)  (l = 1 … L-1),   y = W_L·h_{L-1} + b_L
//! backward:  dW_l = dz_l·h_{l-1}ᵀ,  db_l = Σ dz_l,  dh_{l-1} = W_lᵀ·dz_l,  dz_{l-1} = dh_{l-1} ∘ (1 - h_{l-1}²)
//! ```
//!
//! Shapes: buffers are feature-major, `[feature][sample]`, with rows padded to whole vectors and to an odd number of
//! cache lines (a power of two would map a column onto a few cache sets). Parameters of one network are one slice:
//! W_1 `[out][in]`, b_1, W_2, b_2, …, then `extra` parameters that the layers do not use (a log-std, say).

use super::Real;
use super::product::{LANES, Product, padded, transpose};
use super::real::dispatch;

/// Sizes of a network.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    sizes: Vec<usize>,
    extra: usize,
}

impl Shape {
    /// A network of `input` features, hidden layers of the given widths and `output` values.
    pub fn new(input: usize, hidden: &[usize], output: usize) -> Self {
        let mut sizes = vec![input];
        sizes.extend_from_slice(hidden);
        sizes.push(output);
        Shape { sizes, extra: 0 }
    }

    /// The same, with `extra` parameters appended that belong to the network but to no layer.
    pub fn with_extra(mut self, extra: usize) -> Self {
        self.extra = extra;
        self
    }

    /// Features of an input.
    pub fn input(&self) -> usize {
        self.sizes[0]
    }

    /// Values of an output.
    pub fn output(&self) -> usize {
        self.sizes[self.layers()]
    }

    /// Number of weight layers.
    pub fn layers(&self) -> usize {
        self.sizes.len() - 1
    }

    /// (output, input) sizes of weight layer `layer`, counted from 0.
    pub fn layer(&self, layer: usize) -> (usize, usize) {
        (self.sizes[layer + 1], self.sizes[layer])
    }

    /// Where the weights of a layer begin in the parameters; its biases follow its weights.
    pub fn offset(&self, layer: usize) -> usize {
        (0..layer).map(|l| self.sizes[l + 1] * (self.sizes[l] + 1)).sum()
    }

    /// Where the extra parameters begin.
    pub fn extra_offset(&self) -> usize {
        self.offset(self.layers())
    }

    /// Number of parameters, the extra ones included.
    pub fn parameters(&self) -> usize {
        self.extra_offset() + self.extra
    }

    /// Multiplications and additions of one forward pass of one sample.
    pub fn forward_flops(&self) -> f64 {
        (0..self.layers())
            .map(|l| 2.0 * (self.sizes[l] * self.sizes[l + 1]) as f64)
            .sum()
    }

    /// Multiplications and additions of one backward pass of one sample (without the gradient of the input).
    pub fn backward_flops(&self) -> f64 {
        2.0 * self.forward_flops() - 2.0 * (self.sizes[0] * self.sizes[1]) as f64
    }

    fn widest(&self) -> usize {
        self.sizes.iter().copied().max().unwrap_or(0)
    }
}

/// Distance between the rows of a feature-major buffer for batches up to `batch`.
pub(crate) fn row_length(batch: usize) -> usize {
    let lines = padded(batch) / LANES;
    (lines + (lines + 1) % 2) * LANES
}

/// Buffers of one forward and backward pass, allocated once for batches up to a capacity.
#[derive(Clone, Debug)]
pub struct Scratch<T> {
    pub(crate) row: usize,
    pub(crate) batch: usize,
    capacity: usize,
    /// h_0 … h_{L-1}, then the output.
    pub(crate) h: Vec<Vec<T>>,
    pub(crate) delta: Vec<T>,
    spare: Vec<T>,
    transposed: Vec<T>,
}

impl<T: Real> Scratch<T> {
    /// Buffers for networks of this shape and batches of at most `capacity` samples.
    pub fn new(shape: &Shape, capacity: usize) -> Self {
        let row = row_length(capacity);
        Scratch {
            row,
            batch: 0,
            capacity,
            h: shape.sizes.iter().map(|&size| vec![T::ZERO; size * row]).collect(),
            delta: vec![T::ZERO; shape.widest() * row],
            spare: vec![T::ZERO; shape.widest() * row],
            transposed: vec![T::ZERO; padded(capacity) * padded(shape.widest())],
        }
    }

    /// Samples of the present batch.
    pub fn batch(&self) -> usize {
        self.batch
    }

    /// Largest batch that fits.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Sets the batch size and fills the input: `fill(feature, samples)` writes one feature of all samples.
    pub fn fill_input(&mut self, batch: usize, mut fill: impl FnMut(usize, &mut [T])) {
        assert!(
            batch <= self.capacity,
            "a batch of {batch} does not fit {}",
            self.capacity
        );
        self.batch = batch;
        for (feature, row) in self.h[0].chunks_exact_mut(self.row).enumerate() {
            fill(feature, &mut row[..batch]);
            row[batch..padded(batch)].fill(T::ZERO);
        }
    }

    /// Sets the batch to rows `indices` of the sample-major matrix `samples` (its width is the input size).
    pub fn gather_input(&mut self, samples: &[T], indices: &[u32]) {
        let width = self.h[0].len() / self.row;
        self.fill_input(indices.len(), |feature, row| {
            for (value, &index) in row.iter_mut().zip(indices) {
                *value = samples[index as usize * width + feature];
            }
        });
    }

    /// Sets the batch to consecutive rows of a sample-major matrix (its width is the input size).
    pub fn load_input(&mut self, samples: &[T]) {
        let width = self.h[0].len() / self.row;
        self.fill_input(samples.len() / width, |feature, row| {
            for (value, sample) in row.iter_mut().zip(samples.chunks_exact(width)) {
                *value = sample[feature];
            }
        });
    }

    /// Output number `index` of every sample, after [`forward`].
    pub fn output(&self, index: usize) -> &[T] {
        let output = self.h.last().expect("a network has layers");
        &output[index * self.row..][..self.batch]
    }

    /// Where d(loss)/d(output `index`) of every sample goes before [`backward`].
    pub fn output_delta(&mut self, index: usize) -> &mut [T] {
        &mut self.delta[index * self.row..][..self.batch]
    }
}

/// Computes the outputs of the batch in `scratch`.
pub fn forward<T: Real>(shape: &Shape, parameters: &[T], scratch: &mut Scratch<T>) {
    let (row, columns) = (scratch.row, padded(scratch.batch));
    for layer in 0..shape.layers() {
        let (rows, depth) = shape.layer(layer);
        let weights = &parameters[shape.offset(layer)..];
        let biases = &weights[rows * depth..][..rows];
        let (before, after) = scratch.h.split_at_mut(layer + 1);
        let output = &mut after[0];
        T::product(
            Product {
                rows,
                depth,
                columns,
                w: &weights[..rows * depth],
                w_row: depth,
                w_column: 1,
                x: &before[layer],
                x_row: row,
                c_row: row,
                accumulate: false,
            },
            output,
        );
        for (values, &bias) in output.chunks_exact_mut(row).zip(biases) {
            let values = &mut values[..columns];
            if layer + 1 < shape.layers() {
                T::tanh_bias(values, bias);
            } else {
                values.iter_mut().for_each(|value| *value += bias);
            }
        }
    }
}

/// Adds the gradient of the loss to `gradient`. Before it: [`forward`], and every [`Scratch::output_delta`] filled.
pub fn backward<T: Real>(shape: &Shape, parameters: &[T], scratch: &mut Scratch<T>, gradient: &mut [T]) {
    backward_injected(shape, parameters, scratch, gradient, |_, _| {});
}

/// [`backward`] with the gradient of the inputs too: `d_input[feature][sample]` ends up in the delta buffer.
pub fn backward_to_input<T: Real>(shape: &Shape, parameters: &[T], scratch: &mut Scratch<T>, gradient: &mut [T]) {
    backward(shape, parameters, scratch, gradient);
    input_delta(shape, parameters, scratch);
}

/// The backward pass, where `inject(l, dh_l)` may add to the gradient of hidden activation l before it is used.
pub(crate) fn backward_injected<T: Real>(
    shape: &Shape,
    parameters: &[T],
    scratch: &mut Scratch<T>,
    gradient: &mut [T],
    mut inject: impl FnMut(usize, &mut [T]),
) {
    let (row, columns, batch) = (scratch.row, padded(scratch.batch), scratch.batch);
    for output in scratch.delta.chunks_exact_mut(row).take(shape.output()) {
        output[batch..columns].fill(T::ZERO);
    }
    for layer in (0..shape.layers()).rev() {
        let (rows, depth) = shape.layer(layer);
        let offset = shape.offset(layer);
        let (weights_gradient, rest) = gradient[offset..].split_at_mut(rows * depth);
        transpose(
            &scratch.h[layer],
            row,
            depth,
            batch,
            &mut scratch.transposed,
            padded(depth),
        );
        T::product(
            Product {
                rows,
                depth: batch,
                columns: depth,
                w: &scratch.delta,
                w_row: row,
                w_column: 1,
                x: &scratch.transposed,
                x_row: padded(depth),
                c_row: depth,
                accumulate: true,
            },
            weights_gradient,
        );
        for (bias, delta) in rest[..rows].iter_mut().zip(scratch.delta.chunks_exact(row)) {
            *bias += sum(&delta[..columns]);
        }
        if layer > 0 {
            input_of_layer(shape, parameters, scratch, layer);
            inject(layer, &mut scratch.delta);
            let h = &scratch.h[layer];
            for (delta, h) in scratch.delta.chunks_exact_mut(row).zip(h.chunks_exact(row)) {
                tanh_slope(&mut delta[..columns], &h[..columns]);
            }
        }
    }
}

/// Continues from dz_1 in the delta buffer to the gradient of the input.
fn input_delta<T: Real>(shape: &Shape, parameters: &[T], scratch: &mut Scratch<T>) {
    input_of_layer(shape, parameters, scratch, 0);
}

/// delta ← W_layerᵀ · delta.
fn input_of_layer<T: Real>(shape: &Shape, parameters: &[T], scratch: &mut Scratch<T>, layer: usize) {
    let (rows, depth) = shape.layer(layer);
    T::product(
        Product {
            rows: depth,
            depth: rows,
            columns: padded(scratch.batch),
            w: &parameters[shape.offset(layer)..][..rows * depth],
            w_row: 1,
            w_column: depth,
            x: &scratch.delta,
            x_row: scratch.row,
            c_row: scratch.row,
            accumulate: false,
        },
        &mut scratch.spare,
    );
    std::mem::swap(&mut scratch.delta, &mut scratch.spare);
}

/// `delta[b] *= 1 - h[b]²`.
fn tanh_slope<T: Real>(delta: &mut [T], h: &[T]) {
    dispatch(
        #[inline(always)]
        || {
            for (delta, &h) in delta.iter_mut().zip(h) {
                *delta *= T::ONE - h * h;
            }
        },
    );
}

/// Sum in a fixed order that vectorises: lane by lane, then over the lanes.
pub(crate) fn sum<T: Real>(values: &[T]) -> T {
    let mut lanes = [T::ZERO; LANES];
    let chunks = values.chunks_exact(LANES);
    let rest: T = chunks.remainder().iter().copied().sum();
    for chunk in chunks {
        for (lane, &value) in lanes.iter_mut().zip(chunk) {
            *lane += value;
        }
    }
    lanes.into_iter().sum::<T>() + rest
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::test::{central_difference, random_vector};

    /// Loss Σ_b Σ_o c_ob·y_ob + ½·y_ob², whose derivative is c + y.
    fn loss(shape: &Shape, parameters: &[f64], input: &[f64], weights: &[f64]) -> f64 {
        let batch = input.len() / shape.input();
        let mut scratch = Scratch::new(shape, batch);
        scratch.load_input(input);
        forward(shape, parameters, &mut scratch);
        let mut total = 0.0;
        for output in 0..shape.output() {
            for (b, &y) in scratch.output(output).iter().enumerate() {
                total += weights[output * batch + b] * y + 0.5 * y * y;
            }
        }
        total
    }

    #[test]
    fn gradients_of_parameters_and_inputs_match_central_differences() {
        for (shape, batch) in [
            (Shape::new(5, &[7, 6], 2), 9),
            (Shape::new(3, &[], 2), 4),
            (Shape::new(4, &[8], 1), 17),
            (Shape::new(2, &[5, 4, 3], 3), 6),
        ] {
            let parameters = random_vector(1, shape.parameters(), 0.7);
            let input = random_vector(2, batch * shape.input(), 1.0);
            let weights = random_vector(3, batch * shape.output(), 1.0);
            let mut scratch = Scratch::new(&shape, batch + 3);
            scratch.load_input(&input);
            forward(&shape, &parameters, &mut scratch);
            for output in 0..shape.output() {
                for b in 0..batch {
                    scratch.output_delta(output)[b] = weights[output * batch + b] + scratch.output(output)[b];
                }
            }
            let mut gradient = vec![0.0; shape.parameters()];
            backward_to_input(&shape, &parameters, &mut scratch, &mut gradient);
            central_difference(&parameters, &gradient, 1e-7, |p| loss(&shape, p, &input, &weights));
            let d_input: Vec<f64> = (0..batch)
                .flat_map(|b| (0..shape.input()).map(move |f| (b, f)))
                .map(|(b, f)| scratch.delta[f * scratch.row + b])
                .collect();
            central_difference(&input, &d_input, 1e-7, |x| loss(&shape, &parameters, x, &weights));
        }
    }

    #[test]
    fn f32_agrees_with_f64() {
        let shape = Shape::new(23, &[100, 100], 1).with_extra(2);
        let parameters = random_vector(4, shape.parameters(), 0.2);
        let input = random_vector(5, 77 * 23, 1.0);
        let run = |scratch: &mut Scratch<f64>| {
            scratch.load_input(&input);
            forward(&shape, &parameters, scratch);
            let y = scratch.output(0).to_vec();
            scratch.output_delta(0).copy_from_slice(&y);
            let mut gradient = vec![0.0; shape.parameters()];
            backward(&shape, &parameters, scratch, &mut gradient);
            (y, gradient)
        };
        let (y, gradient) = run(&mut Scratch::new(&shape, 77));
        let narrow: Vec<f32> = parameters.iter().map(|&p| p as f32).collect();
        let mut scratch = Scratch::<f32>::new(&shape, 80);
        scratch.load_input(&input.iter().map(|&x| x as f32).collect::<Vec<_>>());
        forward(&shape, &narrow, &mut scratch);
        let y32 = scratch.output(0).to_vec();
        scratch.output_delta(0).copy_from_slice(&y32);
        let mut gradient32 = vec![0.0f32; shape.parameters()];
        backward(&shape, &narrow, &mut scratch, &mut gradient32);
        for (a, b) in y.iter().zip(&y32) {
            assert!((a - f64::from(*b)).abs() < 1e-4, "{a} {b}");
        }
        for (a, b) in gradient.iter().zip(&gradient32) {
            assert!((a - f64::from(*b)).abs() < 1e-3 * (1.0 + a.abs()), "{a} {b}");
        }
        assert_eq!(&gradient32[shape.extra_offset()..], &[0.0, 0.0]);
    }

    #[test]
    fn rows_are_an_odd_number_of_cache_lines() {
        for batch in [1, 16, 17, 64, 512, 2048] {
            let row = row_length(batch);
            assert!(row >= padded(batch) && (row / LANES) % 2 == 1);
        }
    }
}
