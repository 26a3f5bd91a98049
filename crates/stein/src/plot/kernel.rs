//! The kernel matrix of a run at four moments of its training, from the columns `k_i_j` of `kernel.csv`.

use super::{Figure, Heatmap, Panel};
use crate::run::config::Config;
use crate::run::metrics::Table;

/// Name of the column of k_ij.
pub fn column(i: usize, j: usize) -> String {
    format!("k_{i}_{j}")
}

/// The figure, by file name without extension; none where the table has no row yet.
///
/// A direction that the table does not have is that of the pair turned round; the diagonal is 1.
pub fn figure(table: &Table, config: &Config) -> Option<(String, Figure)> {
    let n = config.ensemble;
    let place = |i, j| table.columns.iter().position(|name| *name == column(i, j));
    let places: Vec<Option<usize>> = (0..n * n)
        .map(|at| (at / n, at % n))
        .map(|(i, j)| place(i, j).or_else(|| place(j, i)))
        .collect();
    // Iterations in which the kernel was not measured have empty cells.
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
    let kind = match config.method.as_str() {
        "qd" => format!("{} with {}", config.qd.divergence, config.qd.estimator),
        _ => "parameters".into(),
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
    fn no_rows_no_figure() {
        assert!(panels(&["iteration", "k_0_1"], &[]).is_empty());
    }
}
