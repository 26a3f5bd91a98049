//! What is measured of episodes of peg insertion.
//!
//! ```text
//! success       share of the episodes that end with a distance ≤ success_distance
//! q̄_i           mean over policy i's episodes of the joint angles at the end
//! joint_spread  mean over pairs i < j of |q̄_i - q̄_j|; torque_spread the same of mean torques over all steps
//! ```
//!
//! A redundant arm can hold the peg in the hole in many postures: the spread tells whether the policies found different
//! ones (the paper shows pictures of them).

use stein::env::{Axis, Episode, Grid, Measure};
use stein::plot::{Curve, CurveStyle, Figure, Lines, Map, Trail};

use super::{JOINTS, SIGNALS};

/// Signals: joint angles first, then these.
pub(super) const PEG: usize = JOINTS;
pub(super) const TORQUES: usize = PEG + 3;
pub(super) const DISTANCE: usize = TORQUES + JOINTS;
pub(super) const UNSTABLE: usize = DISTANCE + 1;

/// The table cut open along the middle of the hole: x and z of its outline.
pub(super) const OUTLINE: [[f64; 2]; 6] = [
    [0.2, 0.05],
    [0.58, 0.05],
    [0.58, -0.05],
    [0.62, -0.05],
    [0.62, 0.05],
    [1.0, 0.05],
];

/// Below the table.
const FLOOR: f64 = -0.35;

/// Where the reference point should come to rest.
const TARGET: [f64; 3] = [0.6, 0.0, 0.0];

/// Half the width of the hole.
const HOLE: f64 = 0.02;

/// Width of the line around the hole seen from above.
const RIM: f64 = 0.002;

/// What pictures show around the target at least.
const AROUND: f64 = 0.06;

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

fn succeeds(episode: &Episode, within: f64) -> bool {
    final_distance(episode) <= within
}

/// Share of the episodes that end within the distance.
fn success<'a>(episodes: impl Iterator<Item = &'a Episode>, within: f64) -> f64 {
    mean(episodes.map(|episode| f64::from(u8::from(succeeds(episode, within)))))
}

/// What came of an episode: how far from the target it ended.
pub(super) fn outcome(episode: &Episode, within: f64) -> Option<String> {
    let off = signal(episode, DISTANCE).last()? * 1000.0;
    let inside = if succeeds(episode, within) { "peg in: " } else { "" };
    Some(format!("{inside}{off:.0} mm off"))
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

/// The mean torques of an episode's steps. The first state has none: nothing has been done yet.
fn mean_torques(episode: &Episode) -> [f64; JOINTS] {
    std::array::from_fn(|joint| mean(signal(episode, TORQUES + joint).skip(1)))
}

/// Mean distance between two of these policies in what is said of an episode; 0 if there are no two.
fn spread<'a>(policies: impl Iterator<Item = &'a Vec<Episode>>, of_episode: impl Fn(&Episode) -> [f64; JOINTS]) -> f64 {
    let of_policy = |episodes: &'a Vec<Episode>| -> [f64; JOINTS] {
        let each: Vec<[f64; JOINTS]> = episodes.iter().map(&of_episode).collect();
        std::array::from_fn(|joint| mean(each.iter().map(|values| values[joint])))
    };
    let points: Vec<_> = policies.map(of_policy).collect();
    let distance = |a: &[f64; JOINTS], b: &[f64; JOINTS]| {
        let squares = a.iter().zip(b).map(|(a, b)| (a - b).powi(2));
        squares.sum::<f64>().sqrt()
    };
    let rest = |(index, a)| points[..index].iter().map(move |b| distance(a, b));
    let distances: Vec<f64> = points.iter().enumerate().flat_map(rest).collect();
    if distances.is_empty() {
        return 0.0;
    }
    mean(distances.into_iter())
}

/// Final angles of the first and the third joint, in cells of half a radian: the elbow's place is what seven joints leave free.
pub(super) fn grid() -> Grid {
    let axis = |signal| Axis {
        signal,
        low: -3.0,
        high: 3.0,
        cells: 12,
    };
    Grid {
        axes: vec![axis("joint0"), axis("joint2")],
        at_end: true,
    }
}

/// Of one policy: how close the peg gets, and at what effort.
pub(super) fn of_policy(episodes: &[Episode], within: f64) -> Vec<Measure> {
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
pub(super) fn of_ensemble(policies: &[Vec<Episode>], within: f64) -> Vec<Measure> {
    let successful = || {
        policies
            .iter()
            .filter(|episodes| success(episodes.iter(), within) > 0.5)
    };
    vec![
        ("success", success(policies.iter().flatten(), within)),
        ("successful_policies", successful().count() as f64),
        ("joint_spread", spread(policies.iter(), final_angles)),
        ("joint_spread_successful", spread(successful(), final_angles)),
        ("torque_spread_successful", spread(successful(), mean_torques)),
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

/// The final posture of each episode, and the path of the peg seen from the side and from above; nothing without
/// episodes.
pub(super) fn figures(policies: &[Vec<Episode>], within: f64) -> Vec<(String, Figure)> {
    if policies.iter().all(Vec::is_empty) {
        return Vec::new();
    }
    let posture = |episode: &Episode| -> Vec<[f64; 2]> {
        let angles = final_angles(episode);
        (0..JOINTS).map(|joint| [joint as f64, angles[joint]]).collect()
    };
    let angles = Lines {
        title: "Joint angles at the end".into(),
        x: "joint".into(),
        y: "angle (rad)".into(),
        curves: curves(policies, posture),
    };
    // The table cut open along the middle of the hole; seen from above the hole alone, as the peg comes from there.
    let levels = OUTLINE.windows(2).filter(|pair| pair[0][1] == pair[1][1]);
    let table = levels.map(|pair| [pair[0][0], FLOOR, pair[1][0], pair[0][1]]);
    let [x, y, _] = TARGET;
    let (inner, outer) = (HOLE, HOLE + RIM);
    let hole = [
        [x - outer, y - outer, x + outer, y - inner],
        [x - outer, y + inner, x + outer, y + outer],
        [x - outer, y - outer, x - inner, y + outer],
        [x + inner, y - outer, x + outer, y + outer],
    ];
    let side = view(policies, within, [0, 2], "Peg seen from the side", table.collect());
    let above = view(policies, within, [0, 1], "Peg seen from above", hole.to_vec());
    vec![
        ("joint_angles".into(), Figure::Lines(angles)),
        ("peg_side".into(), Figure::Map(side)),
        ("peg_above".into(), Figure::Map(above)),
    ]
}

/// The paths of the peg along two of the axes x, y, z, over solid rectangles: as much of them as has all paths and the
/// target in it.
fn view(policies: &[Vec<Episode>], within: f64, axes: [usize; 2], title: &str, walls: Vec<[f64; 4]>) -> Map {
    let points = |episode: &Episode| -> Vec<[f64; 2]> {
        let [across, up] = axes.map(|axis| signal(episode, PEG + axis));
        across.zip(up).map(|(across, up)| [across, up]).collect()
    };
    let trail = |policy: usize, episode: &Episode| Trail {
        policy,
        points: points(episode),
        failed: !succeeds(episode, within),
    };
    let trails = |(policy, episodes): (usize, &Vec<Episode>)| -> Vec<Trail> {
        episodes.iter().map(|episode| trail(policy, episode)).collect()
    };
    let paths: Vec<Trail> = policies.iter().enumerate().flat_map(trails).collect();
    let target = axes.map(|axis| TARGET[axis]);
    let low = target.map(|place| place - AROUND);
    let high = target.map(|place| place + AROUND);
    let bounds = paths.iter().flat_map(|path| &path.points).fold(
        [low[0], low[1], high[0], high[1]],
        |[left, bottom, right, top], [across, up]| {
            [left.min(*across), bottom.min(*up), right.max(*across), top.max(*up)]
        },
    );
    let margin = 0.05 * (bounds[2] - bounds[0]).max(bounds[3] - bounds[1]);
    let starts = |axis: usize| mean(paths.iter().filter_map(|path| Some(path.points.first()?[axis])));
    Map {
        title: title.into(),
        axes: axes.map(|axis| format!("{} (m)", ["x", "y", "z"][axis])),
        bounds: [
            bounds[0] - margin,
            bounds[1] - margin,
            bounds[2] + margin,
            bounds[3] + margin,
        ],
        walls,
        start: [starts(0), starts(1)],
        goal: [target[0], target[1], within],
        labels: Vec::new(),
        paths,
    }
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
            row.extend([0.5, -0.25, 0.125]);
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
            ..Episode::default()
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
                ("torque_spread_successful", 0.0),
                ("unstable", 1.0),
            ],
        );
        // Torques of 1 and 3 Nm at all seven joints have a mean of 2, those of the good ones of 0.
        let mut pushing = ended(NEUTRAL, 0.01, 1.0, false);
        pushing.signals[2 * SIGNALS.len() + TORQUES..][..JOINTS].fill(3.0);
        let spread = task.measure_ensemble(&[good.clone(), vec![pushing]])[4];
        assert_eq!(spread.0, "torque_spread_successful");
        assert!((spread.1 - 2.0 * 7f64.sqrt()).abs() < 1e-12, "{spread:?}");
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
            vec![ended(NEUTRAL, 0.02, 2.0, false), ended(NEUTRAL, 0.03, 4.0, false)],
            vec![ended(other, 0.01, 1.0, false)],
        ];
        let figures = task.figures(&policies);
        let [
            (first, Figure::Lines(postures)),
            (second, Figure::Map(side)),
            (third, Figure::Map(above)),
        ] = &figures[..]
        else {
            panic!("{figures:?}")
        };
        assert_eq!([first, second, third], ["joint_angles", "peg_side", "peg_above"]);
        let names: Vec<_> = postures.curves.iter().map(|curve| curve.name.as_deref()).collect();
        assert_eq!(names, [Some("policy 0"), None, Some("policy 1")]);
        assert_eq!(postures.curves[2].points[2], [2.0, 4.0]);
        for (map, axes, start) in [
            (side, ["x (m)", "z (m)"], [0.5, 0.125]),
            (above, ["x (m)", "y (m)"], [0.5, -0.25]),
        ] {
            assert_eq!(map.axes, axes);
            let paths = map.paths.iter().map(|path| (path.policy, path.failed));
            assert_eq!(paths.collect::<Vec<_>>(), [(0, false), (0, true), (1, false)]);
            assert!(map.paths.iter().all(|path| path.points == [start; 3]));
            assert_eq!((map.start, map.goal), (start, [0.6, 0.0, 0.02]));
            // Every path and the hole, which is open, are within the bounds, but not the whole table.
            let [left, low, right, high] = map.bounds;
            let within = |[x, y]: [f64; 2]| left < x && x < right && low < y && y < high;
            assert!(
                [start, [0.58, -0.02], [0.62, 0.02]].into_iter().all(within),
                "{:?}",
                map.bounds
            );
            assert!(left > 0.2 && right < 1.0, "{:?}", map.bounds);
            assert!(
                !map.walls
                    .iter()
                    .any(|wall| wall[0] < 0.6 && 0.6 < wall[2] && wall[1] < 0.0 && 0.0 < wall[3])
            );
        }
        assert!(task.figures(&[vec![], vec![]]).is_empty());
    }

    #[test]
    fn outcomes_are_told_in_millimetres() {
        let task = SawyerConfig::default();
        let outcome = |distance: f64| task.outcome(&ended(NEUTRAL, distance, 1.0, false));
        assert_eq!(outcome(0.0084).unwrap(), "peg in: 8 mm off");
        assert_eq!(outcome(0.0764).unwrap(), "76 mm off");
        assert_eq!(task.outcome(&Episode::default()), None);
    }
}
