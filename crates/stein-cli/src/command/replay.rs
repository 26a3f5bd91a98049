//! `stein replay`: an environment from a given state under given actions, for comparison with another simulator.
//!
//! ```text
//! in   { "qpos": [nq], "qvel": [nv], "actions": [T][nu] }
//! out  { "observations": [T+1][obs], "rewards": [T], "terminated": [T] }         with --signals also "signals": { name: [T+1] }
//! ```

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use clap::Args;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use stein::env::{Env, Registry};
use stein::{Error, Result};

use crate::options::TrainOptions;
use crate::{Ended, print, program};

/// Arguments of `stein replay`.
#[derive(Args)]
pub struct Arguments {
    /// The environment (the command envs lists them)
    env: String,
    /// JSON file with the initial state and the actions: qpos, qvel, actions (docs/robots.md describes it)
    #[arg(long, value_name = "FILE")]
    input: PathBuf,
    /// TOML file of settings; only those under [env] are used
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// One setting of the environment, as in env.healthy_reward=0 (may be repeated)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Print one JSON object: observations, rewards, terminated
    #[arg(long)]
    json: bool,
    /// Add the signals of every state to the JSON object
    #[arg(long, requires = "json")]
    signals: bool,
}

/// The input.
#[derive(Deserialize)]
struct Script {
    qpos: Vec<f64>,
    qvel: Vec<f64>,
    actions: Vec<Vec<f64>>,
}

/// The output.
#[derive(Serialize)]
struct Record {
    observations: Vec<Vec<f64>>,
    rewards: Vec<f64>,
    terminated: Vec<bool>,
    /// By name, in every state.
    #[serde(skip_serializing_if = "Option::is_none")]
    signals: Option<BTreeMap<&'static str, Vec<f64>>>,
}

/// The keys of a file and their shapes.
const SHAPES: &str = "qpos [nq], qvel [nv] and actions [T][nu]";

pub fn run(arguments: Arguments, registry: &Registry) -> Result<Ended> {
    let options = TrainOptions {
        env: Some(arguments.env.clone()),
        config: arguments.config,
        set: arguments.set,
        ..TrainOptions::default()
    };
    let settings = options.resolve(registry)?;
    let mut env = settings.task.make()?;
    if env.settable().is_none() {
        return Err(Error::input(format!(
            "{0} cannot be replayed, since its state cannot be set; choose one of the robots that `{1} envs` lists",
            arguments.env,
            program::name()
        )));
    }
    let script = read(&arguments.input)?;
    check(&script, env.as_mut(), &arguments.env).map_err(|complaint| wrong(&arguments.input, &complaint))?;
    let record = replay(&script, env.as_mut(), arguments.signals);
    if arguments.json {
        let text = serde_json::to_string(&record);
        let text = text.map_err(|error| Error::failed(format!("the replay cannot be written as JSON: {error}")))?;
        print(&format!("{text}\n"));
    } else {
        print(&table(&record));
    }
    Ok(Ended::Done)
}

fn wrong(path: &Path, complaint: &str) -> Error {
    Error::input(format!("{}: {complaint}", path.display()))
}

fn read(path: &Path) -> Result<Script> {
    let text = std::fs::read_to_string(path).map_err(|error| {
        wrong(
            path,
            &format!("this file cannot be read: {error}; give --input a JSON file of {SHAPES}"),
        )
    })?;
    // Editors on Windows may start a file with this mark.
    let text = text.trim_start_matches('\u{feff}');
    let value: Value = serde_json::from_str(text).map_err(|error| {
        let cure = if text.contains("NaN") || text.contains("Infinity") {
            "JSON has no NaN and no Infinity: write finite numbers"
        } else {
            "fix the text there"
        };
        wrong(path, &format!("this cannot be read as JSON: {error}; {cure}"))
    })?;
    if !value.is_object() {
        return Err(wrong(path, &format!("this is no JSON object; write one of {SHAPES}")));
    }
    serde_path_to_error::deserialize(value).map_err(|error| {
        let (place, words) = (error.path().to_string(), error.inner());
        let subject = if place == "." {
            String::new()
        } else {
            format!("{place} is wrong: ")
        };
        wrong(path, &format!("{subject}{words}; write numbers in the shape {SHAPES}"))
    })
}

/// Rejects a script that does not match the environment.
fn check(script: &Script, env: &mut dyn Env, robot: &str) -> std::result::Result<(), String> {
    let (nq, nv) = env.settable().map_or((0, 0), |env| env.state_sizes());
    let spec = env.spec();
    let rows = script.actions.iter().enumerate();
    let actions = rows.map(|(t, action)| (format!("actions[{t}]"), action, spec.action()));
    let state = [("qpos".into(), &script.qpos, nq), ("qvel".into(), &script.qvel, nv)];
    for (name, values, length) in state.into_iter().chain(actions) {
        if values.len() != length {
            return Err(format!(
                "{name} has {} numbers; write {length}, as {robot} has",
                values.len()
            ));
        }
        if let Some(index) = values.iter().position(|value| !value.is_finite()) {
            return Err(format!("{name}[{index}] is not finite; write a finite number"));
        }
    }
    for (t, action) in script.actions.iter().enumerate() {
        for (index, &value) in action.iter().enumerate() {
            let (low, high) = (spec.action_low[index], spec.action_high[index]);
            if !(low..=high).contains(&value) {
                return Err(format!(
                    "actions[{t}][{index}] is {value}, out of range; choose one from {low} to {high}"
                ));
            }
        }
    }
    Ok(())
}

/// Steps through the script, continuing after terminations and beyond the horizon.
fn replay(script: &Script, env: &mut dyn Env, signals: bool) -> Record {
    let mut observation = vec![0.0; env.spec().observation];
    if let Some(env) = env.settable() {
        env.set_state(&script.qpos, &script.qvel, &mut observation);
    }
    let mut record = Record {
        observations: vec![observation.clone()],
        rewards: Vec::new(),
        terminated: Vec::new(),
        signals: signals.then(BTreeMap::new),
    };
    record.watch(env);
    for action in &script.actions {
        let step = env.step(action, &mut observation);
        record.observations.push(observation.clone());
        record.rewards.push(step.reward);
        record.terminated.push(step.terminated);
        record.watch(env);
    }
    record
}

impl Record {
    /// Records the signals of the current state, if requested.
    fn watch(&mut self, env: &mut dyn Env) {
        let Some(signals) = &mut self.signals else { return };
        let mut values = vec![0.0; env.spec().signals.len()];
        env.signals(&mut values);
        for (name, value) in env.spec().signals.iter().zip(values) {
            signals.entry(name).or_default().push(value);
        }
    }
}

/// A summary of the record.
fn table(record: &Record) -> String {
    let first = record.terminated.iter().position(|&terminated| terminated);
    let last: Vec<String> = record.observations[record.rewards.len()]
        .iter()
        .map(|value| format!("{value:.4}"))
        .collect();
    format!(
        "steps              {}\nsum of rewards     {:.6}\nfirst termination  {}\nlast observation   {}\n",
        record.rewards.len(),
        // An empty sum would be -0.
        record.rewards.iter().sum::<f64>() + 0.0,
        first.map_or("none".into(), |step| format!("in step {}", step + 1)),
        last.join(" ")
    )
}
