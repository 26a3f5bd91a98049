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

#[cfg(test)]
mod tests {
    use stein::env::Task;

    use super::*;
    use crate::SawyerConfig;
    use crate::sawyer::NEUTRAL;

    /// An episode of two steps that ends with these angles and this distance, after a step to half the distance.
    fn ended(angles: [f64; JOINTS], distance: f64, torque: f64, unstable: bool) -> Episode {
        let row = |distance: f64, torque: f64, unstable: bool| {
            let mut row = angles.to_vec();
            row.extend([0.5, 0.0, 0.1]);
            row.extend([torque; JOINTS]);
            row.extend([distance, f64::from(u8::from(unstable))]);
            row
        };
        Episode {
            rewards: vec![1.0; 2],
            signals: [
                row(0.5, 0.0, false),
                row(distance / 2.0, torque, false),
                row(distance, -torque, unstable),
            ]
            .concat(),
            terminated: unstable,
        }
    }

    #[test]
    fn measures_follow_their_definitions() {
        let task = SawyerConfig::default();
        let other = [3.0, -1.18, 4.0, 2.18, 0.0, 0.57, 3.3161];
        let good = vec![ended(NEUTRAL, 0.02, 2.0, false), ended(NEUTRAL, 0.01, 4.0, false)];
        let half = vec![ended(other, 0.01, 1.0, false), ended(other, 0.03, 1.0, false)];
        let third = vec![
            ended(other, 0.0, 1.0, false),
            ended(other, 0.5, 1.0, true),
            ended(other, 0.02, 1.0, false),
        ];
        let check = |found: Vec<(&str, f64)>, expected: &[(&str, f64)]| {
            assert_eq!(found.len(), expected.len());
            for (found, expected) in found.iter().zip(expected) {
                assert_eq!(found.0, expected.0);
                assert!((found.1 - expected.1).abs() < 1e-12, "{found:?} {expected:?}");
            }
        };
        check(
            task.measure(&good),
            &[
                ("final_distance", 0.015),
                ("least_distance", 0.0075),
                ("success", 1.0),
                ("torque_mean", 3.0),
                ("unstable", 0.0),
            ],
        );
        // Half of the episodes are not more than half.
        let policies = [good.clone(), half, third];
        check(
            task.measure_ensemble(&policies),
            &[
                ("success", 5.0 / 7.0),
                ("successful_policies", 2.0),
                ("joint_spread", 10.0 / 3.0),
                ("joint_spread_successful", 5.0),
                ("unstable", 1.0),
            ],
        );
        assert_eq!(task.measure_ensemble(&[good])[2].1, 0.0);
        let strict = SawyerConfig {
            success_distance: 0.005,
            ..task
        };
        assert_eq!(strict.measure_ensemble(&policies)[0].1, 1.0 / 7.0);
    }

    #[test]
    fn figures_show_every_episode() {
        let task = SawyerConfig::default();
        let other = [3.0, -1.18, 4.0, 2.18, 0.0, 0.57, 3.3161];
        let policies = [
            vec![ended(NEUTRAL, 0.02, 2.0, false), ended(NEUTRAL, 0.01, 4.0, false)],
            vec![ended(other, 0.01, 1.0, false)],
        ];
        let figures = task.figures(&policies);
        let [(angles, Figure::Lines(postures)), (paths, Figure::Lines(sides))] = &figures[..] else {
            panic!("{figures:?}")
        };
        assert_eq!((angles.as_str(), paths.as_str()), ("joint_angles", "peg_paths"));
        let names: Vec<_> = postures.curves.iter().map(|curve| curve.name.as_deref()).collect();
        assert_eq!(names, [Some("policy 0"), None, Some("policy 1")]);
        assert_eq!(postures.curves[2].points[2], [2.0, 4.0]);
        // Three paths, their three ends, the table and the target.
        assert_eq!(sides.curves.len(), 8);
        assert_eq!(sides.curves[0].points, [[0.5, 0.1]; 3]);
        assert_eq!(sides.curves[7].points, [[0.6, 0.0]]);
        assert!(task.figures(&[vec![], vec![]]).is_empty());
    }
}
