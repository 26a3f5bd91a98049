//! Learning curves. Of a run: the return of each policy, their mean and the best. Of several runs or seeds: means with
//! bands.

use crate::config::Config;
use crate::plot::{Curve, CurveStyle, Figure, Lines};
use crate::run::metrics::Table;

/// Maximum number of points of a curve in a comparison: with more, curves cannot be distinguished.
const POINTS: usize = 100;

/// Learning curves of several cases: `cases` has the title of each and one curve per seed, one point per iteration.
/// Long curves are reduced to means over several iterations, as the axis label says. The mean over seeds is drawn in a
/// band from minimum to maximum, at the points that all seeds have; points without a value are skipped.
pub fn comparison(title: &str, cases: &[(&str, Vec<Vec<[f64; 2]>>)]) -> Figure {
    let longest = cases.iter().flat_map(|(_, seeds)| seeds).map(Vec::len).max();
    let window = longest.unwrap_or(0).div_ceil(POINTS).max(1);
    let thin = |(name, seeds): &(&str, Vec<Vec<[f64; 2]>>)| {
        let seeds: Vec<_> = seeds.iter().map(|points| means(points, window)).collect();
        (name.to_string(), seeds)
    };
    let cases: Vec<_> = cases.iter().map(thin).collect();
    let mut curves = Vec::new();
    let common = |seeds: &[Vec<[f64; 2]>]| seeds.iter().map(Vec::len).min().unwrap_or(0);
    for (number, (_, seeds)) in cases.iter().enumerate().filter(|(_, (_, seeds))| seeds.len() > 1) {
        let edge = |fold: fn(f64, f64) -> f64| {
            let at = move |k: usize| {
                let value = seeds.iter().map(|points| points[k][1]).reduce(fold);
                [seeds[0][k][0], value.unwrap_or(f64::NAN)]
            };
            (0..common(seeds)).map(at).filter(|point| point[1].is_finite())
        };
        let (least, mut largest) = (edge(f64::min), edge(f64::max).collect::<Vec<_>>());
        largest.reverse();
        curves.push(Curve {
            name: None,
            style: CurveStyle::Band(number),
            points: least.chain(largest).collect(),
        });
    }
    for (number, (name, seeds)) in cases.iter().enumerate() {
        let length = common(seeds);
        let mean = |k: usize| {
            let total: f64 = seeds.iter().map(|points| points[k][1]).sum();
            [seeds[0][k][0], total / seeds.len() as f64]
        };
        curves.push(Curve {
            name: Some(name.clone()),
            style: CurveStyle::Policy(number),
            points: (0..length).map(mean).collect(),
        });
    }
    Figure::Lines(Lines {
        title: title.into(),
        x: match window {
            1 => "steps of each policy".into(),
            _ => format!("steps of each policy (a point: mean of {window} iterations)"),
        },
        y: match cases.iter().any(|(_, seeds)| seeds.len() > 1) {
            true => "return of an episode: mean and range of seeds".into(),
            false => "return of an episode".into(),
        },
        curves,
    })
}

/// Returns of several runs over the steps of all their policies: the mean, in a band from the worst policy to the best.
/// Long runs are reduced as in [`comparison`].
pub fn side_by_side(title: &str, runs: &[(String, &Table)]) -> Figure {
    let longest = runs
        .iter()
        .filter_map(|(_, table)| table.column("iteration"))
        .map(|rows| rows.len())
        .max();
    let window = longest.unwrap_or(0).div_ceil(POINTS).max(1);
    let points = |table: &Table, name: &str| -> Vec<[f64; 2]> {
        let steps = table.column("env_steps").unwrap_or_default();
        let values = table.column(name).unwrap_or_default();
        let points: Vec<_> = steps.iter().zip(values).map(|(&x, y)| [x, y]).collect();
        let mut points = means(&points, window);
        points.retain(|point| point[1].is_finite());
        points
    };
    let bands = runs.iter().enumerate().map(|(number, (_, table))| {
        let (worst, best) = (points(table, "return_worst"), points(table, "return_best"));
        Curve {
            name: None,
            style: CurveStyle::Band(number),
            points: worst.into_iter().chain(best.into_iter().rev()).collect(),
        }
    });
    let lines = runs.iter().enumerate().map(|(number, (name, table))| Curve {
        name: Some(name.clone()),
        style: CurveStyle::Policy(number),
        points: points(table, "return_mean"),
    });
    Figure::Lines(Lines {
        title: title.into(),
        x: match window {
            1 => "environment steps of all policies".into(),
            _ => format!("environment steps of all policies (a point: mean of {window} iterations)"),
        },
        y: "return: mean, worst to best policy".into(),
        curves: bands.chain(lines).collect(),
    })
}

/// Means of every `window` points, or of the remainder at the end; points without a value are ignored.
fn means(points: &[[f64; 2]], window: usize) -> Vec<[f64; 2]> {
    let mean = |chunk: &[[f64; 2]], axis: usize| {
        let finite = chunk.iter().filter(|point| point[1].is_finite());
        let values: Vec<f64> = finite.map(|point| point[axis]).collect();
        values.iter().sum::<f64>() / values.len() as f64
    };
    let chunks = points.chunks(window);
    chunks.map(|chunk| [mean(chunk, 0), mean(chunk, 1)]).collect()
}

/// Steps of all policies after each row of a table of this run, which need not have that column.
pub(super) fn env_steps(table: &Table, config: &Config) -> Vec<f64> {
    let an_iteration = (config.steps * config.ensemble) as f64;
    let iterations = table.column("iteration").unwrap_or_default();
    iterations.iter().map(|iteration| iteration * an_iteration).collect()
}

/// The figures that every run has, by file name without extension.
pub fn figures(table: &Table, config: &Config) -> Vec<(String, Figure)> {
    let steps = env_steps(table, config);
    let column = |name: &str| -> Vec<[f64; 2]> {
        let values = table.column(name).unwrap_or_default();
        steps.iter().zip(values).map(|(&x, y)| [x, y]).collect()
    };
    let curve = |name: &str, style, points| Curve {
        name: Some(name.into()),
        style,
        points,
    };
    let finite = |name: &str| column(name).into_iter().filter(|point| point[1].is_finite());
    let mut best: Vec<_> = finite("return_best").collect();
    best.reverse();
    // The best is drawn below the policies, so that it is visible whose it is.
    let mut curves = vec![
        curve(
            "worst to best",
            CurveStyle::Range,
            finite("return_worst").chain(best).collect(),
        ),
        curve("best", CurveStyle::Best, column("return_best")),
    ];
    let policy = |i| {
        curve(
            &format!("policy {i}"),
            CurveStyle::Policy(i),
            column(&format!("return_{i}")),
        )
    };
    curves.extend((0..config.ensemble).map(policy));
    curves.push(curve("mean", CurveStyle::Mean, column("return_mean")));
    let env = config.env.get("name").and_then(|name| name.as_str()).unwrap_or("?");
    let lines = Lines {
        title: format!("Return on {env} by {} (seed {})", config.method, config.seed),
        x: "environment steps of all policies".into(),
        y: "return of an episode".into(),
        curves,
    };
    vec![("learning_curves".into(), Figure::Lines(lines))]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_comparison_has_the_mean_of_the_seeds_in_a_band() {
        let seeds = vec![vec![[1.0, 2.0], [2.0, 4.0]], vec![[1.0, 4.0], [2.0, 8.0], [3.0, 9.0]]];
        let alone = vec![vec![[1.0, 7.0]]];
        let Figure::Lines(lines) = comparison("title", &[("both", seeds), ("one", alone)]) else {
            panic!("not lines");
        };
        let styles: Vec<CurveStyle> = lines.curves.iter().map(|curve| curve.style).collect();
        let expected = [CurveStyle::Band(0), CurveStyle::Policy(0), CurveStyle::Policy(1)];
        assert_eq!(styles, expected);
        // Forward along the minimum, back along the maximum.
        assert_eq!(lines.curves[0].points, [[1.0, 2.0], [2.0, 4.0], [2.0, 8.0], [1.0, 4.0]]);
        assert_eq!(lines.curves[1].points, [[1.0, 3.0], [2.0, 6.0]]);
        assert_eq!(lines.curves[2].points, [[1.0, 7.0]]);
        assert_eq!(lines.x, "steps of each policy");
    }

    #[test]
    fn the_best_of_a_run_lies_under_its_policies() {
        let columns = [
            "iteration",
            "return_mean",
            "return_best",
            "return_worst",
            "return_0",
            "return_1",
        ];
        let table = Table {
            columns: columns.map(String::from).to_vec(),
            rows: vec![vec![1.0, 2.0, 3.0, 1.0, 1.0, 3.0], vec![2.0, 3.0, 5.0, 1.0, 5.0, 1.0]],
        };
        let config = Config {
            ensemble: 2,
            steps: 100,
            ..Config::default()
        };
        let (_, Figure::Lines(lines)) = figures(&table, &config).remove(0) else {
            panic!("not lines");
        };
        let names: Vec<_> = lines.curves.iter().filter_map(|curve| curve.name.as_deref()).collect();
        assert_eq!(names, ["worst to best", "best", "policy 0", "policy 1", "mean"]);
        assert_eq!(
            lines.curves[0].points,
            [[200.0, 1.0], [400.0, 1.0], [400.0, 5.0], [200.0, 3.0]]
        );
        assert_eq!(lines.curves[3].points, [[200.0, 3.0], [400.0, 1.0]]);
    }

    #[test]
    fn runs_side_by_side_have_a_mean_in_a_band() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.csv");
        let text = "iteration,return_mean,return_best,return_worst,env_steps\n1,2,3,1,10\n2,,,,20\n3,4,6,2,30\n";
        std::fs::write(&path, text).unwrap();
        let table = Table::read(&path).unwrap();
        let Figure::Lines(lines) = side_by_side("title", &[("a run".into(), &table)]) else {
            panic!("not lines");
        };
        assert_eq!(lines.curves[0].style, CurveStyle::Band(0));
        // Forward along the worst, back along the best; the iteration without returns is skipped.
        assert_eq!(
            lines.curves[0].points,
            [[10.0, 1.0], [30.0, 2.0], [30.0, 6.0], [10.0, 3.0]]
        );
        assert_eq!(lines.curves[1].points, [[10.0, 2.0], [30.0, 4.0]]);
        assert_eq!(lines.curves[1].name.as_deref(), Some("a run"));
    }

    #[test]
    fn long_curves_of_a_comparison_are_thinned_out_to_means() {
        // A line with a gap: its means lie on it.
        let point = |k: usize| [k as f64, if k == 4 { f64::NAN } else { 3.0 * k as f64 }];
        let long: Vec<[f64; 2]> = (0..250).map(point).collect();
        let Figure::Lines(lines) = comparison("title", &[("long", vec![long])]) else {
            panic!("not lines");
        };
        let points = &lines.curves[0].points;
        assert_eq!(points.len(), 84);
        assert_eq!(points[..2], [[1.0, 3.0], [4.0, 12.0]]);
        assert_eq!(points[83], [249.0, 747.0]);
        assert!(lines.x.contains("mean of 3 iterations"));
    }
}
