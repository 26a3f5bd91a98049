//! Behaviour at a resolution: φ(s) seen through normal noise, so that differences below it do not count.
//!
//! ```text
//! φ̃ = φ + σ·ε,  ε ~ N(0, I)              ratios ζ̃ and divergences are of the distributions of φ̃
//! ∇D(ρ̃_j‖ρ̃_i) = ∫ ∇ρ_i·r̃,   r̃(φ) = E_ε[r(ζ̃(φ + σ·ε))]
//! ```
//!
//! Without it whoever stands still at another place of a millimetre is as different as can be: an f-divergence knows no
//! distances. Networks learn from freshly blurred samples; for rewards the expectation is a mean over [`COPIES`] points of
//! ε that all samples share, so that r̃ is a smooth function of φ without noise of its own.

use rand::seq::SliceRandom;
use rand_distr::{Distribution, StandardNormal};

use super::Transitions;
use crate::rng::{Purpose, stream};

/// Points of ε in the mean.
pub const COPIES: usize = 5;

/// The middles of five equally likely parts of the normal distribution, scaled to variance 1.
const POINTS: [f32; COPIES] = [-1.463366, -0.598798, 0.0, 0.598798, 1.463366];

/// Adds noise to the behaviour of policy i's samples.
pub fn blur(data: &mut Transitions, resolution: f64, seed: u64, i: usize, round: usize) {
    let mut random = stream(seed, Purpose::Behaviour, i, round);
    for x in &mut data.behaviour {
        let epsilon: f64 = StandardNormal.sample(&mut random);
        *x += (resolution * epsilon) as f32;
    }
}

/// The same samples displaced by each of the points, copy after copy; `width` is that of φ. Where φ has several entries, each
/// takes the points in an order of its own (a Latin hypercube), new in every round and the same for all policies.
pub fn copies(data: &Transitions, width: usize, resolution: f64, seed: u64, round: usize) -> Transitions {
    let mut random = stream(seed, Purpose::Behaviour, usize::MAX, round);
    let orders: Vec<[f32; COPIES]> = (0..width)
        .map(|_| {
            let mut points = POINTS;
            points.shuffle(&mut random);
            points
        })
        .collect();
    let mut all = Transitions {
        mass: data.mass,
        ..Transitions::default()
    };
    for copy in 0..COPIES {
        let displaced = data.behaviour.chunks_exact(width).flat_map(|row| {
            let each = row.iter().zip(&orders);
            each.map(move |(x, points)| x + resolution as f32 * points[copy])
        });
        all.behaviour.extend(displaced);
        all.weights.extend_from_slice(&data.weights);
    }
    all
}

/// The mean over the copies of what was computed of each.
pub fn average(values: &[f32]) -> Vec<f32> {
    let samples = values.len() / COPIES;
    let mean = |t: usize| (0..COPIES).map(|copy| values[copy * samples + t]).sum::<f32>() / COPIES as f32;
    (0..samples).map(mean).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn data() -> Transitions {
        Transitions {
            behaviour: vec![1.0, -2.0, 3.0, 5.0, 0.0, 0.5],
            weights: vec![1.0, 0.5, 0.25],
            ..Transitions::default()
        }
    }

    #[test]
    fn copies_have_the_mean_and_the_variance_of_the_noise() {
        let (data, resolution) = (data(), 0.3);
        let copies = copies(&data, 2, resolution, 1, 4);
        assert_eq!(copies.len(), COPIES * data.len());
        let means = average(&copies.behaviour);
        for (mean, exact) in means.iter().zip(&data.behaviour) {
            assert!((mean - exact).abs() < 1e-5, "{mean} {exact}");
        }
        let squares: Vec<f32> = copies.behaviour.iter().map(|x| x * x).collect();
        for (square, mean) in average(&squares).iter().zip(&means) {
            let variance = square - mean * mean;
            assert!((variance / 0.09 - 1.0).abs() < 0.01, "{variance}");
        }
        assert_eq!(average(&copies.weights), data.weights);
    }

    #[test]
    fn blurred_samples_are_off_by_the_resolution() {
        let exact = Transitions {
            behaviour: vec![0.0; 20_000],
            ..Transitions::default()
        };
        let mut seen = exact.clone();
        blur(&mut seen, 0.3, 1, 0, 0);
        let variance = seen.behaviour.iter().map(|x| x * x).sum::<f32>() / 20_000.0;
        assert!((variance / 0.09 - 1.0).abs() < 0.05, "{variance}");
        let mut other = exact;
        blur(&mut other, 0.3, 1, 1, 0);
        assert_ne!(seen, other);
    }
}
