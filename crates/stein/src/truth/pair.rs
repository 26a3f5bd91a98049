//! Random linear-Gaussian problems, to test ratio estimators on.
//!
//! A damped rotation in the plane, driven by one action that moves the state enough for π_a/π_b alone to miss the
//! bound. Episodes start in a small region away from where they end. The policies differ in gain and offset, which are
//! scaled about their means until the Jensen-Shannon divergence is in range.

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use super::dense::Matrix;
use super::linear_gaussian::{GaussianOccupancy, LinearGaussian, LinearGaussianPolicy};
use super::{Use, stream};
use crate::error::{Error, Result};
use crate::rng::Stream;

/// The range of the estimated D_JS: within [.1, .3] by more than four standard errors, and at the low end, where large
/// ratios are rare.
const JENSEN_SHANNON: std::ops::RangeInclusive<f64> = 0.14..=0.16;

/// Samples of each policy for that estimate.
const SAMPLES: usize = 4000;

/// The ratio that at most 5 % of the samples of either policy may exceed, in either direction. Two shifted Gaussians at
/// this divergence have 2 %.
const LARGE_RATIO: f64 = 20.0;

/// Problems tried before giving up.
const ATTEMPTS: usize = 1000;

/// Number of rescalings of a problem's policies before the next problem is tried.
const MOVES: usize = 8;

/// A system, two policies and their exact occupancies.
#[derive(Clone, Debug)]
pub struct GaussianPair {
    /// The system: two-dimensional states, one-dimensional actions, γ = .95.
    pub system: LinearGaussian,
    /// The policies a and b.
    pub policies: [LinearGaussianPolicy; 2],
    /// Their occupancies ρ_a and ρ_b.
    pub occupancies: [GaussianOccupancy; 2],
}

/// The problem of a seed: stable under both policies, D_JS in [.1, .3].
pub fn pair(seed: u64) -> Result<GaussianPair> {
    for number in 0..ATTEMPTS {
        if let Some(pair) = attempt(&mut stream(seed, Use::Problem, number), seed)? {
            return Ok(pair);
        }
    }
    Err(Error::failed(format!(
        "seed {seed} gives no linear-Gaussian problem within the bounds; choose another seed"
    )))
}

fn attempt(random: &mut Stream, seed: u64) -> Result<Option<GaussianPair>> {
    let system = system(random);
    let mut policies = [policy(random, 1.0), policy(random, -1.0)];
    for _ in 0..MOVES {
        // An unstable system has no meaningful occupancy.
        if !policies.iter().all(|policy| is_stable(system.closed_loop(policy))) {
            break;
        }
        let [a, b] = policies.each_ref().map(|policy| system.occupancy(policy));
        let occupancies = [a?, b?];
        let divergence = occupancies[0].jensen_shannon(&occupancies[1], SAMPLES, seed).mean;
        if !JENSEN_SHANNON.contains(&divergence) {
            // D_JS grows with the square of a small difference.
            let wanted = 0.5 * (JENSEN_SHANNON.start() + JENSEN_SHANNON.end());
            scale_difference(&mut policies, (wanted / divergence).sqrt().clamp(0.5, 2.0));
        } else if ratios_are_moderate(&occupancies, random) {
            return Ok(Some(GaussianPair {
                system,
                policies,
                occupancies,
            }));
        } else {
            break;
        }
    }
    Ok(None)
}

fn system(random: &mut Stream) -> LinearGaussian {
    let (angle, radius) = (random.random_range(0.2..0.6f64), random.random_range(0.3..0.5));
    let (sine, cosine) = (radius * angle.sin(), radius * angle.cos());
    let mut direction = |length: f64| {
        let angle = random.random_range(0.0..std::f64::consts::TAU);
        vec![length * angle.cos(), length * angle.sin()]
    };
    LinearGaussian {
        f: Matrix::new(2, 2, vec![cosine, -sine, sine, cosine]),
        g: Matrix::new(2, 1, direction(0.5)),
        q: Matrix::scaled_identity(2, 0.09),
        m0: direction(1.2),
        p0: Matrix::scaled_identity(2, 0.04),
        gamma: 0.95,
    }
}

/// A policy with an offset to one side. Offsets make most of the difference, and noise none: different gains give
/// ratios near 1 in some states and huge ones in others, and different noise gives huge ones in the tails.
fn policy(random: &mut Stream, side: f64) -> LinearGaussianPolicy {
    let mut gain = || 0.1 * <StandardNormal as Distribution<f64>>::sample(&StandardNormal, random);
    LinearGaussianPolicy {
        k: Matrix::new(1, 2, vec![gain(), gain()]),
        k0: vec![side * random.random_range(0.1..0.4)],
        r: Matrix::scaled_identity(1, 0.25),
    }
}

/// Scales the difference of gains and offsets; their means are unchanged.
fn scale_difference([a, b]: &mut [LinearGaussianPolicy; 2], factor: f64) {
    let gains = a.k.entries.iter_mut().zip(&mut b.k.entries);
    for (a, b) in gains.chain(a.k0.iter_mut().zip(&mut b.k0)) {
        let (mean, half) = (0.5 * (*a + *b), 0.5 * factor * (*a - *b));
        (*a, *b) = (mean + half, mean - half);
    }
}

/// Whether all eigenvalues are well inside the unit circle: the 256th power has nearly vanished.
fn is_stable(mut matrix: Matrix) -> bool {
    for _ in 0..8 {
        matrix = matrix.times(&matrix);
    }
    matrix.entries.iter().all(|entry| entry.abs() < 1e-3)
}

fn ratios_are_moderate([a, b]: &[GaussianOccupancy; 2], random: &mut Stream) -> bool {
    [(a, b), (b, a)].into_iter().all(|(p, q)| {
        let large = (0..SAMPLES).filter(|_| {
            let (state, action) = p.sample(random);
            p.log_zeta(q, &state, &action).abs() > LARGE_RATIO.ln()
        });
        large.count() * 100 <= 5 * SAMPLES
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verify::score::{RANK, rank_correlation};

    #[test]
    fn every_pair_is_stable_and_within_the_bounds() {
        for seed in 0..10 {
            let GaussianPair {
                system,
                policies,
                occupancies: [a, b],
            } = pair(seed).unwrap();
            let divergence = a.jensen_shannon(&b, 20_000, 100 + seed);
            assert!(divergence.error < 0.003);
            assert!((0.1..=0.3).contains(&divergence.mean), "{seed}: {divergence:?}");
            assert_eq!(system.gamma, 0.95);
            for policy in &policies {
                // The spectral radius of a 2 × 2 matrix from its trace and determinant.
                let m = system.closed_loop(policy).entries;
                let (trace, determinant) = (m[0] + m[3], m[0] * m[3] - m[1] * m[2]);
                let root = (trace * trace / 4.0 - determinant).max(0.0).sqrt();
                let radius = (trace.abs() / 2.0 + root).max(determinant.abs().sqrt());
                assert!(radius < 0.98, "{seed}: {radius}");
            }
        }
    }

    #[test]
    fn the_ratio_of_the_policies_alone_misses_the_bound() {
        for seed in 1..=10 {
            let pair = pair(seed).unwrap();
            let [a, b] = &pair.occupancies;
            let mut random = stream(seed, Use::Data, 9);
            let log_pi = |policy: &LinearGaussianPolicy, state: &[f64], action: &[f64]| {
                let mean = policy.k0[0] + policy.k.apply(state)[0];
                -(action[0] - mean).powi(2) / (2.0 * policy.r.entries[0])
            };
            let both = (0..2000).map(|_| {
                let (state, action) = b.sample(&mut random);
                let [pi_a, pi_b] = pair.policies.each_ref().map(|policy| log_pi(policy, &state, &action));
                (a.log_zeta(b, &state, &action), pi_a - pi_b)
            });
            let (exact, policies): (Vec<f64>, Vec<f64>) = both.unzip();
            let rank = rank_correlation(&exact, &policies);
            assert!(rank < RANK - 0.03, "seed {seed}: {rank}");
        }
    }

    #[test]
    fn a_seed_gives_one_pair() {
        let (first, again, other) = (pair(1).unwrap(), pair(1).unwrap(), pair(2).unwrap());
        assert_eq!((&first.system, &first.policies), (&again.system, &again.policies));
        assert_ne!(first.policies, other.policies);
    }

    #[test]
    fn stability_is_told() {
        assert!(is_stable(Matrix::new(2, 2, vec![0.9, 5.0, 0.0, 0.9])));
        assert!(!is_stable(Matrix::new(2, 2, vec![1.01, 0.0, 0.0, 0.1])));
        assert!(!is_stable(Matrix::new(2, 2, vec![0.0, -1.0, 1.0, 0.0])));
    }
}
