//! Kernels between the policies of an ensemble.
//!
//! ```text
//! k_ij = exp(-(D_ij/T)^p)                                           Equation 3 with p = 1: divergence of behaviour
//! -T·∂k_ij/∂D_ij = k_ij·p·(D_ij/T)^(p-1)                            its diversity-enforcing term, in units of 1/T
//! k_ij = exp(-‖θ_i - θ_j‖²/h),   h = median²/log(n+1)               Equation 2 with RBF: distance of parameters
//! Σ_j ∇_{θ_j} k(θ_j, θ_i) = Σ_j (2/h)·(θ_i - θ_j)·k_ij              its diversity-enforcing term
//! ```
//!
//! With p = ½ it is a kernel of the distance √D (a metric for JS: Endres & Schindelin 2003), whose derivative does not
//! vanish between similar policies; p = 1 is the paper's. If exp(-D/T) is positive definite for every T, so is
//! exp(-(D/T)^p) for p in (0, 1] (Schoenberg 1938).
//!
//! The median is over the distances between different policies; the gradient treats it as a constant.
//! References: Gangwani, Peng, Zhou 2020; Liu, Ramachandran, Liu, Peng 2017 (SVPG).

use crate::divergence::Divergence;

/// The kernel matrix `[n][n]` of estimated divergences `d`, where `d[i·n + j]` is D_ij = D_f(ρ_j‖ρ_i).
///
/// The two directions of a symmetric divergence estimate the same number and are averaged. Negative estimates are noise
/// and count as 0. The diagonal is 1 whatever `d` contains there. NaN is propagated.
pub fn divergence_kernel(d: &[f64], n: usize, divergence: &dyn Divergence, temperature: f64, power: f64) -> Vec<f64> {
    let mut kernel = vec![1.0; n * n];
    for_each_pair(d, n, divergence, |at, d| {
        kernel[at] = (-(d / temperature).powf(power)).exp()
    });
    kernel
}

/// Below this fraction of T a divergence is noise: the derivative of √D is evaluated here instead.
const LEAST: f64 = 0.01;

/// -T·∂k_ij/∂D_ij of [`divergence_kernel`], `[n][n]`; 0 on the diagonal.
pub fn divergence_derivatives(
    d: &[f64],
    n: usize,
    divergence: &dyn Divergence,
    temperature: f64,
    power: f64,
) -> Vec<f64> {
    let mut derivatives = vec![0.0; n * n];
    for_each_pair(d, n, divergence, |at, d| {
        let u = d / temperature;
        derivatives[at] = (-u.powf(power)).exp() * power * u.max(LEAST).powf(power - 1.0);
    });
    derivatives
}

/// Calls `show` for every pair i ≠ j with its divergence, averaged over both directions if symmetric, and at least 0.
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

/// The RBF kernel matrix `[n][n]` of squared distances `[n][n]`, and its bandwidth h.
///
/// h is 1 where the median is 0 (most policies are equal, or there is only one).
pub fn rbf_kernel(squares: &[f64], n: usize) -> (Vec<f64>, f64) {
    let below = (0..n).flat_map(|i| (0..i).map(move |j| (i, j)));
    let mut distances: Vec<f64> = below.map(|(i, j)| squares[i * n + j].sqrt()).collect();
    let middle = median(&mut distances);
    let h = if middle > 0.0 {
        middle * middle / ((n + 1) as f64).ln()
    } else {
        1.0
    };
    (squares.iter().map(|square| (-square / h).exp()).collect(), h)
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
mod tests;
