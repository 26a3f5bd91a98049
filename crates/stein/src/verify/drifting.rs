//! Estimators on a linear-Gaussian system of 20 dimensions whose policies part: little data a round, exact ratios.
//!
//! ```text
//! system     10 damped rotations, mixed; 4 actions push all of them; γ = .95; Q, P0, R diagonal
//! policies   a = K_i·s + k0_i + N(0, R): alike at first, K_i and k0_i grow linearly in directions of their own
//! each round `samples` new transitions of every policy by geometric restarts; the estimator is updated as in Algorithm 1 on the
//!            last `ratio.rollouts` of them
//! scores     as of robots (robots.rs), with the exact ratio in the place of the judge
//! ```

use rand::RngExt;
use rand_distr::{Distribution, StandardNormal};

use super::gaussian::{GaussianSystemPolicies, transitions};
use super::robots::{PairScore, Verdict, jensen_shannon, rank, verdict};
use super::training::joined;
use crate::error::Result;
use crate::parallel;
use crate::ratio::{self, EstimatorChoice, PairRatio, RatioConfig, Ratios, Round, Transitions};
use crate::rng::{Purpose, Stream, stream};
use crate::truth::dense::Matrix;
use crate::truth::linear_gaussian::GaussianOccupancy;
use crate::truth::{LinearGaussian, LinearGaussianPolicy};

/// Its name in reports.
pub const NAME: &str = "linear-gaussian-20";

/// Dimensions of the state and of the action.
const STATE: usize = 20;
const ACTION: usize = 4;

/// What is followed.
#[derive(Clone, Debug)]
pub struct Drift {
    /// Policies.
    pub ensemble: usize,
    /// Rounds after which the ratios are compared, rising.
    pub moments: Vec<usize>,
    /// Transitions of each policy a round.
    pub samples: usize,
    /// What a policy's offset has grown to, in each action, by round 30.
    pub offset: f64,
    /// What an entry of its gain has grown to.
    pub gain: f64,
}

impl Default for Drift {
    fn default() -> Self {
        Drift {
            ensemble: 4,
            moments: vec![10, 15, 20, 25, 30],
            samples: 2048,
            offset: 0.35,
            gain: 0.05,
        }
    }
}

/// Where one policy goes.
struct Direction {
    gain: Vec<f64>,
    offset: Vec<f64>,
}

fn normals(random: &mut Stream, count: usize) -> Vec<f64> {
    (0..count).map(|_| StandardNormal.sample(random)).collect()
}

fn system(random: &mut Stream) -> LinearGaussian {
    // Rotations of the plane in pairs of coordinates, seen in another basis: two reflections make one.
    let mut f = Matrix::new(STATE, STATE, vec![0.0; STATE * STATE]);
    for block in (0..STATE).step_by(2) {
        let (angle, radius) = (random.random_range(0.2..1.0f64), random.random_range(0.3..0.7));
        let (sine, cosine) = (radius * angle.sin(), radius * angle.cos());
        let (first, second) = (block * STATE + block, (block + 1) * STATE + block);
        (f.entries[first], f.entries[first + 1]) = (cosine, -sine);
        (f.entries[second], f.entries[second + 1]) = (sine, cosine);
    }
    let mut basis = Matrix::scaled_identity(STATE, 1.0);
    for _ in 0..2 {
        let normal = normals(random, STATE);
        let square: f64 = normal.iter().map(|x| x * x).sum();
        let mirror = (0..STATE * STATE).map(|at| {
            let (r, c) = (at / STATE, at % STATE);
            f64::from(u8::from(r == c)) - 2.0 * normal[r] * normal[c] / square
        });
        basis = basis.times(&Matrix::new(STATE, STATE, mirror.collect()));
    }
    LinearGaussian {
        f: basis.sandwich(&f),
        g: Matrix::new(
            STATE,
            ACTION,
            normals(random, STATE * ACTION).iter().map(|x| 0.2 * x).collect(),
        ),
        q: Matrix::scaled_identity(STATE, 0.09),
        m0: normals(random, STATE).iter().map(|x| 0.5 * x).collect(),
        p0: Matrix::scaled_identity(STATE, 0.09),
        gamma: 0.95,
    }
}

fn policy(drift: &Drift, direction: &Direction, round: usize) -> LinearGaussianPolicy {
    let share = (round + 1) as f64 / 30.0;
    let scaled = |values: &[f64], scale: f64| values.iter().map(|x| share * scale * x).collect::<Vec<f64>>();
    LinearGaussianPolicy {
        k: Matrix::new(ACTION, STATE, scaled(&direction.gain, drift.gain)),
        k0: scaled(&direction.offset, drift.offset),
        r: Matrix::scaled_identity(ACTION, 0.25),
    }
}

/// Lets an estimator follow the policies of a seed.
pub fn follow(drift: &Drift, estimator: EstimatorChoice, config: &RatioConfig, seed: u64) -> Result<Verdict> {
    let n = drift.ensemble;
    let mut random = stream(seed, Purpose::Truth, 6, 0);
    let system = system(&mut random);
    let directions: Vec<Direction> = (0..n)
        .map(|_| Direction {
            gain: normals(&mut random, ACTION * STATE),
            offset: normals(&mut random, ACTION),
        })
        .collect();
    let mut learner = ratio::build(estimator, n, STATE + ACTION, system.gamma, config, seed)?;
    let mut recent: Vec<Vec<Transitions>> = vec![Vec::new(); n];
    let mut scores = Vec::new();
    for round in 0..drift.moments.last().copied().unwrap_or(0) {
        let moved: Vec<LinearGaussianPolicy> = directions.iter().map(|to| policy(drift, to, round)).collect();
        for (i, recent) in recent.iter_mut().enumerate() {
            // Each policy has random numbers of its own in each round.
            let seed = seed.wrapping_mul(1 << 20).wrapping_add((round * n + i) as u64);
            recent.push(transitions(&system.draw(&moved[i], drift.samples, seed)?, STATE));
            if recent.len() > config.rollouts {
                recent.remove(0);
            }
        }
        let data: Vec<Transitions> = recent.iter().map(|parts| joined(parts)).collect();
        let policies = GaussianSystemPolicies::new(&moved, &data)?;
        learner.update(&Round {
            policies: &policies,
            data: &data,
            seed,
            round,
            updates: config.updates(data[0].len(), round == 0),
            rate: (1.0, 1.0),
        });
        if !drift.moments.contains(&(round + 1)) {
            continue;
        }
        let newest: Vec<&Transitions> = recent.iter().filter_map(|parts| parts.last()).collect();
        let occupancies = moved
            .iter()
            .map(|policy| system.occupancy(policy))
            .collect::<Result<Vec<GaussianOccupancy>>>()?;
        let ratios = Ratios::read(learner.as_ref(), &policies, &newest, seed, round);
        scores.extend(score(&occupancies, &newest, &ratios, round + 1));
    }
    let mut verdict = verdict(NAME, estimator, seed, scores);
    if estimator.is_biased_by_chance() {
        // Its objective is biased where the dynamics are stochastic.
        verdict.missed.clear();
        verdict.judged = false;
    }
    Ok(verdict)
}

fn score(occupancies: &[GaussianOccupancy], newest: &[&Transitions], ratios: &Ratios, round: usize) -> Vec<PairScore> {
    // log ρ of every policy on the samples of each: [on][policy][sample].
    let densities: Vec<Vec<Vec<f64>>> = newest
        .iter()
        .map(|batch| {
            let wide = |row: &[f32]| row.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
            let rows: Vec<_> = batch
                .states
                .chunks_exact(STATE)
                .zip(batch.actions.chunks_exact(ACTION))
                .map(|(state, action)| (wide(state), wide(action)))
                .collect();
            let log_density = |of: &GaussianOccupancy| {
                let density = |(state, action): &(Vec<f64>, Vec<f64>)| of.log_density(state, action);
                parallel::map(&rows[..], |_, row| density(row))
            };
            occupancies.iter().map(log_density).collect()
        })
        .collect();
    let exact = |a: usize, b: usize, on: usize| -> Vec<f32> {
        let both = densities[on][a].iter().zip(&densities[on][b]);
        both.map(|(a, b)| (a - b) as f32).collect()
    };
    let pairs = ratios.iter().map(|((a, b), PairRatio { on_b, on_a, .. })| {
        let (w_a, w_b) = (&newest[a].weights[..], &newest[b].weights[..]);
        let (truth_b, truth_a) = (exact(a, b, b), exact(a, b, a));
        PairScore {
            iteration: round,
            pair: (b, a),
            rank: rank(on_b, &truth_b, w_b),
            ceiling: 1.0,
            alike: (rank(on_b, &truth_b, &vec![1.0; w_b.len()]), 1.0),
            js: jensen_shannon((&truth_b, w_b), (&truth_a, w_a)),
            estimated: jensen_shannon((on_b, w_b), (on_a, w_a)),
        }
    });
    pairs.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_part_and_classification_follows_them() {
        let drift = Drift {
            ensemble: 2,
            moments: vec![20, 30],
            samples: 1024,
            ..Drift::default()
        };
        let verdict = follow(&drift, EstimatorChoice::default(), &RatioConfig::default(), 1).unwrap();
        assert!(
            verdict.scores.iter().all(|score| score.js > 0.05),
            "{:?}",
            verdict.scores
        );
        assert!(
            verdict.scores.iter().all(|score| score.rank > 0.6),
            "{:?}",
            verdict.scores
        );
    }
}
