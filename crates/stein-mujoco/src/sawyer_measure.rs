//! What is measured of episodes of peg insertion.
//!
//! ```text
//! success       share of the episodes that end with a distance ≤ success_distance
//! q̄_i           mean over policy i's episodes of the joint angles at the end
//! joint_spread  mean over pairs i < j of |q̄_i - q̄_j|
//! ```
//!
//! A redundant arm can hold the peg in the hole in many postures: the spread tells whether the policies found different
//! ones (the paper shows pictures of them).

use stein::env::{Episode, Measure};
use stein::plot::{Curve, CurveStyle, Figure, Lines};

use crate::sawyer::{JOINTS, SIGNALS};

/// Signals: joint angles first, then these.
pub(crate) const PEG: usize = JOINTS;
pub(crate) const TORQUES: usize = PEG + 3;
pub(crate) const DISTANCE: usize = TORQUES + JOINTS;
pub(crate) const UNSTABLE: usize = DISTANCE + 1;

/// The table cut open along the middle of the hole: x and z of its outline.
pub(crate) const OUTLINE: [[f64; 2]; 6] = [
    [0.2, 0.05],
    [0.58, 0.05],
    [0.58, -0.05],
    [0.62, -0.05],
    [0.62, 0.05],
    [1.0, 0.05],
];

/// Where the reference point should come to rest: its x and z.
const TARGET: [f64; 2] = [0.6, 0.0];

fn signal(episode: &Episode, index: usize) -> impl Iterator<Item = f64> + '_ {
    episode.signal(index, SIGNALS.len())
}

/// Mean; NaN of nothing.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (count, sum) = values.fold((0.0, 0.0), |(count, sum), value| (count + 1.0, sum + value));
    sum / count
}

fn final_distance(episode: &Episode) -> f64 {
    signal(episode, DISTANCE).last().unwrap_or(f64::NAN)
}

/// Share of the episodes that end within the distance.
fn success<'a>(episodes: impl Iterator<Item = &'a Episode>, within: f64) -> f64 {
    mean(episodes.map(|episode| f64::from(u8::from(final_distance(episode) <= within))))
}

/// Episodes in which the simulation blew up.
fn unstable<'a>(episodes: impl Iterator<Item = &'a Episode>) -> f64 {
    let blown = |episode: &&Episode| signal(episode, UNSTABLE).any(|unstable| unstable > 0.0);
    episodes.filter(blown).count() as f64
}

/// The joint angles at the end of an episode.
fn final_angles(episode: &Episode) -> [f64; JOINTS] {
    std::array::from_fn(|joint| signal(episode, joint).last().unwrap_or(f64::NAN))
}

/// Mean distance between the final postures of two of these policies; 0 if there are no two.
fn spread<'a>(policies: impl Iterator<Item = &'a Vec<Episode>>) -> f64 {
    let posture = |episodes: &'a Vec<Episode>| -> [f64; JOINTS] {
        std::array::from_fn(|joint| mean(episodes.iter().map(|episode| final_angles(episode)[joint])))
    };
    let postures: Vec<_> = policies.map(posture).collect();
    let distance = |a: &[f64; JOINTS], b: &[f64; JOINTS]| {
        let squares = a.iter().zip(b).map(|(a, b)| (a - b).powi(2));
        squares.sum::<f64>().sqrt()
    };
    let rest = |(index, a)| postures[..index].iter().map(move |b| distance(a, b));
    let distances: Vec<f64> = postures.iter().enumerate().flat_map(rest).collect();
    if distances.is_empty() {
        return 0.0;
    }
    mean(distances.into_iter())
}

/// Of one policy: how close the peg gets, and at what effort.
pub(crate) fn of_policy(episodes: &[Episode], within: f64) -> Vec<Measure> {
    let least = |episode| signal(episode, DISTANCE).fold(f64::NAN, f64::min);
    // The first state has no torques: nothing has been done yet.
    let torques = |episode| (TORQUES..DISTANCE).flat_map(move |index| signal(episode, index).skip(1).map(f64::abs));
    vec![
        ("final_distance", mean(episodes.iter().map(final_distance))),
        ("least_distance", mean(episodes.iter().map(least))),
        ("success", success(episodes.iter(), within)),
        ("torque_mean", mean(episodes.iter().flat_map(torques))),
        ("unstable", unstable(episodes.iter())),
    ]
}

/// Of the ensemble: how many of its policies succeed, and in how different postures they end.
pub(crate) fn of_ensemble(policies: &[Vec<Episode>], within: f64) -> Vec<Measure> {
    let successful = || {
        policies
            .iter()
            .filter(|episodes| success(episodes.iter(), within) > 0.5)
    };
    vec![
        ("success", success(policies.iter().flatten(), within)),
        ("successful_policies", successful().count() as f64),
        ("joint_spread", spread(policies.iter())),
        ("joint_spread_successful", spread(successful())),
        ("unstable", unstable(policies.iter().flatten())),
    ]
}

/// A curve of each episode; the first one of each policy is in the legend.
fn curves(policies: &[Vec<Episode>], points: impl Fn(&Episode) -> Vec<[f64; 2]>) -> Vec<Curve> {
    let of_policy = |(policy, episodes): (usize, &Vec<Episode>)| -> Vec<Curve> {
        let curve = |(index, episode)| Curve {
            name: (index == 0).then(|| format!("policy {policy}")),
            style: CurveStyle::Policy(policy),
            points: points(episode),
        };
        episodes.iter().enumerate().map(curve).collect()
    };
    policies.iter().enumerate().flat_map(of_policy).collect()
}

/// The final posture of each episode, and the path of the peg seen from the side; nothing without episodes.
pub(crate) fn figures(policies: &[Vec<Episode>]) -> Vec<(String, Figure)> {
    if policies.iter().all(Vec::is_empty) {
        return Vec::new();
    }
    let posture = |episode: &Episode| -> Vec<[f64; 2]> {
        let angles = final_angles(episode);
        (0..JOINTS).map(|joint| [joint as f64, angles[joint]]).collect()
    };
    let path = |episode: &Episode| -> Vec<[f64; 2]> {
        let places = signal(episode, PEG).zip(signal(episode, PEG + 2));
        places.map(|(x, z)| [x, z]).collect()
    };
    // A curve of one point is drawn as a dot.
    let end = |episode: &Episode| path(episode).pop().into_iter().collect();
    let mut paths = curves(policies, path);
    paths.extend(curves(policies, end).into_iter().map(|dot| Curve { name: None, ..dot }));
    for (name, style, points) in [
        ("table", CurveStyle::Mean, OUTLINE.to_vec()),
        ("target", CurveStyle::Best, vec![TARGET]),
    ] {
        paths.push(Curve {
            name: Some(name.into()),
            style,
            points,
        });
    }
    vec![
        (
            "joint_angles".into(),
            Figure::Lines(Lines {
                title: "Joint angles at the end of the episodes".into(),
                x: "joint".into(),
                y: "angle (rad)".into(),
                curves: curves(policies, posture),
            }),
        ),
        (
            "peg_paths".into(),
            Figure::Lines(Lines {
                title: "Paths of the peg, seen from the side".into(),
                x: "x (m)".into(),
                y: "z (m)".into(),
                curves: paths,
            }),
        ),
    ]
}
