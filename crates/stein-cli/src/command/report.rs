//! `stein report`: one HTML file about a run, about several, or about an experiment of `stein reproduce`.

mod experiment;
mod page;

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, Value};
use stein::Result;
use stein::env::Registry;
use stein::files::{atomic, plain};
use stein::plot;
use stein::policy::Ensemble;
use stein::policy::evaluate::evaluate;
use stein::run::folder::RunFolder;
use stein::run::load::Loaded;
use stein::run::metrics::Table;
use stein::run::report::report;
use stein::run::settings::{Settings, differences};

pub use self::experiment::of_experiment;
use self::page::{Cell, Line, Page};
use super::compare::{measures, names};
use super::eval::{check_episodes, number};
use super::plot::figures;
use crate::options::Threads;
use crate::{Ended, print};

/// Arguments of `stein report`.
#[derive(Args)]
pub struct Arguments {
    /// A run folder, several, or the folder of an experiment of `stein reproduce`
    #[arg(required = true, num_args = 1.., value_name = "FOLDER")]
    folders: Vec<PathBuf>,
    /// The file [default: FOLDER/report.html; of several runs report.html]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Episodes of each policy
    #[arg(long, value_name = "N", default_value_t = 5)]
    episodes: usize,
    #[command(flatten)]
    threads: Threads,
}

/// Pictures of one report have no more bytes than this: with the rest of it, it stays below 5 MB.
const PICTURES: usize = 3_400_000;

/// Most points of a curve.
const POINTS: usize = 250;

pub fn run(arguments: Arguments, registry: &Registry) -> Result<Ended> {
    check_episodes(arguments.episodes)?;
    let pool = arguments.threads.pool()?;
    let (folders, episodes) = (&arguments.folders, arguments.episodes);
    let usual = match &folders[..] {
        [folder] => folder.join("report.html"),
        _ => PathBuf::from("report.html"),
    };
    let html = pool.run(|| match &folders[..] {
        [folder] if folder.join("table.json").is_file() => of_experiment(folder, registry),
        [folder] => of_run(folder, episodes, registry),
        several => of_runs(several, episodes, registry),
    })?;
    let out = arguments.out.unwrap_or(usual);
    atomic::write(&out, html.as_bytes())?;
    print(&format!("{}\n", out.display()));
    Ok(Ended::Done)
}

/// A run as a report needs it.
struct Shown {
    settings: Settings,
    report: Map<String, Value>,
    metrics: Table,
    iterations: usize,
    /// Wall time of its iterations.
    seconds: f64,
    figures: Vec<(String, plot::Figure)>,
}

fn open(path: &Path, episodes: usize, registry: &Registry) -> Result<Shown> {
    let folder = RunFolder::open(path)?;
    let Loaded {
        settings,
        ensemble,
        iteration: iterations,
        ..
    } = Ensemble::load(path, None, registry)?;
    let seen = evaluate(&ensemble, settings.task.as_ref(), settings.config.seed, episodes, false)?;
    Ok(Shown {
        report: report(&settings, &seen)?,
        metrics: Table::read(&folder.file("metrics.csv"))?,
        iterations,
        seconds: wall_seconds(&folder)?,
        figures: figures(&folder, &settings, &seen)?,
        settings,
    })
}

fn wall_seconds(folder: &RunFolder) -> Result<f64> {
    let table = Table::read(&folder.file("timings.csv"))?;
    Ok(table.column("total").unwrap_or_default().iter().sum())
}

/// The report of one run.
fn of_run(path: &Path, episodes: usize, registry: &Registry) -> Result<String> {
    let run = open(path, episodes, registry)?;
    let (config, task) = (&run.settings.config, run.settings.env());
    let mut page = Page::new(&format!("{task} by {}, seed {}", config.method, config.seed));
    page.paragraph(&format!(
        "Asked: {} policies on {task} by {}, {} iterations of {} steps each.",
        config.ensemble, config.method, config.iterations, config.steps
    ));
    page.answer(&answer(&run, episodes));
    page.heading("Learning curves");
    page.chart(
        &format!(
            "Return of each policy while training, with sampled actions ({} iterations)",
            run.iterations
        ),
        [x_axis(&run.metrics), "return of an episode"],
        &curves(&run),
    );
    page.heading("Policies");
    page.remark(&format!(
        "{episodes} episodes each with mean actions. A click on a head sorts."
    ));
    policies(&mut page, &run.report);
    page.heading("The ensemble");
    ensemble(&mut page, &[(task.into(), &run.report)]);
    let mut pictures: Vec<(String, &str, Vec<u8>)> = Vec::new();
    // The curves are there already, and can be asked.
    for (name, figure) in run.figures.iter().filter(|(name, _)| name != "learning_curves") {
        pictures.push((name.replace('_', " "), "image/png", plot::png(figure)?));
    }
    let film = path.join("figures/video.gif");
    if let Some(bytes) = plain::read_own(&film, LARGEST) {
        pictures.push(("film of all policies".into(), "image/gif", bytes));
    }
    show(&mut page, pictures, path);
    page.heading("Settings that differ from the defaults");
    page.verbatim(&changed(&run.settings, registry)?);
    facts(&mut page, run.iterations * config.steps * config.ensemble, run.seconds);
    Ok(page.finish())
}

/// The answer of one run in a sentence.
fn answer(run: &Shown, episodes: usize) -> String {
    let of = |name: &str| number(&run.report["ensemble"][name]);
    let n = run.settings.config.ensemble;
    format!(
        "After {} iterations the {n} policies earn {} on average and the best {} ({episodes} episodes each); what they do tells {} of {:.2} \
         nats of which policy it is (policy_information), their whole states {}.",
        run.iterations,
        of("return_mean"),
        of("return_best"),
        of("policy_information"),
        (n as f64).ln(),
        of("state_information")
    )
}

/// The return of each policy over steps, and their mean.
fn curves(run: &Shown) -> Vec<Line> {
    let each = (0..run.settings.config.ensemble).map(|i| Line {
        name: format!("policy {i}"),
        colour: Some(i),
        faint: false,
        thick: false,
        points: points(&run.metrics, &format!("return_{i}")),
    });
    let mean = Line {
        name: "mean".into(),
        colour: None,
        faint: false,
        thick: true,
        points: points(&run.metrics, "return_mean"),
    };
    each.chain([mean]).collect()
}

/// What [`points`] has on its horizontal axis.
fn x_axis(table: &Table) -> &'static str {
    match table.column("env_steps") {
        Some(_) => "environment steps of all policies",
        None => "iteration",
    }
}

/// A metric over environment steps (iterations, in runs that do not tell steps); long ones thinned out.
fn points(table: &Table, name: &str) -> Vec<[f64; 2]> {
    let steps = table.column("env_steps").or_else(|| table.column("iteration"));
    let (steps, values) = (steps.unwrap_or_default(), table.column(name).unwrap_or_default());
    thinned(steps.iter().zip(values).map(|(&x, y)| [x, y]).collect())
}

/// So many points of a curve as can be told apart, its last one among them.
fn thinned(points: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
    let stride = points.len().div_ceil(POINTS).max(1);
    let first = (points.len().max(1) - 1) % stride;
    points.into_iter().skip(first).step_by(stride).collect()
}

/// A table of the policies' measures.
fn policies(page: &mut Page, report: &Map<String, Value>) {
    let policies = report["policies"].as_array().map(Vec::as_slice).unwrap_or_default();
    let first = policies.first().and_then(Value::as_object).into_iter().flatten();
    let names: Vec<&String> = first
        .filter(|(_, value)| !value.is_array())
        .map(|(name, _)| name)
        .collect();
    let mut heads = vec!["policy".to_string()];
    heads.extend(names.iter().map(|name| name.to_string()));
    let rows: Vec<Vec<Cell>> = policies
        .iter()
        .enumerate()
        .map(|(i, policy)| {
            let cells = names.iter().map(|name| cell(&policy[name.as_str()]));
            [Cell::number(i.to_string(), i as f64)]
                .into_iter()
                .chain(cells)
                .collect()
        })
        .collect();
    page.table(&heads, &rows);
}

/// A table of the measures of ensembles, a row each.
fn ensemble(page: &mut Page, reports: &[(String, &Map<String, Value>)]) {
    let names = measures(reports.iter().map(|(_, report)| *report));
    let mut heads = vec!["run".to_string()];
    heads.extend(names.iter().map(|name| name.to_string()));
    let row = |(name, report): &(String, &Map<String, Value>)| -> Vec<Cell> {
        let cells = names.iter().map(|measure| cell(&report["ensemble"][*measure]));
        [Cell::text(name)].into_iter().chain(cells).collect()
    };
    page.table(&heads, &reports.iter().map(row).collect::<Vec<_>>());
}

fn cell(value: &Value) -> Cell {
    Cell::number(number(value), value.as_f64().unwrap_or(f64::NAN))
}

/// The largest picture that is read. What does not fit the report is named there, if it is not larger than this.
const LARGEST: u64 = 100_000_000;

/// As many pictures as a report may hold; the others are named.
fn show(page: &mut Page, pictures: Vec<(String, &str, Vec<u8>)>, folder: &Path) {
    if pictures.is_empty() {
        return;
    }
    page.heading("Pictures");
    let mut room = PICTURES;
    let (shown, left): (Vec<_>, Vec<_>) = pictures.into_iter().partition(|(_, _, bytes)| {
        let fits = bytes.len() <= room;
        room -= if fits { bytes.len() } else { 0 };
        fits
    });
    page.pictures(&shown);
    if !left.is_empty() {
        let names: Vec<&str> = left.iter().map(|(name, ..)| &name[..]).collect();
        page.remark(&format!(
            "Too large for this file, but in {}: {}.",
            folder.join("figures").display(),
            names.join(", ")
        ));
    }
}

/// Settings that are not what the same task and method have by default, a line each.
fn changed(settings: &Settings, registry: &Registry) -> Result<String> {
    let mut usual = toml::Table::new();
    let mut env = toml::Table::new();
    env.insert("name".into(), settings.env().into());
    usual.insert("env".into(), env.into());
    usual.insert("method".into(), settings.config.method.name().into());
    let usual = Settings::resolve(usual, "the defaults", registry)?;
    let lines = differences(&usual.config, &settings.config)
        .into_iter()
        .filter(|(key, ..)| key != "stein_version")
        .map(|(key, default, own)| format!("{key} = {own}    (default {default})\n"));
    let text: String = lines.collect();
    Ok(if text.is_empty() { "none\n".into() } else { text })
}

/// By what, where and how long: runs of this program.
fn facts(page: &mut Page, steps: usize, seconds: f64) {
    let origin = (option_env!("STEIN_COMMIT").map(String::from), machine());
    made_by(page, steps, seconds, &[origin]);
}

/// The same of runs by these commits on these machines.
fn made_by(page: &mut Page, steps: usize, seconds: f64, origins: &[(Option<String>, String)]) {
    page.heading("How it was made");
    let each = origins.iter().map(|(commit, machine)| match commit {
        Some(commit) => format!("commit {commit} on {machine}"),
        None => format!("on {machine}"),
    });
    page.paragraph(&format!(
        "stein {}; {steps} environment steps in {} of training; {}.",
        env!("CARGO_PKG_VERSION"),
        in_words(seconds),
        each.collect::<Vec<_>>().join("; ")
    ));
}

/// The processor, how many of its cores, and the system.
pub fn machine() -> String {
    let processor = std::fs::read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_string())
    });
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    format!(
        "{} ({cores} cores, {})",
        processor.unwrap_or_else(|| std::env::consts::ARCH.into()),
        std::env::consts::OS
    )
}

/// A time for people.
fn in_words(seconds: f64) -> String {
    match seconds {
        seconds if seconds < 120.0 => format!("{seconds:.0} s"),
        seconds if seconds < 7200.0 => format!("{:.0} min", seconds / 60.0),
        seconds => format!("{:.1} h", seconds / 3600.0),
    }
}

/// The report of several runs side by side.
fn of_runs(paths: &[PathBuf], episodes: usize, registry: &Registry) -> Result<String> {
    let shown: Result<Vec<Shown>> = paths.iter().map(|path| open(path, episodes, registry)).collect();
    let (shown, names) = (shown?, names(paths));
    let mut page = Page::new(&format!("{} runs side by side", shown.len()));
    page.paragraph(&format!("Asked: how {} compare.", names.join(", ")));
    let earned = |run: &Shown| {
        run.report["ensemble"]["return_mean"]
            .as_f64()
            .unwrap_or(f64::NEG_INFINITY)
    };
    let best = (0..shown.len()).fold(0, |best, k| {
        if earned(&shown[k]) > earned(&shown[best]) {
            k
        } else {
            best
        }
    });
    page.answer(&format!("{}: {}", names[best], answer(&shown[best], episodes)));
    let reports: Vec<(String, &Map<String, Value>)> =
        names.iter().cloned().zip(shown.iter().map(|run| &run.report)).collect();
    page.heading("Ensembles");
    page.remark(&format!(
        "{episodes} episodes per policy with mean actions. A click on a head sorts."
    ));
    ensemble(&mut page, &reports);
    page.heading("Learning curves");
    let mut tasks: Vec<&str> = Vec::new();
    for run in &shown {
        if !tasks.contains(&run.settings.env()) {
            tasks.push(run.settings.env());
        }
    }
    for task in tasks {
        let of_task = shown.iter().enumerate().filter(|(_, run)| run.settings.env() == task);
        let lines: Vec<Line> = of_task
            .map(|(k, run)| Line {
                name: names[k].clone(),
                colour: Some(k),
                faint: false,
                thick: true,
                points: points(&run.metrics, "return_mean"),
            })
            .collect();
        page.chart(
            &format!("Mean return on {task} while training"),
            ["environment steps of all policies", "return of an episode"],
            &lines,
        );
    }
    page.heading("Settings that differ from the defaults");
    let (mut steps, mut seconds) = (0, 0.0);
    for (name, run) in names.iter().zip(&shown) {
        let config = &run.settings.config;
        page.verbatim(&format!("{name}\n\n{}", changed(&run.settings, registry)?));
        steps += run.iterations * config.steps * config.ensemble;
        seconds += run.seconds;
    }
    facts(&mut page, steps, seconds);
    Ok(page.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_curves_are_thinned_out_and_keep_their_end() {
        let table = Table {
            columns: vec!["iteration".into(), "env_steps".into(), "r".into()],
            rows: (1..=1000)
                .map(|k| vec![f64::from(k), f64::from(10 * k), f64::from(k)])
                .collect(),
        };
        let points = points(&table, "r");
        assert!(
            points.len() == POINTS && points.last() == Some(&[10_000.0, 1000.0]),
            "{points:?}"
        );
    }
}
