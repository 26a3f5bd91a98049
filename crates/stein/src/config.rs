//! Settings of a run: one documented field each, checked before anything starts. `docs/algorithm.md` says where defaults come from.

use serde::{Deserialize, Serialize};

use crate::check::whole;
use crate::checkpoint::CheckpointConfig;
use crate::env::Task;
use crate::error::{Error, Result};
use crate::method::{DiaynConfig, MethodChoice, QdConfig, SiConfig, SvpgConfig};
use crate::policy::{CriticConfig, PolicyConfig, PpoConfig};
use crate::ratio::RatioConfig;
use crate::suggest::{self, plain_words};

/// All settings of a training run. `config.toml` in a run folder is this, resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Version of the program that wrote the file. A run is gone on with by versions that differ in the last number alone.
    pub stein_version: String,
    /// How the ensemble is trained: `qd`, `ppo`, `svpg`, `diayn` or `si`.
    pub method: MethodChoice,
    /// Seed of all randomness.
    pub seed: u64,
    /// Number of policies n.
    pub ensemble: usize,
    /// Iterations of Algorithm 1.
    pub iterations: usize,
    /// Steps each policy takes per iteration.
    pub steps: usize,
    /// The policies' networks.
    pub policy: PolicyConfig,
    /// The critics.
    pub critic: CriticConfig,
    /// Proximal policy optimisation.
    pub ppo: PpoConfig,
    /// The method `qd`: kernels, divergences, weights.
    pub qd: QdConfig,
    /// Ratio estimation.
    pub ratio: RatioConfig,
    /// The method `svpg`.
    pub svpg: SvpgConfig,
    /// The method `diayn`.
    pub diayn: DiaynConfig,
    /// The method `si`.
    pub si: SiConfig,
    /// Checkpoints.
    pub checkpoint: CheckpointConfig,
    /// The environment: its `name`, and its own settings (`stein envs NAME` lists them).
    pub env: toml::Table,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            stein_version: env!("CARGO_PKG_VERSION").into(),
            method: MethodChoice::default(),
            seed: 1,
            ensemble: 10,
            iterations: 200,
            steps: 2048,
            policy: PolicyConfig::default(),
            critic: CriticConfig::default(),
            ppo: PpoConfig::default(),
            qd: QdConfig::default(),
            ratio: RatioConfig::default(),
            svpg: SvpgConfig::default(),
            diayn: DiaynConfig::default(),
            si: SiConfig::default(),
            checkpoint: CheckpointConfig::default(),
            env: toml::Table::new(),
        }
    }
}

/// Which setting was probably meant by a key that is none: one of the same name in another section, or a similar name in the
/// same one.
fn meant(key: &str, words: &str) -> String {
    fn keys(prefix: &str, table: &toml::Table, found: &mut Vec<String>) {
        for (key, value) in table {
            match value {
                toml::Value::Table(inner) => keys(&format!("{prefix}{key}."), inner, found),
                _ => found.push(format!("{prefix}{key}")),
            }
        }
    }
    let mut known = Vec::new();
    if let Ok(table) = toml::Table::try_from(Config::default()) {
        keys("", &table, &mut known);
    }
    let (section, last) = key.rsplit_once('.').unwrap_or(("", key));
    let elsewhere: Vec<&str> = known
        .iter()
        .filter(|known| known.rsplit('.').next() == Some(last))
        .map(String::as_str)
        .collect();
    if !elsewhere.is_empty() {
        return format!(" (did you mean {}?)", elsewhere.join(" or "));
    }
    let siblings: Vec<String> = suggest::names_in(words)
        .into_iter()
        .map(|name| {
            if section.is_empty() {
                name.to_string()
            } else {
                format!("{section}.{name}")
            }
        })
        .collect();
    suggest::question(key, siblings.iter().chain(&known).map(String::as_str))
}

impl Config {
    /// Reads settings from a table; an unknown key or a wrong type gets a sentence that names it. `source` is the file.
    pub fn from_table(table: toml::Table, source: &str) -> Result<Config> {
        serde_path_to_error::deserialize(table).map_err(|error| {
            let (words, key) = (plain_words(error.inner()), error.path().to_string());
            let meant = if words.starts_with("unknown field") {
                meant(&key, &words)
            } else {
                String::new()
            };
            Error::input(format!("{source}: the setting {key} is wrong: {words}{meant}"))
        })
    }

    /// Fills in what is absent and depends on the method and the task.
    pub fn resolve(&mut self, task: &dyn Task) -> Result<()> {
        self.method.get().resolve(self, task)
    }

    /// Whether a setting has a part in a run of this method: independent PPO knows neither ratios nor diversity.
    pub fn has_part(&self, key: &str) -> bool {
        let (section, _) = key.split_once('.').unwrap_or((key, ""));
        let of_methods = MethodChoice::all().any(|method| method.sections().contains(&section));
        !of_methods || self.method.sections().contains(&section)
    }

    /// Refuses impossible values.
    pub fn validate(&self) -> Result<()> {
        whole("ensemble", self.ensemble, 1, 1000)?;
        whole("iterations", self.iterations, 1, 10_000_000)?;
        whole("steps", self.steps, 2, 1_000_000)?;
        self.policy.validate()?;
        self.critic.validate()?;
        self.ppo.validate(self.steps)?;
        self.qd.validate()?;
        self.ratio.validate()?;
        self.diayn.validate()?;
        self.si.validate()?;
        self.svpg.validate()?;
        self.checkpoint.validate()?;
        Ok(())
    }

    /// As TOML text.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("settings are plain numbers, texts and tables")
    }
}
