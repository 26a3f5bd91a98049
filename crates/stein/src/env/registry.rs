//! Environments by name, with typed settings.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Task, maze};
use crate::error::{Advice, Error, Result};
use crate::suggest::{self, plain_words};

type Build = Box<dyn Fn(toml::Table) -> Result<(Box<dyn Task>, toml::Table)> + Send + Sync>;

struct Entry {
    name: &'static str,
    about: &'static str,
    build: Build,
}

/// The environments a program knows. [`Registry::default`] has those of this crate.
pub struct Registry {
    entries: Vec<Entry>,
}

impl Registry {
    /// An empty registry.
    pub fn empty() -> Self {
        Registry { entries: Vec::new() }
    }

    /// Adds the environment `name` whose settings are `T`: the keys of `[env]` in a configuration. `about` is the line
    /// that `stein envs` prints.
    pub fn register<T>(&mut self, name: &'static str, about: &'static str)
    where
        T: Task + Serialize + DeserializeOwned + 'static,
    {
        let build = move |table: toml::Table| {
            let task: T = serde_path_to_error::deserialize(table).map_err(|error| {
                // The path of a missing setting is ".", that of the whole table.
                let key = format!("env.{}", error.path());
                let words = plain_words(error.inner());
                let meant = match key.rsplit_once('.') {
                    Some((_, last)) if words.starts_with("unknown field") => {
                        suggest::question(last, suggest::names_in(&words))
                    }
                    _ => String::new(),
                };
                Error::input(format!("{} is wrong: {words}{meant};", key.trim_end_matches('.')))
                    .advise(Advice::SettingsOf(name.into()))
            })?;
            task.validate()?;
            let resolved = toml::Table::try_from(&task)
                .map_err(|error| Error::failed(format!("the settings of {name} cannot be written: {error}")))?;
            Ok((Box::new(task) as Box<dyn Task>, resolved))
        };
        self.entries.retain(|entry| entry.name != name);
        self.entries.push(Entry {
            name,
            about,
            build: Box::new(build),
        });
    }

    /// Names and descriptions, in the order of registration.
    pub fn list(&self) -> impl Iterator<Item = (&'static str, &'static str)> + '_ {
        self.entries.iter().map(|entry| (entry.name, entry.about))
    }

    /// Creates the task `name` from its settings (absent ones have their defaults). Also returns the resolved settings.
    pub fn build(&self, name: &str, settings: toml::Table) -> Result<(Box<dyn Task>, toml::Table)> {
        match self.entries.iter().find(|entry| entry.name == name) {
            Some(entry) => (entry.build)(settings),
            None => Err(Error::input(format!(
                "there is no environment \"{name}\"{}; choose one of: {}",
                suggest::question(name, self.list().map(|(known, _)| known)),
                self.entries
                    .iter()
                    .map(|entry| entry.name)
                    .collect::<Vec<_>>()
                    .join(", ")
            ))),
        }
    }
}

impl Default for Registry {
    fn default() -> Self {
        let mut registry = Registry::empty();
        registry.register::<maze::MazeConfig>("maze", maze::ABOUT);
        registry
    }
}
