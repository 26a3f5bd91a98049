//! Figures for tasks without their own: each signal over the steps of an episode, one line per policy.

use crate::env::Episode;
use crate::plot::{Curve, CurveStyle, Figure, Lines};

/// Maximum number of signals drawn, one figure each.
const MOST: usize = 8;

/// The first episode of each policy; `signals` are the names, `episodes[i]` those of policy i. By file name without
/// extension.
pub fn figures(signals: &[&'static str], episodes: &[Vec<Episode>]) -> Vec<(String, Figure)> {
    let width = signals.len();
    let of_signal = |(index, name): (usize, &&'static str)| {
        let curve = |(policy, episodes): (usize, &Vec<Episode>)| Curve {
            name: Some(format!("policy {policy}")),
            style: CurveStyle::Policy(policy),
            points: episodes.first().map_or(Vec::new(), |episode| {
                let values = episode.signal(index, width).enumerate();
                values.map(|(t, value)| [t as f64, value]).collect()
            }),
        };
        let lines = Lines {
            title: format!("{name} in the first episode of each policy"),
            x: "step".into(),
            y: (*name).into(),
            curves: episodes.iter().enumerate().map(curve).collect(),
        };
        (format!("signal_{name}"), Figure::Lines(lines))
    };
    signals.iter().enumerate().take(MOST).map(of_signal).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_a_signal_and_a_line_a_policy() {
        let episode = |from: f64| Episode {
            rewards: vec![0.0; 2],
            signals: vec![from, -from, from + 1.0, -from - 1.0, from + 2.0, -from - 2.0],
            observations: vec![0.0; 3],
            terminated: false,
        };
        let episodes = [vec![episode(0.0), episode(5.0)], vec![episode(10.0)], vec![]];
        let figures = figures(&["angle", "speed"], &episodes);
        let names: Vec<&str> = figures.iter().map(|(name, _)| &name[..]).collect();
        assert_eq!(names, ["signal_angle", "signal_speed"]);
        let Figure::Lines(lines) = &figures[1].1 else {
            panic!("not lines");
        };
        assert_eq!(lines.curves[1].points, [[0.0, -10.0], [1.0, -11.0], [2.0, -12.0]]);
        assert_eq!(lines.curves.len(), 3);
        assert!(lines.curves[2].points.is_empty());
    }
}
