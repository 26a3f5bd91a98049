//! Options that several commands share: where settings come from, and how many threads there are.

use std::path::PathBuf;

use clap::Args;
use stein::divergence::DivergenceChoice;
use stein::env::Registry;
use stein::method::MethodChoice;
use stein::parallel;
use stein::ratio::EstimatorChoice;
use stein::run::settings::{self, Settings, read_table};
use stein::{Error, Result};

use crate::say;

/// Settings on the command line. Later ones win: defaults, --config, --set, then these flags.
#[derive(Args, Clone, Debug, Default)]
pub struct TrainOptions {
    /// The environment (the command envs lists them)
    pub env: Option<String>,
    /// The method.
    #[arg(long, help = format!("How the ensemble is trained: {}", MethodChoice::in_words()))]
    pub method: Option<String>,
    /// The estimator.
    #[arg(long, help = format!("Ratio estimator of qd: {}", EstimatorChoice::in_words()))]
    pub estimator: Option<String>,
    /// The divergence.
    #[arg(long, help = format!("Divergence of qd: {}", DivergenceChoice::in_words()))]
    pub divergence: Option<String>,
    /// Number of policies
    #[arg(long, value_name = "N", value_parser = positive, allow_hyphen_values = true)]
    pub ensemble: Option<usize>,
    /// Iterations of Algorithm 1
    #[arg(long, value_name = "N", value_parser = positive, allow_hyphen_values = true)]
    pub iterations: Option<usize>,
    /// Steps of each policy per iteration
    #[arg(long, value_name = "N", value_parser = positive, allow_hyphen_values = true)]
    pub steps: Option<usize>,
    /// Seed of all randomness
    #[arg(long, value_parser = seed)]
    pub seed: Option<u64>,
    /// A TOML file of settings
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// One setting by its dotted key, as in ppo.clip=0.1 or env.horizon=200 (may be repeated)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub set: Vec<String>,
    /// How many threads there are.
    #[command(flatten)]
    pub threads: Threads,
}

impl TrainOptions {
    /// Puts these options over a table of settings; returns a name for it in error messages.
    pub fn apply(&self, table: &mut toml::Table) -> Result<String> {
        let mut source = String::from(settings::COMMAND_LINE);
        if let Some(path) = &self.config {
            settings::merge(table, read_table(path)?);
            let file = path.display();
            source = if self.set.is_empty() {
                file.to_string()
            } else {
                format!("{file} with --set")
            };
        }
        for pair in &self.set {
            settings::set(table, pair).map_err(|error| error.within("--set"))?;
        }
        let put = |table: &mut toml::Table, key: &str, value: Option<toml::Value>| {
            if let Some(value) = value {
                table.insert(key.into(), value);
            }
        };
        let number =
            |value: Option<usize>| value.map(|value| toml::Value::Integer(value.min(i64::MAX as usize) as i64));
        put(table, "method", self.method.clone().map(Into::into));
        put(table, "ensemble", number(self.ensemble));
        put(table, "iterations", number(self.iterations));
        put(table, "steps", number(self.steps));
        for (key, name) in [("estimator", &self.estimator), ("divergence", &self.divergence)] {
            if let Some(name) = name {
                settings::set(table, &format!("qd.{key}=\"{name}\""))?;
            }
        }
        put(table, "seed", self.seed.map(|seed| (seed as i64).into()));
        if let Some(name) = &self.env {
            let env = table.entry("env").or_insert_with(|| toml::Table::new().into());
            let env = env
                .as_table_mut()
                .ok_or_else(|| Error::input(format!("{source}: env must be a table, as in [env]")))?;
            match env.get("name").and_then(|name| name.as_str()) {
                Some(other) if other != name => {
                    return Err(Error::input(format!(
                        "{source} is for the environment {other}, not {name}; leave one of the two out"
                    )));
                }
                _ => env.insert("name".into(), name.clone().into()),
            };
        }
        Ok(source)
    }

    /// Resolves the settings of a new run.
    pub fn resolve(&self, registry: &Registry) -> Result<Settings> {
        let mut table = toml::Table::new();
        let source = self.apply(&mut table)?;
        let settings = Settings::resolve(table, &source, registry)?;
        self.check_effect(&settings)?;
        Ok(settings)
    }

    /// Refuses flags, and tells of settings, that have no part in a run of this method.
    fn check_effect(&self, settings: &Settings) -> Result<()> {
        let (config, method) = (&settings.config, &settings.config.method);
        for (flag, value) in [("estimator", &self.estimator), ("divergence", &self.divergence)] {
            if let Some(value) = value
                && !config.has_part("qd")
            {
                return Err(Error::input(format!(
                    "--{flag} {value} has no effect on the method {method}: leave it out, or train by --method qd"
                )));
            }
        }
        let keys = self.set.iter().filter_map(|pair| pair.split_once('='));
        for key in keys.map(|(key, _)| key.trim()).filter(|key| !config.has_part(key)) {
            say(&format!("note: {key} has no effect on the method {method}"));
        }
        Ok(())
    }
}

/// Reads a number of things of which there must be one.
pub fn positive(text: &str) -> std::result::Result<usize, String> {
    // 0 is told its range together with what else is out of it.
    text.parse::<usize>()
        .map_err(|_| "it has to be a whole number of 1 or more".to_string())
}

/// Reads a seed: what TOML can hold.
pub fn seed(text: &str) -> std::result::Result<u64, String> {
    let wrong = || "it has to be a whole number from 0 to 2^63 - 1".to_string();
    let seed = text.parse::<u64>().map_err(|_| wrong())?;
    (seed <= i64::MAX as u64).then_some(seed).ok_or_else(wrong)
}

/// The option `--threads`.
#[derive(Args, Clone, Copy, Debug, Default)]
pub struct Threads {
    /// Threads to use; the results are the same for any number [default: all cores]
    #[arg(long = "threads", value_name = "N")]
    number: Option<usize>,
}

impl Threads {
    /// Makes the pool of threads that everything runs on.
    pub fn pool(self) -> Result<parallel::Threads> {
        pool(self.checked()?)
    }

    /// Makes a pool for each of `jobs` runs side by side: each has its share of the threads, and one at least.
    pub fn pools(self, jobs: usize) -> Result<Vec<parallel::Threads>> {
        if !(1..=1024).contains(&jobs) {
            return Err(Error::input(format!("--jobs {jobs} is out of range: choose 1 to 1024")));
        }
        let threads = match self.checked()? {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            number => number,
        };
        // The first ones get what does not divide.
        let share = |job: usize| (threads / jobs + usize::from(job < threads % jobs)).max(1);
        (0..jobs).map(|job| pool(share(job))).collect()
    }

    /// The number of threads, 0 for all cores.
    fn checked(self) -> Result<usize> {
        match self.number {
            None => Ok(0),
            Some(number @ 1..=4096) => Ok(number),
            Some(number) => Err(Error::input(format!(
                "--threads {number} is out of range: choose 1 to 4096"
            ))),
        }
    }
}

fn pool(threads: usize) -> Result<parallel::Threads> {
    parallel::Threads::new(threads).map_err(|error| Error::failed(format!("{error}; try a smaller --threads")))
}
