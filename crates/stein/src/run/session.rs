//! A training session: the loop over iterations, with its observers, from the state of the folder to the last
//! iteration.

use std::sync::atomic::{AtomicBool, Ordering};

use super::folder::RunFolder;
use super::observer::{Checkpoints, Observer, Tables, TensorBoard};
use crate::error::{Advice, Error, Result};
use crate::train::Trainer;

/// How a session ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// All iterations are done.
    Done,
    /// It was stopped; everything is saved.
    Interrupted,
}

/// Trains until all iterations are done or `stop` is set. Starts from the folder's newest checkpoint; if that is the
/// last one, nothing is written.
pub fn train(
    trainer: &mut Trainer,
    folder: &RunFolder,
    stop: &AtomicBool,
    progress: &mut dyn Observer,
) -> Result<Outcome> {
    let latest = folder.restore(trainer)?;
    let (done, asked) = (trainer.iteration(), trainer.config.iterations);
    if done > asked {
        return Err(Error::input(format!(
            "iterations = {asked} is out of range: the run in {} has done {done} already; ask for as many at least, or \
             for another run",
            folder.path().display()
        ))
        .advise(Advice::OtherFolder));
    }
    let mut tables = Tables::open(folder, trainer)?;
    folder.keep_settings(&trainer.config)?;
    if done == asked {
        return Ok(Outcome::Done);
    }
    let mut events = TensorBoard::open(folder, trainer)?;
    let mut checkpoints = Checkpoints::open(folder, trainer, latest);
    progress.begin(trainer)?;
    while trainer.iteration() < trainer.config.iterations {
        if stop.load(Ordering::Relaxed) {
            checkpoints.finish(trainer)?;
            progress.finish(trainer)?;
            return Ok(Outcome::Interrupted);
        }
        let record = trainer
            .iterate()
            .map_err(|error| name_checkpoint(error, &checkpoints))?;
        let observers: [&mut dyn Observer; 4] = [&mut tables, &mut events, &mut checkpoints, &mut *progress];
        for observer in observers {
            observer.iteration(trainer, &record)?;
        }
    }
    checkpoints.finish(trainer)?;
    progress.finish(trainer)?;
    Ok(Outcome::Done)
}

/// An error during training also names the last good state.
fn name_checkpoint(error: Error, checkpoints: &Checkpoints<'_>) -> Error {
    match (error, &checkpoints.latest) {
        (Error::Failed(sentence), Some((iteration, path))) => Error::failed(format!(
            "{sentence}; the last good checkpoint is {} (iteration {iteration})",
            path.display()
        )),
        (Error::Failed(sentence), None) => Error::failed(format!("{sentence}; there is no checkpoint yet")),
        (other, _) => other,
    }
}
