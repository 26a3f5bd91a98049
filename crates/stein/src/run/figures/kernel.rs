//! The kernel of a run, from the columns `k_i_j` of `kernel.csv`: the matrix at four points of training, and its mean
//! over time.

use super::learning::env_steps;
use crate::config::Config;
use crate::plot::{Curve, CurveStyle, Figure, Heatmap, Lines, Panel};
use crate::run::metrics::Table;

/// Name of the column of k_ij.
pub fn column(i: usize, j: usize) -> String {
    format!("k_{i}_{j}")
}

/// The figure, by file name without extension; none if the table has no row yet.
///
/// If the table lacks a direction, the other direction of the pair is used; the diagonal is 1.
pub fn figure(table: &Table, config: &Config) -> Option<(String, Figure)> {
    let n = config.ensemble;
    let place = |i, j| table.columns.iter().position(|name| *name == column(i, j));
    let places: Vec<Option<usize>> = (0..n * n)
        .map(|at| (at / n, at % n))
        .map(|(i, j)| place(i, j).or_else(|| place(j, i)))
        .collect();
    // Iterations without a kernel have empty cells.
    let known: Vec<&Vec<f64>> = table
        .rows
        .iter()
        .filter(|row| row.iter().all(|k| !k.is_nan()))
        .collect();
    let last = known.len().checked_sub(1)?;
    let mut moments = vec![0, last / 3, last * 2 / 3, last];
    moments.dedup();
    let panel = |row: &Vec<f64>| Panel {
        title: format!("iteration {}", row[0]),
        values: (0..n * n)
            .map(|at| match places[at] {
                _ if at / n == at % n => 1.0,
                Some(place) => row[place],
                None => f64::NAN,
            })
            .collect(),
    };
    let kind = if config.has_part("qd") {
        format!("{} with {}", config.qd.divergence, config.qd.estimator)
    } else {
        "parameters".into()
    };
    let heatmap = Heatmap {
        title: format!("Kernel of {n} policies, {kind}"),
        columns: "policy j".into(),
        rows: "policy i".into(),
        scale: "kernel k_ij".into(),
        panels: moments.into_iter().map(|row| panel(known[row])).collect(),
    };
    Some(("kernel".into(), Figure::Heatmap(heatmap)))
}

/// The mean of k_ij over all pairs during training, in a band from the minimum to the maximum: it falls as policies
/// become different. None if the kernel was never computed.
pub fn over_time(table: &Table, config: &Config) -> Option<(String, Figure)> {
    let steps = env_steps(table, config);
    let (mut means, mut least, mut largest) = (Vec::new(), Vec::new(), Vec::new());
    for (row, &x) in table.rows.iter().zip(&steps) {
        let values = &row[1..];
        if values.is_empty() || values.iter().any(|k| k.is_nan()) {
            continue;
        }
        means.push([x, values.iter().sum::<f64>() / values.len() as f64]);
        least.push([x, values.iter().copied().fold(f64::INFINITY, f64::min)]);
        largest.push([x, values.iter().copied().fold(f64::NEG_INFINITY, f64::max)]);
    }
    if means.is_empty() {
        return None;
    }
    largest.reverse();
    let curve = |name: &str, style, points| Curve {
        name: Some(name.into()),
        style,
        points,
    };
    let lines = Lines {
        title: format!("Kernel between {} policies", config.ensemble),
        x: "environment steps of all policies".into(),
        y: "kernel k_ij".into(),
        curves: vec![
            curve("all pairs", CurveStyle::Range, [least, largest].concat()),
            curve("mean", CurveStyle::Mean, means),
        ],
    };
    Some(("kernel_mean".into(), Figure::Lines(lines)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn panels(columns: &[&str], rows: &[&[f64]]) -> Vec<Panel> {
        let table = Table {
            columns: columns.iter().map(|name| (*name).to_string()).collect(),
            rows: rows.iter().map(|row| row.to_vec()).collect(),
        };
        let config = Config {
            ensemble: 2,
            ..Config::default()
        };
        match figure(&table, &config) {
            Some((name, Figure::Heatmap(heatmap))) if name == "kernel" => heatmap.panels,
            None => Vec::new(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn matrices_of_the_first_last_and_two_moments_between() {
        let rows: Vec<Vec<f64>> = (1..=10).map(|k| vec![f64::from(k), f64::from(k) / 10.0]).collect();
        let rows: Vec<&[f64]> = rows.iter().map(|row| &row[..]).collect();
        let panels = panels(&["iteration", "k_0_1"], &rows);
        let titles: Vec<&str> = panels.iter().map(|panel| &panel.title[..]).collect();
        assert_eq!(titles, ["iteration 1", "iteration 4", "iteration 7", "iteration 10"]);
        assert_eq!(panels[1].values, [1.0, 0.4, 0.4, 1.0]);
    }

    #[test]
    fn iterations_without_a_kernel_are_passed_over() {
        let rows: [&[f64]; 3] = [&[1.0, 0.5], &[2.0, f64::NAN], &[3.0, 0.25]];
        let titles: Vec<String> = panels(&["iteration", "k_0_1"], &rows)
            .into_iter()
            .map(|p| p.title)
            .collect();
        assert_eq!(titles, ["iteration 1", "iteration 3"]);
    }

    #[test]
    fn both_directions_where_they_differ() {
        let panels = panels(&["iteration", "k_0_1", "k_1_0"], &[&[1.0, 0.25, 0.75]]);
        assert_eq!(panels.len(), 1, "one row is one panel");
        assert_eq!(panels[0].values, [1.0, 0.25, 0.75, 1.0]);
    }

    #[test]
    fn the_mean_of_all_pairs_over_time() {
        let table = Table {
            columns: ["iteration", "k_0_1", "k_0_2", "k_1_2"].map(String::from).to_vec(),
            rows: vec![
                vec![1.0, 0.9, 0.6, 0.3],
                vec![2.0, f64::NAN, f64::NAN, f64::NAN],
                vec![3.0, 0.5, 0.4, 0.0],
            ],
        };
        let config = Config {
            ensemble: 3,
            steps: 10,
            ..Config::default()
        };
        let Some((name, Figure::Lines(lines))) = over_time(&table, &config) else {
            panic!("not lines");
        };
        assert_eq!(name, "kernel_mean");
        assert_eq!(
            lines.curves[0].points,
            [[30.0, 0.3], [90.0, 0.0], [90.0, 0.5], [30.0, 0.9]]
        );
        let means = &lines.curves[1].points;
        assert!((means[0][1] - 0.6).abs() < 1e-12 && (means[1][1] - 0.3).abs() < 1e-12 && means.len() == 2);
    }

    #[test]
    fn no_rows_no_figure() {
        assert!(panels(&["iteration", "k_0_1"], &[]).is_empty());
    }
}
