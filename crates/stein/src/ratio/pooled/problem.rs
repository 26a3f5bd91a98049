//! The problem that the pooled estimators solve: samples of all policies as one distribution d, and the flow of one policy.
//!
//! ```text
//! d         = 1/n·Σ_j ρ_j                      ζ_i = ρ_i/d, between 0 and n
//! flow of i   E_d[ζ_i·(φ(s,a) - γ·φ(s',a'))] = (1-γ)·E_{μ0,π_i}[φ(s0,a0)],      a' ~ π_i(s')
//! φ         last hidden layer of an n-way classifier of the same samples, the inputs, and a constant
//! ```
//!
//! A step that ends its episode is followed by a reset: φ(s',a') is then the mean of φ(s0,a0). With that the solution has
//! `E_d[ζ_i] = 1` for occupancies normalised over non-terminal pairs, whatever their mass.
//! All but the constant are standardised over d. Rows are sample-major, padded to whole vectors.

use super::super::policies::Policies;
use super::super::softmax::{Draws, Softmax};
use super::super::{EstimatorConfig, Transitions};
use crate::nn::product::{self, Product, padded, transpose};
use crate::rng::{Purpose, Stream, stream};
use crate::truth::dense::Matrix;

/// Rows that are worked on at once.
const CHUNK: usize = 256;

/// Initial states that are used of a policy at the most.
const FIRSTS: usize = 256;

/// Initial actions drawn in each of them, where actions cannot be summed over.
const FIRST_ACTIONS: usize = 8;

/// How features of (s,a) become φ.
pub struct Map<'a> {
    /// The classifier whose last hidden layer is part of φ.
    pub net: &'a Softmax,
    /// Mean and std of each entry of φ over d; 0 and 1 for the constant.
    pub standard: &'a [(f32, f32)],
}

/// Entries of φ: hidden units, inputs, a constant.
pub fn entries(hidden: &[usize], width: usize) -> usize {
    hidden.last().copied().unwrap_or(0) + width + 1
}

/// φ of rows of features before standardising, `[row][padded(entries)]`.
pub fn raw(net: &Softmax, features: &[f32], out: &mut [f32]) {
    let mut first = 0;
    net.pass(features, |scratch| {
        let (batch, last) = (scratch.batch(), scratch.h.len() - 2);
        let width = scratch.h[0].len() / scratch.row;
        let hidden = if last == 0 {
            0
        } else {
            scratch.h[last].len() / scratch.row
        };
        let stride = padded(hidden + width + 1);
        let rows = &mut out[first * stride..(first + batch) * stride];
        if last > 0 {
            transpose(&scratch.h[last], scratch.row, hidden, batch, rows, stride);
        }
        transpose(&scratch.h[0], scratch.row, width, batch, &mut rows[hidden..], stride);
        rows.chunks_exact_mut(stride).for_each(|row| row[hidden + width] = 1.0);
        first += batch;
    });
}

impl Map<'_> {
    fn stride(&self) -> usize {
        padded(self.standard.len())
    }

    /// Standardises rows of φ.
    fn standardise(&self, rows: &mut [f32]) {
        for row in rows.chunks_exact_mut(self.stride()) {
            for (x, (mean, std)) in row.iter_mut().zip(self.standard) {
                *x = (*x - mean) / std;
            }
        }
    }

    /// φ of rows of features.
    pub fn rows(&self, features: &[f32], width: usize) -> Vec<f32> {
        let mut rows = vec![0.0; features.len() / width * self.stride()];
        raw(self.net, features, &mut rows);
        self.standardise(&mut rows);
        rows
    }

    /// φ averaged over `draws` actions of a policy in each state.
    fn acted(
        &self,
        policies: &dyn Policies,
        policy: usize,
        states: &[f32],
        draws: usize,
        random: &mut Stream,
    ) -> Vec<f32> {
        let (state, action, width) = (policies.state_width(), policies.action_width(), policies.width());
        let (draws, share) = match policies.action_count() {
            Some(count) => (count, 1.0),
            None => (draws, 1.0 / draws as f32),
        };
        let stride = self.stride();
        let mut workspace = policies.workspace(CHUNK);
        let mut actions = vec![0.0; CHUNK * action];
        let mut weights = vec![0.0; CHUNK];
        let mut features = vec![0.0; CHUNK * width];
        let mut one = vec![0.0; CHUNK * stride];
        let mut rows = vec![0.0; states.len() / state * stride];
        for (states, rows) in states.chunks(CHUNK * state).zip(rows.chunks_mut(CHUNK * stride)) {
            let count = states.len() / state;
            for draw in 0..draws {
                let actions = &mut actions[..count * action];
                let weights = &mut weights[..count];
                policies.act(policy, states, draw, random, &mut workspace, actions, weights);
                policies.encode(states, actions, &mut features[..count * width]);
                raw(self.net, &features[..count * width], &mut one);
                for ((row, one), weight) in rows.chunks_exact_mut(stride).zip(one.chunks_exact(stride)).zip(weights) {
                    let weight = share * *weight;
                    row.iter_mut().zip(one).for_each(|(x, y)| *x += weight * y);
                }
            }
        }
        self.standardise(&mut rows);
        rows
    }
}

/// Samples of all policies.
pub struct Pool {
    next_states: Vec<f32>,
    terminated: Vec<bool>,
    /// Features of (s,a), row after row.
    pub features: Vec<f32>,
    /// Weights: each policy's sum to 1/n.
    pub weights: Vec<f64>,
    /// Whose sample it is.
    pub owners: Vec<usize>,
}

impl Pool {
    /// Takes all samples of a policy, or draws as many as `limit` by their weights where it has more.
    pub fn new(policies: &dyn Policies, data: &[Transitions], limit: usize, seed: u64, round: usize) -> Self {
        let (state, action, n) = (policies.state_width(), policies.action_width(), data.len() as f64);
        let (mut states, mut actions) = (Vec::new(), Vec::new());
        let mut pool = Pool {
            next_states: Vec::new(),
            terminated: Vec::new(),
            features: Vec::new(),
            weights: Vec::new(),
            owners: Vec::new(),
        };
        for (i, data) in data.iter().enumerate() {
            let mut random = stream(seed, Purpose::RatioPool, i, round);
            for (row, share) in choose(&data.weights, limit, &mut random) {
                states.extend_from_slice(&data.states[row * state..][..state]);
                actions.extend_from_slice(&data.actions[row * action..][..action]);
                pool.next_states
                    .extend_from_slice(&data.next_states[row * state..][..state]);
                pool.terminated.push(data.terminated[row]);
                pool.weights.push(share / n);
                pool.owners.push(i);
            }
        }
        pool.features = vec![0.0; pool.weights.len() * policies.width()];
        policies.encode(&states, &actions, &mut pool.features);
        pool
    }

    /// Mean and std of each entry of φ over d.
    pub fn standard(&self, net: &Softmax, entries: usize) -> Vec<(f32, f32)> {
        let stride = padded(entries);
        let mut rows = vec![0.0; self.weights.len() * stride];
        raw(net, &self.features, &mut rows);
        let (mut means, mut squares) = (vec![0.0f64; entries], vec![0.0f64; entries]);
        for (row, &weight) in rows.chunks_exact(stride).zip(&self.weights) {
            for ((mean, square), &x) in means.iter_mut().zip(&mut squares).zip(row) {
                *mean += weight * f64::from(x);
                *square += weight * f64::from(x).powi(2);
            }
        }
        let each = means.iter().zip(&squares);
        let mut standard: Vec<(f32, f32)> = each
            .map(|(mean, square)| (*mean as f32, (square - mean * mean).max(1e-6).sqrt() as f32))
            .collect();
        standard[entries - 1] = (0.0, 1.0);
        standard
    }
}

/// Rows with their shares of the weight: all, or `limit` stratified draws, those of one row taken together.
fn choose(weights: &[f32], limit: usize, random: &mut Stream) -> Vec<(usize, f64)> {
    if weights.len() <= limit {
        let total: f64 = weights.iter().map(|&w| f64::from(w)).sum();
        return weights.iter().map(|&w| f64::from(w) / total).enumerate().collect();
    }
    let mut places = vec![0; limit];
    Draws::new(weights).draw(random, &mut places);
    let mut chosen: Vec<(usize, f64)> = Vec::with_capacity(limit);
    for place in places {
        let place = place as usize;
        match chosen.last_mut().filter(|(last, _)| *last == place) {
            Some((_, share)) => *share += 1.0 / limit as f64,
            None => chosen.push((place, 1.0 / limit as f64)),
        }
    }
    chosen
}

/// φ on the pooled samples, and what one policy's flow makes of it.
pub struct Problem<'a> {
    /// Discount γ.
    pub gamma: f64,
    /// Entries of φ, the constant last.
    pub entries: usize,
    /// φ(s,a), `[sample][padded(entries)]`.
    pub now: &'a [f32],
    /// Weights of the samples; they sum to 1.
    pub weights: &'a [f64],
    /// `B = E_d[φφᵀ]`.
    pub b: &'a Matrix,
    /// Mean of φ(s',a'), of resets after an end.
    pub next: Vec<f32>,
    /// E[φ(s0,a0)].
    pub first: Vec<f64>,
    /// Weight of ridges.
    pub ridge: f64,
    /// n, which bounds ζ.
    pub policies: f64,
}

impl<'a> Problem<'a> {
    /// The problem of policy i.
    #[allow(clippy::too_many_arguments)]
    pub fn new(
        settings: &EstimatorConfig,
        policies: &dyn Policies,
        i: usize,
        own: &Transitions,
        pool: &'a Pool,
        map: &Map<'_>,
        (now, b): (&'a [f32], &'a Matrix),
        seed: u64,
        round: usize,
    ) -> Self {
        let (state, stride, entries) = (policies.state_width(), map.stride(), map.standard.len());
        let mut random = stream(seed, Purpose::RatioAction, i, round);
        let chosen = choose(&own.initial_weights, FIRSTS, &mut random);
        let states: Vec<f32> = chosen
            .iter()
            .flat_map(|(row, _)| own.initial[row * state..][..state].iter().copied())
            .collect();
        let rows = map.acted(policies, i, &states, FIRST_ACTIONS, &mut random);
        let mut first = vec![0.0; entries];
        for (row, (_, share)) in rows.chunks_exact(stride).zip(&chosen) {
            first
                .iter_mut()
                .zip(row)
                .for_each(|(sum, &x)| *sum += share * f64::from(x));
        }
        let mut next = map.acted(policies, i, &pool.next_states, settings.next_actions, &mut random);
        for (row, _) in next
            .chunks_exact_mut(stride)
            .zip(&pool.terminated)
            .filter(|(_, ended)| **ended)
        {
            row.iter_mut().zip(&first).for_each(|(x, &first)| *x = first as f32);
        }
        Problem {
            gamma: f64::from(settings.gamma),
            entries,
            now,
            weights: &pool.weights,
            b,
            next,
            first,
            ridge: settings.ratio.ridge,
            policies: settings.n as f64,
        }
    }

    fn stride(&self) -> usize {
        padded(self.entries)
    }

    /// φ(s,a) of each sample.
    pub fn now(&self) -> impl Iterator<Item = &[f32]> {
        self.now.chunks_exact(self.stride()).map(|row| &row[..self.entries])
    }

    /// δ = φ(s,a) - γ·φ(s',a') of each sample, `[sample][padded(entries)]`.
    pub fn delta(&self) -> Vec<f32> {
        let gamma = self.gamma as f32;
        self.now
            .iter()
            .zip(&self.next)
            .map(|(now, next)| now - gamma * next)
            .collect()
    }

    /// (1-γ)·E[φ(s0,a0)].
    pub fn start(&self) -> Vec<f64> {
        self.first.iter().map(|x| (1.0 - self.gamma) * x).collect()
    }

    /// A matrix with a ridge of `weight` times its mean diagonal entry, which leaves the constant alone, as L·Lᵀ.
    pub fn with_ridge(&self, matrix: &Matrix, weight: f64) -> Matrix {
        let scale = (0..self.entries)
            .map(|k| matrix.entries[k * self.entries + k])
            .sum::<f64>()
            / self.entries as f64;
        factor(matrix, weight * scale)
    }
}

/// What the ridge adds to the constant's place, beside 1 elsewhere: next to nothing, so that `E_d[ζ] = 1` is not paid for.
pub const CONSTANT: f64 = 1e-6;

/// L of matrix + weight·diag(1, …, 1, [`CONSTANT`]) = L·Lᵀ; where rounding has left no positive definite matrix, with more.
pub fn factor(matrix: &Matrix, weight: f64) -> Matrix {
    let size = matrix.rows;
    let mut extra = 0.0f64;
    loop {
        let mut sum = matrix.clone();
        for k in 0..size {
            let share = if k + 1 == size { CONSTANT } else { 1.0 };
            sum.entries[k * size + k] += weight * share + extra;
        }
        if let Some(lower) = sum.cholesky() {
            return lower;
        }
        // A matrix that is not finite has no factor with any ridge: its solution is none either.
        if sum.entries.iter().any(|x| !x.is_finite()) || extra > 1e12 {
            return Matrix::scaled_identity(size, f64::NAN);
        }
        extra = (extra * 10.0).max(1e-10);
    }
}

/// Σ w·left·rightᵀ over rows of φ: products in single precision, their sums in double, in the order of the rows.
pub fn gram(left: &[f32], weights: &[f64], right: &[f32], entries: usize) -> Matrix {
    let stride = padded(entries);
    let mut sum = Matrix::new(entries, entries, vec![0.0; entries * entries]);
    let (mut scaled, mut part) = (vec![0.0f32; CHUNK * stride], vec![0.0f32; entries * entries]);
    let chunks = left.chunks(CHUNK * stride).zip(right.chunks(CHUNK * stride));
    for ((left, right), weights) in chunks.zip(weights.chunks(CHUNK)) {
        for ((scaled, left), &weight) in scaled
            .chunks_exact_mut(stride)
            .zip(left.chunks_exact(stride))
            .zip(weights)
        {
            let weight = weight as f32;
            scaled.iter_mut().zip(left).for_each(|(x, y)| *x = weight * y);
        }
        let product = Product {
            rows: entries,
            depth: weights.len(),
            columns: entries,
            w: &scaled,
            w_row: 1,
            w_column: stride,
            x: right,
            x_row: stride,
            c_row: entries,
            accumulate: false,
        };
        product::simd(product, &mut part);
        sum.entries
            .iter_mut()
            .zip(&part)
            .for_each(|(sum, &x)| *sum += f64::from(x));
    }
    sum
}

/// Σ_k row_k·coefficient_k.
pub fn read(row: &[f32], coefficients: &[f64]) -> f64 {
    let mut lanes = [0.0; 8];
    let (rows, rests) = (row.chunks_exact(8), coefficients.chunks_exact(8));
    let rest: f64 = rows
        .remainder()
        .iter()
        .zip(rests.remainder())
        .map(|(&x, c)| f64::from(x) * c)
        .sum();
    for (row, coefficients) in rows.zip(rests) {
        for ((lane, &x), c) in lanes.iter_mut().zip(row).zip(coefficients) {
            *lane += f64::from(x) * c;
        }
    }
    lanes.iter().sum::<f64>() + rest
}

/// sum += weight·row.
pub fn add(sum: &mut [f64], weight: f64, row: &[f32]) {
    sum.iter_mut()
        .zip(row)
        .for_each(|(sum, &x)| *sum += weight * f64::from(x));
}
