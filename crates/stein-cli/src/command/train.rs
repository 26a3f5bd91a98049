//! `stein train`: trains an ensemble, from the beginning or from where its folder stands.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::Args;
use serde_json::json;
use stein::env::Registry;
use stein::policy::Ensemble;
use stein::policy::evaluate::evaluate;
use stein::run::atomic;
use stein::run::folder::RunFolder;
use stein::run::metrics::Table;
use stein::run::report::report;
use stein::run::session::{self, Outcome};
use stein::run::settings::{Settings, differences, read_table};
use stein::train::Trainer;
use stein::{Error, Result};

use crate::options::TrainOptions;
use crate::progress::{Label, Progress};
use crate::{Ended, print, print_json, tell};

/// Arguments of `stein train`.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    options: TrainOptions,
    /// The run folder [default: runs/ENV-METHOD-seedS]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Go on with the run in the folder from its newest checkpoint; start it where there is none
    #[arg(long)]
    resume: bool,
    /// Print the summary as one JSON object on stdout, and nothing else there
    #[arg(long)]
    json: bool,
}

/// Training should stop after the present iteration.
static STOP: AtomicBool = AtomicBool::new(false);

/// What an interrupt says before it ends the program at once, which it does while this is set: nothing is left to save.
static FAREWELL: Mutex<Option<String>> = Mutex::new(None);

pub fn run(arguments: Arguments, registry: &Registry) -> Result<Ended> {
    let pool = arguments.options.threads.pool()?;
    let (settings, place) = prepare(&arguments, registry)?;
    // Before the folder is made: settings that turn out not to work leave none behind.
    let mut trainer = pool.install(|| Trainer::new(settings.config.clone(), settings.task.as_ref()))?;
    let folder = match place {
        Place::New(path) => RunFolder::create(&path, &settings.config)?,
        Place::Old(folder) => folder,
    };
    stop_on_interrupt()?;
    let Some(summary) = pool.install(|| train_to_the_end(&settings, &mut trainer, &folder, Label::default()))? else {
        tell(&format!(
            "stopped after iteration {} of {}; everything is saved: go on with `stein train --resume --out {}`",
            trainer.iteration(),
            settings.config.iterations,
            folder.path().display()
        ));
        return Ok(Ended::Interrupted);
    };
    if arguments.json {
        print_json(&summary);
    } else {
        let path = folder.path().display();
        // Only what has a pose can be filmed.
        let seen = settings.task.make().is_ok_and(|env| !env.pose().is_empty());
        let film = if seen {
            format!("  stein video {path}\n")
        } else {
            String::new()
        };
        print(&format!(
            "done: {path}\n  stein eval {path}\n  stein plot {path}\n{film}"
        ));
    }
    Ok(Ended::Done)
}

/// Trains from where the folder stands and writes `summary.json`, which is returned; none where it was interrupted. `label` is
/// what its progress is told under.
pub fn train_to_the_end(
    settings: &Settings,
    trainer: &mut Trainer,
    folder: &RunFolder,
    label: Label,
) -> Result<Option<serde_json::Value>> {
    let alone = label.name.is_none();
    let mut progress = Progress::new(folder.path(), label);
    let outcome = session::train(trainer, folder, &STOP, &mut progress)?;
    if outcome == Outcome::Interrupted || STOP.load(Ordering::Relaxed) {
        return Ok(None);
    }
    let seconds = Table::read(&folder.file("timings.csv"))?
        .column("total")
        .unwrap_or_default()
        .iter()
        .sum();
    if alone && !folder.file("summary.json").exists() {
        tell(&format!("evaluating {EPISODES} episodes of each policy"));
    }
    let cure = format!("go on with `stein train --resume --out {}`", folder.path().display());
    let summary = saved(&cure, alone, || {
        summarise(settings, &trainer.ensemble, trainer.iteration(), seconds)
    })?;
    atomic::write(&folder.file("summary.json"), format!("{summary:#}\n").as_bytes())?;
    Ok(Some(summary))
}

/// Where a run goes.
enum Place {
    /// A folder to be made.
    New(PathBuf),
    /// The folder of a run that goes on.
    Old(RunFolder),
}

/// The settings of the run and its place.
fn prepare(arguments: &Arguments, registry: &Registry) -> Result<(Settings, Place)> {
    let options = &arguments.options;
    if options.env.is_none() && options.config.is_none() && !(arguments.resume && arguments.out.is_some()) {
        return Err(Error::input(
            "which environment? As in `stein train maze`; `stein envs` lists them",
        ));
    }
    if let (true, Some(out)) = (arguments.resume, &arguments.out)
        && out.join("config.toml").is_file()
    {
        return resume(options, out, registry);
    }
    let settings = options.resolve(registry)?;
    let out = arguments.out.clone().unwrap_or_else(|| {
        let config = &settings.config;
        PathBuf::from(format!("runs/{}-{}-seed{}", settings.env(), config.method, config.seed))
    });
    if arguments.resume && out.join("config.toml").is_file() {
        return resume(options, &out, registry);
    }
    Ok((settings, Place::New(out)))
}

/// Settings of a run that goes on: those of its folder. Options may repeat them and may change `iterations`.
fn resume(options: &TrainOptions, out: &std::path::Path, registry: &Registry) -> Result<(Settings, Place)> {
    let folder = RunFolder::resume(out)?;
    let stored = folder.settings(registry)?;
    let mut table = read_table(&folder.file("config.toml"))?;
    let source = options.apply(&mut table)?;
    let asked = Settings::resolve(table, &source, registry)?;
    for (key, old, new) in differences(&stored.config, &asked.config) {
        if key != "iterations" {
            return Err(Error::input(format!(
                "the run in {} has {key} = {old}, but {new} was asked for; leave that out to go on with the run, or \
                 start another one with a new --out",
                out.display()
            )));
        }
    }
    Ok((asked, Place::Old(folder)))
}

/// Evaluates trained policies, all of whose training is saved: an interrupt meanwhile ends the program with the `cure`,
/// unless other runs go on beside this one.
pub fn saved<T>(cure: &str, alone: bool, evaluate: impl FnOnce() -> T) -> T {
    if !alone {
        return evaluate();
    }
    let say = |farewell: Option<String>| *FAREWELL.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) = farewell;
    say(Some(format!(
        "stopped while the trained policies were evaluated; their training is saved: {cure}"
    )));
    let result = evaluate();
    say(None);
    result
}

/// Whether training is to stop.
pub fn stopping() -> bool {
    STOP.load(Ordering::Relaxed)
}

/// Asks all training to stop after its present iteration, as an interrupt does.
pub fn stop_all() {
    STOP.store(true, Ordering::Relaxed);
}

/// The first Ctrl-C asks to stop after the present iteration, the second stops at once.
pub fn stop_on_interrupt() -> Result<()> {
    ctrlc::set_handler(|| {
        let farewell = FAREWELL.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
        if let Some(line) = farewell {
            tell(&line);
            std::process::exit(130);
        }
        if STOP.swap(true, Ordering::Relaxed) {
            std::process::exit(130);
        }
        tell("stopping after this iteration (again to stop at once and go back to the last checkpoint)");
    })
    .map_err(|error| Error::failed(format!("cannot watch for Ctrl-C: {error}")))
}

/// Episodes of the final policies for `summary.json`.
const EPISODES: usize = 5;

fn summarise(settings: &Settings, ensemble: &Ensemble, iterations: usize, seconds: f64) -> Result<serde_json::Value> {
    let config = &settings.config;
    let episodes = evaluate(ensemble, settings.task.as_ref(), config.seed, EPISODES, false)?;
    let mut summary = report(settings, &episodes)?;
    summary.insert("iterations".into(), json!(iterations));
    summary.insert("env_steps".into(), json!(iterations * config.steps * config.ensemble));
    summary.insert("evaluation_episodes".into(), json!(EPISODES));
    summary.insert("wall_seconds".into(), json!((seconds * 10.0).round() / 10.0));
    summary.insert("stein_version".into(), json!(config.stein_version));
    Ok(summary.into())
}
