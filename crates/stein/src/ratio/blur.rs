//! Behaviour at a resolution: φ(s) seen through normal noise, so that differences below it do not count.
//!
//! ```text
//! φ̃ = φ + σ·ε,  ε ~ N(0, I)              ratios ζ̃ and divergences are of the distributions of φ̃
//! ∇D(ρ̃_j‖ρ̃_i) = ∫ ∇ρ_i·r̃,   r̃(φ) = E_ε[r(ζ̃(φ + σ·ε))]
//! ```
//!
//! Without it whoever stands still at another place of a millimetre is as different as can be: an f-divergence knows no
//! distances. Networks learn from freshly blurred samples; for rewards the expectation is a mean over [`COPIES`] points of
//! ε. Of a single signal they are the same five quantiles for all samples, so that r̃ is a smooth function of φ without
//! noise of its own. Of several, five points cannot stand for a normal distribution, and an error that all samples share
//! would be one of D: there every sample has points of its own, 0 and two pairs ±ε.

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

/// The same samples displaced by each of the points, copy after copy; `width` is that of φ. `i` numbers the random stream.
pub fn copies(data: &Transitions, width: usize, resolution: f64, seed: u64, i: usize, round: usize) -> Transitions {
    let (size, resolution) = (data.behaviour.len(), resolution as f32);
    let mut all = Transitions {
        behaviour: Vec::with_capacity(COPIES * size),
        mass: data.mass,
        ..Transitions::default()
    };
    if width == 1 {
        for point in POINTS {
            all.behaviour
                .extend(data.behaviour.iter().map(|x| x + resolution * point));
        }
    } else {
        let mut random = stream(seed, Purpose::Behaviour, i, round);
        // Two pairs and a zero have 4/5 of the variance of ε.
        let scale = resolution * 1.25f32.sqrt();
        all.behaviour.extend_from_slice(&data.behaviour);
        for _ in 0..COPIES / 2 {
            let epsilons: Vec<f32> = (0..size).map(|_| StandardNormal.sample(&mut random)).collect();
            for sign in [scale, -scale] {
                let each = data.behaviour.iter().zip(&epsilons);
                all.behaviour.extend(each.map(|(x, epsilon)| x + sign * epsilon));
            }
        }
    }
    for _ in 0..COPIES {
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
    use crate::divergence::{JensenShannon, value};

    #[test]
    fn copies_have_the_mean_and_the_variance_of_the_noise() {
        let samples = 4000;
        for width in [1, 2] {
            let data = Transitions {
                behaviour: (0..samples * width).map(|k| (k % 7) as f32).collect(),
                weights: (0..samples).map(|k| (k % 3) as f32).collect(),
                ..Transitions::default()
            };
            let copies = copies(&data, width, 0.3, 1, 0, 4);
            assert_eq!(copies.len(), COPIES * samples);
            for (mean, exact) in average(&copies.behaviour).iter().zip(&data.behaviour) {
                assert!((mean - exact).abs() < 1e-5, "{mean} {exact}");
            }
            assert_eq!(average(&copies.weights), data.weights);
            let exact = data.behaviour.iter().cycle();
            let squares = copies.behaviour.iter().zip(exact).map(|(x, exact)| (x - exact).powi(2));
            let variance = squares.sum::<f32>() / copies.behaviour.len() as f32;
            assert!((variance / 0.09 - 1.0).abs() < 0.03, "{width}: {variance}");
        }
    }

    #[test]
    fn the_divergence_of_narrow_clusters_is_that_of_the_noise_in_every_round() {
        // Two policies at rest in two places of the plane, 2σ apart: D_JS of N(0, σ²I) and N(δ, σ²I), with the exact ratio.
        let (sigma, delta, samples) = (0.5f32, [0.7f32, 0.714], 400);
        let at = |place: [f32; 2]| Transitions {
            behaviour: (0..samples).flat_map(|_| place).collect(),
            weights: vec![1.0; samples],
            ..Transitions::default()
        };
        let log_zeta = |data: &Transitions| -> Vec<f32> {
            let square = |x: &[f32], place: [f32; 2]| (x[0] - place[0]).powi(2) + (x[1] - place[1]).powi(2);
            let rows = data.behaviour.chunks_exact(2);
            rows.map(|x| (square(x, [0.0; 2]) - square(x, delta)) / (2.0 * sigma * sigma))
                .collect()
        };
        let js = JensenShannon;
        for round in 0..20 {
            let seen = [at([0.0; 2]), at(delta)].map(|data| copies(&data, 2, f64::from(sigma), 1, 0, round));
            let [on_i, on_j] = [0, 1].map(|k| log_zeta(&seen[k]));
            let found = value(&js, 20.0, (&on_i, &seen[0].weights), (&on_j, &seen[1].weights));
            // By numerical integration in the direction of δ: two normal distributions of std 1, 2 apart.
            assert!((found - 0.3368).abs() < 0.03, "round {round}: {found}");
        }
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
