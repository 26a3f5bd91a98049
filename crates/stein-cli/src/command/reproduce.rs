//! `stein reproduce`: trains all cases of an experiment on several seeds and makes one table of them.

mod pace;
mod plan;
mod table;

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc;

use clap::Args;
use serde_json::{Map, Value};
use stein::env::{Episode, Registry};
use stein::plot::{draw, learning};
use stein::policy::Ensemble;
use stein::policy::evaluate::evaluate;
use stein::run::atomic;
use stein::run::folder::RunFolder;
use stein::run::metrics::Table;
use stein::run::report::report;
use stein::run::settings::{Settings, differences};
use stein::train::Trainer;
use stein::video::{FilmConfig, Format, encode, png};
use stein::{Error, Result};

use self::pace::Pace;
use self::plan::{Case, Curve, Plan};
use self::table::{Measures, Row};
use super::report::of_experiment;
use super::train::{saved, stop_all, stop_on_interrupt, stopping, train_to_the_end};
use super::video::film;
use crate::options::Threads;
use crate::progress::Label;
use crate::{Ended, print, tell};

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
    /// What the pictures are made of, where it is the first seed of its case.
    shown: Option<Shown>,
}

/// The first seed of a case.
struct Shown {
    settings: Settings,
    ensemble: Ensemble,
    episodes: Vec<Vec<Episode>>,
}

/// Films of an experiment: small, so that a report has room for them.
const FILM: FilmConfig = FilmConfig {
    seconds: 5.0,
    rate: 10,
    width: 120,
    height: 90,
};

/// A case's title and the curve of each of its seeds.
type Curves<'a> = (&'a str, Vec<Vec<[f64; 2]>>);

/// What has become of a run: none where it was interrupted.
type Finished = Result<Option<Trained>>;

pub fn run(arguments: Arguments, registry: &Registry) -> Result<Ended> {
    let pools = arguments.threads.pools(arguments.jobs)?;
    // Of this thread, for films.
    let own = arguments.threads.pool()?;
    let plan = Plan::new(&arguments)?;
    stop_on_interrupt()?;
    let figures = plan.out.join("figures");
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
                    let result = pool.install(|| {
                        let label = Label {
                            name: side_by_side.then(|| format!("{} seed {seed}", case.label)),
                            heading: pace.heading(number),
                        };
                        train(plan, case, seed, registry, label)
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
        let mut written = 0;
        for (number, result) in receiver {
            match result {
                Ok(trained) => finished[number] = trained,
                Err(error) => failures.push((number, error)),
            }
            // After every case, so that there is something to look at while the others train; in the order of the file.
            let rows = rows(&plan, &finished);
            if rows.len() > written {
                let before = std::mem::replace(&mut written, rows.len());
                write(&plan, &rows)
                    .and_then(|()| pictures(&plan, &finished, before, &figures, &own))
                    .inspect_err(|_| stop_all())?;
            }
        }
        Ok(())
    })?;
    // Of several failures always the same one is told.
    failures.sort_by_key(|(number, _)| *number);
    if let Some((_, error)) = failures.into_iter().next() {
        return Err(error);
    }
    let rows = rows(&plan, &finished);
    if rows.len() < plan.cases.len() {
        tell(&format!("stopped; everything is saved: {CURE}"));
        return Ok(Ended::Interrupted);
    }
    let html = of_experiment(&plan.out, registry)?;
    atomic::write(&plan.out.join("report.html"), html.as_bytes())?;
    print(&table::markdown(&plan, &rows));
    Ok(Ended::Done)
}

/// The finished runs of each case, as far as all cases before it are finished too.
fn cases<'a>(plan: &'a Plan, finished: &'a [Option<Trained>]) -> Vec<(&'a Case, Vec<&'a Trained>)> {
    let mut rest = finished;
    let mut cases = Vec::new();
    for case in &plan.cases {
        let (own, others) = rest.split_at(case.seeds.len());
        rest = others;
        match own.iter().map(Option::as_ref).collect::<Option<Vec<_>>>() {
            Some(trained) => cases.push((case, trained)),
            None => break,
        }
    }
    cases
}

fn rows<'a>(plan: &'a Plan, finished: &'a [Option<Trained>]) -> Vec<Row<'a>> {
    let measures = |trained: Vec<&'a Trained>| trained.into_iter().map(|trained| &trained.measures).collect();
    let cases = cases(plan, finished).into_iter();
    cases.map(|(case, trained)| (case, measures(trained))).collect()
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

/// Draws the learning curves of all cases so far, a picture for each task, and the first seed of those that come after the `before` known ones.
fn pictures(
    plan: &Plan,
    finished: &[Option<Trained>],
    before: usize,
    out: &Path,
    pool: &rayon::ThreadPool,
) -> Result<()> {
    let cases = cases(plan, finished);
    // Returns of different tasks have no axis in common.
    let mut tasks: Vec<(&str, Vec<Curves>)> = Vec::new();
    for (number, (case, trained)) in cases.iter().enumerate() {
        let at = tasks.iter().position(|(task, _)| *task == case.task());
        let at = at.unwrap_or_else(|| {
            tasks.push((case.task(), Vec::new()));
            tasks.len() - 1
        });
        let curves = trained.iter().map(|trained| trained.curve.clone()).collect();
        tasks[at].1.push((&case.title, curves));
        let shown = trained.first().and_then(|first| first.shown.as_ref());
        let new = shown.filter(|_| number >= before);
        if let Some(shown) = new.filter(|_| case.film) {
            film_of(shown, &out.join(format!("{}_film.gif", case.label)), pool)?;
        }
        for (name, mut figure) in new
            .into_iter()
            .flat_map(|shown| shown.settings.task.figures(&shown.episodes))
        {
            figure.add_to_title(&format!(" ({}, seed {})", case.title, case.seeds[0]));
            draw(&figure, &out.join(format!("{}_{name}", case.label)))?;
        }
    }
    let alone = plan.cases.iter().all(|case| case.task() == plan.cases[0].task());
    for (task, curves) in &tasks {
        let of_task = || plan.cases.iter().filter(|case| case.task() == *task);
        let most = of_task().map(|case| case.seeds.len()).max().unwrap_or(0);
        let least = of_task().map(|case| case.seeds.len()).min().unwrap_or(0);
        let seeds = if most == least {
            format!("{most} seeds")
        } else {
            format!("{least} to {most} seeds")
        };
        let (whose, name) = if alone {
            (plan.name.clone(), "learning_curves".into())
        } else {
            (format!("{}: {task}", plan.name), format!("learning_curves_{task}"))
        };
        let title = match plan.curve {
            Curve::Mean => format!("Mean return of the policies ({whose}, {seeds})"),
            Curve::Best => format!("Return of the policy that is best after training ({whose}, {seeds})"),
        };
        draw(&learning::comparison(&title, curves), &out.join(name))?;
    }
    let rows = rows(plan, finished);
    for (task, _) in &tasks {
        let name = if alone { "seeds".into() } else { format!("seeds_{task}") };
        draw(&table::figure(plan, &rows, task), &out.join(name))?;
    }
    Ok(())
}

/// Films an ensemble, where the task and this machine can; else says why not.
fn film_of(shown: &Shown, path: &Path, pool: &rayon::ThreadPool) -> Result<()> {
    let Shown { settings, ensemble, .. } = shown;
    match film(settings, ensemble, 0..ensemble.n(), settings.config.seed, FILM, pool) {
        Ok(None) => Ok(()),
        Ok(Some(mut film)) => {
            let (moving, strip) = encode(&mut film, Format::Gif, || ())?;
            atomic::write(&path.with_extension("png"), &png(&strip)?)?;
            atomic::write(path, &moving)
        }
        Err(error) => {
            tell(&format!("no film of {}: {error}", settings.env()));
            Ok(())
        }
    }
}

/// Trains a case on a seed, or takes the run that is there already, and evaluates it; none where it was interrupted.
fn train(plan: &Plan, case: &Case, seed: u64, registry: &Registry, label: Label) -> Finished {
    let path = plan.out.join(&case.label).join(format!("seed{seed}"));
    let (folder, settings) = open(&path, plan.settings(case, seed, registry)?, registry)?;
    let mut trainer = Trainer::new(settings.config.clone(), settings.task.as_ref())?;
    let side_by_side = label.name.is_some();
    let Some(summary) = train_to_the_end(&settings, &mut trainer, &folder, label)? else {
        return Ok(None);
    };
    let (ensemble, task) = (&trainer.ensemble, settings.task.as_ref());
    let judge = |stochastic: bool| -> Result<_> {
        let episodes = evaluate(ensemble, task, settings.config.seed, plan.episodes, stochastic)?;
        Ok((report(&settings, &episodes)?, episodes))
    };
    let (report, episodes, sampled) = saved(CURE, !side_by_side, || -> Result<_> {
        let (report, episodes) = judge(false)?;
        let sampled = case.stochastic.then(|| judge(true)).transpose()?;
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
    let iterations = table.column("iteration").unwrap_or_default();
    let column = match plan.curve {
        Curve::Mean => "return_mean".into(),
        Curve::Best => format!("return_{}", best(&summary)),
    };
    let returns = table.column(&column).unwrap_or_default();
    let steps = settings.config.steps as f64;
    let curve = iterations.iter().zip(returns).map(|(i, r)| [i * steps, r]).collect();
    Ok(Some(Trained {
        measures,
        curve,
        shown: (case.seeds[0] == seed).then_some(Shown {
            settings,
            ensemble: trainer.ensemble,
            episodes,
        }),
    }))
}

/// The folder of a run and its settings: a new one, or one to go on with, whose settings may differ only where they have no
/// part in the run.
fn open(path: &Path, settings: Settings, registry: &Registry) -> Result<(RunFolder, Settings)> {
    if !path.join("config.toml").is_file() {
        return Ok((RunFolder::create(path, &settings.config)?, settings));
    }
    let folder = RunFolder::resume(path)?;
    let stored = folder.settings(registry)?;
    let differ = differences(&stored.config, &settings.config);
    match differ.into_iter().find(|(key, ..)| settings.config.has_part(key)) {
        None => Ok((folder, stored)),
        Some((key, old, new)) => Err(Error::input(format!(
            "the run in {} has {key} = {old}, but the experiment asks for {new}; choose another folder with --out, or \
             delete that run",
            path.display()
        ))),
    }
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
