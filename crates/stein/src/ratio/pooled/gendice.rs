//! GenDICE on pooled data: ζ = exp(φ·u) > 0, by Gauss-Newton on the residual of the flow and the mean of ζ.
//!
//! ```text
//! min_u  ½·rᵀA⁻¹r + ½·(E_d[ζ] - 1)² + ½·λ·uᵀRu          r = E_d[ζ·(φ - γφ')] - (1-γ)·φ0,   A = B + .1·R
//! ```
//!
//! The adversary g = φ·w of GenDICE's max over w has this closed form. R is the identity but for the constant, which is free.
//! Linear in φ, the same problem would be DualDICE's with another ridge: the exponential is what makes it its own, with ζ
//! positive as the softplus of the pairwise form. Reference: Zhang et al. 2020.

use super::problem::{CONSTANT, Problem, add, factor, gram, read};
use super::{Solved, Solver};
use crate::truth::dense::{Matrix, cholesky_solve, dot};

/// The solver.
pub struct GenDice;

/// Gauss-Newton steps at the most.
const STEPS: usize = 8;

/// log ζ is kept within these.
const LOGS: (f64, f64) = (-8.0, 4.0);

/// Ridge of A, in units of the mean of B's diagonal.
const ADVERSARY: f64 = 0.1;

/// What does not change while u moves.
pub(super) struct Residual<'a> {
    problem: &'a Problem<'a>,
    delta: Vec<f32>,
    start: Vec<f64>,
    /// L of A = L·Lᵀ.
    adversary: Matrix,
}

/// The objective at one u.
pub(super) struct At {
    /// Weight times ζ of each sample.
    mass: Vec<f64>,
    /// A⁻¹r.
    w: Vec<f64>,
    /// E_d[ζ] - 1.
    excess: f64,
    pub(super) objective: f64,
}

impl<'a> Residual<'a> {
    pub(super) fn new(problem: &'a Problem<'a>) -> Self {
        Residual {
            delta: problem.delta(),
            start: problem.start(),
            adversary: problem.with_ridge(problem.b, ADVERSARY),
            problem,
        }
    }

    fn deltas(&self) -> impl Iterator<Item = &[f32]> {
        let stride = self.delta.len() / self.problem.weights.len();
        self.delta.chunks_exact(stride).map(|row| &row[..self.problem.entries])
    }

    fn ridge(&self, k: usize) -> f64 {
        self.problem.ridge * if k + 1 == self.problem.entries { CONSTANT } else { 1.0 }
    }

    pub(super) fn at(&self, u: &[f64]) -> At {
        let problem = self.problem;
        let zeta = |row| read(row, u).clamp(LOGS.0, LOGS.1).exp();
        let mass: Vec<f64> = problem
            .now()
            .zip(problem.weights)
            .map(|(row, w)| w * zeta(row))
            .collect();
        let mut r: Vec<f64> = self.start.iter().map(|x| -x).collect();
        for (row, &mass) in self.deltas().zip(&mass) {
            add(&mut r, mass, row);
        }
        let w = cholesky_solve(&self.adversary, &r);
        let excess = mass.iter().sum::<f64>() - 1.0;
        let ridge: f64 = u.iter().enumerate().map(|(k, u)| self.ridge(k) * u * u).sum();
        let objective = 0.5 * (dot(&r, &w) + excess * excess + ridge);
        At {
            mass,
            w,
            excess,
            objective,
        }
    }

    pub(super) fn gradient(&self, u: &[f64], at: &At) -> Vec<f64> {
        let mut gradient: Vec<f64> = u.iter().enumerate().map(|(k, u)| self.ridge(k) * u).collect();
        for ((row, delta), &mass) in self.problem.now().zip(self.deltas()).zip(&at.mass) {
            add(&mut gradient, mass * (read(delta, &at.w) + at.excess), row);
        }
        gradient
    }

    /// JᵀA⁻¹J + qqᵀ + λR, J = E_d[ζ·(φ - γφ')φᵀ], q = E_d[ζ·φ].
    fn curvature(&self, at: &At) -> Matrix {
        let (problem, size) = (self.problem, self.problem.entries);
        // Row k: derivatives of r in u_k.
        let j = gram(problem.now, &at.mass, &self.delta, size);
        let solved: Vec<f64> = (0..size)
            .flat_map(|k| cholesky_solve(&self.adversary, j.row(k)))
            .collect();
        let mut h = j.times(&Matrix::new(size, size, solved).transposed());
        let mut q = vec![0.0; size];
        for (row, &mass) in problem.now().zip(&at.mass) {
            add(&mut q, mass, row);
        }
        for k in 0..size {
            add_scaled(&mut h.entries[k * size..][..size], q[k], &q);
            h.entries[k * size + k] += self.ridge(k) + 1e-10;
        }
        h
    }

    /// Descends from `u`; returns the objective.
    pub(super) fn descend(&self, u: &mut Vec<f64>) -> f64 {
        let mut at = self.at(u);
        for _ in 0..STEPS {
            let gradient = self.gradient(u, &at);
            let lower = factor(&self.curvature(&at), 0.0);
            let step = cholesky_solve(&lower, &gradient);
            let tried = (0..10).map(|halvings| {
                let share = 0.5f64.powi(halvings);
                let moved: Vec<f64> = u.iter().zip(&step).map(|(u, step)| u - share * step).collect();
                (self.at(&moved), moved)
            });
            let before = at.objective;
            let Some((better, moved)) = tried.into_iter().find(|(tried, _)| tried.objective < before) else {
                break;
            };
            (at, *u) = (better, moved);
            if before - at.objective < 1e-3 * at.objective {
                break;
            }
        }
        at.objective
    }
}

fn add_scaled(sum: &mut [f64], scale: f64, other: &[f64]) {
    sum.iter_mut().zip(other).for_each(|(sum, x)| *sum += scale * x);
}

impl Solver for GenDice {
    fn solve(&self, problem: &Problem<'_>, from: &mut Vec<f64>) -> (Solved, f64) {
        let residual = Residual::new(problem);
        // φ has moved since the last round: its solution is a beginning only where it is better than none.
        let none = vec![0.0; from.len()];
        let objective = |u: &[f64]| residual.at(u).objective;
        let (old, new) = (objective(from), objective(&none));
        if !old.is_finite() || old > new {
            *from = none;
        }
        let objective = residual.descend(from);
        (Solved::Linear(from.clone()), objective)
    }
}
