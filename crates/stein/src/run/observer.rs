//! Observers: what looks on after every iteration and writes down what it sees.

use std::path::PathBuf;

use super::checkpoint::Store;
use super::folder::RunFolder;
use super::metrics::MetricsFile;
use super::tensorboard::EventWriter;
use crate::error::Result;
use crate::plot::kernel;
use crate::train::{Record, Trainer};

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

const PHASES: [&str; 5] = ["rollout", "ratio", "advantages", "update", "total"];

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
        let t = &record.timings;
        self.timings
            .append(record.iteration, &[t.rollout, t.ratio, t.advantages, t.update, t.total])?;
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

/// TensorBoard events of all metrics.
pub struct TensorBoard {
    events: EventWriter,
    names: Vec<String>,
}

impl TensorBoard {
    /// Begins an event file that goes on after `trainer.iteration()`.
    pub fn open(folder: &RunFolder, trainer: &Trainer) -> Result<Self> {
        let place = folder.file("tensorboard");
        let events = match trainer.iteration() {
            0 if !place.exists() => EventWriter::create(&place)?,
            done => EventWriter::resume(&place, done + 1)?,
        };
        Ok(TensorBoard {
            events,
            names: trainer.metric_names(),
        })
    }
}

impl Observer for TensorBoard {
    fn iteration(&mut self, _trainer: &Trainer, record: &Record) -> Result<()> {
        let scalars: Vec<(&str, f64)> = self
            .names
            .iter()
            .map(String::as_str)
            .zip(record.metrics.iter().copied())
            .collect();
        self.events.scalars(record.iteration, &scalars)?;
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
