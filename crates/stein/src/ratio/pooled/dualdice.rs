//! DualDICE on pooled data: its saddle point with ν and ζ linear in φ, in closed form.
//!
//! ```text
//! min_v max_u  uᵀC·v - ½·uᵀ(B + R)u - (1-γ)·φ0ᵀv + ½·λ·vᵀv            ζ = φ·u,   C = E_d[φ(φ - γφ')ᵀ]
//! u = (B + R)⁻¹C·v,      (Cᵀ(B + R)⁻¹C + λ)·v = (1-γ)·φ0
//! ```
//!
//! R is the identity times the mean of B's diagonal (but for the constant): it chooses among the solutions of the flow and
//! moves none. A linear ζ may fall below 0, so its logarithm is that of a smooth floor, ½·(ζ + √(ζ² + 4e²)), e = .1.
//! The saddle form with ζ in the span of φ was better in trials than the squared residual. Reference: Nachum et al. 2019.

use super::problem::{Problem, gram, read};
use super::{Solved, Solver};
use crate::truth::dense::{Matrix, cholesky_solve, dot};

/// The solver.
pub struct DualDice;

/// e of the smooth floor of ζ.
const FLOOR: f64 = 0.1;

/// Coefficients u of ζ = φ·u, and the value of the saddle point.
pub(super) fn saddle(problem: &Problem<'_>) -> (Vec<f64>, f64) {
    let size = problem.entries;
    let c = gram(problem.now, problem.weights, &problem.delta(), size);
    let inner = problem.with_ridge(problem.b, 1.0);
    // Rows of (B + R)⁻¹C, transposed: column k of C solved for.
    let columns = c.transposed();
    let solved: Vec<f64> = (0..size).flat_map(|k| cholesky_solve(&inner, columns.row(k))).collect();
    let solved = Matrix::new(size, size, solved);
    // Cᵀ(B + R)⁻¹C.
    let m = columns.times(&solved.transposed());
    let start = problem.start();
    let v = cholesky_solve(&problem.with_ridge(&m, problem.ridge), &start);
    let u = solved.transposed().apply(&v);
    let value = -0.5 * dot(&start, &v);
    (u, value)
}

impl Solver for DualDice {
    fn solve(&self, problem: &Problem<'_>, _from: &mut Vec<f64>) -> (Solved, f64) {
        let (u, value) = saddle(problem);
        let zetas: Vec<f64> = problem.now().map(|row| read(row, &u)).collect();
        let mean = dot(&zetas, problem.weights);
        let floor = |zeta: f64| 0.5 * (zeta + (zeta * zeta + 4.0 * FLOOR * FLOOR).sqrt());
        let logs = zetas.iter().map(|zeta| floor(zeta / mean).ln()).collect();
        (Solved::Samples(logs), value)
    }
}
