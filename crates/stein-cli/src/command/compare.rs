//! `stein compare`: several runs side by side, in one table and one figure.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value};
use stein::env::Registry;
use stein::files::atomic;
use stein::plot::draw;
use stein::policy::Ensemble;
use stein::policy::evaluate::evaluate;
use stein::run::figures::learning;
use stein::run::folder::RunFolder;
use stein::run::load::Loaded;
use stein::run::metrics::Table;
use stein::run::report::report;
use stein::{Error, Result};

use super::eval::{check_episodes, number};
use crate::options::Threads;
use crate::{Ended, print, tell};

/// Arguments of `stein compare`.
#[derive(Args)]
pub struct Arguments {
    /// The run folders
    #[arg(required = true, num_args = 1..)]
    runs: Vec<PathBuf>,
    /// Episodes per policy
    #[arg(long, value_name = "N", default_value_t = 5)]
    episodes: usize,
    /// Sample actions instead of taking the mean
    #[arg(long)]
    stochastic: bool,
    /// Output: STEM.md, STEM.png, STEM.svg; with several tasks one figure each, STEM_TASK.png
    #[arg(long, value_name = "STEM", default_value = "runs/compare")]
    out: PathBuf,
    #[command(flatten)]
    threads: Threads,
}

/// One run of the comparison.
struct Compared {
    name: String,
    task: String,
    report: Map<String, Value>,
    iterations: usize,
    env_steps: usize,
    metrics: Table,
}

pub fn run(arguments: Arguments, registry: &Registry) -> Result<Ended> {
    check_episodes(arguments.episodes)?;
    let pool = arguments.threads.pool()?;
    let names = names(&arguments.runs);
    let mut runs = Vec::new();
    for (path, name) in arguments.runs.iter().zip(names) {
        let Loaded {
            settings,
            ensemble,
            iteration: iterations,
            ..
        } = Ensemble::load(path, None, registry)?;
        let config = &settings.config;
        let metrics = Table::read(&RunFolder::open(path)?.file("metrics.csv"))?;
        if metrics.column("env_steps").is_none() {
            return Err(Error::input(format!(
                "{} has no column env_steps in its metrics.csv: it was trained by another version; leave it out",
                path.display()
            )));
        }
        let report = pool.run(|| {
            let task = settings.task.as_ref();
            let episodes = evaluate(&ensemble, task, config.seed, arguments.episodes, arguments.stochastic)?;
            report(&settings, &episodes)
        })?;
        runs.push(Compared {
            name,
            task: settings.env().into(),
            report,
            iterations,
            env_steps: iterations * config.steps * config.ensemble,
            metrics,
        });
    }
    if let Some(folder) = arguments.out.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| Error::io("create the folder", folder, error))?;
    }
    let text = table(&runs, arguments.episodes, arguments.stochastic);
    atomic::write(&ending(&arguments.out, ".md"), text.as_bytes())?;
    print(&text);
    let mut tasks: Vec<&str> = Vec::new();
    runs.iter().for_each(|run| {
        if !tasks.contains(&&run.task[..]) {
            tasks.push(&run.task);
        }
    });
    for task in &tasks {
        let of_task = runs.iter().filter(|run| run.task == *task);
        let curves: Vec<(String, &Table)> = of_task.map(|run| (run.name.clone(), &run.metrics)).collect();
        let figure = learning::side_by_side(&format!("Return on {task} while training"), &curves);
        let stem = match tasks.len() {
            1 => arguments.out.clone(),
            _ => ending(&arguments.out, &format!("_{task}")),
        };
        for path in draw(&figure, &stem)? {
            tell(&path.display().to_string());
        }
    }
    Ok(Ended::Done)
}

/// The path with a suffix.
fn ending(stem: &Path, end: &str) -> PathBuf {
    let mut path = stem.as_os_str().to_owned();
    path.push(end);
    path.into()
}

/// Names of the runs: their paths without the folders they have in common.
pub fn names(paths: &[PathBuf]) -> Vec<String> {
    let parts = |path: &PathBuf| -> Vec<String> {
        path.components()
            .map(|part| part.as_os_str().to_string_lossy().into_owned())
            .collect()
    };
    let all: Vec<Vec<String>> = paths.iter().map(parts).collect();
    let shortest = all.iter().map(Vec::len).min().unwrap_or(0);
    let common = (0..shortest.saturating_sub(1))
        .take_while(|&k| all.iter().all(|parts| parts[k] == all[0][k]))
        .count();
    all.iter().map(|parts| parts[common..].join("/")).collect()
}

/// The names of the ensemble metrics in these reports, in order of first appearance.
pub fn measures<'a>(reports: impl Iterator<Item = &'a Map<String, Value>>) -> Vec<&'a str> {
    let mut names: Vec<&str> = Vec::new();
    for (name, _) in reports.filter_map(|report| report["ensemble"].as_object()).flatten() {
        if !names.contains(&&name[..]) {
            names.push(name);
        }
    }
    names
}

/// The table: one row per run, with its metrics as in `stein eval`.
fn table(runs: &[Compared], episodes: usize, stochastic: bool) -> String {
    let measures = measures(runs.iter().map(|run| &run.report));
    let how = if stochastic { "sampled" } else { "mean" };
    let mut text = format!("{episodes} episodes per policy, with {how} actions.\n\n");
    let heads = ["run", "task", "method", "seed", "iterations", "env_steps"];
    let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    text += &line(heads.iter().chain(&measures).map(|head| head.to_string()).collect());
    text += &format!("|{}\n", "---|".repeat(heads.len() + measures.len()));
    for run in runs {
        let method = run.report["method"].as_str().unwrap_or_default();
        let mut cells = vec![
            run.name.clone(),
            run.task.clone(),
            method.into(),
            run.report["seed"].to_string(),
            run.iterations.to_string(),
            run.env_steps.to_string(),
        ];
        cells.extend(measures.iter().map(|name| number(&run.report["ensemble"][*name])));
        text += &line(cells);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_what_tells_the_runs_apart() {
        let of = |paths: &[&str]| names(&paths.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(of(&["runs/a", "runs/b"]), ["a", "b"]);
        assert_eq!(of(&["runs/a/seed1", "runs/b/seed1"]), ["a/seed1", "b/seed1"]);
        assert_eq!(of(&["runs/a"]), ["a"]);
        assert_eq!(of(&["a", "x/b"]), ["a", "x/b"]);
    }
}
