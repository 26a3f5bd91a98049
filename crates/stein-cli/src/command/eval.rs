//! `stein eval`: evaluation episodes of a trained ensemble.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Map, Value};
use stein::env::Registry;
use stein::policy::Ensemble;
use stein::policy::evaluate::evaluate;
use stein::run::load::Loaded;
use stein::run::report::report;
use stein::{Error, Result};

use crate::options::Threads;
use crate::{Ended, print, print_json};

/// Arguments of `stein eval`.
#[derive(Args)]
pub struct Arguments {
    /// The run folder
    run: PathBuf,
    /// Episodes per policy
    #[arg(long, value_name = "N", default_value_t = 5)]
    episodes: usize,
    /// Seed of the episodes [default: the seed of the run]
    #[arg(long, value_parser = crate::options::seed)]
    seed: Option<u64>,
    /// Sample actions instead of taking the mean
    #[arg(long)]
    stochastic: bool,
    /// Evaluate the policies after this iteration, if its checkpoint is still kept [default: the newest]
    #[arg(long, value_name = "ITERATION")]
    checkpoint: Option<usize>,
    #[command(flatten)]
    threads: Threads,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Rejects invalid numbers of episodes.
pub fn check_episodes(episodes: usize) -> Result<()> {
    if (1..=100_000).contains(&episodes) {
        return Ok(());
    }
    Err(Error::input(format!(
        "--episodes {episodes} is out of range: choose 1 to 100000"
    )))
}

pub fn run(arguments: Arguments, registry: &Registry) -> Result<Ended> {
    check_episodes(arguments.episodes)?;
    let pool = arguments.threads.pool()?;
    let Loaded {
        settings,
        ensemble,
        iteration,
        ..
    } = Ensemble::load(&arguments.run, arguments.checkpoint, registry)?;
    let seed = arguments.seed.unwrap_or(settings.config.seed);
    let task = settings.task.as_ref();
    let report = pool.run(|| {
        let episodes = evaluate(&ensemble, task, seed, arguments.episodes, arguments.stochastic)?;
        report(&settings, &episodes)
    })?;
    if arguments.json {
        print_json(&Value::Object(report));
    } else {
        print(&table(&report, iteration, arguments.episodes));
    }
    Ok(Ended::Done)
}

/// The report as text: one line per policy, then the ensemble.
fn table(report: &Map<String, Value>, iteration: usize, episodes: usize) -> String {
    let policies = report["policies"].as_array().map(Vec::as_slice).unwrap_or_default();
    let names: Vec<&String> = policies
        .first()
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        // The list of returns is only for JSON.
        .filter(|(_, value)| !value.is_array())
        .map(|(name, _)| name)
        .collect();
    let mut text = format!(
        "{} by {} after {iteration} iterations, {episodes} episodes per policy\n\npolicy",
        report["env"].as_str().unwrap_or_default(),
        report["method"].as_str().unwrap_or_default()
    );
    for name in &names {
        text += &format!("  {name:>14}");
    }
    for (i, policy) in policies.iter().enumerate() {
        text += &format!("\n{i:>6}");
        for name in &names {
            text += &format!("  {:>14}", number(&policy[name.as_str()]));
        }
    }
    text += "\n\n";
    let ensemble: Vec<_> = report["ensemble"].as_object().into_iter().flatten().collect();
    let width = ensemble.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    for (name, value) in ensemble {
        text += &format!("{name:>width$}  {}\n", number(value));
    }
    text
}

/// A human-readable number: three decimals, or three digits if those would all be 0; never a negative zero.
pub fn number(value: &Value) -> String {
    match value.as_f64() {
        None => "-".into(),
        Some(0.0) => "0.000".into(),
        Some(value) if value.abs() < 5e-4 => format!("{value:.2e}"),
        Some(value) => format!("{value:.3}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_numbers_are_not_zero() {
        for (value, shown) in [
            (0.0, "0.000"),
            (-0.0, "0.000"),
            (1.23456, "1.235"),
            (-4.5e-4, "-4.50e-4"),
            (6e-4, "0.001"),
            (1e-12, "1.00e-12"),
        ] {
            assert_eq!(number(&Value::from(value)), shown);
        }
        assert_eq!(number(&Value::Null), "-");
    }
}
