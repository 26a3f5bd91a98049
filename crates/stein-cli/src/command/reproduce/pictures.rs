//! Pictures of an experiment: learning curves and measures of each task, and the first seed of each case.

use std::path::Path;

use stein::Result;
use stein::files::atomic;
use stein::plot::draw;
use stein::run::figures::learning;
use stein::video::{FilmConfig, Format, encode, png};

use super::experiment::Curve;
use super::plan::Plan;
use super::{Done, Shown, rows, table};
use crate::command::video::film;
use crate::{program, tell};

/// Films of an experiment: small, so that a report has room for them.
const FILM: FilmConfig = FilmConfig {
    seconds: 5.0,
    rate: 10,
    width: 120,
    height: 90,
};

/// A case's title and the curve of each of its seeds.
type Curves<'a> = (&'a str, Vec<Vec<[f64; 2]>>);

/// Draws the learning curves of all cases so far, a picture for each task, and the first seed of those that are not `drawn` yet.
pub fn pictures(
    plan: &Plan,
    cases: &[Done],
    drawn: &mut [bool],
    out: &Path,
    pool: &stein::parallel::Threads,
) -> Result<()> {
    // Returns of different tasks have no axis in common.
    let mut tasks: Vec<(&str, Vec<Curves>)> = Vec::new();
    for Done { number, case, runs } in cases {
        let at = tasks.iter().position(|(task, _)| *task == case.task());
        let at = at.unwrap_or_else(|| {
            tasks.push((case.task(), Vec::new()));
            tasks.len() - 1
        });
        let curves = runs.iter().map(|(_, run)| run.curve.clone()).collect();
        tasks[at].1.push((&case.title, curves));
        let Some(shown) = runs.iter().find_map(|(_, run)| run.shown.as_ref()) else {
            continue;
        };
        if std::mem::replace(&mut drawn[*number], true) {
            continue;
        }
        if case.film {
            film_of(shown, &out.join(format!("{}_film.gif", case.label)), pool)?;
        }
        for (name, mut figure) in shown.settings.task.figures(&shown.episodes) {
            figure.add_to_title(&format!(" ({}, seed {})", case.title, case.seeds[0]));
            draw(&figure, &out.join(format!("{}_{name}", case.label)))?;
        }
    }
    let alone = plan.cases.iter().all(|case| case.task() == plan.cases[0].task());
    let rows = rows(cases);
    for (task, curves) in &tasks {
        let numbers = || curves.iter().map(|(_, seeds)| seeds.len());
        let (least, most) = (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0));
        let seeds = if most == least {
            format!("{most} seeds")
        } else {
            format!("{least} to {most} seeds")
        };
        let (whose, ending) = if alone {
            (plan.name.clone(), String::new())
        } else {
            (format!("{}: {task}", plan.name), format!("_{task}"))
        };
        let title = match plan.curve {
            Curve::Mean => format!("Mean return of the policies ({whose}, {seeds})"),
            Curve::Best => format!("Return of the policy that is best after training ({whose}, {seeds})"),
        };
        draw(
            &learning::comparison(&title, curves),
            &out.join(format!("learning_curves{ending}")),
        )?;
        draw(&table::figure(plan, &rows, task), &out.join(format!("seeds{ending}")))?;
    }
    Ok(())
}

/// Films an ensemble, where the task and this machine can; else says why not.
fn film_of(shown: &Shown, path: &Path, pool: &stein::parallel::Threads) -> Result<()> {
    let Shown { settings, ensemble, .. } = shown;
    match film(settings, ensemble, 0..ensemble.n(), settings.config.seed, FILM, pool) {
        Ok(None) => Ok(()),
        Ok(Some(mut film)) => {
            let (moving, strip) = encode(&mut film, Format::Gif, || ())?;
            atomic::write(&path.with_extension("png"), &png(&strip)?)?;
            atomic::write(path, &moving)
        }
        Err(error) => {
            tell(&format!("no film of {}: {}", settings.env(), program::sentence(&error)));
            Ok(())
        }
    }
}
