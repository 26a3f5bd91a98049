//! `stein video`: a film of what the policies of a run do.

use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::ProgressBar;
use rayon::prelude::*;
use stein::env::Registry;
use stein::policy::Ensemble;
use stein::run::atomic;
use stein::run::settings::Settings;
use stein::video::{Film, FilmConfig, Format, encode, png, record};
use stein::{Error, Result};

use super::eval::load;
use crate::options::Threads;
use crate::{Ended, print};

/// Arguments of `stein video`.
#[derive(Args)]
pub struct Arguments {
    /// The run folder
    run: PathBuf,
    /// Film this policy alone
    #[arg(long, value_name = "K")]
    policy: Option<usize>,
    /// Longest time shown; the film ends sooner where all episodes do
    #[arg(long, value_name = "S", default_value_t = 10.0, allow_negative_numbers = true)]
    seconds: f64,
    /// Pictures per second; the film runs in real time at any number
    #[arg(long, value_name = "N", default_value_t = 25)]
    fps: u32,
    /// Width and height of the picture of one policy
    #[arg(long, value_name = "WxH", default_value = "240x180")]
    size: String,
    /// Seed of the episode [default: the seed of the run]
    #[arg(long)]
    seed: Option<u64>,
    /// FILE.gif, or FILE.png for an animated PNG [default: RUN/figures/video.gif]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    threads: Threads,
}

pub fn run(arguments: Arguments, registry: &Registry) -> Result<Ended> {
    let [width, height] = size(&arguments.size)?;
    let config = FilmConfig {
        seconds: arguments.seconds,
        rate: arguments.fps,
        width,
        height,
    };
    config.validate()?;
    let pool = arguments.threads.pool()?;
    let out = arguments.out.unwrap_or_else(|| {
        let name = arguments
            .policy
            .map_or("video.gif".into(), |policy| format!("video_policy_{policy}.gif"));
        arguments.run.join("figures").join(name)
    });
    let format = format(&out)?;
    let (settings, ensemble, _) = load(&arguments.run, None, registry)?;
    let ensemble = &ensemble;
    let policies = match arguments.policy {
        None => 0..ensemble.n(),
        Some(policy) if policy < ensemble.n() => policy..policy + 1,
        Some(policy) => {
            return Err(Error::input(format!(
                "--policy {policy} is out of range: the policies of {} are 0 to {}",
                arguments.run.display(),
                ensemble.n() - 1
            )));
        }
    };
    let seed = arguments.seed.unwrap_or(settings.config.seed);
    let mut film = film(&settings, ensemble, policies, seed, config, &pool)?.ok_or_else(|| {
        Error::input(format!(
            "{} cannot be filmed; `stein plot {}` draws what its policies do",
            settings.env(),
            arguments.run.display()
        ))
    })?;
    // Before the long work, so that a place that cannot be written to costs nothing.
    if let Some(folder) = out.parent().filter(|folder| !folder.as_os_str().is_empty()) {
        std::fs::create_dir_all(folder).map_err(|error| Error::io("create the folder", folder, error))?;
    }
    let bar = ProgressBar::new(film.frames() as u64);
    let (moving, strip) = encode(&mut film, format, || bar.inc(1))?;
    bar.finish_and_clear();
    for (path, bytes) in [(strip_path(&out), png(&strip)?), (out, moving)] {
        atomic::write(&path, &bytes)?;
        print(&format!("{}\n", path.display()));
    }
    Ok(Ended::Done)
}

/// A film of the first episode of these policies by their means; none where the task cannot be filmed at all.
pub fn film(
    settings: &Settings,
    ensemble: &Ensemble,
    policies: Range<usize>,
    seed: u64,
    config: FilmConfig,
    pool: &rayon::ThreadPool,
) -> Result<Option<Film>> {
    let task = settings.task.as_ref();
    let Some(stage) = task.stage(config.width, config.height)? else {
        return Ok(None);
    };
    // Collected in order, so that of several failures it is always the same one that is told.
    let takes: Vec<_> = pool.install(|| {
        let policies = policies.into_par_iter();
        policies.map(|policy| record(ensemble, policy, task, seed)).collect()
    });
    Film::new(config, stage, takes.into_iter().collect::<Result<_>>()?).map(Some)
}

/// Reads `240x180`.
fn size(text: &str) -> Result<[u32; 2]> {
    let sides = text
        .split_once(['x', 'X'])
        .map(|(width, height)| [width.parse(), height.parse()]);
    match sides {
        Some([Ok(width), Ok(height)]) => Ok([width, height]),
        _ => Err(Error::input(format!(
            "--size {text} is no size: write width and height in pixels, as in 240x180"
        ))),
    }
}

/// The kind of film by the ending of its file.
fn format(out: &Path) -> Result<Format> {
    let ending = out.extension().map(|ending| ending.to_ascii_lowercase());
    match ending.as_ref().and_then(|ending| ending.to_str()) {
        Some("gif") => Ok(Format::Gif),
        Some("png" | "apng") => Ok(Format::Apng),
        _ => Err(Error::input(format!(
            "--out {} has an unknown ending: choose .gif, or .png for an animated PNG",
            out.display()
        ))),
    }
}

/// `FILE_strip.png` beside the film.
fn strip_path(out: &Path) -> PathBuf {
    let stem = out.file_stem().unwrap_or_default().to_string_lossy();
    out.with_file_name(format!("{stem}_strip.png"))
}
