//! The checkpoints of one run: `checkpoints/iteration-000050.safetensors` and so on; the last few are kept.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Checkpoint;
use crate::check::whole;
use crate::error::{Error, Result};
use crate::files::plain;

/// Settings of checkpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CheckpointConfig {
    /// Iterations between checkpoints (there is also one at the end and at Ctrl-C).
    pub every: usize,
    /// Number of checkpoints kept.
    pub keep: usize,
}

impl Default for CheckpointConfig {
    fn default() -> Self {
        CheckpointConfig { every: 10, keep: 3 }
    }
}

impl CheckpointConfig {
    /// Rejects invalid values.
    pub fn validate(&self) -> Result<()> {
        whole("checkpoint.every", self.every, 1, 10_000_000)?;
        whole("checkpoint.keep", self.keep, 1, 10_000_000)
    }
}

/// The checkpoints of one run.
#[derive(Clone, Debug)]
pub struct Store {
    folder: PathBuf,
    keep: usize,
}

impl Store {
    /// The folder `checkpoints` in the folder `run`, of which `keep` files are kept (at least one).
    pub fn new(run: &Path, keep: usize) -> Self {
        Store {
            folder: run.join("checkpoints"),
            keep: keep.max(1),
        }
    }

    /// The folder of the checkpoints.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes a checkpoint under the number of its iteration, then removes the oldest ones beyond `keep`, if the folder
    /// is still `ours`: writing takes a while.
    pub fn save(&self, checkpoint: &Checkpoint, ours: impl FnOnce() -> Result<()>) -> Result<PathBuf> {
        plain::check_folder(&self.folder)?;
        fs::create_dir_all(&self.folder).map_err(|error| Error::io("create", &self.folder, error))?;
        let path = self.folder.join(file_name(checkpoint.header.iteration));
        checkpoint.save(&path)?;
        ours()?;
        let list = self.list()?;
        let surplus = list.len().saturating_sub(self.keep);
        // After a start from an older checkpoint the new one may have a low number: it is never removed.
        for (_, old) in list.iter().filter(|(_, other)| *other != path).take(surplus) {
            fs::remove_file(old).map_err(|error| Error::io("remove", old, error))?;
        }
        Ok(path)
    }

    /// The checkpoint with the highest number; none if there is no checkpoint or no folder.
    pub fn latest(&self) -> Result<Option<PathBuf>> {
        Ok(self.list()?.pop().map(|(_, path)| path))
    }

    /// Number and file of each checkpoint, lowest number first. Files with other names are ignored.
    pub fn list(&self) -> Result<Vec<(usize, PathBuf)>> {
        let failed = |error| Error::io("read", &self.folder, error);
        let entries = match fs::read_dir(&self.folder) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(failed)?,
        };
        let mut list = Vec::new();
        for entry in entries {
            let entry = entry.map_err(failed)?;
            if let Some(iteration) = entry.file_name().to_str().and_then(number_in) {
                list.push((iteration, entry.path()));
            }
        }
        list.sort();
        Ok(list)
    }
}

fn file_name(iteration: usize) -> String {
    format!("iteration-{iteration:06}.safetensors")
}

/// The iteration in a name from [`file_name`].
fn number_in(name: &str) -> Option<usize> {
    let digits = name.strip_prefix("iteration-")?.strip_suffix(".safetensors")?;
    digits.parse().ok().filter(|&iteration| file_name(iteration) == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_store_keeps_the_last_ones_and_ignores_other_files() {
        let run = tempfile::tempdir().unwrap();
        let store = Store::new(run.path(), 2);
        assert_eq!(store.latest().unwrap(), None);
        let save = |iteration| store.save(&Checkpoint::new(iteration, ""), || Ok(())).unwrap();
        let numbers = || {
            store
                .list()
                .unwrap()
                .into_iter()
                .map(|(number, _)| number)
                .collect::<Vec<_>>()
        };
        assert_eq!(save(50), run.path().join("checkpoints/iteration-000050.safetensors"));
        let others = [
            "iteration-000099.safetensors.1-0.stein.tmp",
            "iteration-99.safetensors",
            "best.safetensors",
        ];
        others
            .iter()
            .for_each(|name| fs::write(store.folder().join(name), "").unwrap());
        assert_eq!(numbers(), [50]);
        save(999_999);
        save(1_000_000);
        assert_eq!(numbers(), [999_999, 1_000_000]);
        assert_eq!(
            Checkpoint::load(&store.latest().unwrap().unwrap())
                .unwrap()
                .header
                .iteration,
            1_000_000
        );
        let early = save(7);
        assert_eq!(numbers(), [7, 1_000_000]);
        assert!(early.exists());
        assert!(others.iter().all(|name| store.folder().join(name).exists()));
    }

    #[test]
    fn a_failed_save_removes_nothing() {
        let run = tempfile::tempdir().unwrap();
        let store = Store::new(run.path(), 1);
        let path = store.save(&Checkpoint::new(1, ""), || Ok(())).unwrap();
        fs::create_dir(store.folder().join(file_name(2))).unwrap();
        assert!(store.save(&Checkpoint::new(2, ""), || Ok(())).is_err());
        assert!(path.exists());
    }
}
