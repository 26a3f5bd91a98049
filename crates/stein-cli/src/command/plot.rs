//! `stein plot`: the figures of a run.

use std::path::{Path, PathBuf};

use clap::Args;
use stein::env::{Episode, Registry};
use stein::files::plain;
use stein::plot::{Figure, draw};
use stein::policy::evaluate::evaluate;
use stein::run::figures::{kernel, learning, signals};
use stein::run::folder::RunFolder;
use stein::run::metrics::Table;
use stein::run::settings::Settings;
use stein::{Error, Result};

use stein::run::load::no_checkpoint;

use super::eval::check_episodes;
use crate::options::Threads;
use crate::{Ended, print, tell};

/// Arguments of `stein plot`.
#[derive(Args)]
pub struct Arguments {
    /// The run folder
    run: PathBuf,
    /// Episodes per policy in the task's figures
    #[arg(long, value_name = "N", default_value_t = 5)]
    episodes: usize,
    /// Sample actions instead of taking the mean
    #[arg(long)]
    stochastic: bool,
    /// Output folder [default: RUN/figures]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    threads: Threads,
}

pub fn run(arguments: Arguments, registry: &Registry) -> Result<Ended> {
    check_episodes(arguments.episodes)?;
    let pool = arguments.threads.pool()?;
    let folder = RunFolder::open(&arguments.run)?;
    let out = match arguments.out {
        Some(out) => out,
        None => own_figures(&arguments.run)?,
    };
    let settings = folder.settings(registry)?;
    let (config, task) = (&settings.config, settings.task.as_ref());
    // Without a checkpoint there are no policies to evaluate, but there may be curves.
    let episodes = match folder.policies(&settings, None)? {
        Some((ensemble, _)) => {
            pool.run(|| evaluate(&ensemble, task, config.seed, arguments.episodes, arguments.stochastic))?
        }
        None if folder.file("metrics.csv").exists() => {
            tell(&format!(
                "note: {} has no checkpoint yet (checkpoint.every = {}): the figures of what its policies do are left out",
                arguments.run.display(),
                config.checkpoint.every
            ));
            Vec::new()
        }
        None => return Err(no_checkpoint(&arguments.run, &settings)),
    };
    let figures = figures(&folder, &settings, &episodes)?;
    std::fs::create_dir_all(&out).map_err(|error| Error::io("create the folder", &out, error))?;
    for (name, figure) in figures {
        for path in draw(&figure, &out.join(name))? {
            print(&format!("{}\n", path.display()));
        }
    }
    Ok(Ended::Done)
}

/// The figures folder of a run, which must not be a link to another place.
pub fn own_figures(run: &Path) -> Result<PathBuf> {
    let figures = run.join("figures");
    plain::check_folder(&figures)?;
    Ok(figures)
}

/// The figures of a run, by file name without extension: learning curves, the kernel if there is one, and the task's
/// own.
pub fn figures(folder: &RunFolder, settings: &Settings, episodes: &[Vec<Episode>]) -> Result<Vec<(String, Figure)>> {
    let config = &settings.config;
    let mut figures = learning::figures(&Table::read(&folder.file("metrics.csv"))?, config);
    let path = folder.file("kernel.csv");
    let mut unnamed = Vec::new();
    if path.exists() {
        let table = Table::read(&path)?;
        unnamed.extend(kernel::figure(&table, config));
        unnamed.extend(kernel::over_time(&table, config));
    }
    if !episodes.is_empty() {
        let own = settings.task.figures(episodes);
        let none = own.is_empty();
        unnamed.extend(own);
        if none {
            unnamed.extend(signals::figures(&settings.task.make()?.spec().signals, episodes));
        }
    }
    // Their titles do not include the run yet.
    let of_run = format!(" ({} by {}, seed {})", settings.env(), config.method, config.seed);
    for (name, mut figure) in unnamed {
        figure.add_to_title(&of_run);
        figures.push((name, figure));
    }
    Ok(figures)
}
