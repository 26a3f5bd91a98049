//! Estimators on a real run: moving policies of a task without known ratios, held against a reference with far more data.
//!
//! ```text
//! run        `qd` with NCE of states and actions, weighting "normalised", 5 epochs, ω and the learning rate of `Watch`
//!            throughout, else the defaults; every estimator follows its rollouts iteration by iteration, as in Algorithm 1,
//!            and sees no other steps
//! moments    at some iterations the policies are frozen and take `fresh` further steps each
//! reference      n-way classifiers (ratio/softmax.rs), two on each half of those: log ρ_a/ρ_b is the mean of all; the rank
//!            correlation of the halves with each other is the ceiling, what two independent answers have in common
//! scores     for each ordered pair (i, j): rank correlation of log ζ_ji with the reference within i's own newest samples, the
//!            ones that its diversity reward is of, by their weights γ^t, as the ratio is one of discounted occupancies;
//!            D_JS of both, nothing clipped
//! ```
//!
//! A pair is judged where the reference's D_JS lies between .1 and .6: below, two references hardly agree; above, there is little
//! left to rank. The reference's D_JS is cross-fitted: each half is read by the classifier of the other.

use serde::Serialize;

use crate::config::Config;
use crate::env::Task;
use crate::env::behaviour::Behaviour;
use crate::error::Result;
use crate::method::Weighting;
use crate::parallel;
use crate::policy::{Ensemble, Rollout, Worker};
use crate::ratio::rank::weighted_rank_correlation;
use crate::ratio::softmax::{Lessons, Softmax};
use crate::ratio::{
    self, Estimator, EstimatorChoice, GaussianPolicies, Memory, PairRatio, Policies, RatioConfig, Ratios, Round,
    Transitions,
};
use crate::rng::{Purpose, stream};
use crate::train::Trainer;

/// What is run and when it is looked at.
#[derive(Clone, Debug)]
pub struct Watch {
    /// Policies.
    pub ensemble: usize,
    /// Iterations after whose rollouts the policies are frozen, rising.
    pub moments: Vec<usize>,
    /// Further steps of each frozen policy.
    pub fresh: usize,
    /// Steps of each policy per iteration.
    pub steps: usize,
    /// Learning rate of PPO.
    pub learning_rate: f64,
    /// ω throughout, such that the D_JS of most pairs are between .1 and .6.
    pub omega: f64,
}

impl Watch {
    /// The one of a robot: walkers part sooner than cheetahs.
    pub fn of(robot: &str) -> Self {
        let omega = if robot == "walker2d" { 0.15 } else { 0.35 };
        Watch {
            ensemble: 5,
            moments: vec![10, 15, 20, 25, 30],
            fresh: 50_000,
            steps: 2048,
            learning_rate: 3e-4,
            omega,
        }
    }
}

/// The reference: widths, minibatches, samples of each policy in one, first learning rate (it falls to 0), weight of ‖θ‖².
const HIDDEN: [usize; 2] = [64, 64];
const UPDATES: usize = 1500;
const EACH: usize = 128;
const RATE: f64 = 2e-3;
const L2: f64 = 1e-3;
/// Classifiers on each half.
const NETS: usize = 2;

/// Pairs with a D_JS within these are judged.
pub const JUDGED: std::ops::RangeInclusive<f64> = 0.1..=0.6;

/// Fewest pairs for a verdict.
pub const FEWEST: usize = 30;

/// One estimator's answer about one ordered pair at one moment.
#[derive(Clone, Debug, Serialize)]
pub struct PairScore {
    /// The iteration.
    pub iteration: usize,
    /// i, whose samples are ranked, and j.
    pub pair: (usize, usize),
    /// Rank correlation of log ζ_ji with the reference within i's samples, by their weights in the occupancy.
    pub rank: f64,
    /// The same of the reference's two halves with each other.
    pub ceiling: f64,
    /// The two with every step counted alike: mostly late steps, which a discounted occupancy hardly has.
    pub alike: (f64, f64),
    /// D_JS of the reference.
    pub js: f64,
    /// D_JS of the estimator.
    pub estimated: f64,
}

/// What one estimator did on one robot.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// The robot.
    pub task: String,
    /// The estimator.
    pub estimator: String,
    /// The seed.
    pub seed: u64,
    /// Judged pairs.
    pub pairs: usize,
    /// Median rank correlation.
    pub rank: f64,
    /// Its 10 % quantile.
    pub rank_low: f64,
    /// Median |ΔD_JS|.
    pub js_error: f64,
    /// Median D_JS of the reference, and of the estimator.
    pub js: (f64, f64),
    /// Median rank correlation of the reference's halves.
    pub ceiling: f64,
    /// Median rank and its 10 % quantile with every step counted alike: reported, not judged.
    pub alike: (f64, f64),
    /// Whether the bounds apply.
    pub judged: bool,
    /// Bounds that were missed, in words.
    pub missed: Vec<String>,
    /// All pairs, the ones that are not judged too.
    pub scores: Vec<PairScore>,
}

impl Verdict {
    /// One sentence about what was missed, or nothing.
    pub fn complaint(&self) -> Option<String> {
        (!self.missed.is_empty()).then(|| {
            format!(
                "{} on {} with seed {}: {}",
                self.estimator,
                self.task,
                self.seed,
                self.missed.join(", ")
            )
        })
    }
}

/// Runs the task and lets these estimators follow.
pub fn watch(
    watch: &Watch,
    name: &str,
    task: &dyn Task,
    estimators: &[EstimatorChoice],
    config: &RatioConfig,
    seed: u64,
) -> Result<Vec<Verdict>> {
    let n = watch.ensemble;
    let mut settings = Config {
        seed,
        ensemble: n,
        steps: watch.steps,
        ratio: config.clone(),
        ..Config::default()
    };
    // Policies that part quickly in states and actions, so that there is something to follow.
    settings.ppo.learning_rate = watch.learning_rate;
    settings.ppo.anneal.to = 1.0;
    settings.ppo.epochs = 5;
    settings.qd.behaviour = Some(Behaviour::state_action());
    settings.qd.weighting = Weighting::Normalised;
    settings.qd.omega_start = watch.omega;
    settings.qd.omega_end = watch.omega;
    settings.qd.ladder = 0.0;
    settings.qd.omega_off = 1.0;
    let gamma = settings.ppo.gamma;
    let mut trainer = Trainer::new(settings, task)?;
    let (state, action) = (trainer.spec.observation, trainer.spec.action());
    let mut memory = Memory::new(n, state, action, 0, gamma, config);
    let mut learners = estimators
        .iter()
        .map(|&estimator| ratio::build(estimator, n, state + action, gamma, config, seed))
        .collect::<Result<Vec<Box<dyn Estimator>>>>()?;
    let mut scores: Vec<Vec<PairScore>> = vec![Vec::new(); estimators.len()];
    let last = watch.moments.last().copied().unwrap_or(0);
    for iteration in 0..last {
        let frozen = trainer.ensemble.clone();
        trainer.iterate()?;
        memory.remember(trainer.rollouts());
        let (data, newest) = (memory.data(), memory.newest());
        let policies = GaussianPolicies {
            ensemble: &frozen,
            features: &memory.features,
        };
        for learner in &mut learners {
            learner.update(&Round {
                policies: &policies,
                data: &data,
                seed,
                round: iteration,
                updates: config.updates(data[0].len(), iteration == 0),
                rate: (1.0, 1.0),
            });
        }
        if !watch.moments.contains(&(iteration + 1)) {
            continue;
        }
        let reference = Reference::new(watch, task, &policies, gamma, config, seed, iteration)?;
        let truths = parallel::map(&newest[..], |_, batch| reference.logits(&policies, batch));
        for (learner, scores) in learners.iter().zip(&mut scores) {
            let ratios = Ratios::read(learner.as_ref(), &policies, &newest, seed, iteration);
            scores.extend(score(&reference, &truths, &newest, &ratios, iteration + 1));
        }
    }
    let each = estimators.iter().zip(scores);
    Ok(each
        .map(|(estimator, scores)| verdict(name, *estimator, seed, scores))
        .collect())
}

/// Two classifiers, one on each half of the fresh steps.
struct Reference {
    nets: [Vec<Softmax>; 2],
    /// D_JS of each pair `[a][b]`, cross-fitted.
    js: Vec<f64>,
}

impl Reference {
    fn new(
        watch: &Watch,
        task: &dyn Task,
        policies: &GaussianPolicies<'_>,
        gamma: f64,
        config: &RatioConfig,
        seed: u64,
        iteration: usize,
    ) -> Result<Self> {
        let rollouts = fresh(watch, task, policies.ensemble, seed, iteration)?;
        let (state, action) = (
            policies.ensemble.policies.shape.input(),
            policies.ensemble.policies.shape.output(),
        );
        let mut memory = Memory::new(watch.ensemble, state, action, 0, gamma, config);
        memory.remember(&rollouts);
        let newest = memory.newest();
        let features = parallel::map(&newest[..], |_, batch| Policies::features(policies, batch));
        let (half, width, n) = (watch.fresh / 2, state + action, watch.ensemble);
        let parts = |side: usize| -> Vec<Vec<f32>> {
            let rows = side * half * width..(side + 1) * half * width;
            features
                .iter()
                .map(|features| features[rows.clone()].to_vec())
                .collect()
        };
        let weights = |side: usize| -> Vec<&[f32]> {
            newest
                .iter()
                .map(|batch| &batch.weights[side * half..(side + 1) * half])
                .collect()
        };
        let nets: [Vec<Softmax>; 2] = [0, 1].map(|side| {
            let lessons = Lessons {
                features: &parts(side),
                weights: &weights(side),
                updates: UPDATES,
                each: EACH,
                rate: (RATE, 0.0),
                l2: L2,
                clip: f64::INFINITY,
            };
            let train = |net: usize| {
                let random =
                    |i: usize| stream(seed, Purpose::Classifier, (net + 1) * (n + 1) + i, 2 * iteration + side);
                let mut reference = Softmax::new(n, width, &HIDDEN, 0.0, EACH, |_| random(n));
                reference.train(&lessons, &mut (0..n).map(random).collect::<Vec<_>>());
                reference
            };
            parallel::map(0..NETS, |_, net| train(net))
        });
        // The classifier of one half on the other half.
        let crossed: Vec<Vec<Vec<Vec<f32>>>> = (0..2)
            .map(|side| parallel::map(&parts(side)[..], |_, rows| mean_logits(&nets[1 - side], rows)))
            .collect();
        let mut js = vec![0.0; n * n];
        for (side, crossed) in crossed.iter().enumerate() {
            let weights = weights(side);
            for a in 0..n {
                for b in (0..n).filter(|&b| b != a) {
                    let of = |on: usize| difference(&crossed[on][a], &crossed[on][b]);
                    js[a * n + b] += 0.5 * jensen_shannon((&of(b), weights[b]), (&of(a), weights[a]));
                }
            }
        }
        Ok(Reference { nets, js })
    }

    /// Logits of both classifiers on a batch: `[half][policy][sample]`.
    fn logits(&self, policies: &GaussianPolicies<'_>, batch: &Transitions) -> [Vec<Vec<f32>>; 2] {
        let features = Policies::features(policies, batch);
        self.nets.each_ref().map(|nets| mean_logits(nets, &features))
    }
}

/// Logits averaged over several classifiers: `[policy][sample]`.
fn mean_logits(nets: &[Softmax], features: &[f32]) -> Vec<Vec<f32>> {
    let mut each = nets.iter().map(|net| net.logits(features));
    let mut mean = each.next().unwrap_or_default();
    for logits in each {
        for (mean, logits) in mean.iter_mut().zip(&logits) {
            mean.iter_mut().zip(logits).for_each(|(mean, x)| *mean += x);
        }
    }
    let share = 1.0 / nets.len() as f32;
    mean.iter_mut().flatten().for_each(|x| *x *= share);
    mean
}

/// Further steps of the frozen policies, in episodes that training has not seen.
fn fresh(watch: &Watch, task: &dyn Task, ensemble: &Ensemble, seed: u64, iteration: usize) -> Result<Vec<Rollout>> {
    let seed = seed.wrapping_mul(1 << 20).wrapping_add(iteration as u64 + 1);
    let collect = |i: usize| -> Result<Rollout> {
        let (mut worker, mut rollout) = (Worker::new(task, seed, i)?, Rollout::default());
        worker.collect(
            ensemble.actor(i),
            &ensemble.normalizers[i],
            0,
            watch.fresh,
            &mut rollout,
        )?;
        Ok(rollout)
    };
    let rollouts = parallel::map(0..watch.ensemble, |_, i| collect(i));
    rollouts.into_iter().collect()
}

fn score(
    reference: &Reference,
    truths: &[[Vec<Vec<f32>>; 2]],
    newest: &[&Transitions],
    ratios: &Ratios,
    iteration: usize,
) -> Vec<PairScore> {
    let n = newest.len();
    let pairs: Vec<_> = ratios.iter().collect();
    // log ζ_ab on b's samples: b is i, and a is j.
    parallel::map(pairs, |_, ((a, b), PairRatio { on_b, on_a, .. })| {
        let half = |side: usize| difference(&truths[b][side][a], &truths[b][side][b]);
        let (first, second) = (half(0), half(1));
        let judged: Vec<f32> = first.iter().zip(&second).map(|(x, y)| 0.5 * (x + y)).collect();
        let (w_a, w_b) = (&newest[a].weights[..], &newest[b].weights[..]);
        let even = vec![1.0; w_b.len()];
        PairScore {
            iteration,
            pair: (b, a),
            rank: rank(on_b, &judged, w_b),
            ceiling: rank(&first, &second, w_b),
            alike: (rank(on_b, &judged, &even), rank(&first, &second, &even)),
            js: reference.js[a * n + b],
            estimated: jensen_shannon((on_b, w_b), (on_a, w_a)),
        }
    })
}

fn difference(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// Rank correlation of weighted samples; 0 where one side is constant.
pub(super) fn rank(x: &[f32], y: &[f32], weights: &[f32]) -> f64 {
    let wide = |values: &[f32]| values.iter().map(|&x| f64::from(x)).collect::<Vec<f64>>();
    let rank = weighted_rank_correlation(&wide(x), &wide(y), &wide(weights));
    if rank.is_finite() { rank } else { 0.0 }
}

/// D_JS from log ζ_ab on b's and on a's samples with their weights, nothing clipped.
pub fn jensen_shannon((on_b, w_b): (&[f32], &[f32]), (on_a, w_a): (&[f32], &[f32])) -> f64 {
    // log 2 + log σ(x), under the policy of which x is the log ratio to the other.
    let half = |logs: &[f32], weights: &[f32], sign: f64| {
        let (mut sum, mut mass) = (0.0, 0.0);
        for (&x, &weight) in logs.iter().zip(weights) {
            let (x, weight) = (sign * f64::from(x), f64::from(weight));
            sum += weight * (std::f64::consts::LN_2 - ((-x).max(0.0) + (-x.abs()).exp().ln_1p()));
            mass += weight;
        }
        sum / mass
    };
    0.5 * (half(on_a, w_a, 1.0) + half(on_b, w_b, -1.0))
}

pub(super) fn verdict(task: &str, estimator: EstimatorChoice, seed: u64, scores: Vec<PairScore>) -> Verdict {
    let judged: Vec<&PairScore> = scores.iter().filter(|score| JUDGED.contains(&score.js)).collect();
    let of = |pick: &dyn Fn(&PairScore) -> f64| judged.iter().map(|score| pick(score)).collect::<Vec<f64>>();
    let ranks = of(&|score| score.rank);
    let alike = of(&|score| score.alike.0);
    let (rank, rank_low) = (quantile(&ranks, 0.5), quantile(&ranks, 0.1));
    let js_error = quantile(&of(&|score| (score.estimated - score.js).abs()), 0.5);
    let (least, least_low, most) = estimator.bounds();
    let mut missed = Vec::new();
    if judged.len() < FEWEST {
        missed.push(format!("only {} pairs can be judged, not {FEWEST}", judged.len()));
    }
    if rank.is_nan() || rank < least {
        missed.push(format!("median rank {rank:.3} is below {least}"));
    }
    if rank_low.is_nan() || rank_low < least_low {
        missed.push(format!("10 % quantile of the rank {rank_low:.3} is below {least_low}"));
    }
    if js_error.is_nan() || js_error > most {
        missed.push(format!("median error of D_JS {js_error:.3} is above {most}"));
    }
    Verdict {
        task: task.into(),
        estimator: estimator.to_string(),
        seed,
        pairs: judged.len(),
        rank,
        rank_low,
        js_error,
        js: (
            quantile(&of(&|score| score.js), 0.5),
            quantile(&of(&|score| score.estimated), 0.5),
        ),
        ceiling: quantile(&of(&|score| score.ceiling), 0.5),
        alike: (quantile(&alike, 0.5), quantile(&alike, 0.1)),
        judged: true,
        missed,
        scores,
    }
}

/// A quantile, between two values in proportion; NaN of nothing.
fn quantile(values: &[f64], share: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let Some(last) = sorted.len().checked_sub(1) else {
        return f64::NAN;
    };
    let at = share * last as f64;
    let (low, rest) = (at.floor() as usize, at.fract());
    sorted[low] + rest * (sorted[(low + 1).min(last)] - sorted[low])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(estimator: &str) -> EstimatorChoice {
        EstimatorChoice::named(estimator).unwrap()
    }
    use crate::env::maze::MazeConfig;

    #[test]
    fn quantiles_and_divergences_by_hand() {
        assert_eq!(quantile(&[3.0, 1.0, 2.0], 0.5), 2.0);
        assert!((quantile(&[0.0, 1.0], 0.1) - 0.1).abs() < 1e-12);
        assert!(quantile(&[], 0.5).is_nan());
        assert_eq!(jensen_shannon((&[0.0], &[1.0]), (&[0.0, 0.0], &[1.0, 3.0])), 0.0);
        let far = jensen_shannon((&[-50.0], &[1.0]), (&[50.0], &[2.0]));
        assert!((far - std::f64::consts::LN_2).abs() < 1e-12);
    }

    #[test]
    fn bounds_are_told_apart() {
        let score = |rank: f64, js: f64, estimated: f64| PairScore {
            iteration: 10,
            pair: (0, 1),
            rank,
            ceiling: 0.9,
            alike: (rank, 0.9),
            js,
            estimated,
        };
        let good = verdict("t", named("nce"), 1, vec![score(0.9, 0.3, 0.31); 40]);
        assert!(good.missed.is_empty() && good.pairs == 40, "{good:?}");
        let few = verdict("t", named("nce"), 1, vec![score(0.9, 0.3, 0.31); 29]);
        assert_eq!(few.missed, ["only 29 pairs can be judged, not 30"]);
        let bad = verdict("t", named("gendice"), 1, vec![score(0.5, 0.3, 0.35); 40]);
        assert_eq!(bad.missed.len(), 3);
        let beyond = verdict("t", named("nce"), 1, vec![score(0.9, 0.65, 0.31); 40]);
        assert_eq!(beyond.pairs, 0);
    }

    /// The whole of it, small: two moments of a maze; what is learned is of no interest here.
    #[test]
    fn a_run_is_watched_and_repeats_exactly() {
        let small = Watch {
            ensemble: 2,
            moments: vec![1, 2],
            fresh: 600,
            steps: 256,
            learning_rate: 3e-4,
            omega: 0.35,
        };
        let config = RatioConfig::default();
        let run = || {
            watch(
                &small,
                "maze",
                &MazeConfig::default(),
                &["nce", "gendice"].map(named),
                &config,
                1,
            )
            .unwrap()
        };
        let (first, again) = (run(), run());
        assert_eq!(first.len(), 2);
        for (first, again) in first.iter().zip(&again) {
            assert_eq!(first.scores.len(), 4);
            for (x, y) in first.scores.iter().zip(&again.scores) {
                assert_eq!((x.rank, x.js, x.estimated), (y.rank, y.js, y.estimated));
            }
        }
    }
}
