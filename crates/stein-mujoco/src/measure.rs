//! Metrics of runners.
//!
//! ```text
//! u_t               = (c_t - c_{t-1})/dt                   velocity of the centre of mass, at c_t in the state s_t
//! velocity_variance = Var of u over all steps of all episodes of all policies                  (Table 2 of the paper)
//! velocity_between  = (1/n)·Σ_i (ū_i - mean of ū)²          ū_i: mean of u over all steps of all episodes of policy i
//! ```
//!
//! A single gait with varying velocity already has a large velocity_variance; velocity_between is large only if
//! policies differ.

use stein::env::{Axis, Episode, Grid, Measure};
use stein::plot::{Curve, CurveStyle, Figure, Lines, Ridges};

use crate::runner::SIGNALS;

const X: usize = 0;
const CENTRE: usize = 4;
const UNSTABLE: usize = 5;

/// Bins of the histogram.
const BARS: usize = 60;

/// Maximum number of points of a position curve (plus its last one).
const POINTS: usize = 250;

fn signal(episode: &Episode, index: usize) -> impl Iterator<Item = f64> + '_ {
    episode.signal(index, SIGNALS.len())
}

/// The velocities u of an episode with `step_time` seconds per step. A step in which the simulation blew up is skipped:
/// it ends in the initial pose.
pub fn velocities(episode: &Episode, step_time: f64) -> impl Iterator<Item = f64> + '_ {
    let steps = signal(episode, CENTRE).zip(signal(episode, CENTRE).skip(1));
    steps
        .zip(signal(episode, UNSTABLE).skip(1))
        .filter(|(_, unstable)| *unstable == 0.0)
        .map(move |((before, after), _)| (after - before) / step_time)
}

/// The velocities of all steps of these episodes.
fn pool<'a>(episodes: impl Iterator<Item = &'a Episode>, step_time: f64) -> Vec<f64> {
    episodes.flat_map(|episode| velocities(episode, step_time)).collect()
}

/// Mean and variance; NaN if empty.
fn moments(values: &[f64]) -> (f64, f64) {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / count;
    (mean, variance)
}

/// Number of episodes in which the simulation blew up.
fn unstable<'a>(episodes: impl Iterator<Item = &'a Episode>) -> f64 {
    let blown = |episode: &&Episode| signal(episode, UNSTABLE).any(|unstable| unstable > 0.0);
    episodes.filter(blown).count() as f64
}

/// Mean length of episodes, in steps.
fn mean_length<'a>(episodes: impl Iterator<Item = &'a Episode>) -> f64 {
    let lengths: Vec<f64> = episodes.map(|episode| episode.rewards.len() as f64).collect();
    moments(&lengths).0
}

/// Mean velocities from -4 to 8 m/s, in cells of a quarter.
pub fn grid() -> Grid {
    let axis = Axis {
        signal: "velocity",
        low: -4.0,
        high: 8.0,
        cells: 48,
    };
    Grid {
        axes: vec![axis],
        at_end: false,
    }
}

/// Of one policy: its speed, distance and episode length.
pub fn of_policy(episodes: &[Episode], step_time: f64) -> Vec<Measure> {
    let (mean, variance) = moments(&pool(episodes.iter(), step_time));
    let ends: Vec<f64> = episodes
        .iter()
        .filter_map(|episode| signal(episode, X).last())
        .collect();
    vec![
        ("velocity_mean", mean),
        ("velocity_std", variance.sqrt()),
        ("final_x", moments(&ends).0),
        ("episode_length", mean_length(episodes.iter())),
        ("unstable", unstable(episodes.iter())),
    ]
}

/// Of the ensemble: how different its policies' velocities are.
pub fn of_ensemble(policies: &[Vec<Episode>], step_time: f64) -> Vec<Measure> {
    let episodes = || policies.iter().flatten();
    let (mean, variance) = moments(&pool(episodes(), step_time));
    let of_each = policies
        .iter()
        .map(|episodes| moments(&pool(episodes.iter(), step_time)).0);
    let between = moments(&of_each.collect::<Vec<_>>()).1;
    vec![
        ("velocity_variance", variance),
        ("velocity_between", between),
        ("velocity_mean", mean),
        ("episode_length", mean_length(episodes())),
        ("unstable", unstable(episodes())),
    ]
}

/// The outcome of an episode: the final x.
pub fn outcome(episode: &Episode) -> Option<String> {
    let x = signal(episode, X).last()?;
    // Avoids -0.0.
    Some(format!("x {:.1} m", (10.0 * x).round() / 10.0 + 0.0))
}

/// Figures of velocities and positions; none without velocities. `step_time` is the time per step in seconds,
/// `threshold` the distance beyond which the task rewards, if it has one.
pub fn figures(policies: &[Vec<Episode>], step_time: f64, threshold: Option<f64>) -> Vec<(String, Figure)> {
    let pooled: Vec<Vec<f64>> = policies
        .iter()
        .map(|episodes| pool(episodes.iter(), step_time))
        .collect();
    if pooled.iter().all(Vec::is_empty) {
        return Vec::new();
    }
    vec![
        ("velocities".into(), Figure::Ridges(histogram(&pooled))),
        (
            "positions".into(),
            Figure::Lines(positions(policies, step_time, threshold)),
        ),
    ]
}

/// The histogram of velocities of each policy, like the paper's figure of its reward-free ensembles.
fn histogram(pooled: &[Vec<f64>]) -> Ridges {
    let all: Vec<f64> = pooled.iter().flatten().copied().collect();
    let low = all.iter().copied().fold(f64::INFINITY, f64::min);
    let high = all.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // If all velocities are equal, bins still need a width.
    let width = ((high - low) / BARS as f64).max(1e-3);
    let shares = |velocities: &Vec<f64>| -> Vec<f64> {
        let mut counts = [0usize; BARS];
        for velocity in velocities {
            counts[(((velocity - low) / width) as usize).min(BARS - 1)] += 1;
        }
        let steps = velocities.len().max(1) as f64;
        counts.iter().map(|&count| count as f64 / steps).collect()
    };
    Ridges {
        title: format!("Velocities, variance of all {} m²/s²", three_digits(moments(&all).1)),
        x: "velocity of the centre of mass (m/s)".into(),
        height: "share of its steps".into(),
        low,
        width,
        rows: pooled.iter().map(shares).collect(),
    }
}

/// A number with three significant digits: 2.90, 0.0123, 1.10e-4.
fn three_digits(value: f64) -> String {
    let short = format!("{value:.2e}");
    let exponent: Option<i32> = short.split_once('e').and_then(|(_, exponent)| exponent.parse().ok());
    match exponent {
        Some(exponent @ -3..=2) => format!("{value:.*}", (2 - exponent) as usize),
        Some(3..=5) => format!("{value:.0}"),
        _ => short,
    }
}

/// The x coordinate of the robot's root over time, one line per episode, and the threshold over the duration of the
/// longest.
fn positions(policies: &[Vec<Episode>], step_time: f64, threshold: Option<f64>) -> Lines {
    let line = |episode: &Episode| {
        let places = signal(episode, X).enumerate();
        let stride = episode.rewards.len().div_ceil(POINTS).max(1);
        let last = episode.rewards.len();
        places
            .filter(|(step, _)| step % stride == 0 || *step == last)
            .map(|(step, x)| [step as f64 * step_time, x])
            .collect()
    };
    let curve = |policy: usize, number: usize, episode: &Episode| Curve {
        name: (number == 0).then(|| format!("policy {policy}")),
        style: CurveStyle::Policy(policy),
        points: line(episode),
    };
    let curves = policies.iter().enumerate().flat_map(|(policy, episodes)| {
        let numbered = episodes.iter().enumerate();
        numbered.map(move |(number, episode)| curve(policy, number, episode))
    });
    let longest = policies.iter().flatten().map(|episode| episode.rewards.len()).max();
    let level = threshold.map(|threshold| Curve {
        name: Some("threshold".into()),
        style: CurveStyle::Level,
        points: vec![[0.0, threshold], [longest.unwrap_or(0) as f64 * step_time, threshold]],
    });
    Lines {
        title: "Positions, one line per episode".into(),
        x: "time (s)".into(),
        y: "x (m)".into(),
        curves: curves.chain(level).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_are_not_zero() {
        for (value, text) in [
            (2.9, "2.90"),
            (0.0123, "0.0123"),
            (9.996, "10.0"),
            (123.4, "123"),
            (0.00123, "0.00123"),
            (1.1e-4, "1.10e-4"),
            (1234.5, "1234"),
            (1e7, "1.00e7"),
        ] {
            assert_eq!(three_digits(value), text);
        }
    }

    #[test]
    fn the_outcome_is_the_way_to_the_end() {
        let at = |x: f64| Episode {
            rewards: vec![1.0],
            signals: [vec![0.0; SIGNALS.len()], vec![x; SIGNALS.len()]].concat(),
            ..Episode::default()
        };
        assert_eq!(outcome(&at(23.44)).unwrap(), "x 23.4 m");
        assert_eq!(outcome(&at(-0.01)).unwrap(), "x 0.0 m");
        assert_eq!(outcome(&Episode::default()), None);
    }
}
