//! The table of an experiment, for people and for programs.
//!
//! ```text
//! mean ± t·s/√K        95 % interval of the mean over K seeds: s their standard deviation, t that of Student, K - 1 degrees
//! ```

use serde_json::{Map, Value, json};

use super::plan::{Case, Plan};

/// Measures of one run, in the order of the table's columns.
pub type Measures = Vec<(String, f64)>;

/// A case with the measures of each of its seeds.
pub type Row<'a> = (&'a Case, Vec<&'a Measures>);

/// Mean over seeds, and half the width of its 95 % interval where there is more than one.
fn interval(values: &[f64]) -> (f64, Option<f64>) {
    /// The 97.5 % quantile of Student's distribution for 1, 2, … degrees of freedom.
    const STUDENT: [f64; 30] = [
        12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201, 2.179, 2.160, 2.145, 2.131,
        2.120, 2.110, 2.101, 2.093, 2.086, 2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042,
    ];
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    if values.len() < 2 {
        return (mean, None);
    }
    let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (count - 1.0);
    // Beyond the table the quantile is taken from its end: slightly too wide, never too narrow.
    let student = STUDENT[(values.len() - 2).min(STUDENT.len() - 1)];
    (mean, Some(student * (variance / count).sqrt()))
}

/// A measure of one run; NaN where its case does not have it.
fn value(measures: &Measures, name: &str) -> f64 {
    let found = measures.iter().find(|(other, _)| other == name);
    found.map_or(f64::NAN, |(_, value)| *value)
}

/// The names of all measures of any case, in the order in which they come up; `wall_seconds` is the last one.
fn names<'a>(rows: &'a [Row]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows
        .iter()
        .filter_map(|(_, seeds)| seeds.first())
        .flat_map(|first| *first)
    {
        if !names.contains(&&name[..]) {
            names.push(name);
        }
    }
    names.sort_by_key(|name| *name == "wall_seconds");
    names
}

/// A number of the measure `name`, with as many decimals as say something; a dash for none.
fn number(name: &str, value: f64) -> String {
    let coarse = ["return_", "wall_", "episode_"]
        .iter()
        .any(|begin| name.starts_with(begin));
    match value {
        value if value.is_nan() => "-".into(),
        value if coarse => format!("{value:.1}"),
        value => format!("{value:.3}"),
    }
}

/// Seeds in words: `1 to 5`, `1 to 3, 7`.
fn in_words(seeds: &[u64]) -> String {
    let runs = seeds.chunk_by(|a, b| a.checked_add(1) == Some(*b));
    let words = runs.map(|run| match run {
        [] => String::new(),
        [seed] => seed.to_string(),
        [first, .., last] => format!("{first} to {last}"),
    });
    words.collect::<Vec<_>>().join(", ")
}

fn line(cells: impl IntoIterator<Item = String>) -> String {
    cells
        .into_iter()
        .fold(String::from("|"), |line, cell| line + " " + &cell + " |")
        + "\n"
}

/// The table for people.
pub fn markdown(plan: &Plan, rows: &[Row]) -> String {
    let mut text = format!("# stein reproduce {}, scale {}\n\n", plan.name, plan.scale);
    let same = plan.cases.windows(2).all(|pair| pair[0].seeds == pair[1].seeds);
    text += &match plan.cases.first().map_or(&[][..], |case| &case.seeds) {
        _ if !same => {
            "Mean over the seeds of each case, which the second table has, ± half the width of its 95 % t-interval. "
                .into()
        }
        [seed] => format!("Seed {seed} alone, so without intervals. "),
        seeds => format!(
            "Mean over seeds {} ± half the width of its 95 % t-interval. ",
            in_words(seeds)
        ),
    };
    text += &format!("{} episodes a policy, acting by their means", plan.episodes);
    if plan.cases.iter().any(|case| case.stochastic) {
        text += " (`_sampled`: by sampled actions)";
    }
    text += &format!("; stein {}.", env!("CARGO_PKG_VERSION"));
    if rows.len() < plan.cases.len() {
        text += &format!(" {} of {} cases so far.", rows.len(), plan.cases.len());
    }
    let names = names(rows);
    let head = |first: &[&str]| {
        let heads = first.iter().chain(&names).map(|name| name.to_string());
        let rules = first.iter().chain(&names).map(|_| "---|");
        format!("\n\n{}|{}\n", line(heads), rules.collect::<String>())
    };
    text += &head(&["case"]);
    for (case, seeds) in rows {
        let cells = names.iter().map(|name| {
            let values: Vec<f64> = seeds.iter().map(|measures| value(measures, name)).collect();
            match interval(&values) {
                (mean, Some(half)) if !mean.is_nan() => format!("{} ± {}", number(name, mean), number(name, half)),
                (mean, _) => number(name, mean),
            }
        });
        text += &line(std::iter::once(case.title.clone()).chain(cells));
    }
    text += "\nEvery seed:";
    text += &head(&["case", "seed"]);
    for (case, seeds) in rows {
        for (seed, measures) in case.seeds.iter().zip(seeds) {
            let cells = names.iter().map(|name| number(name, value(measures, name)));
            text += &line([case.title.clone(), seed.to_string()].into_iter().chain(cells));
        }
    }
    text
}

/// The table for programs.
pub fn as_json(plan: &Plan, rows: &[Row]) -> Value {
    let cases = rows.iter().map(|(case, seeds)| {
        let own = seeds.first().into_iter().flat_map(|first| *first);
        let each = own.map(|(name, _)| {
            let values: Vec<f64> = seeds.iter().map(|measures| value(measures, name)).collect();
            let (mean, half) = interval(&values);
            let bounds = half.map(|half| [mean - half, mean + half]);
            (
                name.clone(),
                json!({ "mean": mean, "interval": bounds, "seeds": values }),
            )
        });
        let measures: Map<_, _> = each.collect();
        json!({ "label": case.label, "title": case.title, "seeds": case.seeds, "measures": measures })
    });
    let mut seeds: Vec<u64> = Vec::new();
    for seed in plan.cases.iter().flat_map(|case| &case.seeds) {
        if !seeds.contains(seed) {
            seeds.push(*seed);
        }
    }
    json!({
        "experiment": plan.name,
        "scale": plan.scale,
        "seeds": seeds,
        "episodes": plan.episodes,
        "interval": "95 % t-interval of the mean over seeds",
        "stein_version": env!("CARGO_PKG_VERSION"),
        "cases": cases.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn intervals_are_those_of_student() {
        assert_eq!(interval(&[3.0]), (3.0, None));
        let (mean, half) = interval(&[1.0, 2.0, 3.0, 4.0, 5.0]);
        // s = √2.5, t = 2.776 with four degrees of freedom.
        assert!((mean - 3.0).abs() < 1e-12 && (half.unwrap() - 2.776 * 0.5f64.sqrt()).abs() < 1e-9);
        assert_eq!(interval(&[0.5; 100]), (0.5, Some(0.0)));
        assert!(interval(&[f64::NAN, 1.0]).0.is_nan());
    }

    #[test]
    fn seeds_are_told_in_words() {
        assert_eq!(in_words(&[1, 2, 3]), "1 to 3");
        assert_eq!(in_words(&[1, 2, 3, 7]), "1 to 3, 7");
        assert_eq!(in_words(&[5, 3]), "5, 3");
    }

    #[test]
    fn cases_may_have_measures_of_their_own() {
        let one: Measures = vec![("ways".into(), 2.0), ("wall_seconds".into(), 1.0)];
        let two: Measures = vec![
            ("velocity".into(), 0.5),
            ("ways".into(), 3.0),
            ("wall_seconds".into(), 1.0),
        ];
        let case = |label: &str| Case::named(label, vec![4]);
        let (a, b) = (case("a"), case("b"));
        let rows = [(&a, vec![&one]), (&b, vec![&two])];
        assert_eq!(names(&rows), ["ways", "velocity", "wall_seconds"]);
        let plan = Plan {
            name: "x".into(),
            scale: "smoke".into(),
            episodes: 1,
            cases: vec![case("a"), case("b")],
            out: "x".into(),
        };
        let text = markdown(&plan, &rows);
        assert!(text.contains("Seed 4 alone"), "{text}");
        assert!(
            text.contains("| a | 2.000 | - | 1.0 |\n| b | 3.000 | 0.500 | 1.0 |\n"),
            "{text}"
        );
        assert!(text.contains("| b | 4 | 3.000 | 0.500 | 1.0 |\n"), "{text}");
        let json = as_json(&plan, &rows);
        assert_eq!(json["cases"][0]["measures"].as_object().unwrap().len(), 2);
    }
}
