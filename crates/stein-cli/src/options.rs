//! Options that several commands share: where settings come from, and how many threads there are.

use std::path::PathBuf;

use clap::Args;
use stein::env::Registry;
use stein::run::settings::{self, Settings, read_table};
use stein::{Error, Result};

/// Settings on the command line. Later ones win: defaults, --config, --set, then these flags.
#[derive(Args, Clone, Debug, Default)]
pub struct TrainOptions {
    /// The environment (see `stein envs`)
    pub env: Option<String>,
    /// How the ensemble is trained: qd, ppo, svpg, diayn or si
    #[arg(long)]
    pub method: Option<String>,
    /// Ratio estimator of qd: nce, dualdice, valuedice or gendice
    #[arg(long)]
    pub estimator: Option<String>,
    /// Divergence of qd: js, kls, kl, rkl, hellinger, triangular or tv
    #[arg(long)]
    pub divergence: Option<String>,
    /// Number of policies
    #[arg(long, value_name = "N")]
    pub ensemble: Option<usize>,
    /// Iterations of Algorithm 1
    #[arg(long, value_name = "N")]
    pub iterations: Option<usize>,
    /// Steps of each policy per iteration
    #[arg(long, value_name = "N")]
    pub steps: Option<usize>,
    /// Seed of all randomness
    #[arg(long)]
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
        let mut source = String::from("the command line");
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
            settings::set(table, pair)?;
        }
        let put = |table: &mut toml::Table, key: &str, value: Option<toml::Value>| {
            if let Some(value) = value {
                table.insert(key.into(), value);
            }
        };
        let whole = |value: Option<usize>| value.map(|value| toml::Value::Integer(value.min(i64::MAX as usize) as i64));
        put(table, "method", self.method.clone().map(Into::into));
        put(table, "ensemble", whole(self.ensemble));
        put(table, "iterations", whole(self.iterations));
        put(table, "steps", whole(self.steps));
        for (key, name) in [("estimator", &self.estimator), ("divergence", &self.divergence)] {
            if let Some(name) = name {
                settings::set(table, &format!("qd.{key}=\"{name}\""))?;
            }
        }
        if let Some(seed) = self.seed {
            let seed = i64::try_from(seed)
                .map_err(|_| Error::input(format!("--seed {seed} is too large: choose one below 2^63")))?;
            put(table, "seed", Some(seed.into()));
        }
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
        Settings::resolve(table, &source, registry)
    }
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
    pub fn pool(self) -> Result<rayon::ThreadPool> {
        pool(self.checked()?)
    }

    /// Makes a pool for each of `jobs` runs side by side: each has its share of the threads, and one at least.
    pub fn pools(self, jobs: usize) -> Result<Vec<rayon::ThreadPool>> {
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

fn pool(threads: usize) -> Result<rayon::ThreadPool> {
    rayon::ThreadPoolBuilder::new()
        .num_threads(threads)
        .build()
        .map_err(|error| Error::failed(format!("cannot start the threads: {error}; try a smaller --threads")))
}
