//! DICE from pooled data: ρ_i/d for each of n policies, d the mean of all occupancies, instead of ρ_a/ρ_b for each pair.
//!
//! ```text
//! ζ_i = ρ_i/d, bounded by n          log ζ_ab = log ζ_i=a - log ζ_i=b          (problem.rs has d, φ and the flow)
//! log ζ_i(s,a) = φ(s,a)·s_i          s_i: ridge regression of the solved log ζ_i on φ, where it is not linear in φ already
//! ```
//!
//! From b's samples alone ρ_a/ρ_b is ill-posed while policies part: a's next actions are outside the data. The pool holds
//! the samples of both. DualDICE and GenDICE do not need b's data: any distribution will do. Each iteration
//! solves n small dense problems anew; only the classifier, whose hidden layer is part of φ, goes on from one to the next.
//!
//! | estimator | file | problem of policy i |
//! |---|---|---|
//! | DualDICE | `dualdice.rs` | a linear saddle point, in closed form |
//! | GenDICE | `gendice.rs` | ζ = exp(φ·u), by Gauss-Newton |
//! | ValueDICE | `valuedice.rs` | convex in ν = φ·v, by Newton |
//!
//! `ratio.data = "pair"` is the paper's form (`dice.rs`).

pub mod dualdice;
pub mod gendice;
pub mod problem;
pub mod valuedice;

use self::problem::{Map, Pool, Problem, add, entries, factor, gram, read};
use super::config::EstimatorConfig;
use super::kind::Rates;
use super::policies::Policies;
use super::softmax::{Softmax, differences};
use super::{Estimator, Round, Transitions, nce_softmax};
use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::nn::product::padded;
use crate::parallel;
use crate::rng::{Purpose, stream};
use crate::truth::dense::cholesky_solve;

/// What a solver found.
pub enum Solved {
    /// log ζ = φ·s with these coefficients.
    Linear(Vec<f64>),
    /// log ζ on each pooled sample, to be smoothed.
    Samples(Vec<f64>),
}

/// One of the DICE problems on pooled data.
pub trait Solver: Send + Sync + 'static {
    /// Solves for log ζ_i, beginning at `from`, what the last round ended with (zeros at first), and leaving there what the
    /// next may begin with; returns the objective with it.
    fn solve(&self, problem: &Problem<'_>, from: &mut Vec<f64>) -> (Solved, f64);
}

/// Usual rates of the classifier, and next actions.
pub const RATES: Rates = Rates {
    learning_rate: 2e-3,
    zeta_learning_rate: 2e-3,
    next_actions: 4,
};

/// Ridge of the regression of log ζ on φ, in units of `ratio.ridge`.
const SMOOTHING: f64 = 30.0;

/// A pooled estimator.
pub struct Pooled<S> {
    solver: S,
    settings: EstimatorConfig,
    net: Softmax,
    /// Mean and std of φ.
    standard: Vec<(f32, f32)>,
    /// s_i of each policy.
    readout: Vec<Vec<f64>>,
    /// Where each policy's solver begins.
    from: Vec<Vec<f64>>,
}

impl<S: Solver> Pooled<S> {
    /// Draws the classifier; all ratios are 1 at first.
    pub fn new(settings: EstimatorConfig, solver: S) -> Self {
        let (ratio, n, width) = (&settings.ratio, settings.n, settings.width);
        let random = |p| stream(settings.seed, Purpose::RatioInit, p, 4);
        let size = entries(&ratio.hidden, width);
        Pooled {
            solver,
            net: Softmax::new(n, width, &ratio.hidden, ratio.weight_decay, ratio.minibatch, random),
            standard: vec![(0.0, 1.0); size],
            readout: vec![vec![0.0; size]; n],
            from: vec![vec![0.0; size]; n],
            settings,
        }
    }

    /// log ζ_i of every policy on a batch: `[policy][sample]`.
    fn logs(&self, policies: &dyn Policies, batch: &Transitions) -> Vec<Vec<f32>> {
        let map = Map {
            net: &self.net,
            standard: &self.standard,
        };
        let rows = map.rows(&policies.features(batch), self.settings.width);
        let stride = padded(self.standard.len());
        let read_all = |readout: &Vec<f64>| {
            let rows = rows.chunks_exact(stride);
            rows.map(|row| read(&row[..readout.len()], readout) as f32).collect()
        };
        self.readout.iter().map(read_all).collect()
    }
}

impl<S: Solver> Estimator for Pooled<S> {
    fn update(&mut self, round: &Round<'_>) -> f64 {
        nce_softmax::train(&mut self.net, &self.settings, round);
        let (settings, size) = (&self.settings, self.standard.len());
        let pool = Pool::new(round.policies, round.data, settings.ratio.pool, round.seed, round.round);
        self.standard = pool.standard(&self.net, size);
        let map = Map {
            net: &self.net,
            standard: &self.standard,
        };
        let now = map.rows(&pool.features, settings.width);
        let b = gram(&now, &pool.weights, &now, size);
        let smoother = factor(&b, SMOOTHING * settings.ratio.ridge);
        let solver = &self.solver;
        let parts = (&mut self.readout[..], &mut self.from[..]);
        let losses = parallel::map(parts, |i, (readout, from)| {
            let own = &round.data[i];
            let shared = (&now[..], &b);
            let problem = Problem::new(
                settings,
                round.policies,
                i,
                own,
                &pool,
                &map,
                shared,
                round.seed,
                round.round,
            );
            let (solved, loss) = solver.solve(&problem, from);
            *readout = match solved {
                Solved::Linear(coefficients) => coefficients,
                Solved::Samples(logs) => {
                    let mut right = vec![0.0; size];
                    for ((row, weight), log) in problem.now().zip(&pool.weights).zip(&logs) {
                        add(&mut right, weight * log, row);
                    }
                    cholesky_solve(&smoother, &right)
                }
            };
            loss
        });
        losses.iter().sum::<f64>() / losses.len() as f64
    }

    fn log_zeta(
        &self,
        a: usize,
        b: usize,
        policies: &dyn Policies,
        batch: &Transitions,
        _seed: u64,
        _round: usize,
    ) -> Vec<f32> {
        let logs = self.logs(policies, batch);
        logs[a].iter().zip(&logs[b]).map(|(a, b)| a - b).collect()
    }

    /// One pass for each policy's samples instead of two for each pair.
    fn log_zetas(
        &self,
        policies: &dyn Policies,
        batches: &[&Transitions],
        _seed: u64,
        _round: usize,
    ) -> Vec<(Vec<f32>, Vec<f32>)> {
        differences(&parallel::map(batches, |_, batch| self.logs(policies, batch)))
    }

    /// Of the classifier alone: the dense problems are solved once a round, not in every update.
    fn update_flops(&self) -> f64 {
        self.net.update_flops(self.settings.ratio.minibatch)
    }

    fn save(&self, checkpoint: &mut Checkpoint) {
        let (n, size) = (self.settings.n, self.standard.len());
        let standard: Vec<f32> = self.standard.iter().flat_map(|&(mean, std)| [mean, std]).collect();
        self.net.save("ratio.softmax", checkpoint);
        checkpoint.insert_f32("ratio.standard", &[size, 2], &standard);
        checkpoint.insert_f64("ratio.readout", &[n, size], &self.readout.concat());
        checkpoint.insert_f64("ratio.from", &[n, size], &self.from.concat());
    }

    fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        let (n, size) = (self.settings.n, self.standard.len());
        let split = |all: Vec<f64>| all.chunks_exact(size).map(<[f64]>::to_vec).collect();
        self.net.restore("ratio.softmax", checkpoint)?;
        let standard = checkpoint.take_f32("ratio.standard", &[size, 2])?;
        self.standard = standard.chunks_exact(2).map(|pair| (pair[0], pair[1])).collect();
        self.readout = split(checkpoint.take_f64("ratio.readout", &[n, size])?);
        self.from = split(checkpoint.take_f64("ratio.from", &[n, size])?);
        Ok(())
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
