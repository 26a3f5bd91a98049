//! Learning curves of a run: the return of each policy, their mean and the best one, over iterations.

use super::{Curve, CurveStyle, Figure, Lines};
use crate::run::config::Config;
use crate::run::metrics::Table;

/// The figures that every run has, by file name without extension.
pub fn figures(table: &Table, config: &Config) -> Vec<(String, Figure)> {
    let iterations = table.column("iteration").unwrap_or_default();
    let column = |name: &str| -> Vec<[f64; 2]> {
        let values = table.column(name).unwrap_or_default();
        iterations.iter().zip(values).map(|(&x, y)| [x, y]).collect()
    };
    let mut curves: Vec<Curve> = (0..config.ensemble)
        .map(|i| Curve {
            name: Some(format!("policy {i}")),
            style: CurveStyle::Policy(i),
            points: column(&format!("return_{i}")),
        })
        .collect();
    for (name, key, style) in [
        ("mean", "return_mean", CurveStyle::Mean),
        ("best", "return_best", CurveStyle::Best),
    ] {
        curves.push(Curve {
            name: Some(name.into()),
            style,
            points: column(key),
        });
    }
    let env = config.env.get("name").and_then(|name| name.as_str()).unwrap_or("?");
    let lines = Lines {
        title: format!("Return on {env} by {} (seed {})", config.method, config.seed),
        x: format!("iteration ({} steps of each policy)", config.steps),
        y: "return of an episode".into(),
        curves,
    };
    vec![("learning_curves".into(), Figure::Lines(lines))]
}
