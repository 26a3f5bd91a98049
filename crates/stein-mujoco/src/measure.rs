//! What is measured of episodes of runners.
//!
//! ```text
//! velocity_variance = Var of the velocities of all steps of all episodes of all policies       (Table 2 of the paper)
//! ```

use stein::env::{Episode, Measure};

use crate::runner::SIGNALS;

const X: usize = 0;
const VELOCITY: usize = 3;
const UNSTABLE: usize = 4;

fn signal(episode: &Episode, index: usize) -> impl Iterator<Item = f64> + '_ {
    episode.signal(index, SIGNALS.len())
}

/// The velocities of an episode's steps. The first state has none: nothing has moved yet.
pub fn velocities(episode: &Episode) -> impl Iterator<Item = f64> + '_ {
    signal(episode, VELOCITY).skip(1)
}

/// Mean and variance; NaN of nothing.
fn moments(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean, variance)
}

/// Episodes in which the simulation blew up.
fn unstable<'a>(episodes: impl Iterator<Item = &'a Episode>) -> f64 {
    let blown = |episode: &&Episode| signal(episode, UNSTABLE).any(|unstable| unstable > 0.0);
    episodes.filter(blown).count() as f64
}

/// Of one policy: how fast it is, how far it gets, how long it lasts.
pub fn of_policy(episodes: &[Episode]) -> Vec<Measure> {
    let pooled: Vec<f64> = episodes.iter().flat_map(velocities).collect();
    let (mean, variance) = moments(&pooled);
    let ends: Vec<f64> = episodes
        .iter()
        .filter_map(|episode| signal(episode, X).last())
        .collect();
    let lengths: Vec<f64> = episodes.iter().map(|episode| episode.rewards.len() as f64).collect();
    vec![
        ("velocity_mean", mean),
        ("velocity_std", variance.sqrt()),
        ("final_x", moments(&ends).0),
        ("episode_length", moments(&lengths).0),
        ("unstable", unstable(episodes.iter())),
    ]
}

/// Of the ensemble: how differently its policies move.
pub fn of_ensemble(policies: &[Vec<Episode>]) -> Vec<Measure> {
    let episodes = || policies.iter().flatten();
    let pooled: Vec<f64> = episodes().flat_map(velocities).collect();
    let (mean, variance) = moments(&pooled);
    vec![
        ("velocity_variance", variance),
        ("velocity_mean", mean),
        ("unstable", unstable(episodes())),
    ]
}
