//! A run folder: who may write to it, and where things are in it.

use std::fs::{self, File, TryLockError};
use std::path::{Path, PathBuf};

use super::checkpoint::{Checkpoint, Store};
use super::config::Config;
use super::settings::{Settings, read_table};
use super::{atomic, settings};
use crate::env::Registry;
use crate::error::{Error, Result};
use crate::policy::Ensemble;
use crate::train::Trainer;

/// The folder of one run.
pub struct RunFolder {
    path: PathBuf,
    /// Held for as long as this process writes to the folder.
    _lock: Option<File>,
}

impl RunFolder {
    /// Makes the folder of a new run. Refuses one that holds a run, or anything else, already.
    pub fn create(path: &Path, config: &Config) -> Result<RunFolder> {
        fs::create_dir_all(path).map_err(|error| Error::io("create the folder", path, error))?;
        // Before the lock, which is a file itself, so that a folder of somebody else's stays as it is; and once more
        // when nobody but this process can put a run there.
        check_empty(path)?;
        let lock = lock(path)?;
        check_empty(path)?;
        atomic::clean(path)?;
        atomic::write(&path.join("config.toml"), config.to_toml().as_bytes())?;
        Ok(RunFolder {
            path: path.to_path_buf(),
            _lock: Some(lock),
        })
    }

    /// Opens the folder of a run to go on with it. Refuses a run of a version whose method may be another one: keys that it
    /// did not know would be filled by new defaults.
    pub fn resume(path: &Path) -> Result<RunFolder> {
        if let Some(version) = version_of(&read_table(&path.join("config.toml"))?) {
            check_version(path, version)?;
        }
        let lock = lock(path)?;
        atomic::clean(path)?;
        let folder = RunFolder {
            path: path.to_path_buf(),
            _lock: Some(lock),
        };
        if folder.checkpoints().exists() {
            atomic::clean(&folder.checkpoints())?;
        }
        Ok(folder)
    }

    /// Opens the folder of a run to look at it.
    pub fn open(path: &Path) -> Result<RunFolder> {
        if !path.join("config.toml").is_file() {
            return Err(Error::input(format!(
                "{} is not a run folder (it has no config.toml); give the --out folder of a training run",
                path.display()
            )));
        }
        Ok(RunFolder {
            path: path.to_path_buf(),
            _lock: None,
        })
    }

    /// The folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// A file of the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    fn checkpoints(&self) -> PathBuf {
        self.path.join("checkpoints")
    }

    /// Its settings. Of a run of another version, which can be looked at but not gone on with, only those that its policies
    /// and their world are made of; the others are this version's defaults.
    pub fn settings(&self, registry: &Registry) -> Result<Settings> {
        let path = self.file("config.toml");
        let mut table = read_table(&path)?;
        if version_of(&table).is_some_and(|version| !same_method(version)) {
            table.retain(|key, _| OF_POLICIES.contains(&key));
        }
        Settings::resolve(table, &path.display().to_string(), registry)
    }

    /// Writes the settings down where they are not those of `config.toml`: a run that goes on may be given more
    /// iterations.
    pub fn keep_settings(&self, config: &Config) -> Result<()> {
        let path = self.file("config.toml");
        if toml::Table::try_from(config).is_ok_and(|table| read_table(&path).is_ok_and(|old| old == table)) {
            return Ok(());
        }
        atomic::write(&path, config.to_toml().as_bytes())
    }

    /// Where its checkpoints are kept.
    pub fn store(&self, config: &Config) -> Store {
        Store::new(&self.path, config.checkpoint.keep)
    }

    /// Restores the newest checkpoint into `trainer`; returns its path, or nothing where there is none yet.
    pub fn restore(&self, trainer: &mut Trainer) -> Result<Option<PathBuf>> {
        let Some((path, checkpoint)) = self.load(&trainer.config, None)? else {
            return Ok(None);
        };
        check_version(&self.path, &checkpoint.header.stein_version)?;
        trainer.restore(checkpoint)?;
        Ok(Some(path))
    }

    /// The policies of the newest checkpoint, or of the one after `iteration`, and the iterations that they were trained for;
    /// nothing where there is none yet. Of a run of another version too: policies are what all versions have alike.
    pub fn policies(&self, settings: &Settings, iteration: Option<usize>) -> Result<Option<(Ensemble, usize)>> {
        let config = &settings.config;
        let Some((_, mut checkpoint)) = self.load(config, iteration)? else {
            return Ok(None);
        };
        let spec = settings.task.make()?.spec().clone();
        let mut ensemble = Ensemble::new(config.ensemble, &spec, &config.policy, &config.ppo, config.seed);
        ensemble.restore(&mut checkpoint)?;
        Ok(Some((ensemble, checkpoint.header.iteration)))
    }

    /// The newest checkpoint, or the one after `iteration`, and its path. One of this version has to have the settings of the
    /// run.
    fn load(&self, config: &Config, iteration: Option<usize>) -> Result<Option<(PathBuf, Checkpoint)>> {
        let mut list = self.store(config).list()?;
        if let Some(wanted) = iteration.filter(|wanted| list.iter().all(|(number, _)| number != wanted)) {
            let kept: Vec<String> = list.iter().map(|(number, _)| number.to_string()).collect();
            let kept = match &kept[..] {
                [] => "there is none yet".into(),
                kept => format!("there are those after {}", kept.join(", ")),
            };
            return Err(Error::input(format!(
                "{} has no checkpoint after iteration {wanted}: {kept} (checkpoint.keep = {} are kept)",
                self.path.display(),
                config.checkpoint.keep
            )));
        }
        list.retain(|(number, _)| iteration.is_none_or(|wanted| *number == wanted));
        let Some((_, path)) = list.pop() else {
            return Ok(None);
        };
        let checkpoint = Checkpoint::load(&path)?;
        if !same_method(&checkpoint.header.stein_version) {
            return Ok(Some((path, checkpoint)));
        }
        let source = path.display().to_string();
        let foreign = |what: String| {
            Error::input(format!(
                "{source} belongs to another run ({what}); put it back where it came from, or delete it"
            ))
        };
        let table = checkpoint
            .header
            .config
            .parse()
            .map_err(|_| foreign("its settings cannot be read".into()))?;
        let mut theirs = Config::from_table(table, "its settings").map_err(|error| foreign(error.to_string()))?;
        theirs.iterations = config.iterations;
        theirs.stein_version.clone_from(&config.stein_version);
        if let Some((key, theirs, ours)) = settings::differences(&theirs, config).into_iter().next() {
            return Err(foreign(format!("{key} is {theirs} there and {ours} in config.toml")));
        }
        Ok(Some((path, checkpoint)))
    }
}

/// Settings that trained policies and their world depend on.
const OF_POLICIES: [&str; 9] = [
    "method",
    "seed",
    "ensemble",
    "iterations",
    "steps",
    "policy",
    "ppo",
    "checkpoint",
    "env",
];

/// The version that a run was begun by. Every run has one, unless somebody took it away: its checkpoints tell it too.
fn version_of(config: &toml::Table) -> Option<&str> {
    config.get("stein_version").and_then(|version| version.as_str())
}

/// Whether training by that version is training by this one: all but the last number of the version are the same.
fn same_method(version: &str) -> bool {
    let series = |version: &'_ str| version.rsplit_once('.').map(|(series, _)| series.to_string());
    series(version).is_some_and(|theirs| Some(theirs) == series(env!("CARGO_PKG_VERSION")))
}

fn check_version(path: &Path, version: &str) -> Result<()> {
    if same_method(version) {
        return Ok(());
    }
    Err(Error::input(format!(
        "the run in {} was begun by stein {version}, whose method is not that of {}: finish it with that version, or start \
         a new run",
        path.display(),
        env!("CARGO_PKG_VERSION")
    )))
}

/// Refuses a folder that holds a run, or anything else.
fn check_empty(path: &Path) -> Result<()> {
    if path.join("config.toml").exists() {
        return Err(Error::input(format!(
            "{} holds a run already; add --resume to go on with it, or choose another folder with --out",
            path.display()
        )));
    }
    let mut entries = fs::read_dir(path).map_err(|error| Error::io("read", path, error))?;
    let foreign = entries.find_map(|entry| {
        let name = entry.ok()?.file_name();
        // A run that was killed before its first file was in place leaves no more than these.
        let ours = name == "lock" || atomic::is_temporary(&name);
        (!ours).then(|| name.to_string_lossy().into_owned())
    });
    match foreign {
        None => Ok(()),
        Some(name) => Err(Error::input(format!(
            "{} is not empty (it holds {name}, but no run); choose another folder with --out",
            path.display()
        ))),
    }
}

fn lock(path: &Path) -> Result<File> {
    let name = path.join("lock");
    let file = File::create(&name).map_err(|error| Error::io("write", &name, error))?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => Err(Error::input(format!(
            "another process is training in {}; wait for it, stop it, or choose another folder with --out",
            path.display()
        ))),
        // A file system without locks: go on without.
        Err(TryLockError::Error(_)) => Ok(file),
    }
}
