//! A run folder: who may write to it, and what is where.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::path::{Path, PathBuf};

use super::settings::{self, Settings, read_table};
use crate::checkpoint::{Checkpoint, Store};
use crate::config::Config;
use crate::env::Registry;
use crate::error::{Advice, Error, Result};
use crate::files::{atomic, plain};
use crate::policy::Ensemble;
use crate::train::Trainer;

/// The folder of one run.
pub struct RunFolder {
    path: PathBuf,
    /// Held while this process writes to the folder.
    held: Option<Held>,
}

/// What makes a folder ours: both stay open, so that nothing else can be mistaken for them.
struct Held {
    folder: File,
    lock: File,
}

/// Files of a run that are written in place, and files that are replaced atomically.
const IN_PLACE: [&str; 4] = ["lock", "metrics.csv", "timings.csv", "kernel.csv"];
const REPLACED: [&str; 2] = ["config.toml", "summary.json"];
/// Folders of a run.
const FOLDERS: [&str; 2] = ["checkpoints", "tensorboard"];

impl RunFolder {
    /// Creates the folder of a new run. Rejects one that already has a run, or anything else, in it.
    pub fn create(path: &Path, config: &Config) -> Result<RunFolder> {
        fs::create_dir_all(path).map_err(|error| Error::io("create the folder", path, error))?;
        // Before the lock, which is itself a file, so that somebody else's folder stays unchanged; and again once no
        // other process can put a run there.
        check_empty(path)?;
        let held = hold(path)?;
        check_empty(path)?;
        atomic::clean(path)?;
        atomic::write(&path.join("config.toml"), config.to_toml().as_bytes())?;
        Ok(RunFolder {
            path: path.to_path_buf(),
            held: Some(held),
        })
    }

    /// Opens the folder of a run to resume it. Rejects runs of versions whose method may differ: settings unknown to
    /// them would get new defaults.
    pub fn resume(path: &Path) -> Result<RunFolder> {
        check_plain(path)?;
        if let Some(version) = version_of(&read_table(&path.join("config.toml"))?) {
            check_version(path, version)?;
        }
        let held = hold(path)?;
        atomic::clean(path)?;
        let folder = RunFolder {
            path: path.to_path_buf(),
            held: Some(held),
        };
        if folder.checkpoints().exists() {
            atomic::clean(&folder.checkpoints())?;
        }
        Ok(folder)
    }

    /// Opens the folder of a run for reading.
    pub fn open(path: &Path) -> Result<RunFolder> {
        if !path.join("config.toml").is_file() {
            return Err(Error::input(format!(
                "{} is not a run folder (it has no config.toml);",
                path.display()
            ))
            .advise(Advice::RunFolder));
        }
        Ok(RunFolder {
            path: path.to_path_buf(),
            held: None,
        })
    }

    /// Whether the path still leads to the folder that this process holds, with the run of `config`. To be called
    /// before anything is written by name: a folder that was removed or replaced in the meantime is not ours.
    pub fn check(&self, config: &Config) -> Result<()> {
        let Some(held) = &self.held else {
            return Ok(());
        };
        let ours = plain::is_same(&self.path, &held.folder) && plain::is_same(&self.file("lock"), &held.lock);
        if ours && self.is_run_of(config) {
            return Ok(());
        }
        Err(Error::failed(format!(
            "{} was removed or replaced while this run trained into it: nothing more is written there; train again into \
             another folder, or put this one back and",
            self.path.display()
        ))
        .advise(Advice::Resume))
    }

    /// Whether config.toml has these settings.
    fn is_run_of(&self, config: &Config) -> bool {
        let written = read_table(&self.file("config.toml"));
        toml::Table::try_from(config).is_ok_and(|table| written.is_ok_and(|written| written == table))
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

    /// Its settings. For a run of another version, which can be evaluated but not resumed, only those that its policies
    /// and environment depend on; the others have this version's defaults.
    pub fn settings(&self, registry: &Registry) -> Result<Settings> {
        let path = self.file("config.toml");
        let mut table = read_table(&path)?;
        if version_of(&table).is_some_and(|version| !same_method(version)) {
            table.retain(|key, _| OF_POLICIES.contains(&key));
        }
        Settings::resolve(table, &path.display().to_string(), registry)
    }

    /// Writes the settings if they differ from `config.toml`: a resumed run may get more iterations.
    pub fn keep_settings(&self, config: &Config) -> Result<()> {
        let path = self.file("config.toml");
        if self.is_run_of(config) {
            return Ok(());
        }
        atomic::write(&path, config.to_toml().as_bytes())
    }

    /// Its checkpoints.
    pub fn store(&self, config: &Config) -> Store {
        Store::new(&self.path, config.checkpoint.keep)
    }

    /// Restores the newest checkpoint into `trainer`; returns its path, or none if there is none yet.
    pub fn restore(&self, trainer: &mut Trainer) -> Result<Option<PathBuf>> {
        let Some((path, checkpoint)) = self.load(&trainer.config, None)? else {
            return Ok(None);
        };
        check_version(&self.path, &checkpoint.header.stein_version)?;
        trainer.restore(checkpoint)?;
        Ok(Some(path))
    }

    /// The policies of the newest checkpoint, or of the one after `iteration`, and their number of iterations; none if
    /// there is no checkpoint yet. Also works for runs of other versions: policies are the same in all of them.
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

    /// The newest checkpoint, or the one after `iteration`, and its path. If it is of this version, it must have the
    /// settings of the run.
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

/// Settings that trained policies and their environment depend on.
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

/// The version that started a run. Every run has one, unless somebody removed it: its checkpoints have it too.
fn version_of(config: &toml::Table) -> Option<&str> {
    config.get("stein_version").and_then(|version| version.as_str())
}

/// Whether that version trains like this one: all but the last number of the version are equal.
fn same_method(version: &str) -> bool {
    let series = |version: &'_ str| version.rsplit_once('.').map(|(series, _)| series.to_string());
    series(version).is_some_and(|theirs| Some(theirs) == series(env!("CARGO_PKG_VERSION")))
}

/// Rejects what a version with another method has started at `path`.
pub fn check_version(path: &Path, version: &str) -> Result<()> {
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

/// Rejects a folder with a run, or anything else, in it.
fn check_empty(path: &Path) -> Result<()> {
    if path.join("config.toml").exists() {
        return Err(
            Error::input(format!("{} holds a run already;", path.display())).advise(Advice::ResumeOrOtherFolder)
        );
    }
    let mut entries = fs::read_dir(path).map_err(|error| Error::io("read", path, error))?;
    let foreign = entries.find_map(|entry| {
        let name = entry.ok()?.file_name();
        // A run killed before its first file was in place leaves at most these.
        let ours = name == "lock" || atomic::is_temporary(&name);
        (!ours).then(|| name.to_string_lossy().into_owned())
    });
    match foreign {
        None => Ok(()),
        Some(name) => Err(Error::input(format!(
            "{} is not empty (it holds {name}, but no run);",
            path.display()
        ))
        .advise(Advice::OtherFolder)),
    }
}

/// Rejects a folder in which something of a run is a link, a pipe or otherwise not the run's own.
fn check_plain(path: &Path) -> Result<()> {
    IN_PLACE
        .iter()
        .try_for_each(|name| plain::check_single_file(&path.join(name)))?;
    REPLACED
        .iter()
        .try_for_each(|name| plain::check_file(&path.join(name)))?;
    FOLDERS
        .iter()
        .try_for_each(|name| plain::check_folder(&path.join(name)))?;
    let checkpoints = Store::new(path, 1).list()?;
    checkpoints.iter().try_for_each(|(_, file)| plain::check_file(file))
}

/// Locks a folder while the returned value is alive.
fn hold(path: &Path) -> Result<Held> {
    let folder = File::open(path).map_err(|error| Error::io("open", path, error))?;
    let name = path.join("lock");
    let lock = plain::open(&name, OpenOptions::new().write(true).create(true).truncate(false))?;
    match lock.try_lock() {
        // A file system without locks: continue without.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Held { folder, lock }),
        Err(TryLockError::WouldBlock) => Err(Error::input(format!(
            "another process is training in {}; wait for it, stop it, or",
            path.display()
        ))
        .advise(Advice::OtherFolder)),
    }
}
