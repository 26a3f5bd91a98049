//! The policies of a run, without its critics, ratio networks or worlds: what evaluation, figures and films need.

use std::path::Path;

use super::folder::RunFolder;
use super::settings::Settings;
use crate::env::Registry;
use crate::error::{Error, Result};
use crate::policy::Ensemble;

/// Trained policies.
#[non_exhaustive]
pub struct Loaded {
    /// The policies.
    pub ensemble: Ensemble,
    /// The settings of their run, with its task.
    pub settings: Settings,
    /// Iterations that they were trained for.
    pub iteration: usize,
}

impl Ensemble {
    /// The policies in the folder of a run, of its newest checkpoint or of the one after `iteration`.
    pub fn load(run: &Path, iteration: Option<usize>, registry: &Registry) -> Result<Loaded> {
        let folder = RunFolder::open(run)?;
        let settings = folder.settings(registry)?;
        match folder.policies(&settings, iteration)? {
            Some((ensemble, iteration)) => Ok(Loaded {
                ensemble,
                settings,
                iteration,
            }),
            None => Err(no_checkpoint(run, &settings)),
        }
    }
}

/// The error for a run that has no policies yet.
pub fn no_checkpoint(run: &Path, settings: &Settings) -> Error {
    Error::input(format!(
        "{} has no checkpoint yet; let it train to its first one (checkpoint.every = {})",
        run.display(),
        settings.config.checkpoint.every
    ))
}
