//! Sources of settings: defaults, then a file, then `key=value` pairs; and the task they select.

use std::path::Path;

use crate::config::Config;
use crate::env::{Registry, Task};
use crate::error::{Advice, Error, Result};

/// The name of settings that are not from a file.
pub const COMMAND_LINE: &str = "the command line";

/// Resolved settings with their task.
#[non_exhaustive]
pub struct Settings {
    /// Every setting, including those of the environment.
    pub config: Config,
    /// The task.
    pub task: Box<dyn Task>,
}

impl Settings {
    /// Resolves a table of settings; `source` names it in error messages.
    pub fn resolve(table: toml::Table, source: &str, registry: &Registry) -> Result<Settings> {
        let mut config = Config::from_table(table, source)?;
        config.stein_version = env!("CARGO_PKG_VERSION").into();
        let mut own = config.env.clone();
        let name = match own.remove("name") {
            Some(toml::Value::String(name)) => name,
            Some(_) => {
                return Err(Error::input(format!(
                    "{source}: env.name must be a text, the name of an environment"
                )));
            }
            None => {
                return Err(
                    Error::input(format!("{source}: env.name is missing: name an environment;"))
                        .advise(Advice::Environments),
                );
            }
        };
        // What is wrong in a file is told together with its name.
        let named = |error: Error| match source {
            COMMAND_LINE => error,
            file => error.within(file),
        };
        let (task, resolved) = registry.build(&name, own).map_err(named)?;
        config.env = toml::Table::new();
        config.env.insert("name".into(), name.into());
        config.env.extend(resolved);
        config.validate().map_err(named)?;
        config.resolve(task.as_ref()).map_err(named)?;
        Ok(Settings { config, task })
    }

    /// Name of the environment.
    pub fn env(&self) -> &str {
        self.config
            .env
            .get("name")
            .and_then(|name| name.as_str())
            .unwrap_or_default()
    }
}

/// Reads a TOML file of settings.
pub fn read_table(path: &Path) -> Result<toml::Table> {
    let text = std::fs::read_to_string(path).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            Error::input(format!("there is no settings file {}; check the path", path.display()))
        }
        std::io::ErrorKind::InvalidData => Error::input(format!(
            "{} is not a text file; give a TOML file of settings",
            path.display()
        )),
        _ => Error::io("read", path, error),
    })?;
    text.parse::<toml::Table>().map_err(|error| {
        let before = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = 1 + text.as_bytes()[..before].iter().filter(|&&byte| byte == b'\n').count();
        Error::input(format!(
            "{} is not valid TOML: line {line}: {}; fix that line",
            path.display(),
            error.message().replace('\n', " ")
        ))
    })
}

/// Merges `other` into `table`: tables are merged, everything else is replaced.
pub fn merge(table: &mut toml::Table, other: toml::Table) {
    for (key, value) in other {
        match (table.get_mut(&key), value) {
            (Some(toml::Value::Table(old)), toml::Value::Table(new)) => merge(old, new),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}

/// Maximum depth of keys, with room for user-defined environments.
const LEVELS: usize = 16;

/// Applies one `key=value` pair with a dotted key; the value is TOML, or a bare word as a string.
pub fn set(table: &mut toml::Table, pair: &str) -> Result<()> {
    let wrong = || Error::input(format!("\"{pair}\" is not of the form key=value (as in ppo.clip=0.1)"));
    let (key, text) = pair.split_once('=').ok_or_else(wrong)?;
    let (key, text) = (key.trim(), text.trim());
    if key.is_empty() || key.split('.').any(str::is_empty) {
        return Err(wrong());
    }
    let deep = |levels: usize| {
        Error::input(format!(
            "{}… has {levels} levels; no setting has more than {LEVELS}: the config.toml of a run has them all",
            key.chars().take(40).collect::<String>()
        ))
    };
    let levels = key.split('.').count();
    if levels > LEVELS {
        return Err(deep(levels));
    }
    let value = match format!("value = {text}").parse::<toml::Table>() {
        Ok(mut parsed) if parsed.len() == 1 => parsed.remove("value").unwrap_or_else(|| text.into()),
        // TOML requires a digit on both sides of the decimal point.
        _ => match text.parse::<f64>() {
            Ok(number) if text.starts_with(|c: char| ".+-0123456789".contains(c)) => toml::Value::Float(number),
            _ => toml::Value::String(text.into()),
        },
    };
    let mut nested = toml::Table::new();
    let mut keys = key.rsplit('.');
    nested.insert(keys.next().unwrap_or_default().into(), value);
    for key in keys {
        let inner = std::mem::take(&mut nested);
        nested.insert(key.into(), toml::Value::Table(inner));
    }
    merge(table, nested);
    Ok(())
}

/// Keys in which two settings differ, with both values.
pub fn differences(old: &Config, new: &Config) -> Vec<(String, String, String)> {
    fn walk(prefix: &str, old: &toml::Table, new: &toml::Table, found: &mut Vec<(String, String, String)>) {
        let keys = old.keys().chain(new.keys().filter(|key| !old.contains_key(*key)));
        for key in keys {
            let name = if prefix.is_empty() {
                key.clone()
            } else {
                format!("{prefix}.{key}")
            };
            match (old.get(key), new.get(key)) {
                (Some(toml::Value::Table(old)), Some(toml::Value::Table(new))) => walk(&name, old, new, found),
                (old, new) if old != new => {
                    let text = |value: Option<&toml::Value>| value.map_or("nothing".into(), |value| value.to_string());
                    found.push((name, text(old), text(new)));
                }
                _ => {}
            }
        }
    }
    let table = |config: &Config| toml::Table::try_from(config).expect("settings are plain values");
    let mut found = Vec::new();
    walk("", &table(old), &table(new), &mut found);
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_reach_nested_keys_and_read_toml_values() {
        let mut table = toml::Table::new();
        for pair in [
            "ppo.clip=0.1",
            "policy.hidden=[32, 32]",
            "method=ppo",
            "ppo.anneal.to = 0",
        ] {
            set(&mut table, pair).unwrap();
        }
        let config = Config::from_table(table, "test").unwrap();
        assert_eq!(config.ppo.clip, 0.1);
        assert_eq!(config.policy.hidden, [32, 32]);
        assert_eq!(config.ppo.anneal.to, 0.0);
        for pair in ["ppo.clip", "=1", "a..b=1"] {
            assert!(set(&mut toml::Table::new(), pair).is_err(), "{pair}");
        }
    }

    #[test]
    fn a_learning_rate_falls_as_the_settings_or_the_flag_of_earlier_files_say() {
        for (pair, halfway, end) in [
            ("ppo.anneal_learning_rate=true", 0.5, 0.0),
            ("ppo.anneal_learning_rate=false", 1.0, 1.0),
            ("ppo.anneal={ from = 0.0, to = 0.5 }", 0.75, 0.5),
            ("ppo.anneal={ from = 0.25, to = 0.1 }", 0.7, 0.1),
            ("ppo.anneal={ from = 0.5, to = 0.1 }", 1.0, 0.1),
            ("ppo.anneal={ from = 1.0, to = 0.1 }", 1.0, 1.0),
        ] {
            let mut table = toml::Table::new();
            set(&mut table, pair).unwrap();
            let config = Config::from_table(table, "test").unwrap();
            let anneal = config.ppo.anneal;
            assert!(
                (anneal.left(0.5) - halfway).abs() < 1e-12,
                "{pair}: {}",
                anneal.left(0.5)
            );
            assert!(
                (anneal.left(1.0) - end).abs() < 1e-12 && anneal.left(0.0) == 1.0,
                "{pair}"
            );
            assert_eq!(anneal.left(2.0), anneal.left(1.0), "{pair}: beyond the end");
            let again = Config::from_table(config.to_toml().parse().unwrap(), "test").unwrap();
            assert_eq!(again.ppo.anneal, anneal);
        }
    }

    #[test]
    fn differences_name_the_keys() {
        let old = Config::default();
        let mut new = old.clone();
        new.seed = 7;
        new.ppo.clip = 0.3;
        let keys: Vec<_> = differences(&old, &new).into_iter().map(|(key, ..)| key).collect();
        assert_eq!(keys, ["seed", "ppo.clip"]);
    }

    #[test]
    fn wrong_settings_are_named() {
        let error = |text: &str| {
            let table = text.parse().unwrap();
            Settings::resolve(table, "x.toml", &Registry::default())
                .err()
                .unwrap()
                .to_string()
        };
        assert!(
            error("[env]\nname='maze'\n[ppo]\nklip=1").contains("ppo.klip"),
            "{}",
            error("[ppo]\nklip=1")
        );
        assert!(error("[env]\nname='maze'\n[ppo]\nclip='a'").contains("ppo.clip"));
        assert!(error("[env]\nname='maze'\n[ppo]\nclip=nan").contains("ppo.clip"));
        assert!(error("ensemble=0\n[env]\nname='maze'").contains("ensemble"));
        assert!(error("steps=99999999999\n[env]\nname='maze'").contains("steps"));
        assert!(error("seed=1").contains("env.name"));
        assert!(error("[env]\nname='moon'").contains("maze"));
    }
}
