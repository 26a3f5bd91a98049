//! Tests of kernels: derivatives, positive definiteness, bandwidths, and how far forces reach.

use rand::RngExt;

use super::*;
use crate::divergence::{Divergence, DivergenceChoice, LOG_CLAMP, value};
use crate::rng::{Purpose, Stream, stream};

/// Eigenvalues of a symmetric matrix by cyclic Jacobi rotations.
fn eigenvalues(matrix: &[f64], n: usize) -> Vec<f64> {
    let mut a = matrix.to_vec();
    for _ in 0..100 {
        for p in 0..n {
            for q in p + 1..n {
                let angle = 0.5 * (2.0 * a[p * n + q]).atan2(a[q * n + q] - a[p * n + p]);
                let (s, c) = angle.sin_cos();
                for k in 0..n {
                    let (x, y) = (a[k * n + p], a[k * n + q]);
                    (a[k * n + p], a[k * n + q]) = (c * x - s * y, s * x + c * y);
                }
                for k in 0..n {
                    let (x, y) = (a[p * n + k], a[q * n + k]);
                    (a[p * n + k], a[q * n + k]) = (c * x - s * y, s * x + c * y);
                }
            }
        }
        let off: f64 = (0..n * n).filter(|k| k / n != k % n).map(|k| a[k] * a[k]).sum();
        if off < 1e-28 {
            return (0..n).map(|i| a[i * n + i]).collect();
        }
    }
    panic!("Jacobi rotations did not converge");
}

/// Smallest eigenvalue of the symmetric part (K + Kᵀ)/2, whose sign is that of the least xᵀKx even for a kernel
/// that is not symmetric.
fn smallest_eigenvalue(kernel: &[f64], n: usize) -> f64 {
    let symmetric: Vec<f64> = (0..n * n)
        .map(|k| 0.5 * (kernel[k] + kernel[k % n * n + k / n]))
        .collect();
    eigenvalues(&symmetric, n).into_iter().fold(f64::INFINITY, f64::min)
}

/// The kernel of exact divergences between distributions: D_ij = Σ ρ_i·f(ρ_j/ρ_i).
fn exact_kernel(rho: &[Vec<f64>], divergence: &dyn Divergence, temperature: f64) -> Vec<f64> {
    let mut d = Vec::new();
    for rho_i in rho {
        for rho_j in rho {
            d.push(rho_i.iter().zip(rho_j).map(|(i, j)| i * divergence.f(j / i)).sum());
        }
    }
    divergence_kernel(&d, rho.len(), divergence, temperature, 1.0)
}

/// Distributions over `outcomes`; the larger the spread, the closer to disjoint.
fn random_distributions(random: &mut Stream, n: usize, outcomes: usize, spread: f64) -> Vec<Vec<f64>> {
    let mut distribution = || {
        let raw: Vec<f64> = (0..outcomes)
            .map(|_| (spread * (random.random::<f64>() - 0.5)).exp())
            .collect();
        let total: f64 = raw.iter().sum();
        raw.iter().map(|x| x / total).collect()
    };
    (0..n).map(|_| distribution()).collect()
}

/// Three coins, given by the probability of heads.
fn coins(heads: [f64; 3]) -> Vec<Vec<f64>> {
    heads.iter().map(|&p| vec![p, 1.0 - p]).collect()
}

#[test]
fn slopes_match_central_differences() {
    let (js, temperature, h) = (DivergenceChoice::named("js").unwrap(), 0.5, 1e-6);
    for power in [1.0, 0.5, 0.3] {
        for d in [0.02, 0.1, 0.6] {
            let kernel = |d: f64| divergence_kernel(&[0.0, d, d, 0.0], 2, js.get(), temperature, power)[1];
            let numeric = -temperature * (kernel(d + h) - kernel(d - h)) / (2.0 * h);
            let written = divergence_derivatives(&[0.0, d, d, 0.0], 2, js.get(), temperature, power);
            assert!(
                (numeric - written[1]).abs() < 1e-6,
                "{power} {d}: {numeric} {written:?}"
            );
            assert_eq!(written[0], 0.0);
        }
        // Bounded between similar policies; with p = 1 it is the kernel itself.
        let least = divergence_derivatives(&[0.0, -0.1, 0.1, 0.0], 2, js.get(), temperature, power)[1];
        assert!(least.is_finite() && (power < 1.0 || least == 1.0), "{power}: {least}");
    }
}

#[test]
fn the_eigenvalue_routine_knows_a_matrix_with_known_eigenvalues() {
    // 2 on the diagonal, -1 next to it: eigenvalues 2 - 2·cos(kπ/5).
    let n = 4usize;
    let matrix: Vec<f64> = (0..n * n)
        .map(|k| match (k / n).abs_diff(k % n) {
            0 => 2.0,
            1 => -1.0,
            _ => 0.0,
        })
        .collect();
    let mut found = eigenvalues(&matrix, n);
    found.sort_by(f64::total_cmp);
    for (k, value) in found.iter().enumerate() {
        let expected = 2.0 - 2.0 * ((k + 1) as f64 * std::f64::consts::PI / 5.0).cos();
        assert!((value - expected).abs() < 1e-12, "{value} {expected}");
    }
}

#[test]
fn kernels_said_to_be_positive_definite_are_and_the_others_are_not() {
    for divergence in DivergenceChoice::all() {
        let name = divergence.name();
        let divergence = divergence.get();
        let temperature = divergence.temperature();
        if divergence.positive_definite() {
            let mut random = stream(7, Purpose::Rollout, 0, 0);
            for trial in 0..400 {
                let (n, outcomes) = (2 + trial % 9, 2 + trial % 5);
                let rho = random_distributions(&mut random, n, outcomes, [1.0, 6.0, 20.0][trial % 3]);
                for temperature in [0.1 * temperature, temperature, 10.0 * temperature] {
                    let least = smallest_eigenvalue(&exact_kernel(&rho, divergence, temperature), n);
                    assert!(least > -1e-10, "{name}: {least} on {rho:?} at T = {temperature}");
                }
            }
        } else {
            let least = smallest_eigenvalue(&exact_kernel(&coins([0.08, 0.003, 1e-6]), divergence, temperature), 3);
            assert!(least < -0.03, "{name}: {least}");
            let least = smallest_eigenvalue(&exact_kernel(&coins([0.076, 0.022, 0.004]), divergence, temperature), 3);
            assert!(least < -0.002, "{name}, ratios below 20: {least}");
        }
    }
}

#[test]
fn disjoint_policies_give_a_quarter_where_the_divergence_is_bounded() {
    let tiny = 1e-12;
    let rho = [vec![1.0 - tiny, tiny], vec![tiny, 1.0 - tiny]];
    for name in ["js", "hellinger", "triangular", "tv"] {
        let divergence = DivergenceChoice::named(name).unwrap();
        let kernel = exact_kernel(&rho, divergence.get(), divergence.temperature());
        assert!((kernel[1] - 0.25).abs() < 0.002, "{name}: {}", kernel[1]);
    }
}

#[test]
fn directions_are_averaged_only_where_the_divergence_is_symmetric() {
    let d = [9.0, 0.25, 0.5, 9.0];
    let js = divergence_kernel(&d, 2, DivergenceChoice::named("js").unwrap().get(), 0.5, 1.0);
    assert_eq!(js, [1.0, (-0.75f64).exp(), (-0.75f64).exp(), 1.0]);
    let kl = divergence_kernel(&d, 2, DivergenceChoice::named("kl").unwrap().get(), 2.0, 1.0);
    assert_eq!(kl, [1.0, (-0.125f64).exp(), (-0.25f64).exp(), 1.0]);
}

#[test]
fn negative_estimates_count_as_zero_after_averaging_and_nan_is_not_hidden() {
    let (js, kl) = (
        DivergenceChoice::named("js").unwrap(),
        DivergenceChoice::named("kl").unwrap(),
    );
    assert_eq!(
        divergence_kernel(&[0.0, -0.3, 0.1, 0.0], 2, js.get(), 1.0, 1.0),
        [1.0; 4]
    );
    let averaged = divergence_kernel(&[0.0, -0.1, 0.3, 0.0], 2, js.get(), 1.0, 1.0);
    assert!((averaged[1] - (-0.1f64).exp()).abs() < 1e-15);
    assert_eq!(
        divergence_kernel(&[0.0, -0.1, 0.3, 0.0], 2, kl.get(), 1.0, 1.0),
        [1.0, 1.0, (-0.3f64).exp(), 1.0]
    );
    assert!(divergence_kernel(&[0.0, f64::NAN, 0.1, 0.0], 2, js.get(), 1.0, 1.0)[1].is_nan());
    assert_eq!(
        divergence_kernel(&[0.0, f64::INFINITY, 0.0, 0.0], 2, kl.get(), 1.0, 1.0)[1],
        0.0
    );
}

#[test]
fn estimated_values_of_sampled_policies_make_the_kernel_of_the_exact_ones() {
    let rho = [vec![0.5f64, 0.3, 0.2], vec![0.1, 0.6, 0.3]];
    let log_zeta =
        |of: usize, over: usize| -> Vec<f32> { (0..3).map(|x| (rho[of][x] / rho[over][x]).ln() as f32).collect() };
    let weights = rho
        .each_ref()
        .map(|rho| rho.iter().map(|p| *p as f32).collect::<Vec<_>>());
    for divergence in DivergenceChoice::all() {
        let name = divergence.name();
        let divergence = divergence.get();
        let d = [(0, 0), (0, 1), (1, 0), (1, 1)].map(|(i, j)| {
            let zeta = log_zeta(j, i);
            value(
                divergence,
                crate::divergence::LOG_CLAMP,
                (&zeta, &weights[i]),
                (&zeta, &weights[j]),
            )
        });
        let kernel = divergence_kernel(&d, 2, divergence, 0.7, 1.0);
        for (found, exact) in kernel.iter().zip(exact_kernel(&rho, divergence, 0.7)) {
            assert!((found - exact).abs() < 1e-6, "{name}: {found} {exact}");
        }
    }
}

#[test]
fn the_bandwidth_is_the_squared_median_distance_over_log_n_plus_1() {
    // Distances 1, 2, 3, 4, 6, 7: the median lies between the two in the middle.
    let (kernel, h) = rbf_kernel(&squares(&[0.0, 1.0, 3.0, 7.0]), 4);
    assert!((h - 3.5 * 3.5 / 5f64.ln()).abs() < 1e-12);
    assert!((kernel[3] - (-49.0 / h).exp()).abs() < 1e-12);
    assert!((kernel[4] - (-1.0 / h).exp()).abs() < 1e-12);
    assert!((0..4).all(|i| kernel[i * 5] == 1.0));
    // Two policies: the median is their distance, so k = 1/(n+1).
    let (kernel, h) = rbf_kernel(&squares(&[0.0, 5.0]), 2);
    assert!((h - 25.0 / 3f64.ln()).abs() < 1e-12);
    assert!((kernel[1] - 1.0 / 3.0).abs() < 1e-12);
}

#[test]
fn equal_policies_and_a_single_one_have_a_finite_kernel() {
    for n in [1, 3] {
        let (kernel, h) = rbf_kernel(&vec![0.0; n * n], n);
        assert!(h > 0.0);
        assert_eq!(kernel, vec![1.0; n * n]);
    }
}

/// Squared distances of points on a line.
fn squares(points: &[f64]) -> Vec<f64> {
    let square = |a: &f64| points.iter().map(|b| (a - b).powi(2)).collect::<Vec<_>>();
    points.iter().flat_map(square).collect()
}

/// |dk/dδ| of two normal behaviours whose means differ by δ: the repulsion between them, in units of ω.
#[test]
fn how_far_a_force_reaches() {
    let js = DivergenceChoice::named("js").unwrap();
    let kernel = |delta: f64, resolution: f64, power: f64| {
        let std = f64::hypot(0.35, resolution);
        // ζ_ji = ρ_j/ρ_i on a grid, under i's density (mean 0) and j's (mean δ).
        let grid: Vec<f64> = (0..4000).map(|k| -8.0 + 20.0 * (k as f64 + 0.5) / 4000.0).collect();
        let density = |mean: f64| -> Vec<f32> {
            let of = |x: &f64| (-0.5 * ((x - mean) / std).powi(2)).exp() as f32;
            grid.iter().map(of).collect()
        };
        let logs: Vec<f32> = grid
            .iter()
            .map(|x| ((x * delta - 0.5 * delta * delta) / (std * std)) as f32)
            .collect();
        let d = value(js.get(), LOG_CLAMP, (&logs, &density(0.0)), (&logs, &density(delta)));
        divergence_kernel(&[0.0, d, d, 0.0], 2, js.get(), 0.5, power)[1]
    };
    let force = |delta: f64, resolution: f64, power: f64| {
        (kernel(delta - 0.02, resolution, power) - kernel(delta + 0.02, resolution, power)) / 0.04
    };
    let deltas = [0.1, 0.25, 0.5, 0.75, 1.0, 1.5, 2.0];
    for (power, resolution, forces) in [
        (0.5, 0.25, [1.03, 0.82, 0.54, 0.34, 0.20, 0.07, 0.02]),
        (0.5, 0.5, [0.75, 0.65, 0.49, 0.36, 0.26, 0.13, 0.06]),
        (0.5, 1.0, [0.45, 0.42, 0.36, 0.31, 0.26, 0.18, 0.12]),
        (1.0, 0.25, [0.26, 0.57, 0.75, 0.60, 0.40, 0.14, 0.04]),
        (1.0, 0.5, [0.13, 0.31, 0.49, 0.52, 0.45, 0.25, 0.12]),
    ] {
        for (delta, expected) in deltas.into_iter().zip(forces) {
            let found = force(delta, resolution, power);
            assert!(
                (found - expected).abs() < 0.01,
                "p {power}, σ {resolution}, δ {delta}: {found}"
            );
        }
    }
}
