//! The forward pass of one input: small matrix-vector products, for use while an environment is being stepped.

use super::network::Network;
use super::real::{dispatch, rational_tanh};

/// A copy of a network, laid out for one input at a time.
pub struct Single {
    /// (outputs, inputs) of each layer.
    layers: Vec<(usize, usize)>,
    /// Weights transposed to `[in][out]`, so that the inner loop runs along contiguous outputs.
    transposed: Vec<Vec<f32>>,
    biases: Vec<Vec<f32>>,
    layer: [Vec<f32>; 2],
}

impl Single {
    /// Copies a network.
    pub fn new(network: Network<'_, f32>) -> Self {
        let (shape, parameters) = (network.shape, network.parameters);
        let layers: Vec<_> = (0..shape.layers()).map(|layer| shape.layer(layer)).collect();
        let (mut transposed, mut biases) = (Vec::new(), Vec::new());
        for (layer, &(rows, columns)) in layers.iter().enumerate() {
            let weights = &parameters[shape.offset(layer)..];
            let mut turned = vec![0.0; rows * columns];
            for row in 0..rows {
                for column in 0..columns {
                    turned[column * rows + row] = weights[row * columns + column];
                }
            }
            transposed.push(turned);
            biases.push(weights[rows * columns..][..rows].to_vec());
        }
        let widest = layers
            .iter()
            .map(|&(rows, columns)| rows.max(columns))
            .max()
            .unwrap_or(0);
        Single {
            layers,
            transposed,
            biases,
            layer: [vec![0.0; widest], vec![0.0; widest]],
        }
    }

    /// The outputs, each through `activation`.
    pub fn forward(&mut self, input: &[f32], activation: impl Fn(f32) -> f32) -> &[f32] {
        let [from, to] = &mut self.layer;
        from[..input.len()].copy_from_slice(input);
        for (layer, &(rows, columns)) in self.layers.iter().enumerate() {
            let out = &mut to[..rows];
            out.copy_from_slice(&self.biases[layer]);
            let weights = &self.transposed[layer];
            let last = layer + 1 == self.layers.len();
            dispatch(
                #[inline(always)]
                || {
                    for (&x, weights) in from[..columns].iter().zip(weights.chunks_exact(rows)) {
                        for (out, &weight) in out.iter_mut().zip(weights) {
                            *out = weight.mul_add(x, *out);
                        }
                    }
                    if last {
                        out.iter_mut().for_each(|value| *value = activation(*value));
                    } else {
                        out.iter_mut().for_each(|value| *value = rational_tanh(*value));
                    }
                },
            );
            std::mem::swap(from, to);
        }
        let outputs = self.layers.last().map_or(0, |&(rows, _)| rows);
        &self.layer[0][..outputs]
    }
}
