//! Observers: called after every iteration to record it.

use std::path::PathBuf;

use super::figures::kernel;
use super::folder::RunFolder;
use super::metrics::MetricsFile;
use super::tensorboard::EventWriter;
use crate::checkpoint::Store;
use crate::error::Result;
use crate::train::{Record, Trainer};

/// An observer of training.
pub trait Observer {
    /// Called once before the first iteration, when the state of a resumed run has been restored.
    fn begin(&mut self, _trainer: &Trainer) -> Result<()> {
        Ok(())
    }

    /// Called after every iteration.
    fn iteration(&mut self, trainer: &Trainer, record: &Record) -> Result<()>;

    /// Called once at the end of training, even if it was interrupted.
    fn finish(&mut self, _trainer: &Trainer) -> Result<()> {
        Ok(())
    }
}

/// metrics.csv (without wall-clock times: the same seed gives the same bytes), timings.csv, and kernel.csv if there is
/// a kernel.
pub struct Tables<'a> {
    folder: &'a RunFolder,
    metrics: MetricsFile,
    timings: MetricsFile,
    kernel: Option<MetricsFile>,
    pairs: Vec<(usize, usize)>,
}

const PHASES: [&str; 6] = ["rollout", "ratio", "advantages", "update", "total", "steps_per_second"];

/// The wall-clock times of an iteration and the steps of all policies per second, in the order of [`PHASES`].
fn phases(trainer: &Trainer, record: &Record) -> [f64; 6] {
    let t = &record.timings;
    let speed = trainer.env_steps(1) as f64 / t.total;
    [t.rollout, t.ratio, t.advantages, t.update, t.total, speed]
}

impl<'a> Tables<'a> {
    /// Creates the tables of a folder, or continues them after `trainer.iteration()`.
    pub fn open(folder: &'a RunFolder, trainer: &Trainer) -> Result<Self> {
        let (done, pairs) = (trainer.iteration(), trainer.kernel_pairs());
        let columns: Vec<String> = pairs.iter().map(|&(i, j)| kernel::column(i, j)).collect();
        let kernel = || MetricsFile::resume(&folder.file("kernel.csv"), &columns, done);
        Ok(Tables {
            folder,
            metrics: MetricsFile::resume(&folder.file("metrics.csv"), &trainer.metric_names(), done)?,
            timings: MetricsFile::resume(&folder.file("timings.csv"), &PHASES, done)?,
            kernel: (!pairs.is_empty()).then(kernel).transpose()?,
            pairs,
        })
    }
}

impl Tables<'_> {
    /// Makes the rows so far survive a loss of power.
    fn sync(&self) -> Result<()> {
        let mut files = [&self.metrics, &self.timings].into_iter().chain(&self.kernel);
        files.try_for_each(MetricsFile::sync)
    }
}

impl Observer for Tables<'_> {
    fn iteration(&mut self, trainer: &Trainer, record: &Record) -> Result<()> {
        self.metrics.append(record.iteration, &record.metrics)?;
        self.timings.append(record.iteration, &phases(trainer, record))?;
        if let (Some(file), Some(kernel)) = (&mut self.kernel, trainer.kernel()) {
            let n = trainer.config.ensemble;
            let values: Vec<f64> = self.pairs.iter().map(|&(i, j)| kernel[i * n + j]).collect();
            file.append(record.iteration, &values)?;
        }
        // Before the checkpoint that relies on these rows. Where the whole folder is gone, that is what is said.
        let missing = |error| self.folder.check(&trainer.config).err().unwrap_or(error);
        self.sync().map_err(missing)
    }
}

/// TensorBoard events of all metrics and wall-clock times, over the steps of all policies; the settings as text.
pub struct TensorBoard {
    events: EventWriter,
    tags: Vec<String>,
}

/// Names of the metrics with their groups: those that are not listed are the returns of single policies.
fn tags(trainer: &Trainer) -> Vec<String> {
    let listed = trainer.listed_metrics();
    let tag = |name: String| {
        let metric = listed.iter().find(|metric| metric.name == name);
        format!("{}/{name}", metric.map_or("rollout", |metric| metric.group))
    };
    trainer.metric_names().into_iter().map(tag).collect()
}

impl TensorBoard {
    /// Creates an event file that continues after `trainer.iteration()`.
    pub fn open(folder: &RunFolder, trainer: &Trainer) -> Result<Self> {
        let place = folder.file("tensorboard");
        let mut events = match trainer.iteration() {
            0 if !place.exists() => EventWriter::create(&place)?,
            done => EventWriter::resume(&place, trainer.env_steps(done + 1))?,
        };
        if trainer.iteration() == 0 {
            // Indented by four spaces, Markdown shows it verbatim.
            let settings = trainer.config.to_toml();
            let text: String = settings.lines().map(|line| format!("    {line}\n")).collect();
            events.text(0, "settings", &text)?;
            events.flush()?;
        }
        let metrics = tags(trainer).into_iter();
        let times = PHASES.iter().map(|name| format!("time/{name}"));
        Ok(TensorBoard {
            events,
            tags: metrics.chain(times).chain(["time/iteration".into()]).collect(),
        })
    }
}

impl Observer for TensorBoard {
    fn iteration(&mut self, trainer: &Trainer, record: &Record) -> Result<()> {
        let metrics = record.metrics.iter().copied();
        let values = metrics.chain(phases(trainer, record)).chain([record.iteration as f64]);
        let scalars: Vec<(&str, f64)> = self.tags.iter().map(String::as_str).zip(values).collect();
        self.events.scalars(trainer.env_steps(record.iteration), &scalars)?;
        self.events.flush()
    }
}

/// Checkpoints at an interval of iterations, and at the end.
pub struct Checkpoints<'a> {
    folder: &'a RunFolder,
    store: Store,
    /// The newest checkpoint with its iteration.
    pub latest: Option<(usize, PathBuf)>,
}

impl<'a> Checkpoints<'a> {
    /// Writes checkpoints to a folder.
    pub fn open(folder: &'a RunFolder, trainer: &Trainer, latest: Option<PathBuf>) -> Self {
        Checkpoints {
            folder,
            store: folder.store(&trainer.config),
            latest: latest.map(|path| (trainer.iteration(), path)),
        }
    }

    fn save(&mut self, trainer: &Trainer) -> Result<()> {
        let ours = || self.folder.check(&trainer.config);
        ours()?;
        let path = self.store.save(&trainer.checkpoint(), ours)?;
        self.latest = Some((trainer.iteration(), path));
        Ok(())
    }
}

impl Observer for Checkpoints<'_> {
    fn iteration(&mut self, trainer: &Trainer, record: &Record) -> Result<()> {
        if record.iteration.is_multiple_of(trainer.config.checkpoint.every) {
            self.save(trainer)?;
        }
        Ok(())
    }

    fn finish(&mut self, trainer: &Trainer) -> Result<()> {
        let saved = self.latest.as_ref().map(|(iteration, _)| *iteration);
        if saved == Some(trainer.iteration()) {
            Ok(())
        } else {
            self.save(trainer)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::env::maze::MazeConfig;
    use crate::method::MethodChoice;

    #[test]
    fn tags_are_grouped() {
        let config = Config {
            ensemble: 4,
            method: MethodChoice::named("si").unwrap(),
            ..Config::default()
        };
        let trainer = Trainer::new(config, &MazeConfig::default()).unwrap();
        let tags = tags(&trainer);
        assert_eq!(tags.len(), trainer.metric_names().len());
        for expected in [
            "rollout/return_mean",
            "rollout/return_3",
            "diversity/return_kept",
            "train/value_loss",
            "time/env_steps",
            "diversity/divergence_mean",
        ] {
            assert!(tags.iter().any(|tag| tag == expected), "no {expected} in {tags:?}");
        }
    }
}
