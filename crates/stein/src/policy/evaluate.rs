//! Evaluation: whole episodes of trained policies, recorded with their signals.

use rand::Rng;
use rayon::prelude::*;

use super::ensemble::Ensemble;
use super::gaussian::Actor;
use super::rollout::{self, scale_action};
use crate::env::{Env, Episode, Step, Task};
use crate::error::{Error, Result};
use crate::rng::{Purpose, stream};

/// Runs `episodes` episodes of every policy: `[policy][episode]`. Policies act by their mean unless `stochastic`. Episode
/// number e begins in the same state for every policy.
pub fn evaluate(
    ensemble: &Ensemble,
    task: &dyn Task,
    seed: u64,
    episodes: usize,
    stochastic: bool,
) -> Result<Vec<Vec<Episode>>> {
    // Collected in order, so that of several failures it is always the same one that is told.
    let results: Vec<Result<Vec<Episode>>> = (0..ensemble.n())
        .into_par_iter()
        .map(|policy| {
            let mut performer = Performer::new(ensemble, policy, task, seed)?;
            (0..episodes)
                .map(|number| performer.episode(number, stochastic, |_| ()))
                .collect()
        })
        .collect();
    results.into_iter().collect()
}

/// One policy in a world of its own, ready for evaluation episodes.
pub struct Performer<'a> {
    ensemble: &'a Ensemble,
    policy: usize,
    env: Box<dyn Env>,
    actor: Actor,
    seed: u64,
}

impl<'a> Performer<'a> {
    /// Policy number `policy` of the ensemble.
    pub fn new(ensemble: &'a Ensemble, policy: usize, task: &dyn Task, seed: u64) -> Result<Self> {
        Ok(Performer {
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

/// Mean and (population) standard deviation.
pub fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}
