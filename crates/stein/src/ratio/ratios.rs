//! The ratio step, the same in training and in `stein verify`:
//!
//! ```text
//! update the estimator → log ζ_ab of all ordered pairs → set the constant of each (bridge) → D_ij of all pairs
//! ```

use super::{Estimator, Policies, Round, Transitions, bridge, log_mean, pair_number, pair_of};
use crate::divergence::{self, Divergence};
use crate::parallel;

/// log ζ_ab of one ordered pair, with its constant set.
#[derive(Clone, Debug, PartialEq)]
pub struct PairRatio {
    /// On samples of b, the data policy.
    pub on_b: Vec<f32>,
    /// On samples of a.
    pub on_a: Vec<f32>,
    /// log of the mean of ζ_ab over b's samples, before the constant was set: how far the estimator was off by itself.
    pub log_mean: f64,
}

/// Ratios of all ordered pairs of n policies on samples of each.
pub struct Ratios {
    n: usize,
    pairs: Vec<PairRatio>,
}

/// One round of training, then the ratios on `newest`; returns the mean loss with them.
pub fn step(estimator: &mut dyn Estimator, round: &Round<'_>, newest: &[&Transitions]) -> (f64, Ratios) {
    let loss = estimator.update(round);
    let ratios = Ratios::read(estimator, round.policies, newest, round.seed, round.round);
    (loss, ratios)
}

impl Ratios {
    /// Reads the ratios off an estimator; `newest[i]` are samples of policy i.
    pub fn read(
        estimator: &dyn Estimator,
        policies: &dyn Policies,
        newest: &[&Transitions],
        seed: u64,
        round: usize,
    ) -> Ratios {
        let n = newest.len();
        let logs = estimator.log_zetas(policies, newest, seed, round);
        let pairs = parallel::map(logs, |p, (mut on_b, mut on_a)| {
            let (a, b) = pair_of(p, n);
            let (w_a, w_b) = (&newest[a].weights[..], &newest[b].weights[..]);
            let log_mean = log_mean(&on_b, w_b);
            let c = bridge((&on_b, w_b), (&on_a, w_a)) as f32;
            on_b.iter_mut().chain(&mut on_a).for_each(|x| *x -= c);
            PairRatio { on_b, on_a, log_mean }
        });
        Ratios { n, pairs }
    }

    /// ζ_ab.
    pub fn of(&self, a: usize, b: usize) -> &PairRatio {
        &self.pairs[pair_number(a, b, self.n)]
    }

    /// log ζ_ab on b's samples, in the order of pair numbers.
    pub fn on_own(&self) -> Vec<&[f32]> {
        self.pairs.iter().map(|ratio| &ratio.on_b[..]).collect()
    }

    /// All ordered pairs (a, b) with their ratios, in the order of pair numbers.
    pub fn iter(&self) -> impl Iterator<Item = ((usize, usize), &PairRatio)> {
        let pairs = self.pairs.iter().enumerate();
        pairs.map(|(p, ratio)| (pair_of(p, self.n), ratio))
    }

    /// D_ij: the average of the value from ζ_ji and from 1/ζ_ij, with |log ζ| at most `bound`.
    pub fn divergence(
        &self,
        divergence: &dyn Divergence,
        bound: f64,
        (i, j): (usize, usize),
        newest: &[&Transitions],
    ) -> f64 {
        let (w_i, w_j) = (&newest[i].weights[..], &newest[j].weights[..]);
        let ji = self.of(j, i);
        let direct = divergence::value(divergence, bound, (&ji.on_b, w_i), (&ji.on_a, w_j));
        let ij = self.of(i, j);
        let turn = |logs: &[f32]| logs.iter().map(|x| -x).collect::<Vec<f32>>();
        let (on_i, on_j) = (turn(&ij.on_a), turn(&ij.on_b));
        0.5 * (direct + divergence::value(divergence, bound, (&on_i, w_i), (&on_j, w_j)))
    }

    /// D_ij of all pairs, `[n][n]`; 0 on the diagonal.
    pub fn divergences(&self, divergence: &dyn Divergence, bound: f64, newest: &[&Transitions]) -> Vec<f64> {
        let n = self.n;
        parallel::map(0..n * n, |_, at| match (at / n, at % n) {
            (i, j) if i == j => 0.0,
            pair => self.divergence(divergence, bound, pair, newest),
        })
    }

    /// What the ratios look like, averaged over pairs.
    pub fn health(&self, bound: f64, newest: &[&Transitions]) -> Health {
        let mut health = Health::default();
        for ((_, b), ratio) in self.iter() {
            let (mut sum, mut squares, mut mass, mut cut) = (0.0f64, 0.0f64, 0.0f64, 0.0f64);
            for (&log_zeta, &weight) in ratio.on_b.iter().zip(&newest[b].weights) {
                let (zeta, weight) = (f64::from(log_zeta).exp(), f64::from(weight));
                sum += weight * zeta;
                squares += weight * zeta * zeta;
                mass += weight;
                cut += f64::from(u8::from(f64::from(log_zeta).abs() > bound));
            }
            health.mean += ratio.log_mean.exp();
            health.clamped += cut / ratio.on_b.len() as f64;
            health.effective += sum * sum / (mass * squares);
        }
        let pairs = self.pairs.len() as f64;
        Health {
            mean: health.mean / pairs,
            clamped: health.clamped / pairs,
            effective: health.effective / pairs,
        }
    }
}

/// What ratios look like.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Health {
    /// Mean of ζ over the data policy's samples before its constant was set.
    pub mean: f64,
    /// Share of samples whose ratio is beyond the clamp.
    pub clamped: f64,
    /// Effective share of the data policy's samples, weighted by ζ.
    pub effective: f64,
}
