//! `stein train`: trains an ensemble, from the beginning or from where its folder stands.

use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use clap::Args;
use serde_json::json;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use stein::env::Registry;
use stein::files::atomic;
use stein::policy::Ensemble;
use stein::policy::evaluate::{EPISODES, evaluate};
use stein::run::folder::RunFolder;
use stein::run::metrics::Table;
use stein::run::report::report;
use stein::run::session::{self, Outcome};
use stein::run::settings::{Settings, differences, read_table};
use stein::train::Trainer;
use stein::{Error, Result};

use crate::options::TrainOptions;
use crate::progress::{Label, Progress};
use crate::{Ended, be_quiet, print_json, print_unless_quiet, program, say, tell};

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
    /// Say nothing but what went wrong, and what --json asks for
    #[arg(long, short)]
    quiet: bool,
}

/// Training should stop after the present iteration.
static STOP: AtomicBool = AtomicBool::new(false);

/// What an interrupt says before it ends the program at once, which it does while this is set: nothing is left to save.
static FAREWELL: Mutex<Option<String>> = Mutex::new(None);

pub fn run(arguments: Arguments, registry: &Registry) -> Result<Ended> {
    be_quiet(arguments.quiet);
    let pool = arguments.options.threads.pool()?;
    let (settings, place) = prepare(&arguments, registry)?;
    // Before the folder is made: settings that turn out not to work leave none behind.
    let trainer = pool.run(|| Trainer::new(settings.config.clone(), settings.task.as_ref()));
    // What is wrong in a file is told together with its name.
    let mut trainer = trainer.map_err(|error| match &arguments.options.config {
        Some(file) => error.within(&file.display().to_string()),
        None => error,
    })?;
    let folder = match place {
        Place::New(path) => RunFolder::create(&path, &settings.config)?,
        Place::Old(folder) => folder,
    };
    stop_on_interrupt()?;
    let Some(summary) = pool.run(|| train_to_the_end(&settings, &mut trainer, &folder, Label::default()))? else {
        tell(&format!(
            "stopped after iteration {} of {}; everything is saved: {}",
            trainer.iteration(),
            settings.config.iterations,
            go_on(&folder)
        ));
        return Ok(Ended::Interrupted);
    };
    if arguments.json {
        print_json(&summary);
    } else {
        let (stein, path) = (program::name(), folder.path().display());
        // Only what has a pose can be filmed.
        let seen = settings.task.make().is_ok_and(|env| !env.pose().is_empty());
        let film = if seen {
            format!("  {stein} video {path}\n")
        } else {
            String::new()
        };
        print_unless_quiet(&format!(
            "done: {path}\n  {stein} eval {path}\n  {stein} plot {path}\n{film}"
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
        say(&format!("evaluating {EPISODES} episodes of each policy"));
    }
    let summary = saved(&go_on(folder), alone, || {
        summarise(settings, &trainer.ensemble, trainer.iteration(), seconds)
    })?;
    folder.check(&settings.config)?;
    atomic::write(&folder.file("summary.json"), format!("{summary:#}\n").as_bytes())?;
    Ok(Some(summary))
}

/// How a run is gone on with.
fn go_on(folder: &RunFolder) -> String {
    format!(
        "go on with `{} train --resume --out {}`",
        program::name(),
        folder.path().display()
    )
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
        let stein = program::name();
        return Err(Error::input(format!(
            "which environment? As in `{stein} train {}`; `{stein} envs` lists them",
            any(registry)
        )));
    }
    if let (true, Some(out)) = (arguments.resume, &arguments.out) {
        if out.join("config.toml").is_file() {
            return resume(options, out, registry);
        }
        if options.env.is_none() && options.config.is_none() {
            return Err(Error::input(format!(
                "there is no run in {} to go on with (it has no config.toml); check the path, or begin one, as in `{} train \
                 {} --out {}`",
                out.display(),
                program::name(),
                any(registry),
                out.display()
            )));
        }
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

/// An environment to name in examples: the first there is.
fn any(registry: &Registry) -> &'static str {
    registry.list().next().map_or("ENV", |(name, _)| name)
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

/// How long a program that is told to end (SIGTERM, as `timeout` and schedulers send it) may take for its iteration: who sends
/// it often kills soon after.
const GRACE: Duration = Duration::from_millis(1700);

/// The first Ctrl-C asks to stop after the present iteration, the second stops at once. SIGTERM and SIGHUP ask for the same, and
/// stop at once where the iteration does not end in time: the run goes on from its last checkpoint then, to the same bits.
pub fn stop_on_interrupt() -> Result<()> {
    let failed = |error| Error::failed(format!("cannot watch for Ctrl-C: {error}"));
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(failed)?;
    std::thread::spawn(move || {
        for signal in signals.forever() {
            let farewell = FAREWELL.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).take();
            if let Some(line) = farewell {
                tell(&line);
                std::process::exit(130);
            }
            let again = STOP.swap(true, Ordering::Relaxed);
            if signal != SIGINT {
                tell("stopping after this iteration, or at once where it takes more than 2 s");
                std::thread::spawn(|| {
                    std::thread::sleep(GRACE);
                    tell(
                        "stopped within an iteration; all before the last checkpoint is saved: go on with --resume and the same --out",
                    );
                    std::process::exit(130);
                });
            } else if again {
                std::process::exit(130);
            } else {
                tell("stopping after this iteration (again to stop at once and go back to the last checkpoint)");
            }
        }
    });
    Ok(())
}

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
