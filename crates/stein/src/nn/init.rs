//! First weights: rows (or columns) of W orthonormal, times a gain (Saxe et al. 2014). Biases and extra parameters begin at 0.

use rand::Rng;
use rand_distr::{Distribution, StandardNormal};

use super::{Real, Shape};

/// Draws the parameters of one network. `gain` scales the hidden layers, `output_gain` the last one.
pub fn initialise<T: Real>(shape: &Shape, gain: f64, output_gain: f64, random: &mut impl Rng, parameters: &mut [T]) {
    parameters.fill(T::ZERO);
    for layer in 0..shape.layers() {
        let (rows, columns) = shape.layer(layer);
        let gain = if layer + 1 == shape.layers() { output_gain } else { gain };
        let weights = orthogonal(rows, columns, random);
        for (place, weight) in parameters[shape.offset(layer)..].iter_mut().zip(weights) {
            *place = T::from_f64(gain * weight);
        }
    }
}

/// A rows × columns matrix whose shorter side is orthonormal: Gram-Schmidt, twice, on Gaussian vectors.
fn orthogonal(rows: usize, columns: usize, random: &mut impl Rng) -> Vec<f64> {
    let (count, length) = (rows.min(columns), rows.max(columns));
    let mut vectors: Vec<Vec<f64>> = Vec::with_capacity(count);
    while vectors.len() < count {
        let mut vector: Vec<f64> = (0..length).map(|_| StandardNormal.sample(random)).collect();
        // The second pass removes what rounding left of the first.
        for _ in 0..2 {
            for other in &vectors {
                let along: f64 = vector.iter().zip(other).map(|(a, b)| a * b).sum();
                vector.iter_mut().zip(other).for_each(|(a, b)| *a -= along * b);
            }
        }
        let norm = vector.iter().map(|a| a * a).sum::<f64>().sqrt();
        if norm > 1e-8 {
            vector.iter_mut().for_each(|a| *a /= norm);
            vectors.push(vector);
        }
    }
    let mut matrix = vec![0.0; rows * columns];
    for (v, vector) in vectors.iter().enumerate() {
        for (l, &value) in vector.iter().enumerate() {
            let (row, column) = if rows <= columns { (v, l) } else { (l, v) };
            matrix[row * columns + column] = value;
        }
    }
    matrix
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rng::{Purpose, stream};

    #[test]
    fn orthogonal_matrices_are_orthonormal_both_ways() {
        let mut random = stream(1, Purpose::PolicyInit, 0, 0);
        for (rows, columns) in [(8, 8), (3, 12), (12, 3), (64, 4), (1, 64)] {
            let matrix = orthogonal(rows, columns, &mut random);
            let (count, length) = (rows.min(columns), rows.max(columns));
            let at = |v: usize, l: usize| {
                if rows <= columns {
                    matrix[v * columns + l]
                } else {
                    matrix[l * columns + v]
                }
            };
            for a in 0..count {
                for b in 0..count {
                    let dot: f64 = (0..length).map(|l| at(a, l) * at(b, l)).sum();
                    assert!((dot - f64::from(u8::from(a == b))).abs() < 1e-12);
                }
            }
        }
    }

    #[test]
    fn gains_and_zero_biases() {
        let shape = Shape::new(4, &[16], 2).with_extra(2);
        let mut random = stream(1, Purpose::PolicyInit, 0, 0);
        let mut parameters = vec![1.0f64; shape.parameters()];
        initialise(&shape, 2.0, 0.01, &mut random, &mut parameters);
        assert!(parameters[64..80].iter().all(|&bias| bias == 0.0));
        assert!(parameters[shape.extra_offset()..].iter().all(|&extra| extra == 0.0));
        let output = &parameters[shape.offset(1)..][..32];
        assert!((output.iter().map(|w| w * w).sum::<f64>() - 2.0 * 0.01 * 0.01).abs() < 1e-12);
    }
}
