//! `stein plot`: the figures of a run.

use std::path::PathBuf;

use clap::Args;
use stein::env::{Episode, Registry};
use stein::plot::{Figure, draw, kernel, learning};
use stein::policy::evaluate::evaluate;
use stein::run::folder::RunFolder;
use stein::run::metrics::Table;
use stein::run::settings::Settings;
use stein::{Error, Result};

use super::eval::{check_episodes, load};
use crate::options::Threads;
use crate::{Ended, print};

/// Arguments of `stein plot`.
#[derive(Args)]
pub struct Arguments {
    /// The run folder
    run: PathBuf,
    /// Episodes of each policy in the task's figures
    #[arg(long, value_name = "N", default_value_t = 5)]
    episodes: usize,
    /// Sample actions instead of taking the mean
    #[arg(long)]
    stochastic: bool,
    /// Where the pictures go [default: RUN/figures]
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    #[command(flatten)]
    threads: Threads,
}

pub fn run(arguments: Arguments, registry: &Registry) -> Result<Ended> {
    check_episodes(arguments.episodes)?;
    let pool = arguments.threads.pool()?;
    let folder = RunFolder::open(&arguments.run)?;
    let out = arguments.out.unwrap_or_else(|| folder.file("figures"));
    let (settings, ensemble, _) = load(&arguments.run, None, registry)?;
    let config = &settings.config;
    let task = settings.task.as_ref();
    let episodes = pool.install(|| evaluate(&ensemble, task, config.seed, arguments.episodes, arguments.stochastic))?;
    let figures = figures(&folder, &settings, &episodes)?;
    std::fs::create_dir_all(&out).map_err(|error| Error::io("create the folder", &out, error))?;
    for (name, figure) in figures {
        for path in draw(&figure, &out.join(name))? {
            print(&format!("{}\n", path.display()));
        }
    }
    Ok(Ended::Done)
}

/// The figures of a run, by file name without extension: learning curves, the kernel where there is one, and the task's own.
pub fn figures(folder: &RunFolder, settings: &Settings, episodes: &[Vec<Episode>]) -> Result<Vec<(String, Figure)>> {
    let config = &settings.config;
    let mut figures = learning::figures(&Table::read(&folder.file("metrics.csv"))?, config);
    let path = folder.file("kernel.csv");
    let mut unnamed = Vec::new();
    if path.exists() {
        unnamed.extend(kernel::figure(&Table::read(&path)?, config));
    }
    unnamed.extend(settings.task.figures(episodes));
    // Their headings do not say yet which run they are of.
    let of_run = format!(" ({} by {}, seed {})", settings.env(), config.method, config.seed);
    for (name, mut figure) in unnamed {
        figure.add_to_title(&of_run);
        figures.push((name, figure));
    }
    Ok(figures)
}
