//! Learning curves of a run: the return of each policy, their mean and the best one, over iterations.

use super::{Curve, CurveStyle, Figure, Lines};
use crate::run::config::Config;
use crate::run::metrics::Table;

/// Learning curves of several cases: `cases` has the title of each and a curve for each of its seeds. Their mean is drawn
/// over them, at the points that all seeds have; a point of no value is passed over.
pub fn comparison(title: &str, cases: &[(&str, Vec<Vec<[f64; 2]>>)]) -> Figure {
    let mut curves = Vec::new();
    for (number, (_, seeds)) in cases.iter().enumerate().filter(|(_, (_, seeds))| seeds.len() > 1) {
        curves.extend(seeds.iter().map(|points| Curve {
            name: None,
            style: CurveStyle::Faint(number),
            points: points.clone(),
        }));
    }
    for (number, (name, seeds)) in cases.iter().enumerate() {
        let length = seeds.iter().map(Vec::len).min().unwrap_or(0);
        let mean = |k: usize| {
            let total: f64 = seeds.iter().map(|points| points[k][1]).sum();
            [seeds[0][k][0], total / seeds.len() as f64]
        };
        curves.push(Curve {
            name: Some((*name).into()),
            style: CurveStyle::Policy(number),
            points: (0..length).map(mean).collect(),
        });
    }
    Figure::Lines(Lines {
        title: title.into(),
        x: "steps of each policy".into(),
        y: "return of an episode".into(),
        curves,
    })
}

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_has_faint_seeds_and_their_mean() {
        let seeds = vec![vec![[1.0, 2.0], [2.0, 4.0]], vec![[1.0, 4.0], [2.0, 8.0], [3.0, 9.0]]];
        let alone = vec![vec![[1.0, 7.0]]];
        let Figure::Lines(lines) = comparison("title", &[("both", seeds), ("one", alone)]) else {
            panic!("not lines");
        };
        let styles: Vec<CurveStyle> = lines.curves.iter().map(|curve| curve.style).collect();
        let expected = [
            CurveStyle::Faint(0),
            CurveStyle::Faint(0),
            CurveStyle::Policy(0),
            CurveStyle::Policy(1),
        ];
        assert_eq!(styles, expected);
        assert_eq!(lines.curves[2].points, [[1.0, 3.0], [2.0, 6.0]]);
        assert_eq!(lines.curves[3].points, [[1.0, 7.0]]);
    }
}
