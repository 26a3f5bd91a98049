//! Observers: what looks on after every iteration and writes down what it sees.

use std::path::PathBuf;

use super::checkpoint::Store;
use super::folder::RunFolder;
use super::metrics::MetricsFile;
use super::tensorboard::EventWriter;
use crate::error::Result;
use crate::plot::kernel;
use crate::train::{METRICS, Record, Trainer};

/// Something that looks on.
pub trait Observer {
    /// Called once before the first iteration, when the state of a run that goes on is in place.
    fn begin(&mut self, _trainer: &Trainer) -> Result<()> {
        Ok(())
    }

    /// Called after every iteration.
    fn iteration(&mut self, trainer: &Trainer, record: &Record) -> Result<()>;

    /// Called once at the end of training, also when it was interrupted.
    fn finish(&mut self, _trainer: &Trainer) -> Result<()> {
        Ok(())
    }
}

/// metrics.csv (no wall times: the same seed gives the same bytes), timings.csv, and kernel.csv where there is a kernel.
pub struct Tables {
    metrics: MetricsFile,
    timings: MetricsFile,
    kernel: Option<MetricsFile>,
    pairs: Vec<(usize, usize)>,
}

const PHASES: [&str; 6] = ["rollout", "ratio", "advantages", "update", "total", "steps_per_second"];

/// The wall times of an iteration and the steps of all policies per second of it, in the order of [`PHASES`].
fn phases(trainer: &Trainer, record: &Record) -> [f64; 6] {
    let t = &record.timings;
    let speed = trainer.env_steps(1) as f64 / t.total;
    [t.rollout, t.ratio, t.advantages, t.update, t.total, speed]
}

impl Tables {
    /// Begins the tables of a folder, or goes on with them after `trainer.iteration()`.
    pub fn open(folder: &RunFolder, trainer: &Trainer) -> Result<Self> {
        let (done, pairs) = (trainer.iteration(), trainer.kernel_pairs());
        let columns: Vec<String> = pairs.iter().map(|&(i, j)| kernel::column(i, j)).collect();
        let kernel = || MetricsFile::resume(&folder.file("kernel.csv"), &columns, done);
        Ok(Tables {
            metrics: MetricsFile::resume(&folder.file("metrics.csv"), &trainer.metric_names(), done)?,
            timings: MetricsFile::resume(&folder.file("timings.csv"), &PHASES, done)?,
            kernel: (!pairs.is_empty()).then(kernel).transpose()?,
            pairs,
        })
    }
}

impl Observer for Tables {
    fn iteration(&mut self, trainer: &Trainer, record: &Record) -> Result<()> {
        self.metrics.append(record.iteration, &record.metrics)?;
        self.timings.append(record.iteration, &phases(trainer, record))?;
        if let (Some(file), Some(kernel)) = (&mut self.kernel, trainer.kernel()) {
            let n = trainer.config.ensemble;
            let values: Vec<f64> = self.pairs.iter().map(|&(i, j)| kernel[i * n + j]).collect();
            file.append(record.iteration, &values)?;
            file.sync()?;
        }
        // Before the checkpoint that counts on these rows.
        self.metrics.sync()?;
        self.timings.sync()
    }
}

/// TensorBoard events of all metrics and wall times, over the steps of all policies; the settings as a text.
pub struct TensorBoard {
    events: EventWriter,
    tags: Vec<String>,
}

/// The tag of a metric: its name, in one of the groups that programs of this field have.
fn tag(name: &str, policies: usize) -> String {
    let of_policy = (0..policies).any(|i| name == format!("return_{i}"));
    let known = METRICS.iter().find(|(other, _)| *other == name);
    let group = match known {
        Some((_, group)) => group,
        None if of_policy => "rollout",
        // A method's own: how different policies are, and what makes them so.
        None => "diversity",
    };
    format!("{group}/{name}")
}

impl TensorBoard {
    /// Begins an event file that goes on after `trainer.iteration()`.
    pub fn open(folder: &RunFolder, trainer: &Trainer) -> Result<Self> {
        let place = folder.file("tensorboard");
        let mut events = match trainer.iteration() {
            0 if !place.exists() => EventWriter::create(&place)?,
            done => EventWriter::resume(&place, trainer.env_steps(done + 1))?,
        };
        if trainer.iteration() == 0 {
            // Indented by four spaces, Markdown shows it as it is.
            let settings = trainer.config.to_toml();
            let text: String = settings.lines().map(|line| format!("    {line}\n")).collect();
            events.text(0, "settings", &text)?;
            events.flush()?;
        }
        let names = trainer.metric_names();
        let metrics = names.iter().map(|name| tag(name, trainer.config.ensemble));
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

/// Checkpoints every so many iterations, and at the end.
pub struct Checkpoints {
    store: Store,
    /// The newest checkpoint with its iteration.
    pub latest: Option<(usize, PathBuf)>,
}

impl Checkpoints {
    /// Keeps the checkpoints of a folder.
    pub fn open(folder: &RunFolder, trainer: &Trainer, latest: Option<PathBuf>) -> Self {
        Checkpoints {
            store: folder.store(&trainer.config),
            latest: latest.map(|path| (trainer.iteration(), path)),
        }
    }

    fn save(&mut self, trainer: &Trainer) -> Result<()> {
        let path = self.store.save(&trainer.checkpoint())?;
        self.latest = Some((trainer.iteration(), path));
        Ok(())
    }
}

impl Observer for Checkpoints {
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

    #[test]
    fn tags_are_grouped() {
        for (name, expected) in [
            ("return_mean", "rollout/return_mean"),
            ("return_3", "rollout/return_3"),
            ("return_kept", "diversity/return_kept"),
            ("value_loss", "train/value_loss"),
            ("env_steps", "time/env_steps"),
            ("divergence_mean", "diversity/divergence_mean"),
        ] {
            assert_eq!(tag(name, 10), expected);
        }
    }
}
