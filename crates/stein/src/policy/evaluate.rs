//! Evaluation: whole episodes of trained policies, recorded with their signals.

use rand::Rng;

use super::ensemble::Ensemble;
use super::gaussian::Actor;
use super::rollout::{self, scale_action};
use crate::env::{Env, Episode, Spec, Step, Task};
use crate::error::{Error, Result};
use crate::machine::{available, size};
use crate::parallel;
use crate::rng::{Purpose, stream};

/// Episodes of each policy at the end of training.
pub const EPISODES: usize = 5;

/// Runs `episodes` episodes of every policy: `[policy][episode]`. Policies act by their mean unless `stochastic`. Episode
/// number e begins in the same state for every policy.
pub fn evaluate(
    ensemble: &Ensemble,
    task: &dyn Task,
    seed: u64,
    episodes: usize,
    stochastic: bool,
) -> Result<Vec<Vec<Episode>>> {
    let spec = task.make()?.spec().clone();
    check_memory(ensemble.n(), episodes, &spec)?;
    // Collected in order, so that of several failures it is always the same one that is told.
    let results: Vec<Result<Vec<Episode>>> = parallel::map(0..ensemble.n(), |_, policy| {
        let mut evaluator = Evaluator::new(ensemble, policy, task, seed)?;
        (0..episodes)
            .map(|number| evaluator.episode(number, stochastic, |_| ()))
            .collect()
    });
    results.into_iter().collect()
}

/// Bytes of the recorded episodes of n policies, if none ends early. Lists that grow have up to twice their length.
pub fn memory(n: usize, episodes: usize, spec: &Spec) -> f64 {
    let row = 8.0 + 8.0 * spec.signals.len() as f64 + 4.0 * spec.observation as f64;
    2.0 * row * n as f64 * episodes as f64 * spec.horizon as f64
}

/// Rejects an evaluation that needs more memory than there is.
fn check_memory(n: usize, episodes: usize, spec: &Spec) -> Result<()> {
    let needed = memory(n, episodes, spec);
    match available() {
        Some(there) if needed > there => Err(Error::input(format!(
            "{episodes} episodes of up to {} steps of each of {n} policies need about {} of memory and {} are free here: ask \
             for fewer episodes, or lower env.horizon",
            spec.horizon,
            size(needed),
            size(there)
        ))),
        _ => Ok(()),
    }
}

/// One policy in a world of its own, ready for evaluation episodes.
pub struct Evaluator<'a> {
    ensemble: &'a Ensemble,
    policy: usize,
    env: Box<dyn Env>,
    actor: Actor,
    seed: u64,
}

impl<'a> Evaluator<'a> {
    /// Policy number `policy` of the ensemble.
    pub fn new(ensemble: &'a Ensemble, policy: usize, task: &dyn Task, seed: u64) -> Result<Self> {
        Ok(Evaluator {
            ensemble,
            policy,
            env: task.make()?,
            actor: ensemble.actor(policy),
            seed,
        })
    }

    /// Runs episode number `number` and shows every state of it, the first one included, to `watch`.
    pub fn episode(&mut self, number: usize, stochastic: bool, mut watch: impl FnMut(&dyn Env)) -> Result<Episode> {
        let (policy, seed, env) = (self.policy, self.seed, &mut self.env);
        let spec = env.spec().clone();
        let mut observation = vec![0.0; spec.observation];
        let mut narrow = vec![0.0f32; spec.observation];
        let mut normalized = vec![0.0f32; spec.observation];
        let (mut u, mut squashed) = (vec![0.0f32; spec.action()], vec![0.0f32; spec.action()]);
        let mut action = vec![0.0; spec.action()];
        let mut signals = vec![0.0; spec.signals.len()];
        let check = |step: &Step, steps: usize, observation: &[f64]| {
            rollout::check(&spec, steps, step, observation).map_err(|trouble| {
                Error::failed(format!(
                    "policy {policy}: after step {steps} of evaluation episode {}, {trouble}",
                    number + 1
                ))
            })
        };
        let mut episode = Episode::default();
        let mut record = |env: &mut dyn Env, observation: &[f64], episode: &mut Episode| {
            env.signals(&mut signals);
            episode.signals.extend_from_slice(&signals);
            episode.observations.extend(observation.iter().map(|&x| x as f32));
            watch(env);
        };
        let mut random = stream(seed, Purpose::Evaluation, policy + 1, number);
        env.reset(
            stream(seed, Purpose::Evaluation, 0, number).next_u64(),
            &mut observation,
        );
        check(&rollout::BEGUN, 0, &observation)?;
        record(env.as_mut(), &observation, &mut episode);
        loop {
            narrow
                .iter_mut()
                .zip(&observation)
                .for_each(|(narrow, &x)| *narrow = x as f32);
            self.ensemble.normalizers[policy].apply(&narrow, &mut normalized);
            if stochastic {
                self.actor.sample(&normalized, &mut random, &mut u, &mut squashed);
            } else {
                self.actor.act(&normalized, &mut squashed);
            }
            scale_action(&spec, &squashed, &mut action);
            let step = env.step(&action, &mut observation);
            episode.rewards.push(step.reward);
            check(&step, episode.rewards.len(), &observation)?;
            record(env.as_mut(), &observation, &mut episode);
            episode.terminated = step.terminated;
            if step.terminated || step.truncated {
                return Ok(episode);
            }
        }
    }
}

/// Mean and (population) standard std.
pub fn mean_and_std(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}
