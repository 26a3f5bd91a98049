//! `stein reproduce`: trains all cases of an experiment on several seeds and makes one table of them.

mod experiment;
mod grid;
mod pace;
mod pictures;
mod plan;
mod record;
mod seeds;
mod table;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use clap::Args;
use serde_json::{Map, Value};
use stein::env::{Episode, Registry};
use stein::files::{atomic, plain};
use stein::policy::Ensemble;
use stein::policy::evaluate::evaluate;
use stein::run::folder::RunFolder;
use stein::run::metrics::Table;
use stein::run::report::report;
use stein::run::settings::Settings;
use stein::train::Trainer;
use stein::{Error, Result};

use self::pace::Pace;
use self::pictures::pictures;
use self::plan::{Case, Plan};
use self::record::{Evaluation, check_settings};
use self::table::{Measures, Row};
use super::report::{machine, of_experiment};
use super::train::{saved, stop_all, stop_on_interrupt, stopping, train_to_the_end};
use crate::options::Threads;
use crate::progress::Label;
use crate::{Ended, be_quiet, print_unless_quiet, tell};

pub use self::experiment::Curve;
pub use self::record::Record;

/// Arguments of `stein reproduce`.
#[derive(Args)]
pub struct Arguments {
    /// The experiment: maze, cheetah, table2, rewardfree, sawyer (of the paper), diversity (the default on every task beside
    /// PPO), ablation (other weightings and behaviours), locomotion (independent PPO), or a file of your own, as in my.toml
    experiment: String,
    /// Its size: paper, or smoke to see in a minute that everything runs
    #[arg(long, default_value = "paper")]
    scale: String,
    /// How many seeds, which are 1, 2, …, or which: 101,102 or 101-105; 101, is one [default: as the experiment says]
    #[arg(long, value_name = "SEEDS", allow_hyphen_values = true)]
    seeds: Option<String>,
    /// Folder of the runs, the table and the figures; finished runs in it are not repeated [default: runs/reproduce-NAME; at another scale than paper runs/reproduce-NAME-SCALE]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Only these cases
    #[arg(long, value_name = "LABEL", num_args = 1..)]
    only: Vec<String>,
    /// Runs side by side, each on its share of the threads
    #[arg(long, value_name = "J", default_value_t = 1)]
    jobs: usize,
    /// Train nothing: tables, figures and report of the runs that are finished
    #[arg(long)]
    finished: bool,
    /// Say nothing but what went wrong
    #[arg(long, short)]
    quiet: bool,
    #[command(flatten)]
    threads: Threads,
}

/// How to go on after an interrupt.
const CURE: &str = "the same command goes on from here";

/// A finished run.
struct Trained {
    measures: Measures,
    /// Return over the steps of each policy: of all, or of the one that is best after training.
    curve: Vec<[f64; 2]>,
    /// What the pictures are made of, where it is the first seed of its case and its policies are at hand.
    shown: Option<Shown>,
}

impl Trained {
    fn new(record: &Record, plan: &Plan, settings: &Settings) -> Trained {
        let steps = settings.config.steps as f64;
        let curve = record.curve(plan.curve).into_iter();
        Trained {
            measures: record.measures(),
            curve: curve.map(|[iteration, y]| [iteration * steps, y]).collect(),
            shown: None,
        }
    }
}

/// The first seed of a case.
struct Shown {
    settings: Settings,
    ensemble: Ensemble,
    episodes: Vec<Vec<Episode>>,
}

/// What has become of a run: none where it was interrupted.
type Finished = Result<Option<Trained>>;

pub fn run(arguments: Arguments, registry: &Registry) -> Result<Ended> {
    be_quiet(arguments.quiet);
    let pools = arguments.threads.pools(arguments.jobs)?;
    // Of this thread, for films.
    let own = arguments.threads.pool()?;
    let plan = Plan::new(&arguments)?;
    stop_on_interrupt()?;
    let figures = plan.out.join("figures");
    // What is written there must not lead elsewhere; the folder itself may be a link.
    let folders = plan.cases.iter().map(|case| plan.out.join(&case.label));
    for folder in folders.chain([figures.clone()]) {
        plain::check_folder(&folder)?;
    }
    std::fs::create_dir_all(&figures).map_err(|error| Error::io("create the folder", &figures, error))?;
    let runs: Vec<(&Case, u64)> = plan
        .cases
        .iter()
        .flat_map(|case| case.seeds.iter().map(move |&seed| (case, seed)))
        .collect();
    let mut finished: Vec<Option<Trained>> = runs.iter().map(|_| None).collect();
    let mut failures: Vec<(usize, Error)> = Vec::new();
    let side_by_side = pools.len() > 1;
    let next = AtomicUsize::new(0);
    let pace = Pace::new(runs.len());
    let (sender, receiver) = mpsc::channel::<(usize, Finished)>();
    std::thread::scope(|scope| -> Result<()> {
        for pool in pools {
            let (sender, plan, runs, next, pace) = (sender.clone(), &plan, &runs, &next, &pace);
            scope.spawn(move || {
                while !stopping() {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&(case, seed)) = runs.get(number) else { break };
                    let result = pool.run(|| {
                        let label = Label {
                            name: side_by_side.then(|| format!("{} seed {seed}", case.label)),
                            heading: pace.heading(number),
                        };
                        train(plan, case, seed, registry, label, arguments.finished)
                    });
                    pace.ended();
                    if result.is_err() {
                        // The others stop after their iteration and are saved.
                        stop_all();
                    }
                    if sender.send((number, result)).is_err() {
                        break;
                    }
                }
            });
        }
        drop(sender);
        let mut drawn = vec![false; plan.cases.len()];
        let mut show = |finished: &[Option<Trained>]| -> Result<()> {
            let done = cases(&plan, finished);
            write(&plan, &rows(&done))?;
            pictures(&plan, &done, &mut drawn, &figures, &own)
        };
        let mut unwritten = false;
        for (number, result) in receiver {
            match result {
                Ok(trained) => finished[number] = trained,
                Err(error) => failures.push((number, error)),
            }
            // After every case, so that there is something to look at while the others train.
            unwritten |= finished[number].is_some();
            if unwritten && is_complete(&plan, &finished, runs[number].0) {
                show(&finished).inspect_err(|_| stop_all())?;
                unwritten = false;
            }
        }
        if unwritten {
            show(&finished)?;
        }
        Ok(())
    })?;
    // Of several failures always the same one is told.
    failures.sort_by_key(|(number, _)| *number);
    if let Some((_, error)) = failures.into_iter().next() {
        return Err(error);
    }
    let done = cases(&plan, &finished);
    if finished.iter().any(Option::is_none) && !arguments.finished {
        tell(&format!("stopped; everything is saved: {CURE}"));
        return Ok(Ended::Interrupted);
    }
    if done.is_empty() {
        return Err(Error::input(format!(
            "no run in {} is finished yet: leave out --finished to train them",
            plan.out.display()
        )));
    }
    let html = of_experiment(&plan.out, registry)?;
    atomic::write(&plan.out.join("report.html"), html.as_bytes())?;
    print_unless_quiet(&table::markdown(&plan, &rows(&done)));
    Ok(Ended::Done)
}

/// A case and its finished runs, with their seeds.
struct Done<'a> {
    /// Its place in the plan.
    number: usize,
    case: &'a Case,
    runs: Vec<(u64, &'a Trained)>,
}

/// The cases of which a run is finished.
fn cases<'a>(plan: &'a Plan, finished: &'a [Option<Trained>]) -> Vec<Done<'a>> {
    let mut rest = finished;
    let mut cases = Vec::new();
    for (number, case) in plan.cases.iter().enumerate() {
        let (own, others) = rest.split_at(case.seeds.len());
        rest = others;
        let each = case.seeds.iter().zip(own);
        let runs: Vec<_> = each
            .filter_map(|(&seed, run)| run.as_ref().map(|run| (seed, run)))
            .collect();
        if !runs.is_empty() {
            cases.push(Done { number, case, runs });
        }
    }
    cases
}

/// Whether all seeds of a case are finished.
fn is_complete(plan: &Plan, finished: &[Option<Trained>], case: &Case) -> bool {
    let mut done = cases(plan, finished).into_iter();
    done.any(|done| done.case.label == case.label && done.runs.len() == case.seeds.len())
}

fn rows<'a>(done: &[Done<'a>]) -> Vec<Row<'a>> {
    let row = |done: &Done<'a>| Row {
        case: done.case,
        seeds: done.runs.iter().map(|(seed, _)| *seed).collect(),
        runs: done.runs.iter().map(|(_, run)| &run.measures).collect(),
    };
    done.iter().map(row).collect()
}

fn write(plan: &Plan, rows: &[Row]) -> Result<()> {
    atomic::write(&plan.out.join("table.md"), table::markdown(plan, rows).as_bytes())?;
    let json = format!("{:#}\n", table::as_json(plan, rows));
    atomic::write(&plan.out.join("table.json"), json.as_bytes())?;
    atomic::write(&plan.out.join("table.csv"), table::csv(plan, rows).as_bytes())?;
    let answer = table::answer_csv(plan, rows);
    atomic::write(&plan.out.join(format!("{}.csv", plan.name)), answer.as_bytes())?;
    atomic::write(&plan.out.join("runs.csv"), table::runs_csv(rows).as_bytes())
}

/// Trains a case on a seed, or takes the run or the record that is there already; none where it was interrupted, or where it is
/// not finished and `finished` says that nothing is trained.
fn train(plan: &Plan, case: &Case, seed: u64, registry: &Registry, label: Label, finished: bool) -> Finished {
    let path = plan.out.join(&case.label).join(format!("seed{seed}"));
    let asked = plan.settings(case, seed, registry)?;
    let evaluation = Evaluation {
        episodes: plan.episodes,
        stochastic: case.stochastic,
    };
    let first = case.seeds[0] == seed;
    let ended = path.join("summary.json").is_file();
    let place = Record::path(&plan.out, &case.label, seed);
    let known = match Record::read(&place)?.filter(|record| record.is_of(evaluation)) {
        None => None,
        Some(record) => {
            check_settings(&place, &record.settings(&place, registry)?.config, &asked.config)?;
            Some(record)
        }
    };
    match &known {
        // The first seed is shown, which takes its policies.
        Some(record) if !(first && ended) => return Ok(Some(Trained::new(record, plan, &asked))),
        None if finished && !ended => return Ok(None),
        _ => {}
    }
    let (folder, settings) = open(&path, asked, registry)?;
    let mut trainer = Trainer::new(settings.config.clone(), settings.task.as_ref())?;
    let side_by_side = label.name.is_some();
    let Some(summary) = train_to_the_end(&settings, &mut trainer, &folder, label)? else {
        return Ok(None);
    };
    let (ensemble, task) = (&trainer.ensemble, settings.task.as_ref());
    let evaluated = |stochastic: bool| -> Result<_> {
        let episodes = evaluate(ensemble, task, settings.config.seed, plan.episodes, stochastic)?;
        Ok((report(&settings, &episodes)?, episodes))
    };
    let (report, episodes, sampled) = saved(CURE, !side_by_side, || -> Result<_> {
        let (report, episodes) = evaluated(false)?;
        let sampled = case.stochastic.then(|| evaluated(true)).transpose()?;
        Ok((report, episodes, sampled))
    })?;
    let mut measures = of_ensemble(&report);
    for (name, value) in sampled.iter().flat_map(|(report, _)| of_ensemble(report)) {
        measures.push((name + "_sampled", value));
    }
    let seconds: f64 = Table::read(&folder.file("timings.csv"))?
        .column("total")
        .unwrap_or_default()
        .iter()
        .sum();
    measures.push(("wall_seconds".into(), (seconds * 10.0).round() / 10.0));
    let table = Table::read(&folder.file("metrics.csv"))?;
    let curve = |column: &str| table.column(column).unwrap_or_default();
    let (mean, best) = (curve("return_mean"), curve(&format!("return_{}", best(&summary))));
    let mut record = Record::new(&settings.config, evaluation, &measures, [&mean, &best], machine());
    if let Some(known) = known {
        // Of a run that was trained before.
        (record.commit, record.machine) = (known.commit, known.machine);
    }
    record.write(&place)?;
    let mut trained = Trained::new(&record, plan, &settings);
    if first {
        trained.shown = Some(Shown {
            settings,
            ensemble: trainer.ensemble,
            episodes,
        });
    }
    Ok(Some(trained))
}

/// The folder of a run and its settings: a new one, or one to go on with, whose settings may differ only where they have no
/// part in the run.
fn open(path: &Path, settings: Settings, registry: &Registry) -> Result<(RunFolder, Settings)> {
    if !path.join("config.toml").is_file() {
        return Ok((RunFolder::create(path, &settings.config)?, settings));
    }
    let folder = RunFolder::resume(path)?;
    let stored = folder.settings(registry)?;
    check_settings(path, &stored.config, &settings.config)?;
    Ok((folder, stored))
}

/// The policy with the largest return in a summary.
pub fn best(summary: &Value) -> usize {
    let policies = summary["policies"].as_array().map(Vec::as_slice).unwrap_or_default();
    let earned = |i: usize| policies[i]["return_mean"].as_f64().unwrap_or(f64::NEG_INFINITY);
    (0..policies.len()).fold(0, |best, i| if earned(i) > earned(best) { i } else { best })
}

/// What a report says of the ensemble.
fn of_ensemble(report: &Map<String, Value>) -> Measures {
    let ensemble = report["ensemble"].as_object().into_iter().flatten();
    ensemble
        .map(|(name, value)| (name.clone(), value.as_f64().unwrap_or(f64::NAN)))
        .collect()
}
