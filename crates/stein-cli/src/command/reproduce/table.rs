//! The table of an experiment, for people and for programs; `stein::statistics` has the intervals.

use serde_json::{Map, Value, json};
use stein::plot::Figure;
use stein::run::figures::seeds;
use stein::statistics::{MANY, Summary, improvement, student, summary};

use super::plan::{Case, Plan};
use crate::program;

/// Measures of one run, in the order of the table's columns.
pub type Measures = Vec<(String, f64)>;

/// A case with the measures of each of its finished seeds.
pub struct Row<'a> {
    pub case: &'a Case,
    /// The seeds that are finished; at least one.
    pub seeds: Vec<u64>,
    /// What each of them has.
    pub runs: Vec<&'a Measures>,
}

/// A measure of one run; NaN where its case does not have it.
fn value(measures: &Measures, name: &str) -> f64 {
    let found = measures.iter().find(|(other, _)| other == name);
    found.map_or(f64::NAN, |(_, value)| *value)
}

/// The names of all measures of any case, in the order in which they come up; `wall_seconds` is the last one.
fn names<'a>(rows: &'a [Row]) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in rows.iter().filter_map(|row| row.runs.first()).flat_map(|first| *first) {
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

/// What the seeds of a case say of a measure.
fn over_seeds(runs: &[&Measures], name: &str) -> (Vec<f64>, Summary) {
    let values: Vec<f64> = runs.iter().map(|measures| value(measures, name)).collect();
    let summary = summary(&values);
    (values, summary)
}

/// A summary for people: `mean ± half` of few seeds, `centre [low, high]` of many.
fn in_digits(name: &str, values: &[f64], summary: Summary) -> String {
    let number = |value: f64| number(name, value);
    match summary.interval {
        _ if summary.centre.is_nan() => "-".into(),
        None => number(summary.centre),
        Some([low, high]) if values.len() >= MANY => {
            format!("{} [{}, {}]", number(summary.centre), number(low), number(high))
        }
        Some([_, high]) => format!("{} ± {}", number(summary.centre), number(high - summary.centre)),
    }
}

/// Measures whose probability of improvement over independent PPO is told.
const IMPROVED: [&str; 2] = ["return_mean", "return_best"];

/// The case of independent PPO that a case is held against: the first of the same task; none for itself.
fn baseline<'a, 'b>(rows: &'a [Row<'b>], case: &Case) -> Option<&'a Row<'b>> {
    let ppo = rows
        .iter()
        .find(|row| row.case.is_ppo() && row.case.env() == case.env())?;
    (ppo.case.label != case.label).then_some(ppo)
}

/// How probable it is that a run of a case is better than one of independent PPO, where both have many seeds.
fn improvements<'a>(rows: &[Row<'a>]) -> Vec<(&'a Case, &'static str, Summary)> {
    let mut found = Vec::new();
    for row in rows.iter().filter(|row| row.runs.len() >= MANY) {
        let Some(other) = baseline(rows, row.case).filter(|other| other.runs.len() >= MANY) else {
            continue;
        };
        for name in IMPROVED {
            let ((own, _), (theirs, _)) = (over_seeds(&row.runs, name), over_seeds(&other.runs, name));
            if own.iter().chain(&theirs).all(|value| !value.is_nan()) {
                found.push((row.case, name, improvement(&own, &theirs)));
            }
        }
    }
    found
}

/// The cases that lack seeds, and which.
fn missing<'a>(plan: &'a Plan, rows: &[Row]) -> Vec<(&'a Case, Vec<u64>)> {
    let of_case = |case: &'a Case| {
        let row = rows.iter().find(|row| row.case.label == case.label);
        let there = |seed: &u64| row.is_some_and(|row| row.seeds.contains(seed));
        let seeds: Vec<u64> = case.seeds.iter().copied().filter(|seed| !there(seed)).collect();
        (case, seeds)
    };
    let all = plan.cases.iter().map(of_case);
    all.filter(|(_, seeds)| !seeds.is_empty()).collect()
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
    let mut text = format!(
        "# {} reproduce {}, scale {}\n\n",
        program::name(),
        plan.name,
        plan.scale
    );
    let same = plan.cases.windows(2).all(|pair| pair[0].seeds == pair[1].seeds);
    let many = |case: &Case| case.seeds.len() >= MANY;
    text += &match plan.cases.first().map_or(&[][..], |case| &case.seeds) {
        _ if !same => {
            "Over the seeds of each case, which the second table has: mean ± half the width of its 95 % t-interval"
                .into()
        }
        [seed] => format!("Seed {seed} alone, so without intervals"),
        seeds if seeds.len() >= MANY => format!("Over seeds {}", in_words(seeds)),
        seeds => format!(
            "Mean over seeds {} ± half the width of its 95 % t-interval",
            in_words(seeds)
        ),
    };
    if plan.cases.iter().any(many) {
        let whose = if same {
            ": interquartile mean"
        } else {
            "; of ten and more seeds the interquartile mean"
        };
        text += &format!("{whose} [its 95 % bootstrap interval]");
    }
    text += ". ";
    text += &format!("{} episodes per policy with mean actions", plan.episodes);
    if plan.cases.iter().any(|case| case.stochastic) {
        text += " (`_sampled`: with sampled actions)";
    }
    text += &format!("; stein {}.", env!("CARGO_PKG_VERSION"));
    let missing = missing(plan, rows);
    if !missing.is_empty() {
        let (done, all) = (
            rows.iter().map(|row| row.seeds.len()).sum::<usize>(),
            plan.cases.iter().map(|case| case.seeds.len()).sum::<usize>(),
        );
        let each = missing.iter().map(|(case, seeds)| match seeds[..] == case.seeds {
            true => case.label.clone(),
            false => format!("{} ({})", case.label, in_words(seeds)),
        });
        let each = each.collect::<Vec<_>>().join(", ");
        text += &format!(" **{done} of {all} runs so far; missing: {each}.**");
    }
    let names = names(rows);
    let head = |first: &[&str]| {
        let heads = first.iter().chain(&names).map(|name| name.to_string());
        let rules = first.iter().chain(&names).map(|_| "---|");
        format!("\n\n{}|{}\n", line(heads), rules.collect::<String>())
    };
    // What was published stands beside what was measured.
    let published = plan.cases.iter().any(|case| case.paper.is_some());
    let paper = format!("paper's {}", plan.answer());
    let first: &[&str] = if published { &["case", &paper] } else { &["case"] };
    text += &head(first);
    for Row { case, runs, .. } in rows {
        let cells = names.iter().map(|name| {
            let (values, summary) = over_seeds(runs, name);
            in_digits(name, &values, summary)
        });
        let paper = published.then(|| number("", case.paper.unwrap_or(f64::NAN)));
        text += &line(std::iter::once(case.title.clone()).chain(paper).chain(cells));
    }
    text += "\nEvery seed:";
    text += &head(&["case", "seed"]);
    for Row { case, seeds, runs } in rows {
        for (seed, measures) in seeds.iter().zip(runs) {
            let cells = names.iter().map(|name| number(name, value(measures, name)));
            text += &line([case.title.clone(), seed.to_string()].into_iter().chain(cells));
        }
    }
    let improvements = improvements(rows);
    if !improvements.is_empty() {
        text += "\nProbability that a run is better than one of independent PPO [95 % bootstrap interval]; a tie counts one half:\n\n";
        text += "| case | measure | probability |\n|---|---|---|\n";
        for (case, name, summary) in improvements {
            let shown = in_digits("", &[0.0; MANY], summary);
            text += &line([case.title.clone(), name.into(), shown]);
        }
    }
    text
}

/// The measure that answers the experiment, of all cases of a task: every seed a point.
pub fn figure(plan: &Plan, rows: &[Row], task: &str) -> Figure {
    let of_task = rows.iter().filter(|row| row.case.task() == task);
    let cases: Vec<(&str, Vec<f64>, Summary)> = of_task
        .map(|Row { case, runs, .. }| {
            let (values, summary) = over_seeds(runs, plan.answer());
            (&case.title[..], values, summary)
        })
        .collect();
    let shown: Vec<seeds::Case> = cases
        .iter()
        .map(|(title, values, summary)| (*title, &values[..], summary.interval))
        .collect();
    seeds::figure(
        &format!("{} ({}: {task})", plan.answer(), plan.name),
        plan.answer(),
        &shown,
    )
}

/// The table as comma-separated values: a line for each case and measure.
pub fn csv(plan: &Plan, rows: &[Row]) -> String {
    let mut text = String::from("case,title,task,measure,seeds,centre,low,high,paper\n");
    for Row { case, runs, .. } in rows {
        let own = runs.first().into_iter().flat_map(|first| *first);
        for (name, _) in own {
            let (values, summary) = over_seeds(runs, name);
            let [low, high] = summary.interval.unwrap_or([f64::NAN; 2]);
            let [centre, low, high] = [summary.centre, low, high].map(cell);
            let (title, task) = (quoted(&case.title), case.task());
            let paper = case.paper.filter(|_| name == plan.answer()).map_or(String::new(), cell);
            text += &format!(
                "{},{title},{task},{name},{},{centre},{low},{high},{paper}\n",
                case.label,
                values.len()
            );
        }
    }
    text
}

/// The answer as comma-separated values: a line for each case, with the measure that answers the experiment, its interval, what the
/// paper has, and further columns that the experiment names.
pub fn answer_csv(plan: &Plan, rows: &[Row]) -> String {
    let further: String = plan.columns.keys().map(|name| format!(",{name}")).collect();
    let mut text = format!("method,title,task,measure,seeds,mean,low,high,paper{further}\n");
    for Row { case, runs, .. } in rows {
        let (values, summary) = over_seeds(runs, plan.answer());
        let [low, high] = summary.interval.unwrap_or([f64::NAN; 2]);
        let mut cells = vec![
            case.label.clone(),
            quoted(&case.title),
            case.task().into(),
            plan.answer().into(),
            values.len().to_string(),
        ];
        let paper = case.paper.unwrap_or(f64::NAN);
        cells.extend([summary.centre, low, high, paper].map(cell));
        cells.extend(plan.columns.values().map(|name| cell(over_seeds(runs, name).1.centre)));
        text += &(cells.join(",") + "\n");
    }
    text
}

/// Every run as comma-separated values: a line for each seed of each case.
pub fn runs_csv(rows: &[Row]) -> String {
    let names = names(rows);
    let mut text = format!("case,seed,{}\n", names.join(","));
    for Row { case, seeds, runs } in rows {
        for (seed, measures) in seeds.iter().zip(runs) {
            let cells: Vec<String> = names.iter().map(|name| cell(value(measures, name))).collect();
            text += &format!("{},{seed},{}\n", case.label, cells.join(","));
        }
    }
    text
}

/// A number of a file; nothing for NaN.
fn cell(value: f64) -> String {
    if value.is_nan() {
        String::new()
    } else {
        value.to_string()
    }
}

/// A text of a file, in quotes where it needs them.
fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.into()
    }
}

/// The table for programs.
pub fn as_json(plan: &Plan, rows: &[Row]) -> Value {
    let cases = rows.iter().map(|Row { case, seeds, runs }| {
        let own = runs.first().into_iter().flat_map(|first| *first);
        let each = own.map(|(name, _)| {
            let (values, summary) = over_seeds(runs, name);
            let mut measure = json!({ "mean": student(&values).0, "interval": summary.interval, "seeds": values });
            if values.len() >= MANY {
                measure["interquartile_mean"] = json!(summary.centre);
            }
            (name.clone(), measure)
        });
        let measures: Map<_, _> = each.collect();
        json!({ "label": case.label, "title": case.title, "task": case.task(), "seeds": seeds, "paper": case.paper, "measures": measures })
    });
    let mut seeds: Vec<u64> = Vec::new();
    for seed in plan.cases.iter().flat_map(|case| &case.seeds) {
        if !seeds.contains(seed) {
            seeds.push(*seed);
        }
    }
    json!({
        "experiment": plan.name,
        "question": plan.question,
        "measure": plan.measure,
        "curve": plan.curve,
        "scale": plan.scale,
        "seeds": seeds,
        "episodes": plan.episodes,
        "interval": "95 %: below ten seeds the t-interval of the mean, from ten on the bootstrap interval of the interquartile mean",
        "improvement_over_ppo": improvements(rows).iter().map(|(case, measure, summary)| json!({
            "label": case.label, "measure": measure, "probability": summary.centre, "interval": summary.interval
        })).collect::<Vec<_>>(),
        "stein_version": env!("CARGO_PKG_VERSION"),
        "missing": missing(plan, rows).into_iter().map(|(case, seeds)| (case.label.clone(), json!(seeds))).collect::<Map<_, _>>(),
        "cases": cases.collect::<Vec<_>>(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(scale: &str, cases: Vec<Case>) -> Plan {
        Plan {
            name: "x".into(),
            source: "x.toml".into(),
            scale: scale.into(),
            curve: Default::default(),
            question: String::new(),
            measure: None,
            columns: Default::default(),
            episodes: 1,
            cases,
            out: "x".into(),
        }
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
        let row = |case, measures| Row {
            case,
            seeds: vec![4],
            runs: vec![measures],
        };
        let rows = [row(&a, &one), row(&b, &two)];
        assert_eq!(names(&rows), ["ways", "velocity", "wall_seconds"]);
        let plan = plan("smoke", vec![case("a"), case("b")]);
        let text = markdown(&plan, &rows);
        assert!(text.contains("Seed 4 alone"), "{text}");
        assert!(
            text.contains("| a | 2.000 | - | 1.0 |\n| b | 3.000 | 0.500 | 1.0 |\n"),
            "{text}"
        );
        assert!(text.contains("| b | 4 | 3.000 | 0.500 | 1.0 |\n"), "{text}");
        let json = as_json(&plan, &rows);
        assert_eq!(json["cases"][0]["measures"].as_object().unwrap().len(), 2);
        assert_eq!(json["missing"], json!({}));
        assert!(!text.contains("so far"), "{text}");
    }

    #[test]
    fn a_partial_table_says_what_is_missing() {
        let measures: Measures = vec![("ways".into(), 2.0)];
        let plan = plan(
            "smoke",
            vec![Case::named("a", vec![1, 2, 3]), Case::named("b", vec![1, 2, 3])],
        );
        let rows = [Row {
            case: &plan.cases[0],
            seeds: vec![2],
            runs: vec![&measures],
        }];
        let text = markdown(&plan, &rows);
        assert!(text.contains("**1 of 6 runs so far; missing: a (1, 3), b.**"), "{text}");
        assert!(text.contains("| a | 2 | 2.000 |\n"), "the seed that is there: {text}");
        let json = as_json(&plan, &rows);
        assert_eq!(json["missing"], json!({ "a": [1, 3], "b": [1, 2, 3] }));
        assert_eq!(json["cases"][0]["seeds"], json!([2]));
    }

    #[test]
    fn many_seeds_have_interquartile_means_and_a_probability_of_improvement() {
        let run = |earned: f64| -> Measures { vec![("return_mean".into(), earned), ("wall_seconds".into(), 1.0)] };
        let ten = |first: f64| -> Vec<Measures> { (0..10).map(|k| run(first + f64::from(k))).collect() };
        let (low, high) = (ten(0.0), ten(100.0));
        let seeds: Vec<u64> = (1..=10).collect();
        let case = |label: &str, method: &str| Case::of(label, seeds.clone(), "hopper", method);
        let (a, b) = (case("a", "ppo"), case("b", "qd"));
        let rows = [
            Row {
                case: &a,
                seeds: seeds.clone(),
                runs: low.iter().collect(),
            },
            Row {
                case: &b,
                seeds: seeds.clone(),
                runs: high.iter().collect(),
            },
        ];
        let plan = plan("paper", vec![case("a", "ppo"), case("b", "qd")]);
        let text = markdown(&plan, &rows);
        assert!(
            text.contains("Over seeds 1 to 10: interquartile mean [its 95 % bootstrap interval]"),
            "{text}"
        );
        assert!(text.contains("| b | 104.5 ["), "{text}");
        assert!(text.contains("| b | return_mean | 1.000 [1.000, 1.000] |"), "{text}");
        let json = as_json(&plan, &rows);
        assert_eq!(json["cases"][1]["measures"]["return_mean"]["interquartile_mean"], 104.5);
        assert_eq!(json["improvement_over_ppo"][0]["probability"], 1.0);
        assert_eq!(
            json["improvement_over_ppo"].as_array().unwrap().len(),
            1,
            "PPO is not held against itself"
        );
        assert!(
            csv(&plan, &rows).contains("\nb,b,hopper,return_mean,10,104.5,"),
            "{}",
            csv(&plan, &rows)
        );
        assert!(runs_csv(&rows).contains("\nb,3,102,1\n"), "{}", runs_csv(&rows));
        assert!(!text.contains("paper's"), "{text}");
        let mut published = case("b", "qd");
        published.paper = Some(1.36);
        let plan = Plan {
            cases: vec![published],
            ..plan
        };
        let rows = [Row {
            case: &plan.cases[0],
            seeds: seeds.clone(),
            runs: high.iter().collect(),
        }];
        let text = markdown(&plan, &rows);
        assert!(text.contains("| case | paper's return_mean | return_mean |"), "{text}");
        assert!(text.contains("| b | 1.360 | 104.5 ["), "{text}");
        assert!(
            csv(&plan, &rows).lines().nth(1).unwrap().ends_with(",1.36"),
            "{}",
            csv(&plan, &rows)
        );
        assert_eq!(quoted("a, \"b\""), "\"a, \"\"b\"\"\"");
    }
}
