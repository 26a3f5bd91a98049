//! Kernels between the policies of an ensemble.
//!
//! ```text
//! k_ij = exp(-(D_ij/T)^p)                                           Equation 3 with p = 1: distance of behaviours
//! -T·∂k_ij/∂D_ij = k_ij·p·(D_ij/T)^(p-1)                            its diversity-enforcing term, in units of 1/T
//! k_ij = exp(-‖θ_i - θ_j‖²/h),   h = median²/log(n+1)               Equation 2 with RBF: distance of parameters
//! Σ_j ∇_{θ_j} k(θ_j, θ_i) = Σ_j (2/h)·(θ_i - θ_j)·k_ij              its diversity-enforcing term
//! ```
//!
//! With p = ½ the kernel is one of the distance √D (of JS it is a metric: Endres & Schindelin 2003), whose slope does not
//! vanish between policies that are alike; with p = 1 it is the paper's. If exp(-D/T) is positive definite for every T, so is
//! exp(-(D/T)^p) for p in (0, 1] (Schoenberg 1938).
//!
//! The median is that of the distances between pairs of different policies; it counts as a constant in the gradient.
//! References: Gangwani, Peng, Zhou 2020; Liu, Ramachandran, Liu, Peng 2017 (SVPG).

use crate::divergence::Divergence;

/// The kernel matrix `[n][n]` of estimated divergences `d`, where `d[i·n + j]` is D_ij = D_f(ρ_j‖ρ_i).
///
/// The two directions of a symmetric divergence are two estimates of one number and are averaged. Negative estimates
/// are noise about 0 and count as 0. The diagonal is 1 whatever `d` says there. A NaN stays one.
pub fn divergence_kernel(d: &[f64], n: usize, divergence: &dyn Divergence, temperature: f64, power: f64) -> Vec<f64> {
    let mut kernel = vec![1.0; n * n];
    for_each_pair(d, n, divergence, |at, d| {
        kernel[at] = (-(d / temperature).powf(power)).exp()
    });
    kernel
}

/// Below this share of T a divergence is noise: the slope of √D goes no higher than it is there.
const LEAST: f64 = 0.01;

/// -T·∂k_ij/∂D_ij of [`divergence_kernel`], `[n][n]`; 0 on the diagonal.
pub fn divergence_slopes(d: &[f64], n: usize, divergence: &dyn Divergence, temperature: f64, power: f64) -> Vec<f64> {
    let mut slopes = vec![0.0; n * n];
    for_each_pair(d, n, divergence, |at, d| {
        let u = d / temperature;
        slopes[at] = (-u.powf(power)).exp() * power * u.max(LEAST).powf(power - 1.0);
    });
    slopes
}

/// Shows every pair i ≠ j with its divergence, averaged over both directions where it is symmetric, and never negative.
fn for_each_pair(d: &[f64], n: usize, divergence: &dyn Divergence, mut show: impl FnMut(usize, f64)) {
    assert_eq!(d.len(), n * n, "one divergence an ordered pair");
    for i in 0..n {
        for j in (0..n).filter(|&j| j != i) {
            let mut distance = d[i * n + j];
            if divergence.symmetric() {
                distance = 0.5 * (distance + d[j * n + i]);
            }
            // Not max(0, ·), which would turn a NaN into 0.
            if distance < 0.0 {
                distance = 0.0;
            }
            show(i * n + j, distance);
        }
    }
}

/// The RBF kernel matrix `[n][n]` of parameters `[n][size]`, and its bandwidth h.
///
/// h is 1 where the median is 0 (most policies are equal, or there is only one).
pub fn rbf_kernel(parameters: &[f32], n: usize) -> (Vec<f64>, f64) {
    let mut squares = vec![0.0; n * n];
    let mut distances = Vec::with_capacity(n * n / 2);
    for i in 0..n {
        for j in 0..i {
            let square = squared_distance(row(parameters, n, i), row(parameters, n, j));
            squares[i * n + j] = square;
            squares[j * n + i] = square;
            distances.push(square.sqrt());
        }
    }
    let middle = median(&mut distances);
    let h = if middle > 0.0 {
        middle * middle / ((n + 1) as f64).ln()
    } else {
        1.0
    };
    (squares.iter().map(|square| (-square / h).exp()).collect(), h)
}

/// The repulsion of each policy, `[n][size]`, for a kernel and bandwidth of [`rbf_kernel`].
pub fn rbf_repulsion(parameters: &[f32], n: usize, kernel: &[f64], h: f64) -> Vec<f32> {
    assert_eq!(kernel.len(), n * n, "one kernel value an ordered pair");
    let mut repulsion = vec![0.0; parameters.len()];
    for i in 0..n {
        let size = parameters.len() / n;
        let own = row(parameters, n, i);
        for j in (0..n).filter(|&j| j != i) {
            let strength = (2.0 / h * kernel[i * n + j]) as f32;
            let out = &mut repulsion[i * size..(i + 1) * size];
            for ((out, mine), other) in out.iter_mut().zip(own).zip(row(parameters, n, j)) {
                *out += strength * (mine - other);
            }
        }
    }
    repulsion
}

fn row(parameters: &[f32], n: usize, i: usize) -> &[f32] {
    let size = parameters.len() / n;
    &parameters[i * size..(i + 1) * size]
}

fn squared_distance(a: &[f32], b: &[f32]) -> f64 {
    a.iter()
        .zip(b)
        .map(|(a, b)| (f64::from(*a) - f64::from(*b)).powi(2))
        .sum()
}

/// The middle value, or the mean of the two in the middle; 0 without any.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        count if count % 2 == 1 => values[count / 2],
        count => 0.5 * (values[count / 2 - 1] + values[count / 2]),
    }
}

#[cfg(test)]
mod tests {
    use rand::RngExt;

    use super::*;
    use crate::divergence::{LOG_CLAMP, NAMES, by_name, value};
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

    /// Distributions over `outcomes`; the larger the spread, the nearer to disjoint.
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
        let (js, temperature, h) = (by_name("js").unwrap(), 0.5, 1e-6);
        for power in [1.0, 0.5, 0.3] {
            for d in [0.02, 0.1, 0.6] {
                let kernel = |d: f64| divergence_kernel(&[0.0, d, d, 0.0], 2, js.as_ref(), temperature, power)[1];
                let numeric = -temperature * (kernel(d + h) - kernel(d - h)) / (2.0 * h);
                let written = divergence_slopes(&[0.0, d, d, 0.0], 2, js.as_ref(), temperature, power);
                assert!(
                    (numeric - written[1]).abs() < 1e-6,
                    "{power} {d}: {numeric} {written:?}"
                );
                assert_eq!(written[0], 0.0);
            }
            // Between policies that are alike it is bounded, and with p = 1 it is the kernel itself.
            let least = divergence_slopes(&[0.0, -0.1, 0.1, 0.0], 2, js.as_ref(), temperature, power)[1];
            assert!(least.is_finite() && (power < 1.0 || least == 1.0), "{power}: {least}");
        }
    }

    #[test]
    fn the_eigenvalue_routine_knows_a_matrix_with_known_eigenvalues() {
        // 2 on the diagonal, -1 beside it: eigenvalues 2 - 2·cos(kπ/5).
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
        for name in NAMES {
            let divergence = by_name(name).unwrap();
            let divergence = divergence.as_ref();
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
                let least =
                    smallest_eigenvalue(&exact_kernel(&coins([0.076, 0.022, 0.004]), divergence, temperature), 3);
                assert!(least < -0.002, "{name}, ratios below 20: {least}");
            }
        }
    }

    #[test]
    fn disjoint_policies_give_a_quarter_where_the_divergence_is_bounded() {
        let tiny = 1e-12;
        let rho = [vec![1.0 - tiny, tiny], vec![tiny, 1.0 - tiny]];
        for name in ["js", "hellinger", "triangular", "tv"] {
            let divergence = by_name(name).unwrap();
            let kernel = exact_kernel(&rho, divergence.as_ref(), divergence.temperature());
            assert!((kernel[1] - 0.25).abs() < 0.002, "{name}: {}", kernel[1]);
        }
    }

    #[test]
    fn directions_are_averaged_only_where_the_divergence_is_symmetric() {
        let d = [9.0, 0.25, 0.5, 9.0];
        let js = divergence_kernel(&d, 2, by_name("js").unwrap().as_ref(), 0.5, 1.0);
        assert_eq!(js, [1.0, (-0.75f64).exp(), (-0.75f64).exp(), 1.0]);
        let kl = divergence_kernel(&d, 2, by_name("kl").unwrap().as_ref(), 2.0, 1.0);
        assert_eq!(kl, [1.0, (-0.125f64).exp(), (-0.25f64).exp(), 1.0]);
    }

    #[test]
    fn negative_estimates_count_as_zero_after_averaging_and_nan_is_not_hidden() {
        let (js, kl) = (by_name("js").unwrap(), by_name("kl").unwrap());
        assert_eq!(
            divergence_kernel(&[0.0, -0.3, 0.1, 0.0], 2, js.as_ref(), 1.0, 1.0),
            [1.0; 4]
        );
        let averaged = divergence_kernel(&[0.0, -0.1, 0.3, 0.0], 2, js.as_ref(), 1.0, 1.0);
        assert!((averaged[1] - (-0.1f64).exp()).abs() < 1e-15);
        assert_eq!(
            divergence_kernel(&[0.0, -0.1, 0.3, 0.0], 2, kl.as_ref(), 1.0, 1.0),
            [1.0, 1.0, (-0.3f64).exp(), 1.0]
        );
        assert!(divergence_kernel(&[0.0, f64::NAN, 0.1, 0.0], 2, js.as_ref(), 1.0, 1.0)[1].is_nan());
        assert_eq!(
            divergence_kernel(&[0.0, f64::INFINITY, 0.0, 0.0], 2, kl.as_ref(), 1.0, 1.0)[1],
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
        for name in NAMES {
            let divergence = by_name(name).unwrap();
            let divergence = divergence.as_ref();
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
        let (kernel, h) = rbf_kernel(&[0.0, 1.0, 3.0, 7.0], 4);
        assert!((h - 3.5 * 3.5 / 5f64.ln()).abs() < 1e-12);
        assert!((kernel[3] - (-49.0 / h).exp()).abs() < 1e-12);
        assert!((kernel[4] - (-1.0 / h).exp()).abs() < 1e-12);
        assert!((0..4).all(|i| kernel[i * 5] == 1.0));
        // Two policies of two parameters: the median is their distance, so k = 1/(n+1).
        let (kernel, h) = rbf_kernel(&[0.0, 0.0, 3.0, 4.0], 2);
        assert!((h - 25.0 / 3f64.ln()).abs() < 1e-12);
        assert!((kernel[1] - 1.0 / 3.0).abs() < 1e-12);
    }

    #[test]
    fn equal_policies_and_a_single_one_have_a_finite_kernel_and_no_repulsion() {
        for n in [1, 3] {
            let parameters = [0.5f32, -1.0].repeat(n);
            let (kernel, h) = rbf_kernel(&parameters, n);
            assert!(h > 0.0);
            assert_eq!(kernel, vec![1.0; n * n]);
            assert_eq!(rbf_repulsion(&parameters, n, &kernel, h), vec![0.0; 2 * n]);
        }
    }

    #[test]
    fn rbf_repulsion_is_the_gradient_of_the_kernel_in_the_neighbours() {
        let (n, size) = (4, 3);
        let mut random = stream(3, Purpose::Rollout, 0, 0);
        let parameters: Vec<f32> = (0..n * size).map(|_| random.random::<f32>() * 2.0 - 1.0).collect();
        let (kernel, h) = rbf_kernel(&parameters, n);
        let repulsion = rbf_repulsion(&parameters, n, &kernel, h);
        let point = |i: usize| -> Vec<f64> { row(&parameters, n, i).iter().map(|x| f64::from(*x)).collect() };
        let k = |a: &[f64], b: &[f64]| (-a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>() / h).exp();
        for i in 0..n {
            for axis in 0..size {
                let mut expected = 0.0;
                for j in 0..n {
                    let moved = |by: f64| {
                        let mut neighbour = point(j);
                        neighbour[axis] += by;
                        k(&neighbour, &point(i))
                    };
                    expected += (moved(1e-5) - moved(-1e-5)) / 2e-5;
                }
                let found = f64::from(repulsion[i * size + axis]);
                assert!((found - expected).abs() < 1e-5, "{found} {expected}");
            }
        }
    }

    /// |dk/dδ| of two normal behaviours whose means differ by δ: the force with which they are driven apart, in units of ω.
    #[test]
    fn how_far_a_force_reaches() {
        let js = by_name("js").unwrap();
        let kernel = |delta: f64, resolution: f64, power: f64| {
            let deviation = f64::hypot(0.35, resolution);
            // ζ_ji = ρ_j/ρ_i on a grid, under i's density (mean 0) and j's (mean δ).
            let grid: Vec<f64> = (0..4000).map(|k| -8.0 + 20.0 * (k as f64 + 0.5) / 4000.0).collect();
            let density = |mean: f64| -> Vec<f32> {
                let of = |x: &f64| (-0.5 * ((x - mean) / deviation).powi(2)).exp() as f32;
                grid.iter().map(of).collect()
            };
            let logs: Vec<f32> = grid
                .iter()
                .map(|x| ((x * delta - 0.5 * delta * delta) / (deviation * deviation)) as f32)
                .collect();
            let d = value(js.as_ref(), LOG_CLAMP, (&logs, &density(0.0)), (&logs, &density(delta)));
            divergence_kernel(&[0.0, d, d, 0.0], 2, js.as_ref(), 0.5, power)[1]
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
}
