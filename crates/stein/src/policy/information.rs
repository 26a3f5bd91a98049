//! How much a state tells of the policy that went there: the mutual information of the policy's number and its states.
//!
//! ```text
//! I(i; x) = E_{i, x ~ ρ_i}[log ρ_i(x)/ρ̄(x)] = log n - H(i|x)          i uniform over the n policies,  ρ̄ = (1/n)·Σ_i ρ_i
//! H(i|x) ≤ -(1/n)·Σ_i E_{ρ_i}[log q(i|x)]                              for any classifier q that has not seen x
//! estimate = max(0, log n + (1/n)·Σ_i mean of log q(i|x) over states x of policy i in held-out episodes)
//! ```
//!
//! In nats: 0 if all policies visit the same states equally often, log n if no two of them share any. q is a softmax network;
//! episodes are dealt out into five folds (fewer where there are fewer episodes), and each fold is judged by a network that
//! was trained on the others. One of those tells when training has to stop, so that q does not overfit; where q knows no
//! better it says 1/n. The estimate is a lower bound but for sampling noise, of which the floor at 0 keeps the upper half.
//!
//! Resolution: policies that act by their means repeat themselves to many digits, and would be told apart by differences that
//! nobody could see. So x is a state seen with noise, of a hundredth of the pooled std of each entry: what differs by
//! less does not count. By the data processing inequality that is a lower bound again.
//!
//! Shapes: x are the states that an episode's T steps led to. Every step of a policy weighs the same and so does every policy,
//! whatever its episodes' lengths. The network sees each entry of x twice, standardised and as its rank among the entries
//! of all policies: both are functions of x, so nothing is added, but fine differences are seen beside coarse ones.
//!
//! Reference: Barber, Agakov 2003, "The IM algorithm" (the bound); Gangwani, Peng, Zhou 2020, Section 3.2 (for two policies
//! this is the Jensen-Shannon divergence).

use rand::seq::SliceRandom;
use rand_distr::{Distribution, StandardNormal};

use crate::env::{Episode, Task};
use crate::error::{Error, Result};
use crate::nn::{AdamConfig, Scratch, Shape, Stack, Step, Trainee};
use crate::parallel;
use crate::policy::evaluate::mean_and_std;
use crate::rng::{Purpose, Stream, stream};

/// States that are looked at: of an episode, and of a policy, at most.
const STATES_OF_EPISODE: usize = 200;
const STATES_OF_POLICY: usize = 2000;
const FOLDS: usize = 5;
const HIDDEN: [usize; 2] = [32, 32];
const MINIBATCH: usize = 256;
const LEARNING_RATE: f64 = 3e-3;
const WEIGHT_DECAY: f64 = 1e-2;
/// Rounds at most, and rounds without progress after which training stops. A round is one pass over the states, or as many
/// as make this many steps.
const ROUNDS: usize = 40;
const PATIENCE: usize = 4;
const STEPS_OF_ROUND: usize = 20;
/// Deviation of the noise that states are seen with, in pooled stds of each entry.
const RESOLUTION: f64 = 0.01;
/// Share of q that is uniform whatever the network says: a mistake never costs more than log(n/this).
const DOUBT: f64 = 1e-3;

/// What behaviour φ ([`Task::behaviour`]), and what whole states (observations), tell of the policy's number;
/// `policies[i]` are the episodes of policy i. A task without a behaviour has that of whole states twice.
pub fn of_episodes(task: &dyn Task, policies: &[Vec<Episode>], seed: u64) -> Result<[f64; 2]> {
    let spec = task.make()?.spec().clone();
    let mut chosen = Vec::new();
    for name in task.behaviour() {
        let index = spec.signals.iter().position(|signal| signal == name);
        chosen.push(index.ok_or_else(|| {
            Error::failed(format!(
                "the task's behaviour names the signal {name}, which its environment does not have; add it to Spec::signals"
            ))
        })?);
    }
    let states = || {
        let after_steps = |episode: &Episode| episode.observations[spec.observation..].to_vec();
        information(&table(policies, after_steps), spec.observation, seed)
    };
    if chosen.is_empty() {
        let information = states();
        return Ok([information, information]);
    }
    let behaviour = || {
        let after_steps = |episode: &Episode| {
            let rows = episode.signals.chunks_exact(spec.signals.len()).skip(1);
            rows.flat_map(|row| chosen.iter().map(|&index| row[index] as f32))
                .collect()
        };
        information(&table(policies, after_steps), chosen.len(), seed)
    };
    let (behaviour, states) = parallel::join(behaviour, states);
    Ok([behaviour, states])
}

fn table(policies: &[Vec<Episode>], rows: impl Fn(&Episode) -> Vec<f32>) -> Vec<Vec<Vec<f32>>> {
    let each = |episodes: &Vec<Episode>| episodes.iter().map(&rows).collect();
    policies.iter().map(each).collect()
}

/// The information in nats, 0 to log n: `policies[i][e]` are the states of episode e of policy i, rows of `width` numbers.
/// NaN where a policy has fewer than two episodes or an episode no states, and where a number is not finite.
pub fn information(policies: &[Vec<Vec<f32>>], width: usize, seed: u64) -> f64 {
    let n = policies.len();
    let episodes = policies.iter().map(Vec::len).min().unwrap_or(0);
    let usable = |states: &Vec<f32>| !states.is_empty() && states.iter().all(|x| x.is_finite());
    if episodes < 2 || width == 0 || !policies.iter().flatten().all(usable) {
        return f64::NAN;
    }
    if n == 1 {
        return 0.0;
    }
    let folds = episodes.min(FOLDS);
    let samples = Samples::draw(policies, width, folds, seed);
    // Collected in order, so that the sum has the same bits on any number of threads.
    let parts = parallel::map(0..folds, |_, fold| samples.log_likelihood_of(fold, folds, seed));
    let information = (n as f64).ln() + parts.iter().sum::<f64>() / n as f64;
    // What is left where all folds know nothing is rounding.
    if information > 1e-9 { information } else { 0.0 }
}

/// The states that are looked at, with all that a network has to know of them.
struct Samples {
    n: usize,
    /// What the network sees, row after row.
    inputs: Vec<f32>,
    width: usize,
    /// Whose each state is.
    policy: Vec<u32>,
    /// The fold that its episode is in.
    fold: Vec<u32>,
    /// Its weight: those of one policy sum to 1.
    weight: Vec<f64>,
}

impl Samples {
    /// Draws some states of every episode.
    fn draw(policies: &[Vec<Vec<f32>>], width: usize, folds: usize, seed: u64) -> Self {
        let mut states: Vec<f32> = Vec::new();
        let (mut policy, mut fold, mut weight) = (Vec::new(), Vec::new(), Vec::new());
        for (i, episodes) in policies.iter().enumerate() {
            let most = (STATES_OF_POLICY / episodes.len()).clamp(1, STATES_OF_EPISODE);
            let steps: usize = episodes.iter().map(|rows| rows.len() / width).sum();
            for (e, rows) in episodes.iter().enumerate() {
                let length = rows.len() / width;
                let kept = length.min(most);
                let mut random = stream(seed, Purpose::Information, i + 1, e);
                let mut chosen = rand::seq::index::sample(&mut random, length, kept).into_vec();
                chosen.sort_unstable();
                for row in chosen {
                    states.extend_from_slice(&rows[row * width..][..width]);
                    policy.push(i as u32);
                    fold.push((e % folds) as u32);
                    // A state stands for all those of its episode that were not drawn.
                    weight.push(length as f64 / (kept * steps) as f64);
                }
            }
        }
        Samples {
            n: policies.len(),
            inputs: inputs(&states, width, &mut stream(seed, Purpose::Information, 0, 0)),
            width: 2 * width,
            policy,
            fold,
            weight,
        }
    }

    /// Σ of weight·log q(i|x) over the states of one fold, q having been trained on the others.
    fn log_likelihood_of(&self, fold: usize, folds: usize, seed: u64) -> f64 {
        let random = stream(seed, Purpose::Information, 0, fold + 1);
        let among = |chosen: &dyn Fn(usize) -> bool| -> Vec<u32> {
            let indices = self.fold.iter().enumerate();
            let chosen = indices.filter(|(_, fold)| chosen(**fold as usize));
            chosen.map(|(index, _)| index as u32).collect()
        };
        let judged = among(&|other| other == fold);
        let (learned, watched) = if folds > 2 {
            let watch = (fold + 1) % folds;
            (
                among(&|other| other != fold && other != watch),
                among(&|other| other == watch),
            )
        } else {
            // One episode a policy to learn from: every other state of it watches.
            let rest = among(&|other| other != fold);
            rest.into_iter().partition(|index| index % 2 == 0)
        };

        let shape = Shape::new(self.width, &HIDDEN, self.n);
        let adam = AdamConfig {
            weight_decay: WEIGHT_DECAY,
            ..AdamConfig::default()
        };
        let first = |_| stream(seed, Purpose::Information, 0, fold + 1);
        let mut stack = Stack::new(shape, 1, adam, (1.0, 0.1), first).with_capacity(MINIBATCH);
        let log_q = stack.train(|_, network| {
            let informed = self.fit(network, learned.clone(), &watched, random.clone());
            if informed {
                self.log_q(network, &judged)
            } else {
                vec![-(self.n as f64).ln(); judged.len()]
            }
        });
        let each = judged.iter().zip(&log_q[0]);
        each.map(|(&index, log_q)| self.weight[index as usize] * log_q).sum()
    }

    /// Trains q on the states `learned` and leaves it as it was when it knew most of the `watched` ones; says whether it ever
    /// knew more of them than nothing, q = 1/n.
    fn fit(&self, network: &mut Trainee<'_, f32>, mut learned: Vec<u32>, watched: &[u32], mut random: Stream) -> bool {
        let (mut best, mut kept, mut without) = (-(self.n as f64).ln(), None, 0);
        let weights = self.shares(&learned);
        let total = self.shares(watched);
        // Weights that are 1 in the mean, so that the size of a gradient does not depend on the number of states.
        let scale = learned.len() as f64 / self.n as f64;
        let weight = |index: usize| scale * self.weight[index] / weights[self.policy[index] as usize];
        let passes = STEPS_OF_ROUND.div_ceil(learned.len().div_ceil(MINIBATCH));
        for _ in 0..ROUNDS {
            for _ in 0..passes {
                learned.shuffle(&mut random);
                for batch in learned.chunks(MINIBATCH) {
                    self.step(network, batch, weight);
                }
            }
            let log_q = self.log_q(network, watched);
            let each = watched.iter().zip(&log_q).map(|(&index, log_q)| {
                let index = index as usize;
                self.weight[index] / total[self.policy[index] as usize] * log_q
            });
            let mean = each.sum::<f64>() / self.n as f64;
            if mean > best {
                (best, without) = (mean, 0);
                kept = Some(network.frozen());
            } else {
                without += 1;
                if without == PATIENCE {
                    break;
                }
            }
        }
        if let Some(kept) = &kept {
            network.thaw(kept);
        }
        kept.is_some()
    }

    /// One step down the weighted cross-entropy of a batch.
    fn step(&self, network: &mut Trainee<'_, f32>, batch: &[u32], weight: impl Fn(usize) -> f64) {
        let step = Step {
            rate: LEARNING_RATE,
            clip: 1.0,
        };
        let input = |scratch: &mut Scratch<f32>| scratch.gather_input(&self.inputs, batch);
        network.minibatch(step, input, |scratch| {
            let mut chances = vec![0.0; self.n];
            for (b, &index) in batch.iter().enumerate() {
                softmax(scratch, b, &mut chances);
                chances[self.policy[index as usize] as usize] -= 1.0;
                let weight = weight(index as usize) / batch.len() as f64;
                for (j, difference) in chances.iter().enumerate() {
                    scratch.output_delta(j)[b] = (weight * difference) as f32;
                }
            }
        });
    }

    /// log q of the right policy for each of these states.
    fn log_q(&self, network: &mut Trainee<'_, f32>, indices: &[u32]) -> Vec<f64> {
        let mut log_q = Vec::with_capacity(indices.len());
        let mut chances = vec![0.0; self.n];
        for batch in indices.chunks(MINIBATCH) {
            let scratch = network.pass(|scratch| scratch.gather_input(&self.inputs, batch));
            for (b, &index) in batch.iter().enumerate() {
                softmax(scratch, b, &mut chances);
                let chance = chances[self.policy[index as usize] as usize];
                log_q.push(((1.0 - DOUBT) * chance + DOUBT / self.n as f64).ln());
            }
        }
        log_q
    }

    /// Sum of the weights of each policy among these states.
    fn shares(&self, indices: &[u32]) -> Vec<f64> {
        let mut shares = vec![0.0; self.n];
        for &index in indices {
            shares[self.policy[index as usize] as usize] += self.weight[index as usize];
        }
        shares
    }
}

/// Each entry standardised and with its noise, then each as its rank among all, from -1 to 1; equal entries share their rank.
fn inputs(states: &[f32], width: usize, random: &mut Stream) -> Vec<f32> {
    let rows = states.len() / width;
    let mut inputs = vec![0.0f32; 2 * states.len()];
    for entry in 0..width {
        let mut values: Vec<f64> = states
            .iter()
            .skip(entry)
            .step_by(width)
            .map(|&x| f64::from(x))
            .collect();
        let (mean, std) = mean_and_std(&values);
        for value in &mut values {
            let noise: f64 = StandardNormal.sample(random);
            // An entry that never changes tells nothing.
            *value = if std > 0.0 {
                (*value - mean) / std + RESOLUTION * noise
            } else {
                0.0
            };
        }
        let mut order: Vec<usize> = (0..rows).collect();
        order.sort_unstable_by(|&a, &b| values[a].total_cmp(&values[b]));
        let mut before = 0;
        for equal in order.chunk_by(|&a, &b| values[a] == values[b]) {
            let rank = (2 * before + equal.len()) as f64 / rows as f64 - 1.0;
            before += equal.len();
            for &row in equal {
                inputs[row * 2 * width + entry] = values[row] as f32;
                inputs[row * 2 * width + width + entry] = rank as f32;
            }
        }
    }
    inputs
}

/// Softmax of the outputs of sample b of a batch.
fn softmax(scratch: &Scratch<f32>, b: usize, chances: &mut [f64]) {
    let logit = |j: usize| f64::from(scratch.output(j)[b]);
    let largest = (0..chances.len()).map(logit).fold(f64::NEG_INFINITY, f64::max);
    for (j, chance) in chances.iter_mut().enumerate() {
        *chance = (logit(j) - largest).exp();
    }
    let sum: f64 = chances.iter().sum();
    chances.iter_mut().for_each(|chance| *chance /= sum);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Episodes of `steps` independent states, `x(policy, normal)` in one entry and noise in the others.
    fn drawn(
        n: usize,
        episodes: usize,
        steps: usize,
        width: usize,
        x: impl Fn(usize, f64) -> f64,
    ) -> Vec<Vec<Vec<f32>>> {
        let episode = |i: usize, e: usize| {
            let mut random = stream(7, Purpose::Truth, i, e);
            let mut normal = || -> f64 { StandardNormal.sample(&mut random) };
            let row = |_| {
                let mut row = vec![x(i, normal()) as f32];
                row.extend((1..width).map(|_| normal() as f32));
                row
            };
            (0..steps).flat_map(row).collect()
        };
        (0..n).map(|i| (0..episodes).map(|e| episode(i, e)).collect()).collect()
    }

    /// The information of policies with normal densities of these means and stds, by the trapezoidal rule.
    fn of_normals(policies: &[(f64, f64)]) -> f64 {
        let density = |x: f64, (mean, std): (f64, f64)| {
            let z = (x - mean) / std;
            (-0.5 * z * z).exp() / (std * (2.0 * std::f64::consts::PI).sqrt())
        };
        let n = policies.len() as f64;
        let h = 1e-3;
        let at = |step: i32| {
            let x = h * f64::from(step);
            let mixed: f64 = policies.iter().map(|&policy| density(x, policy)).sum::<f64>() / n;
            let term = |&policy: &(f64, f64)| match density(x, policy) {
                0.0 => 0.0,
                density => density * (density / mixed).ln(),
            };
            policies.iter().map(term).sum::<f64>() / n
        };
        h * (-20_000..20_000).map(at).sum::<f64>()
    }

    #[test]
    fn equal_policies_tell_nothing_and_disjoint_ones_everything() {
        for width in [1, 10] {
            let alike = information(&drawn(5, 5, 100, width, |_, z| z), width, 1);
            assert!((0.0..0.01).contains(&alike), "{alike}");
            let apart = information(&drawn(5, 5, 100, width, |i, z| 10.0 * i as f64 + z), width, 1);
            let most = 5f64.ln();
            assert!(apart > 0.97 * most && apart <= most, "{apart} of {most}");
        }
        // Close together beside one that is far away.
        let places = [0.0, 0.15, 0.3, 0.45, 5.0];
        let near = information(&drawn(5, 5, 200, 1, |i, z| places[i] + 1e-3 * z), 1, 1);
        assert!(near > 0.95 * 5f64.ln(), "{near}");
    }

    #[test]
    fn differences_that_nobody_sees_do_not_count() {
        // All come to rest half of the time, each at a place of its own that is hardly one.
        let rest = |i: usize, z: f64| if z > 0.0 { z } else { 1e-5 * i as f64 };
        let found = information(&drawn(5, 5, 200, 1, rest), 1, 1);
        assert!(found < 0.01, "{found}");
    }

    #[test]
    fn overlapping_policies_tell_what_an_integral_says() {
        for normals in [
            vec![(0.0, 1.0), (1.5, 1.0)],
            vec![(0.0, 1.0), (0.0, 3.0)],
            vec![(0.0, 0.5), (1.0, 0.5), (2.0, 1.0), (6.0, 2.0)],
        ] {
            let x = |i: usize, z: f64| normals[i].0 + normals[i].1 * z;
            let found = information(&drawn(normals.len(), 10, 200, 1, x), 1, 1);
            let expected = of_normals(&normals);
            assert!((found - expected).abs() < 0.03, "{found} for {expected}");
            // Two or three episodes give less, not more.
            for episodes in [2, 3] {
                let few = information(&drawn(normals.len(), episodes, 200, 1, x), 1, 1);
                assert!(
                    few < expected + 0.08 && few > 0.5 * expected,
                    "{episodes}: {few} for {expected}"
                );
            }
        }
    }

    #[test]
    fn policies_and_their_steps_weigh_the_same() {
        // Policy 0 has episodes of 30 steps, policy 1 of 600: with equal states nothing is told.
        let mut policies = drawn(2, 10, 600, 1, |_, z| z);
        policies[0].iter_mut().for_each(|states| states.truncate(30));
        let alike = information(&policies, 1, 1);
        assert!(alike < 0.02, "{alike}");
        let mut policies = drawn(2, 10, 600, 1, |i, z| 1.5 * i as f64 + z);
        policies[0].iter_mut().for_each(|states| states.truncate(30));
        let expected = of_normals(&[(0.0, 1.0), (1.5, 1.0)]);
        let found = information(&policies, 1, 1);
        assert!((found - expected).abs() < 0.05, "{found} for {expected}");
    }

    #[test]
    fn threads_change_no_bit() {
        let policies = drawn(3, 4, 50, 2, |i, z| i as f64 + z);
        let on = |threads: usize| {
            let pool = crate::parallel::Threads::new(threads).unwrap();
            pool.run(|| information(&policies, 2, 3))
        };
        assert_eq!(on(1).to_bits(), on(4).to_bits());
        assert!(on(1) > 0.0);
    }

    #[test]
    fn what_cannot_be_told_is_not_a_number() {
        let one = information(&drawn(2, 1, 50, 1, |i, z| 9.0 * i as f64 + z), 1, 1);
        assert!(one.is_nan(), "one episode cannot be held out");
        let mut broken = drawn(2, 3, 50, 1, |_, z| z);
        broken[1][2][7] = f32::NAN;
        assert!(information(&broken, 1, 1).is_nan());
        assert_eq!(information(&drawn(1, 3, 50, 1, |_, z| z), 1, 1), 0.0);
        // Entries that never change are no trouble.
        assert!(information(&drawn(2, 3, 50, 1, |_, _| 4.0), 1, 1) < 1e-9);
    }
}
