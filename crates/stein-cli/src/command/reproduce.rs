//! `stein reproduce`: trains all cases of an experiment on several seeds and makes one table of them.
//!
//! ```text
//! mean ± t·s/√K        95 % interval of the mean over K seeds: s their standard deviation, t that of Student, K - 1 degrees
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use stein::env::{Episode, Registry};
use stein::plot::{draw, learning};
use stein::policy::evaluate::evaluate;
use stein::run::atomic;
use stein::run::folder::RunFolder;
use stein::run::metrics::Table;
use stein::run::report::report;
use stein::run::settings::{self, Settings, differences};
use stein::train::Trainer;
use stein::{Error, Result};

use super::train::{saved, stop_on_interrupt, train_to_the_end};
use crate::options::Threads;
use crate::{Ended, print, tell};

/// The experiments that there are, with their files.
const EXPERIMENTS: [(&str, &str); 2] = [
    ("maze", include_str!("../../../../experiments/maze.toml")),
    ("locomotion", include_str!("../../../../experiments/locomotion.toml")),
];

/// Arguments of `stein reproduce`.
#[derive(Args)]
pub struct Arguments {
    /// The experiment: maze, or locomotion (independent PPO on the robots)
    experiment: String,
    /// Its size: paper, or smoke to see in a minute that everything runs
    #[arg(long, default_value = "paper")]
    scale: String,
    /// Number of seeds, which are 1, 2, … [default: 5 of maze, 3 of locomotion, smoke 2]
    #[arg(long, value_name = "K")]
    seeds: Option<usize>,
    /// Folder of the runs, the table and the figures; finished runs in it are not repeated [default: runs/reproduce-NAME]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only these cases
    #[arg(long, value_name = "LABEL", num_args = 1..)]
    only: Vec<String>,
    #[command(flatten)]
    threads: Threads,
}

/// How to go on after an interrupt.
const CURE: &str = "the same command goes on from here";

/// An experiment, as its file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Experiment {
    /// Over the defaults, in every case.
    settings: toml::Table,
    scale: BTreeMap<String, Scale>,
    case: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scale {
    seeds: usize,
    /// Episodes of each policy in the evaluation.
    episodes: usize,
    settings: toml::Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    label: String,
    title: String,
    settings: toml::Table,
}

/// Measures of one run, in the order of the table's columns.
type Measures = Vec<(String, f64)>;

/// A finished run with the episodes of its evaluation.
struct Trained {
    settings: Settings,
    episodes: Vec<Vec<Episode>>,
    measures: Measures,
    /// Mean return of the policies over the steps of each.
    curve: Vec<[f64; 2]>,
}

/// What is trained, and where it goes.
struct Plan {
    name: String,
    scale_name: String,
    scale: Scale,
    shared: toml::Table,
    cases: Vec<Case>,
    seeds: usize,
    out: PathBuf,
}

pub fn run(arguments: Arguments, registry: &Registry) -> Result<Ended> {
    let pool = arguments.threads.pool()?;
    let plan = plan(arguments)?;
    stop_on_interrupt()?;
    let figures = plan.out.join("figures");
    std::fs::create_dir_all(&figures).map_err(|error| Error::io("create the folder", &figures, error))?;
    let mut results: Vec<(&Case, Vec<Measures>)> = Vec::new();
    let mut curves: Vec<(&str, Vec<Vec<[f64; 2]>>)> = Vec::new();
    for case in &plan.cases {
        let (mut seeds, mut of_seeds) = (Vec::new(), Vec::new());
        for seed in 1..=plan.seeds {
            let Some(trained) = pool.install(|| train(&plan, case, seed, registry))? else {
                tell(&format!("stopped; everything is saved: {CURE}"));
                return Ok(Ended::Interrupted);
            };
            if seed == 1 {
                draw_all(&trained, case, &figures)?;
            }
            seeds.push(trained.measures);
            of_seeds.push(trained.curve);
        }
        results.push((case, seeds));
        curves.push((&case.title, of_seeds));
        let title = format!("Mean return of the policies ({}, {} seeds)", plan.name, plan.seeds);
        draw(&learning::comparison(&title, &curves), &figures.join("learning_curves"))?;
        // After every case, so that there is something to look at while the others train.
        write(&plan, &results)?;
    }
    print(&markdown(&plan, &results));
    Ok(Ended::Done)
}

/// Reads the experiment and picks what was asked for.
fn plan(arguments: Arguments) -> Result<Plan> {
    let name = arguments.experiment;
    let choose = |what: &str, given: &str, all: Vec<&str>| {
        Error::input(format!(
            "there is no {what} \"{given}\"; choose one of: {}",
            all.join(", ")
        ))
    };
    let (_, text) = EXPERIMENTS
        .iter()
        .find(|(known, _)| *known == name)
        .ok_or_else(|| choose("experiment", &name, EXPERIMENTS.map(|(name, _)| name).to_vec()))?;
    let mut experiment: Experiment =
        toml::from_str(text).map_err(|error| Error::failed(format!("experiments/{name}.toml: {error}")))?;
    let scales: Vec<&str> = experiment.scale.keys().map(String::as_str).collect();
    if !scales.contains(&&arguments.scale[..]) {
        return Err(choose("scale", &arguments.scale, scales));
    }
    let labels: Vec<&str> = experiment.case.iter().map(|case| &case.label[..]).collect();
    if let Some(unknown) = arguments.only.iter().find(|label| !labels.contains(&&label[..])) {
        return Err(choose("case", unknown, labels));
    }
    if !arguments.only.is_empty() {
        experiment.case.retain(|case| arguments.only.contains(&case.label));
    }
    let scale = experiment.scale.remove(&arguments.scale);
    let scale = scale.ok_or_else(|| choose("scale", &arguments.scale, Vec::new()))?;
    let seeds = arguments.seeds.unwrap_or(scale.seeds);
    if !(1..=1000).contains(&seeds) {
        return Err(Error::input(format!(
            "--seeds {seeds} is out of range: choose 1 to 1000"
        )));
    }
    Ok(Plan {
        out: arguments
            .out
            .unwrap_or_else(|| PathBuf::from(format!("runs/reproduce-{name}"))),
        name,
        scale_name: arguments.scale,
        scale,
        shared: experiment.settings,
        cases: experiment.case,
        seeds,
    })
}

/// Trains a case on a seed, or takes the run that is there already, and evaluates it; none where it was interrupted.
fn train(plan: &Plan, case: &Case, seed: usize, registry: &Registry) -> Result<Option<Trained>> {
    let mut table = plan.shared.clone();
    settings::merge(&mut table, plan.scale.settings.clone());
    settings::merge(&mut table, case.settings.clone());
    table.insert("seed".into(), toml::Value::Integer(seed as i64));
    let settings = Settings::resolve(table, &format!("experiments/{}.toml", plan.name), registry)?;
    let mut trainer = Trainer::new(settings.config.clone(), settings.task.as_ref())?;
    let folder = open(
        &plan.out.join(&case.label).join(format!("seed{seed}")),
        &settings,
        registry,
    )?;
    if train_to_the_end(&settings, &mut trainer, &folder)?.is_none() {
        return Ok(None);
    }
    let (task, episodes) = (settings.task.as_ref(), plan.scale.episodes);
    let episodes = saved(CURE, || {
        evaluate(&trainer.ensemble, task, settings.config.seed, episodes, false)
    })?;
    let seconds = Table::read(&folder.file("timings.csv"))?
        .column("total")
        .unwrap_or_default();
    let measures = measures(&report(&settings, &episodes), seconds.iter().sum());
    let table = Table::read(&folder.file("metrics.csv"))?;
    let iterations = table.column("iteration").unwrap_or_default();
    let returns = table.column("return_mean").unwrap_or_default();
    let steps = settings.config.steps as f64;
    let curve = iterations.iter().zip(returns).map(|(i, r)| [i * steps, r]).collect();
    Ok(Some(Trained {
        curve,
        settings,
        episodes,
        measures,
    }))
}

/// The folder of a run: a new one, or one with the same settings to go on with.
fn open(path: &Path, settings: &Settings, registry: &Registry) -> Result<RunFolder> {
    if !path.join("config.toml").is_file() {
        return RunFolder::create(path, &settings.config);
    }
    let folder = RunFolder::resume(path)?;
    let stored = folder.settings(registry)?;
    match differences(&stored.config, &settings.config).into_iter().next() {
        None => Ok(folder),
        Some((key, old, new)) => Err(Error::input(format!(
            "the run in {} has {key} = {old}, but the experiment asks for {new}; choose another folder with --out, or \
             delete that run",
            path.display()
        ))),
    }
}

/// The columns of the table: the task's measures of the ensemble, the mean return of its policies, and the time.
fn measures(report: &Map<String, Value>, seconds: f64) -> Measures {
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    let ensemble = report["ensemble"].as_object().into_iter().flatten();
    let mut measures: Measures = ensemble.map(|(name, value)| (name.clone(), number(value))).collect();
    let policies = report["policies"].as_array().map(Vec::as_slice).unwrap_or_default();
    let returns: Vec<f64> = policies.iter().map(|policy| number(&policy["return_mean"])).collect();
    measures.push(("return".into(), returns.iter().sum::<f64>() / returns.len() as f64));
    measures.push(("wall_seconds".into(), (seconds * 10.0).round() / 10.0));
    measures
}

fn draw_all(trained: &Trained, case: &Case, out: &Path) -> Result<()> {
    for (name, mut figure) in trained.settings.task.figures(&trained.episodes) {
        figure.add_to_title(&format!(" ({}, seed 1)", case.title));
        draw(&figure, &out.join(format!("{}_{name}", case.label)))?;
    }
    Ok(())
}

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

/// The values of one column, seed after seed.
fn column(seeds: &[Measures], index: usize) -> Vec<f64> {
    seeds.iter().map(|measures| measures[index].1).collect()
}

fn names<'a>(results: &'a [(&Case, Vec<Measures>)]) -> impl Iterator<Item = &'a String> {
    let first = results.first().and_then(|(_, seeds)| seeds.first());
    first.into_iter().flatten().map(|(name, _)| name)
}

fn write(plan: &Plan, results: &[(&Case, Vec<Measures>)]) -> Result<()> {
    atomic::write(&plan.out.join("table.md"), markdown(plan, results).as_bytes())?;
    let json = format!("{:#}\n", as_json(plan, results));
    atomic::write(&plan.out.join("table.json"), json.as_bytes())
}

/// The table for people.
fn markdown(plan: &Plan, results: &[(&Case, Vec<Measures>)]) -> String {
    let (name, scale, episodes) = (&plan.name, &plan.scale_name, plan.scale.episodes);
    let mut text = format!("# stein reproduce {name}, scale {scale}\n\n");
    text += &match plan.seeds {
        1 => "Seed 1 alone, so without intervals. ".into(),
        seeds => format!("Mean over seeds 1 to {seeds} ± half the width of its 95 % t-interval. "),
    };
    text += &format!(
        "{episodes} episodes a policy, acting by their means; stein {}.",
        env!("CARGO_PKG_VERSION")
    );
    if results.len() < plan.cases.len() {
        text += &format!(" {} of {} cases so far.", results.len(), plan.cases.len());
    }
    text += "\n\n| case |";
    names(results).for_each(|name| text += &format!(" {name} |"));
    text += "\n|---|";
    names(results).for_each(|_| text += "---|");
    for (case, seeds) in results {
        text += &format!("\n| {} |", case.title);
        for (index, name) in names(results).enumerate() {
            let decimals = if name == "return" || name == "wall_seconds" {
                1
            } else {
                3
            };
            text += &match interval(&column(seeds, index)) {
                (mean, Some(half)) => format!(" {mean:.decimals$} ± {half:.decimals$} |"),
                (mean, None) => format!(" {mean:.decimals$} |"),
            };
        }
    }
    text + "\n"
}

/// The table for programs, with the values of every seed.
fn as_json(plan: &Plan, results: &[(&Case, Vec<Measures>)]) -> Value {
    let cases = results.iter().map(|(case, seeds)| {
        let each = names(results).enumerate().map(|(index, name)| {
            let values = column(seeds, index);
            let (mean, half) = interval(&values);
            let bounds = half.map(|half| [mean - half, mean + half]);
            (
                name.clone(),
                json!({ "mean": mean, "interval": bounds, "seeds": values }),
            )
        });
        json!({ "label": case.label, "title": case.title, "measures": each.collect::<Map<_, _>>() })
    });
    json!({
        "experiment": plan.name,
        "scale": plan.scale_name,
        "seeds": (1..=plan.seeds).collect::<Vec<_>>(),
        "episodes": plan.scale.episodes,
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
    fn every_experiment_can_be_read_and_names_settings_that_exist() {
        for (name, text) in EXPERIMENTS {
            let experiment: Experiment = toml::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            for scale in experiment.scale.values() {
                for case in &experiment.case {
                    let mut table = experiment.settings.clone();
                    settings::merge(&mut table, scale.settings.clone());
                    settings::merge(&mut table, case.settings.clone());
                    Settings::resolve(table, name, &crate::registry()).unwrap();
                }
            }
        }
    }
}
