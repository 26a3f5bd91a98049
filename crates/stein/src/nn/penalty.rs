//! The gradient penalty: how far the input gradient of a network is from norm 1, and the parameter gradient of that.
//!
//! ```text
//! g(x) = ∇_x y = W_1ᵀ·diag(1-h_1²)·W_2ᵀ·diag(1-h_2²) ⋯ w_L          (y a single output)
//! P    = weight · mean_b (‖g(x_b)‖ - 1)²
//! ```
//!
//! The input gradient is written as explicit steps u_l = v_l ∘ (1-h_l²), v_{l-1} = W_lᵀ·u_l, and those steps are
//! differentiated once by hand: forwards through the chain of u and v, then backwards through the tanh network, where
//! each 1-h_l² adds -2·h_l·(…) to the gradient of h_l. Reference: Gulrajani et al. 2017.

use super::mlp::{Scratch, backward_injected, row_length};
use super::product::{Product, padded};
use super::{Real, Shape};

/// Buffers of the penalty, besides the [`Scratch`] of the network.
pub struct PenaltyScratch<T> {
    /// v_l and u_l for the hidden layers; v_0 is the input gradient.
    v: Vec<Vec<T>>,
    u: Vec<Vec<T>>,
    /// d(P)/d(h_l) through 1-h_l².
    d_h: Vec<Vec<T>>,
    d_u: Vec<T>,
    d_v: Vec<T>,
    transposed: Vec<T>,
    row: usize,
}

impl<T: Real> PenaltyScratch<T> {
    /// Buffers for networks of this shape (one output) and batches up to `capacity`.
    pub fn new(shape: &Shape, capacity: usize) -> Self {
        assert_eq!(
            shape.output(),
            1,
            "the gradient penalty is for networks with one output"
        );
        let row = row_length(capacity);
        let buffers = || {
            (0..shape.layers())
                .map(|l| vec![T::ZERO; shape.layer(l).1 * row])
                .collect::<Vec<_>>()
        };
        let widest = (0..shape.layers()).map(|l| shape.layer(l).1).max().unwrap_or(0);
        PenaltyScratch {
            v: buffers(),
            u: buffers(),
            d_h: buffers(),
            d_u: vec![T::ZERO; widest * row],
            d_v: vec![T::ZERO; widest * row],
            transposed: vec![T::ZERO; padded(capacity) * padded(widest)],
            row,
        }
    }
}

/// Computes ∇_x y for the batch in `scratch` (after [`super::forward`]): `[feature][sample]`, rows `scratch.row` apart.
fn input_gradient<T: Real>(shape: &Shape, parameters: &[T], scratch: &Scratch<T>, penalty: &mut PenaltyScratch<T>) {
    let (row, columns) = (penalty.row, padded(scratch.batch));
    let last = shape.layers() - 1;
    let (_, width) = shape.layer(last);
    let output_weights = &parameters[shape.offset(last)..][..width];
    for (v, &weight) in penalty.v[last].chunks_exact_mut(row).zip(output_weights) {
        v[..columns].fill(weight);
    }
    for layer in (0..last).rev() {
        let hidden = layer + 1;
        let rows_of = |buffer: &[T]| buffer.len() / row;
        for feature in 0..rows_of(&penalty.v[hidden]) {
            let at = feature * row..feature * row + columns;
            let (h, v, u) = (
                &scratch.h[hidden][at.clone()],
                &penalty.v[hidden][at.clone()],
                &mut penalty.u[hidden][at],
            );
            for ((u, &v), &h) in u.iter_mut().zip(v).zip(h) {
                *u = v * (T::ONE - h * h);
            }
        }
        let (rows, depth) = shape.layer(layer);
        T::product(
            Product {
                rows: depth,
                depth: rows,
                columns,
                w: &parameters[shape.offset(layer)..][..rows * depth],
                w_row: 1,
                w_column: depth,
                x: &penalty.u[hidden],
                x_row: row,
                c_row: row,
                accumulate: false,
            },
            &mut penalty.v[layer],
        );
    }
}

/// Adds the gradient of the penalty to `gradient` and returns its value. Before it: the batch (interpolates, say) is the
/// input of `scratch` and [`super::forward`] has run.
pub fn gradient_penalty<T: Real>(
    shape: &Shape,
    parameters: &[T],
    weight: T,
    scratch: &mut Scratch<T>,
    penalty: &mut PenaltyScratch<T>,
    gradient: &mut [T],
) -> T {
    assert_eq!(scratch.row, penalty.row, "both scratches must have the same capacity");
    input_gradient(shape, parameters, scratch, penalty);
    let (row, batch, columns) = (penalty.row, scratch.batch, padded(scratch.batch));
    let last = shape.layers() - 1;

    // φ = weight/B·(‖g‖-1)², dφ/dg = 2·weight/B·(1-1/‖g‖)·g, in place of g in v_0.
    let mut value = T::ZERO;
    let share = weight / T::from_f64(batch as f64);
    for b in 0..columns {
        let features = 0..shape.input();
        let square: T = features
            .clone()
            .map(|f| penalty.v[0][f * row + b] * penalty.v[0][f * row + b])
            .sum();
        let norm = (square + T::from_f64(1e-20)).sqrt();
        let derivative = if b < batch {
            (share + share) * (norm - T::ONE) / norm
        } else {
            T::ZERO
        };
        if b < batch {
            value += share * (norm - T::ONE) * (norm - T::ONE);
        }
        for f in features {
            penalty.v[0][f * row + b] *= derivative;
        }
    }

    // Forwards through the chain: d_v holds d(P)/d(v_{l-1}) and becomes d(P)/d(v_l).
    penalty.d_v[..penalty.v[0].len()].copy_from_slice(&penalty.v[0]);
    for layer in 0..last {
        let (rows, depth) = shape.layer(layer);
        let offset = shape.offset(layer);
        // v_{l-1} = Wᵀ·u_l:  dW += u_l·d_vᵀ,  d_u = W·d_v.
        super::product::transpose(&penalty.d_v, row, depth, batch, &mut penalty.transposed, padded(depth));
        T::product(
            Product {
                rows,
                depth: batch,
                columns: depth,
                w: &penalty.u[layer + 1],
                w_row: row,
                w_column: 1,
                x: &penalty.transposed,
                x_row: padded(depth),
                c_row: depth,
                accumulate: true,
            },
            &mut gradient[offset..][..rows * depth],
        );
        T::product(
            Product {
                rows,
                depth,
                columns,
                w: &parameters[offset..][..rows * depth],
                w_row: depth,
                w_column: 1,
                x: &penalty.d_v,
                x_row: row,
                c_row: row,
                accumulate: false,
            },
            &mut penalty.d_u,
        );
        // u = v ∘ (1-h²):  d_v = d_u ∘ (1-h²),  d_h = -2·h ∘ v ∘ d_u.
        for feature in 0..rows {
            for at in feature * row..feature * row + columns {
                let (h, d_u) = (scratch.h[layer + 1][at], penalty.d_u[at]);
                penalty.d_v[at] = d_u * (T::ONE - h * h);
                penalty.d_h[layer + 1][at] = -(h + h) * penalty.v[layer + 1][at] * d_u;
            }
        }
    }
    // v of the last layer is w_L, the same for every sample.
    let (_, width) = shape.layer(last);
    let output_weights = &mut gradient[shape.offset(last)..][..width];
    for (weight, d_v) in output_weights.iter_mut().zip(penalty.d_v.chunks_exact(row)) {
        *weight += d_v[..batch].iter().copied().sum();
    }

    // Backwards through the network, with what each 1-h² adds; the output itself has no part in the penalty.
    scratch.output_delta(0).fill(T::ZERO);
    backward_injected(shape, parameters, scratch, gradient, |layer, delta| {
        for (delta, d_h) in delta.chunks_exact_mut(row).zip(penalty.d_h[layer].chunks_exact(row)) {
            for (delta, &d_h) in delta[..batch].iter_mut().zip(d_h) {
                *delta += d_h;
            }
        }
    });
    value
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nn::forward;
    use crate::nn::test::{central_difference, random_vector};

    fn value_and_gradient(shape: &Shape, parameters: &[f64], input: &[f64]) -> (f64, Vec<f64>) {
        let batch = input.len() / shape.input();
        let (mut scratch, mut penalty) = (Scratch::new(shape, batch + 2), PenaltyScratch::new(shape, batch + 2));
        scratch.load_input(input);
        forward(shape, parameters, &mut scratch);
        let mut gradient = vec![0.0; shape.parameters()];
        let value = gradient_penalty(shape, parameters, 1.7, &mut scratch, &mut penalty, &mut gradient);
        (value, gradient)
    }

    #[test]
    fn parameter_gradient_matches_central_differences() {
        for (shape, batch) in [
            (Shape::new(4, &[6, 5], 1), 7),
            (Shape::new(3, &[8], 1), 5),
            (Shape::new(2, &[5, 4, 6], 1), 17),
        ] {
            let parameters = random_vector(11, shape.parameters(), 0.8);
            let input = random_vector(12, batch * shape.input(), 1.0);
            let (_, gradient) = value_and_gradient(&shape, &parameters, &input);
            central_difference(&parameters, &gradient, 1e-6, |p| {
                value_and_gradient(&shape, p, &input).0
            });
        }
    }

    #[test]
    fn input_gradient_matches_central_differences() {
        let shape = Shape::new(4, &[6, 5], 1);
        let parameters = random_vector(13, shape.parameters(), 0.8);
        let x = random_vector(14, 4, 1.0);
        let (mut scratch, mut penalty) = (Scratch::new(&shape, 1), PenaltyScratch::new(&shape, 1));
        scratch.load_input(&x);
        forward(&shape, &parameters, &mut scratch);
        input_gradient(&shape, &parameters, &scratch, &mut penalty);
        let gradient: Vec<f64> = (0..4).map(|f| penalty.v[0][f * penalty.row]).collect();
        central_difference(&x, &gradient, 1e-8, |x| {
            let mut scratch = Scratch::new(&shape, 1);
            scratch.load_input(x);
            forward(&shape, &parameters, &mut scratch);
            scratch.output(0)[0]
        });
    }

    #[test]
    fn a_linear_network_of_norm_one_has_no_penalty() {
        let shape = Shape::new(2, &[], 1);
        let parameters = [0.6, 0.8, 0.3];
        let (value, gradient) = value_and_gradient(&shape, &parameters, &[1.0, 2.0, 3.0, 4.0]);
        assert!(value.abs() < 1e-18 && gradient.iter().all(|g| g.abs() < 1e-9));
        let (value, _) = value_and_gradient(&shape, &[3.0, 4.0, 0.0], &[1.0, 2.0]);
        assert!((value - 1.7 * 16.0).abs() < 1e-12);
    }
}
