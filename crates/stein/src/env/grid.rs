//! A grid over the behaviour of policies, with the scores of quality-diversity archives.
//!
//! ```text
//! b_i            behaviour of policy i: mean over its episodes of a few signals, over all steps or at the end
//! grid_coverage  fraction of the cells that contain some b_i
//! qd_score       Σ over these cells of the best return in the cell, max(J_i, 0)
//! ```
//!
//! Behaviour outside the grid counts in the nearest edge cell. References: Pugh, Soros & Stanley 2016, "Quality
//! diversity: a new frontier for evolutionary computation"; the scores of pyribs and QDax.

use std::collections::BTreeMap;

use super::Episode;

/// One axis of a grid.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Axis {
    /// Name of the signal.
    pub signal: &'static str,
    /// Lower edge of the first cell.
    pub low: f64,
    /// Upper edge of the last cell.
    pub high: f64,
    /// Number of cells.
    pub cells: usize,
}

/// A grid of behaviour.
#[derive(Clone, Debug, PartialEq)]
pub struct Grid {
    /// Its axes.
    pub axes: Vec<Axis>,
    /// Whether behaviour is the final value of an episode instead of the mean over its steps.
    pub at_end: bool,
}

impl Grid {
    /// Coverage and QD-score of an ensemble; `signals` are the names of the recorded signals. NaN if a signal is
    /// missing.
    pub fn scores(&self, signals: &[&str], policies: &[Vec<Episode>]) -> [f64; 2] {
        let mut best: BTreeMap<Vec<usize>, f64> = BTreeMap::new();
        for episodes in policies {
            let Some(cell) = self.cell(signals, episodes) else {
                return [f64::NAN; 2];
            };
            let earned = episodes.iter().map(Episode::total).sum::<f64>() / episodes.len() as f64;
            let held = best.entry(cell).or_insert(0.0);
            *held = held.max(earned);
        }
        let cells: usize = self.axes.iter().map(|axis| axis.cells).product();
        [best.len() as f64 / cells as f64, best.values().sum()]
    }

    /// The cell of a policy.
    fn cell(&self, signals: &[&str], episodes: &[Episode]) -> Option<Vec<usize>> {
        let of_axis = |axis: &Axis| {
            let index = signals.iter().position(|name| *name == axis.signal)?;
            let of_episode = |episode: &Episode| {
                let values: Vec<f64> = episode.signal(index, signals.len()).collect();
                if self.at_end {
                    return values.last().copied().unwrap_or(f64::NAN);
                }
                // The first state does not depend on the policy.
                let steps = &values[1.min(values.len())..];
                steps.iter().sum::<f64>() / steps.len() as f64
            };
            let mean = episodes.iter().map(of_episode).sum::<f64>() / episodes.len() as f64;
            let place = (mean - axis.low) / (axis.high - axis.low) * axis.cells as f64;
            mean.is_finite().then(|| (place.max(0.0) as usize).min(axis.cells - 1))
        };
        self.axes.iter().map(of_axis).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An episode with this return and signals (0, x) in all states but the first.
    fn episode(earned: f64, places: &[f64]) -> Episode {
        Episode {
            rewards: vec![earned],
            signals: [9.0, 9.0]
                .into_iter()
                .chain(places.iter().flat_map(|&x| [0.0, x]))
                .collect(),
            ..Episode::default()
        }
    }

    #[test]
    fn the_best_of_each_cell_counts() {
        let axis = Axis {
            signal: "x",
            low: 0.0,
            high: 4.0,
            cells: 4,
        };
        let grid = |at_end| Grid {
            axes: vec![axis],
            at_end,
        };
        let policies = [
            vec![episode(5.0, &[0.5, 0.7])],
            vec![episode(7.0, &[0.1, 0.2])],
            vec![episode(-3.0, &[2.0, 2.5])],
            // Outside the grid: the edge cell.
            vec![episode(1.0, &[9.0, 9.0]), episode(3.0, &[9.0, 9.0])],
        ];
        assert_eq!(grid(false).scores(&["y", "x"], &policies), [0.75, 7.0 + 0.0 + 2.0]);
        let moving = [vec![episode(1.0, &[0.0, 3.0])], vec![episode(1.0, &[1.6, 1.6])]];
        assert_eq!(grid(false).scores(&["y", "x"], &moving), [0.25, 1.0]);
        assert_eq!(grid(true).scores(&["y", "x"], &moving), [0.5, 2.0]);
        assert!(grid(true).scores(&["y"], &moving)[0].is_nan());
    }
}
