//! Adam, and the gradient-norm clip that goes before it.
//!
//! ```text
//! m ← β1·m + (1-β1)·g,   v ← β2·v + (1-β2)·g²
//! θ ← θ - lr·[ m/(1-β1ᵗ) / (√(v/(1-β2ᵗ)) + ε) + decay·θ ]
//! ```
//!
//! Weight decay is decoupled (Loshchilov & Hutter 2019): decay inside the gradient was seen to break the ratio
//! estimators. Reference: Kingma & Ba 2015.

use serde::{Deserialize, Serialize};

use super::Real;
use super::mlp::sum;
use super::real::dispatch;

/// Settings of [`Adam`], all but the learning rate, which may change at every step.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AdamConfig {
    /// Decay of the first moment.
    pub beta1: f64,
    /// Decay of the second moment.
    pub beta2: f64,
    /// Added to the root of the second moment.
    pub epsilon: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
}

impl Default for AdamConfig {
    fn default() -> Self {
        AdamConfig {
            beta1: 0.9,
            beta2: 0.999,
            epsilon: 1e-5,
            weight_decay: 0.0,
        }
    }
}

/// Moments of one network's parameters.
#[derive(Clone, Debug, PartialEq)]
pub struct Adam<T> {
    /// First moment.
    pub m: Vec<T>,
    /// Second moment.
    pub v: Vec<T>,
    /// Steps taken.
    pub steps: u64,
}

impl<T: Real> Adam<T> {
    /// Zero moments for this many parameters.
    pub fn new(parameters: usize) -> Self {
        Adam {
            m: vec![T::ZERO; parameters],
            v: vec![T::ZERO; parameters],
            steps: 0,
        }
    }

    /// One step down `gradient`.
    pub fn step(&mut self, config: &AdamConfig, learning_rate: f64, parameters: &mut [T], gradient: &[T]) {
        self.steps += 1;
        let power = self.steps.min(i32::MAX as u64) as i32;
        let correct1 = 1.0 - config.beta1.powi(power);
        let correct2 = 1.0 - config.beta2.powi(power);
        let (beta1, beta2) = (T::from_f64(config.beta1), T::from_f64(config.beta2));
        let (rest1, rest2) = (T::from_f64(1.0 - config.beta1), T::from_f64(1.0 - config.beta2));
        let rate = T::from_f64(learning_rate / correct1);
        let scale = T::from_f64(1.0 / correct2.sqrt());
        let epsilon = T::from_f64(config.epsilon);
        let keep = T::from_f64(1.0 - learning_rate * config.weight_decay);
        let (m, v) = (&mut self.m[..], &mut self.v[..]);
        dispatch(
            #[inline(always)]
            || {
                for (((theta, &g), m), v) in parameters.iter_mut().zip(gradient).zip(m.iter_mut()).zip(v.iter_mut()) {
                    *m = beta1 * *m + rest1 * g;
                    *v = beta2 * *v + rest2 * g * g;
                    *theta = keep * *theta - rate * *m / (v.sqrt() * scale + epsilon);
                }
            },
        );
    }
}

/// Scales `gradient` down to norm `limit` if it is longer; returns its norm before.
pub fn clip_norm<T: Real>(gradient: &mut [T], limit: f64) -> f64 {
    let norm = norm(gradient);
    if norm > limit {
        let scale = T::from_f64(limit / norm);
        gradient.iter_mut().for_each(|g| *g *= scale);
    }
    norm
}

/// Euclidean norm.
pub fn norm<T: Real>(values: &[T]) -> f64 {
    const BLOCK: usize = 256;
    let mut squares = [T::ZERO; BLOCK];
    let mut total = 0.0;
    for block in values.chunks(BLOCK) {
        for (square, &value) in squares.iter_mut().zip(block) {
            *square = value * value;
        }
        total += sum(&squares[..block.len()]).to_f64();
    }
    total.sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_steps_by_hand() {
        let config = AdamConfig {
            epsilon: 1e-8,
            weight_decay: 0.1,
            ..Default::default()
        };
        let mut adam = Adam::<f64>::new(1);
        let mut theta = [2.0];
        adam.step(&config, 0.5, &mut theta, &[3.0]);
        // The first step of Adam is the sign of the gradient; decay takes 0.5·0.1·2.
        assert!((theta[0] - (2.0 - 0.1 - 0.5)).abs() < 1e-7, "{theta:?}");
        let before = theta[0];
        adam.step(&config, 0.5, &mut theta, &[-1.0]);
        let m = (0.9 * 0.3 - 0.1) / (1.0 - 0.81);
        let v: f64 = (0.999 * 0.009 + 0.001) / (1.0 - 0.999f64.powi(2));
        assert!((theta[0] - (before - 0.05 * before - 0.5 * m / (v.sqrt() + 1e-8))).abs() < 1e-7);
        assert_eq!(adam.steps, 2);
    }

    #[test]
    fn clips_only_what_is_too_long() {
        let mut gradient: Vec<f32> = vec![3.0, 4.0];
        assert_eq!(clip_norm(&mut gradient, 10.0), 5.0);
        assert_eq!(gradient, [3.0, 4.0]);
        assert_eq!(clip_norm(&mut gradient, 1.0), 5.0);
        assert!((norm(&gradient) - 1.0).abs() < 1e-6);
        let long = vec![1.0f64; 1000];
        assert!((norm(&long) - 1000f64.sqrt()).abs() < 1e-9);
    }
}
