//! Evaluation: whole episodes of trained policies, recorded with their signals.

use rand::Rng;
use rayon::prelude::*;

use super::ensemble::Ensemble;
use super::rollout::{self, scale_action};
use crate::env::{Episode, Step, Task};
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
            let mut env = task.make()?;
            let mut actor = ensemble.actor(policy);
            let spec = env.spec().clone();
            let mut observation = vec![0.0; spec.observation];
            let mut narrow = vec![0.0f32; spec.observation];
            let mut normalized = vec![0.0f32; spec.observation];
            let (mut u, mut squashed) = (vec![0.0f32; spec.action()], vec![0.0f32; spec.action()]);
            let mut action = vec![0.0; spec.action()];
            let mut signals = vec![0.0; spec.signals.len()];
            let mut recorded = Vec::with_capacity(episodes);
            for number in 0..episodes {
                let mut random = stream(seed, Purpose::Evaluation, policy + 1, number);
                env.reset(
                    stream(seed, Purpose::Evaluation, 0, number).next_u64(),
                    &mut observation,
                );
                let check = |step: &Step, steps: usize, observation: &[f64]| {
                    rollout::check(&spec, steps, step, observation).map_err(|trouble| {
                        Error::failed(format!(
                            "policy {policy}: after step {steps} of evaluation episode {}, {trouble}",
                            number + 1
                        ))
                    })
                };
                check(&rollout::BEGUN, 0, &observation)?;
                let mut episode = Episode::default();
                env.signals(&mut signals);
                episode.signals.extend_from_slice(&signals);
                loop {
                    narrow
                        .iter_mut()
                        .zip(&observation)
                        .for_each(|(narrow, &x)| *narrow = x as f32);
                    ensemble.normalizers[policy].apply(&narrow, &mut normalized);
                    if stochastic {
                        actor.sample(&normalized, &mut random, &mut u, &mut squashed);
                    } else {
                        actor.act(&normalized, &mut squashed);
                    }
                    scale_action(&spec, &squashed, &mut action);
                    let step = env.step(&action, &mut observation);
                    episode.rewards.push(step.reward);
                    check(&step, episode.rewards.len(), &observation)?;
                    env.signals(&mut signals);
                    episode.signals.extend_from_slice(&signals);
                    episode.terminated = step.terminated;
                    if step.terminated || step.truncated {
                        break;
                    }
                }
                recorded.push(episode);
            }
            Ok(recorded)
        })
        .collect();
    results.into_iter().collect()
}

/// Mean and (population) standard deviation.
pub fn mean_and_deviation(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / count;
    (mean, variance.sqrt())
}
