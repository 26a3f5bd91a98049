//! ValueDICE on pooled data: the Donsker-Varadhan problem with ν linear in φ, by Newton's method.
//!
//! ```text
//! min_v  log E_d[exp(x)] - (1-γ)·φ0·v + ½·λ·c·vᵀv         x = (φ - γφ')·v,   c = the mean of E_d[(φ - γφ')²]
//! log ζ = x - log E_d[exp(x)]
//! ```
//!
//! It is convex, and the constant of φ has no part in it: a constant of ν changes nothing. x holds the one s' that was seen;
//! the regression of log ζ on φ(s,a) takes its mean. Known weakness as in the pairwise form: the expectation over s' stands
//! inside the exponential. Reference: Kostrikov et al. 2020.

use super::problem::{Problem, add, factor, gram, read};
use super::{Solved, Solver};
use crate::truth::dense::{Matrix, cholesky_solve, dot};

/// The solver.
pub struct ValueDice;

/// Newton steps at the most.
const STEPS: usize = 10;

/// Descent ends where a step gains less than this.
const TOLERANCE: f64 = 1e-8;

/// Least log ζ: what is rarer yet is not told apart by a few thousand samples.
const LEAST: f64 = -8.0;

/// What does not change while v moves; the constant's place is held at 0.
pub(super) struct Dual<'a> {
    problem: &'a Problem<'a>,
    delta: Vec<f32>,
    start: Vec<f64>,
    /// λ·c.
    ridge: f64,
}

/// The objective at one v.
pub(super) struct At {
    /// x of each sample.
    x: Vec<f64>,
    /// Share of each sample in E_d[exp(x)].
    shares: Vec<f64>,
    log_mean: f64,
    pub(super) objective: f64,
}

impl<'a> Dual<'a> {
    pub(super) fn new(problem: &'a Problem<'a>) -> Self {
        let mut delta = problem.delta();
        let (size, stride) = (problem.entries, delta.len() / problem.weights.len());
        // 1 - γ in every row: without it nothing of the constant enters anywhere.
        delta.chunks_exact_mut(stride).for_each(|row| row[size - 1] = 0.0);
        let mut start = problem.start();
        start[size - 1] = 0.0;
        let squares: f64 = delta
            .chunks_exact(stride)
            .zip(problem.weights)
            .map(|(row, weight)| weight * row.iter().map(|&x| f64::from(x).powi(2)).sum::<f64>())
            .sum();
        Dual {
            ridge: problem.ridge * squares / (size - 1).max(1) as f64,
            problem,
            delta,
            start,
        }
    }

    fn deltas(&self) -> impl Iterator<Item = &[f32]> {
        let stride = self.delta.len() / self.problem.weights.len();
        self.delta.chunks_exact(stride).map(|row| &row[..self.problem.entries])
    }

    pub(super) fn at(&self, v: &[f64]) -> At {
        let x: Vec<f64> = self.deltas().map(|row| read(row, v)).collect();
        // Samples without weight may have any x and count nothing.
        let weighted = || x.iter().zip(self.problem.weights);
        let heavy = weighted().filter(|(_, weight)| **weight > 0.0);
        let largest = heavy.map(|(x, _)| *x).fold(f64::NEG_INFINITY, f64::max);
        let share = |(x, &weight): (&f64, &f64)| match weight {
            0.0 => 0.0,
            weight => weight * (x - largest).exp(),
        };
        let mut shares: Vec<f64> = weighted().map(share).collect();
        let total: f64 = shares.iter().sum();
        shares.iter_mut().for_each(|share| *share /= total);
        let log_mean = largest + total.ln();
        At {
            x,
            shares,
            objective: log_mean - dot(&self.start, v) + 0.5 * self.ridge * dot(v, v),
            log_mean,
        }
    }

    fn mean(&self, at: &At) -> Vec<f64> {
        let mut mean = vec![0.0; self.start.len()];
        for (row, &share) in self.deltas().zip(&at.shares) {
            add(&mut mean, share, row);
        }
        mean
    }

    pub(super) fn gradient(&self, v: &[f64], at: &At) -> Vec<f64> {
        let mut gradient = self.mean(at);
        for ((gradient, start), v) in gradient.iter_mut().zip(&self.start).zip(v) {
            *gradient += self.ridge * v - start;
        }
        gradient
    }

    /// Covariance of φ - γφ' under ζ·d, with the ridge.
    fn curvature(&self, at: &At) -> Matrix {
        let size = self.problem.entries;
        let mut h = gram(&self.delta, &at.shares, &self.delta, size);
        let mean = self.mean(at);
        for row in 0..size {
            for column in 0..size {
                h.entries[row * size + column] -= mean[row] * mean[column];
            }
            h.entries[row * size + row] += self.ridge.max(1e-10);
        }
        h
    }

    /// Descends from `v`; returns where it ended.
    pub(super) fn descend(&self, v: &mut Vec<f64>) -> At {
        let mut at = self.at(v);
        for _ in 0..STEPS {
            let gradient = self.gradient(v, &at);
            let lower = factor(&self.curvature(&at), 0.0);
            let step = cholesky_solve(&lower, &gradient);
            let (before, derivative) = (at.objective, dot(&gradient, &step));
            let found = (0..13).find_map(|halvings| {
                let share = 0.5f64.powi(halvings);
                let moved: Vec<f64> = v.iter().zip(&step).map(|(v, step)| v - share * step).collect();
                let tried = self.at(&moved);
                (tried.objective < before - 1e-4 * share * derivative).then_some((tried, moved))
            });
            let Some((better, moved)) = found else {
                break;
            };
            (at, *v) = (better, moved);
            if before - at.objective < TOLERANCE {
                break;
            }
        }
        at
    }
}

impl Solver for ValueDice {
    fn solve(&self, problem: &Problem<'_>, from: &mut Vec<f64>) -> (Solved, f64) {
        let dual = Dual::new(problem);
        // φ has moved since the last round: its solution is a beginning only where it is better than none.
        let none = vec![0.0; from.len()];
        let old = dual.at(from).objective;
        if !old.is_finite() || old > dual.at(&none).objective {
            *from = none;
        }
        let at = dual.descend(from);
        // ζ is at most n.
        let most = problem.policies.ln();
        let logs = at.x.iter().map(|x| (x - at.log_mean).clamp(LEAST, most)).collect();
        (Solved::Samples(logs), at.objective)
    }
}
