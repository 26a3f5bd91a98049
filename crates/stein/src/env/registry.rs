//! Environments by name, with typed settings.

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{Task, maze};
use crate::error::{Error, Result};
use crate::run::config::plain_words;

type Build = Box<dyn Fn(toml::Table) -> Result<(Box<dyn Task>, toml::Table)> + Send + Sync>;

struct Entry {
    name: &'static str,
    about: &'static str,
    build: Build,
}

/// The environments a program knows. [`Registry::default`] holds those of this crate.
pub struct Registry {
    entries: Vec<Entry>,
}

impl Registry {
    /// A registry without any environment.
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
                // The path of a setting that is missing is ".": that of the whole table.
                let key = format!("env.{}", error.path());
                Error::input(format!(
                    "{} is wrong: {}; `stein envs {name}` lists the settings of {name}",
                    key.trim_end_matches('.'),
                    plain_words(error.inner())
                ))
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

    /// Makes the task `name` from its settings (absent ones at their defaults). Returns the resolved settings too.
    pub fn build(&self, name: &str, settings: toml::Table) -> Result<(Box<dyn Task>, toml::Table)> {
        match self.entries.iter().find(|entry| entry.name == name) {
            Some(entry) => (entry.build)(settings),
            None => Err(Error::input(format!(
                "there is no environment \"{name}\"; choose one of: {}",
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
