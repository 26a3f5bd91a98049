//! `stein video`: a video of the policies of a run.

use std::ops::Range;
use std::path::{Path, PathBuf};

use clap::Args;
use indicatif::ProgressBar;
use stein::env::Registry;
use stein::files::atomic;
use stein::parallel;
use stein::policy::Ensemble;
use stein::run::load::Loaded;
use stein::run::settings::Settings;
use stein::video::{Film, FilmConfig, Format, RATES, SECONDS, SIDES, encode, png, record};
use stein::{Error, Result};

use super::plot::own_figures;
use crate::options::Threads;
use crate::{Ended, print, program};

/// Arguments of `stein video`.
#[derive(Args)]
pub struct Arguments {
    /// The run folder
    run: PathBuf,
    /// Show only this policy
    #[arg(long, value_name = "K")]
    policy: Option<usize>,
    /// Maximum duration in seconds; the video ends earlier if all episodes do
    #[arg(long, value_name = "S", default_value_t = 10.0, allow_negative_numbers = true)]
    seconds: f64,
    /// Frames per second; the video runs in real time at any rate
    #[arg(long, value_name = "N", default_value_t = 25)]
    fps: u32,
    /// Width and height of one policy's frame in pixels
    #[arg(long, value_name = "WxH", default_value = "240x180")]
    size: String,
    /// Seed of the episode [default: the seed of the run]
    #[arg(long, value_parser = crate::options::seed)]
    seed: Option<u64>,
    /// FILE.gif, or FILE.png for an animated PNG [default: RUN/figures/video.gif]
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    threads: Threads,
}

pub fn run(arguments: Arguments, registry: &Registry) -> Result<Ended> {
    let config = config(&arguments)?;
    let pool = arguments.threads.pool()?;
    let name = arguments
        .policy
        .map_or("video.gif".into(), |policy| format!("video_policy_{policy}.gif"));
    let out = match arguments.out {
        Some(out) => out,
        None => own_figures(&arguments.run)?.join(name),
    };
    let format = format(&out)?;
    let Loaded { settings, ensemble, .. } = Ensemble::load(&arguments.run, None, registry)?;
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
            "{} cannot be filmed; `{} plot {}` draws what its policies do",
            settings.env(),
            program::name(),
            arguments.run.display()
        ))
    })?;
    // Before the long work, so that a path that cannot be written fails early.
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

/// A video of the first episode of these policies, with mean actions; none if the task cannot be rendered.
pub fn film(
    settings: &Settings,
    ensemble: &Ensemble,
    policies: Range<usize>,
    seed: u64,
    config: FilmConfig,
    pool: &parallel::Threads,
) -> Result<Option<Film>> {
    let task = settings.task.as_ref();
    let Some(stage) = task.stage(config.width, config.height)? else {
        return Ok(None);
    };
    // Collected in order, so that of several errors always the same one is reported.
    let takes = pool.run(|| parallel::map(policies, |_, policy| record(ensemble, policy, task, seed)));
    Film::new(config, stage, takes.into_iter().collect::<Result<_>>()?).map(Some)
}

/// How the film is made. Refuses what cannot be filmed in the words of the flags.
fn config(arguments: &Arguments) -> Result<FilmConfig> {
    let (seconds, rate) = (arguments.seconds, arguments.fps);
    if !SECONDS.contains(&seconds) {
        let (least, most) = SECONDS.into_inner();
        return Err(Error::input(format!(
            "--seconds {seconds} is out of range: choose {least} to {most}"
        )));
    }
    if !RATES.contains(&rate) {
        let (least, most) = RATES.into_inner();
        return Err(Error::input(format!(
            "--fps {rate} is out of range: choose {least} to {most} pictures per second"
        )));
    }
    let [width, height] = size(&arguments.size)?;
    Ok(FilmConfig {
        seconds,
        rate,
        width,
        height,
    })
}

/// Reads `240x180`.
fn size(text: &str) -> Result<[u32; 2]> {
    let sides = text
        .split_once(['x', 'X'])
        .map(|(width, height)| [width.parse(), height.parse()]);
    match sides {
        Some([Ok(width), Ok(height)]) if SIDES.contains(&width) && SIDES.contains(&height) => Ok([width, height]),
        Some([Ok(_), Ok(_)]) => {
            let (least, most) = SIDES.into_inner();
            Err(Error::input(format!(
                "--size {text} is out of range: choose sides of {least} to {most} pixels, as in 240x180"
            )))
        }
        _ => Err(Error::input(format!(
            "--size {text} is no size: write width and height in pixels, as in 240x180"
        ))),
    }
}

/// The file format, from the extension.
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

/// `FILE_strip.png` next to the video.
fn strip_path(out: &Path) -> PathBuf {
    let stem = out.file_stem().unwrap_or_default().to_string_lossy();
    out.with_file_name(format!("{stem}_strip.png"))
}
