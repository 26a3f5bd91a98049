//! The report of an experiment of `stein reproduce`.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value};
use stein::env::Registry;
use stein::files::plain;
use stein::{Error, Result};

use super::page::{Cell, Line, Page};
use super::{LARGEST, cell, changed, made_by, show, thinned};
use crate::command::eval::number;
use crate::command::reproduce::{Curve, Record};
use crate::program;

/// The report of an experiment, from its table.json and its runs.
pub fn of_experiment(folder: &Path, registry: &Registry) -> Result<String> {
    let path = folder.join("table.json");
    let text = std::fs::read_to_string(&path).map_err(|error| Error::io("read", &path, error))?;
    let damaged = |what: &str| {
        Error::input(format!(
            "{} {what}: run the same `{} reproduce` again, which writes it anew",
            path.display(),
            program::name()
        ))
    };
    let table: Value = serde_json::from_str(&text).map_err(|_| damaged("is no JSON"))?;
    let cases: Vec<Case> = table["cases"]
        .as_array()
        .and_then(|cases| cases.iter().map(Case::read).collect())
        .ok_or_else(|| damaged("lacks cases, seeds or measures"))?;
    let name = table["experiment"].as_str().unwrap_or_default();
    let scale = table["scale"].as_str().unwrap_or_default();
    let mut page = Page::new(&format!("{} reproduce {name}, scale {scale}", program::name()));
    let question = table["question"].as_str().filter(|question| !question.is_empty());
    page.paragraph(&format!("Asked: {}", question.unwrap_or("how the cases compare.")));
    page.answer(&verdict(&cases, table["measure"].as_str()));
    let missing = table["missing"].as_object().filter(|missing| !missing.is_empty());
    if let Some(missing) = missing {
        let each = missing.iter().map(|(label, seeds)| format!("{label} {seeds}"));
        page.paragraph(&format!(
            "Partial: these runs are missing: {}.",
            each.collect::<Vec<_>>().join(", ")
        ));
    }

    page.heading("Cases");
    page.remark(&format!(
        "{} episodes per policy with mean actions (_sampled: with sampled actions). Intervals of {}. A click on a head sorts.",
        table["episodes"],
        table["interval"].as_str().unwrap_or_default()
    ));
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in cases.iter().flat_map(|case| case.measures) {
        if !names.contains(&&name[..]) {
            names.push(name);
        }
    }
    let heads = |first: &[&str]| -> Vec<String> { first.iter().chain(&names).map(|head| head.to_string()).collect() };
    let published = cases.iter().any(|case| case.paper.is_some());
    let summary = cases.iter().map(|case| -> Vec<Cell> {
        let cells = names.iter().map(|name| {
            let (centre, interval) = case.centre(name);
            Cell::number(with_interval(centre, interval), centre)
        });
        let paper = published.then(|| match case.paper {
            Some(value) => Cell::number(value.to_string(), value),
            None => Cell::text("-"),
        });
        let first = [Cell::text(case.title), Cell::text(case.task)].into_iter();
        first.chain(paper).chain(cells).collect()
    });
    let paper = format!("paper's {}", table["measure"].as_str().unwrap_or("return_mean"));
    let first: &[&str] = if published {
        &["case", "task", &paper]
    } else {
        &["case", "task"]
    };
    page.table(&heads(first), &summary.collect::<Vec<_>>());

    page.heading("Learning curves");
    let mut tasks: Vec<&str> = Vec::new();
    cases.iter().for_each(|case| {
        if !tasks.contains(&case.task) {
            tasks.push(case.task);
        }
    });
    let (mut steps, mut seconds, mut settings, mut origins) = (0, 0.0, Vec::new(), Vec::new());
    let of_best = table["curve"] == "best";
    let (whose, curve) = if of_best {
        ("Return of the policy that is best after training, on", Curve::Best)
    } else {
        ("Mean return on", Curve::Mean)
    };
    for task in tasks {
        let mut lines = Vec::new();
        for (k, case) in cases.iter().filter(|case| case.task == task).enumerate() {
            let mut of_seeds = Vec::new();
            for seed in &case.seeds {
                let place = Record::path(folder, case.label, *seed);
                let record = Record::read(&place)?.ok_or_else(|| damaged("has runs without a record"))?;
                let own = record.settings(&place, registry)?;
                let each = own.config.steps * own.config.ensemble;
                let points = record.curve(curve).into_iter();
                let points = points.map(|[iteration, y]| [iteration * each as f64, y]).collect();
                of_seeds.push((format!("{}, seed {seed}", case.title), thinned(points)));
                steps += record.iterations() * each;
                let measures = record.measures().into_iter();
                seconds += measures
                    .filter(|(name, _)| name == "wall_seconds")
                    .map(|(_, value)| value)
                    .sum::<f64>();
                let origin = (record.commit, record.machine);
                if !origins.contains(&origin) {
                    origins.push(origin);
                }
                if *seed == case.seeds[0] {
                    settings.push((case.title, changed(&own, registry)?));
                }
            }
            lines.extend(of_case(case.title, k, of_seeds));
        }
        // The faint ones first, so that they lie below.
        lines.sort_by_key(|line| line.thick);
        page.chart(
            &format!("{whose} {task} while training: every seed faint, their mean thick"),
            ["environment steps of all policies", "return of an episode"],
            &lines,
        );
    }

    page.heading("Every seed");
    let every = cases.iter().flat_map(|case| {
        let names = &names;
        case.seeds.iter().enumerate().map(move |(k, seed)| -> Vec<Cell> {
            let cells = names.iter().map(|name| {
                let value = &case.measures.get(*name).unwrap_or(&Value::Null)["seeds"][k];
                cell(value)
            });
            let first = [Cell::text(case.title), Cell::number(seed.to_string(), *seed as f64)];
            first.into_iter().chain(cells).collect()
        })
    });
    page.table(&heads(&["case", "seed"]), &every.collect::<Vec<_>>());
    show(&mut page, files(&folder.join("figures"))?, folder);
    page.heading("Settings that differ from the defaults");
    for (title, text) in settings {
        page.verbatim(&format!("{title}\n\n{text}"));
    }
    made_by(&mut page, steps, seconds, &origins);
    Ok(page.finish())
}

/// A case of a table.json.
struct Case<'a> {
    label: &'a str,
    title: &'a str,
    task: &'a str,
    seeds: Vec<u64>,
    /// What the paper has.
    paper: Option<f64>,
    measures: &'a Map<String, Value>,
}

impl<'a> Case<'a> {
    fn read(case: &'a Value) -> Option<Case<'a>> {
        let seeds: Option<Vec<u64>> = case["seeds"].as_array()?.iter().map(Value::as_u64).collect();
        Some(Case {
            label: case["label"].as_str()?,
            title: case["title"].as_str()?,
            task: case["task"].as_str()?,
            seeds: seeds.filter(|seeds| !seeds.is_empty())?,
            paper: case["paper"].as_f64(),
            measures: case["measures"].as_object()?,
        })
    }

    /// A measure over its seeds, with its interval; NaN where it has none.
    fn centre(&self, name: &str) -> (f64, Option<[f64; 2]>) {
        let Some(measure) = self.measures.get(name) else {
            return (f64::NAN, None);
        };
        let centre = measure.get("interquartile_mean").unwrap_or(&measure["mean"]);
        let ends = [0, 1].map(|end| measure["interval"][end].as_f64());
        let interval = match ends {
            [Some(low), Some(high)] => Some([low, high]),
            _ => None,
        };
        (centre.as_f64().unwrap_or(f64::NAN), interval)
    }
}

fn with_interval(centre: f64, interval: Option<[f64; 2]>) -> String {
    let digits = |value: f64| number(&Value::from(value));
    match interval {
        _ if centre.is_nan() => "-".into(),
        None => digits(centre),
        Some([low, high]) => format!("{} [{}, {}]", digits(centre), digits(low), digits(high)),
    }
}

/// The answer of an experiment in a sentence: for each task the case that has most of the measure, and the one after it.
fn verdict(cases: &[Case], measure: Option<&str>) -> String {
    let measure = measure.unwrap_or("return_mean");
    let mut tasks: Vec<&str> = Vec::new();
    let mut parts = Vec::new();
    for task in cases.iter().map(|case| case.task) {
        if tasks.contains(&task) {
            continue;
        }
        tasks.push(task);
        let mut of_task: Vec<(&Case, f64)> = cases
            .iter()
            .filter(|case| case.task == task)
            .map(|case| (case, case.centre(measure).0))
            .filter(|(_, centre)| !centre.is_nan())
            .collect();
        of_task.sort_by(|a, b| b.1.total_cmp(&a.1));
        let told = |(case, _): &(&Case, f64)| {
            let (centre, interval) = case.centre(measure);
            format!("“{}” with {}", case.title, with_interval(centre, interval))
        };
        match &of_task[..] {
            [] => {}
            [one] => parts.push(format!("{task}: {} has {measure}", told(one))),
            [first, second, ..] => {
                parts.push(format!(
                    "on {task}, {measure} is largest for {}, then for {}",
                    told(first),
                    told(second)
                ));
            }
        }
    }
    if parts.is_empty() {
        return format!("No case has the measure {measure}.");
    }
    let sentence = parts.join("; ");
    let mut letters = sentence.chars();
    let first: String = letters.next().into_iter().flat_map(char::to_uppercase).collect();
    format!("{first}{}.", letters.as_str())
}

/// The curves of a case: those of its seeds, faint, and their mean over the points that all have.
fn of_case(title: &str, colour: usize, seeds: Vec<(String, Vec<[f64; 2]>)>) -> Vec<Line> {
    let length = seeds.iter().map(|(_, points)| points.len()).min().unwrap_or(0);
    let mean = |k: usize| {
        let total: f64 = seeds.iter().map(|(_, points)| points[k][1]).sum();
        [seeds[0].1[k][0], total / seeds.len() as f64]
    };
    let mean = Line {
        name: title.into(),
        colour: Some(colour),
        faint: false,
        thick: true,
        points: (0..length).map(mean).collect(),
    };
    let several = seeds.len() > 1;
    let faint = seeds.into_iter().filter(|_| several).map(|(name, points)| Line {
        name,
        colour: Some(colour),
        faint: true,
        thick: false,
        points,
    });
    faint.chain([mean]).collect()
}

/// The pictures in a folder, in the order of their names; curves are left out, which the report has of its own.
fn files(folder: &Path) -> Result<Vec<(String, &'static str, Vec<u8>)>> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Ok(Vec::new());
    };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let kind = match path.extension().and_then(|ending| ending.to_str()) {
            Some("png") => "image/png",
            Some("gif") => "image/gif",
            _ => continue,
        };
        let name = path.file_stem().unwrap_or_default().to_string_lossy().replace('_', " ");
        if !name.starts_with("learning curves") {
            // Links are left out: they could lead to something private.
            if let Some(bytes) = plain::read_own(&path, LARGEST) {
                found.push((name, kind, bytes));
            }
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_verdict_names_the_best_case_of_each_task() {
        let case = |title: &str, task: &str, mean: f64| {
            json!({ "label": title, "title": title, "task": task, "seeds": [1],
                    "measures": { "ways": { "mean": mean, "interval": [mean - 1.0, mean + 1.0], "seeds": [mean] } } })
        };
        let cases = [case("a", "maze", 1.0), case("b", "maze", 3.0), case("c", "hopper", 2.0)];
        let cases: Vec<Case> = cases.iter().map(|case| Case::read(case).unwrap()).collect();
        assert_eq!(
            verdict(&cases, Some("ways")),
            "On maze, ways is largest for “b” with 3.000 [2.000, 4.000], then for “a” with 1.000 [0.000, 2.000]; \
             hopper: “c” with 2.000 [1.000, 3.000] has ways."
        );
        assert_eq!(verdict(&cases, None), "No case has the measure return_mean.");
        assert!(Case::read(&json!({ "label": "a", "seeds": [] })).is_none());
    }
}
