//! What an experiment trains: what the command line picks of its file.

use std::collections::BTreeMap;
use std::path::PathBuf;

use stein::env::Registry;
use stein::run::settings::{self, Settings};
use stein::{Error, Result};

use super::Arguments;
use super::experiment::{self, CaseFile, Curve};
use super::grid::spread;
use super::seeds;

/// What is trained, and where it goes.
pub struct Plan {
    pub name: String,
    /// What error messages call it: its file, or its name where it is built in.
    pub source: String,
    pub scale: String,
    /// Whose returns the learning curves show.
    pub curve: Curve,
    /// What it asks.
    pub question: String,
    /// The measure that answers it.
    pub measure: Option<String>,
    /// Further columns of its NAME.csv, with their measures.
    pub columns: BTreeMap<String, String>,
    /// Episodes of each policy in the evaluation.
    pub episodes: usize,
    pub cases: Vec<Case>,
    pub out: PathBuf,
}

/// One row of the table.
pub struct Case {
    pub label: String,
    pub title: String,
    pub seeds: Vec<u64>,
    /// Whether it is evaluated with sampled actions too.
    pub stochastic: bool,
    /// Whether its first seed is filmed.
    pub film: bool,
    /// What the paper has of the experiment's measure.
    pub paper: Option<f64>,
    settings: toml::Table,
}

impl Case {
    /// The name of its task.
    pub fn task(&self) -> &str {
        let env = self.settings.get("env").and_then(|env| env.get("name"));
        env.and_then(|name| name.as_str()).unwrap_or_default()
    }

    /// What it says of its task.
    pub fn env(&self) -> Option<&toml::Value> {
        self.settings.get("env")
    }

    /// Whether it is independent PPO.
    pub fn is_ppo(&self) -> bool {
        self.settings.get("method").and_then(|method| method.as_str()) == Some("ppo")
    }
}

#[cfg(test)]
impl Case {
    /// A case without settings.
    pub fn named(label: &str, seeds: Vec<u64>) -> Case {
        Case {
            label: label.into(),
            title: label.into(),
            seeds,
            stochastic: false,
            film: false,
            paper: None,
            settings: toml::Table::new(),
        }
    }

    /// A case of a task and a method.
    pub fn of(label: &str, seeds: Vec<u64>, task: &str, method: &str) -> Case {
        let mut case = Case::named(label, seeds);
        settings::set(&mut case.settings, &format!("env.name={task}")).unwrap();
        settings::set(&mut case.settings, &format!("method={method}")).unwrap();
        case
    }
}

impl Plan {
    /// Reads the experiment and picks what was asked for.
    pub fn new(arguments: &Arguments) -> Result<Plan> {
        let scale_name = &arguments.scale;
        let choose = |what: &str, given: &str, all: Vec<&str>| {
            Error::input(format!(
                "there is no {what} \"{given}\"; choose one of: {}",
                all.join(", ")
            ))
        };
        let (name, source, mut experiment) = experiment::read(&arguments.experiment)?;
        experiment.case = spread(&experiment, &source)?;
        let scales = || experiment.scale.keys().map(String::as_str).collect();
        let scale = experiment.scale.get(scale_name);
        let scale = scale.ok_or_else(|| choose("scale", scale_name, scales()))?;
        let labels: Vec<&str> = experiment.case.iter().map(|case| &case.label[..]).collect();
        if let Some(unknown) = arguments.only.iter().find(|label| !labels.contains(&&label[..])) {
            return Err(choose("case", unknown, labels));
        }
        let asked = arguments.seeds.as_deref().map(seeds::read).transpose()?;
        let wanted = |case: &&CaseFile| arguments.only.is_empty() || arguments.only.contains(&case.label);
        let cases = experiment.case.iter().filter(wanted).map(|case| {
            let own = case.scale.get(scale_name);
            let seeds = own.and_then(|own| own.seeds.as_ref()).unwrap_or(&scale.seeds);
            let mut table = experiment.settings.clone();
            settings::merge(&mut table, scale.settings.clone());
            settings::merge(&mut table, case.settings.clone());
            settings::merge(&mut table, own.map(|own| own.settings.clone()).unwrap_or_default());
            Case {
                label: case.label.clone(),
                title: case.title.clone(),
                seeds: asked.clone().unwrap_or_else(|| seeds.clone().seeds()),
                stochastic: scale.stochastic || case.stochastic,
                film: case.film,
                paper: case.paper,
                settings: table,
            }
        });
        Ok(Plan {
            cases: cases.collect(),
            curve: experiment.curve,
            question: experiment.question.clone(),
            measure: experiment.measure.clone(),
            columns: experiment.columns.clone(),
            episodes: scale.episodes,
            scale: scale_name.clone(),
            // Runs of another size are other runs.
            out: arguments.out.clone().unwrap_or_else(|| match &scale_name[..] {
                "paper" => PathBuf::from(format!("runs/reproduce-{name}")),
                scale => PathBuf::from(format!("runs/reproduce-{name}-{scale}")),
            }),
            name,
            source,
        })
    }

    /// The measure that answers it.
    pub fn answer(&self) -> &str {
        self.measure.as_deref().unwrap_or("return_mean")
    }

    /// The settings of one run.
    pub fn settings(&self, case: &Case, seed: u64, registry: &Registry) -> Result<Settings> {
        let mut table = case.settings.clone();
        table.insert("seed".into(), toml::Value::Integer(seed as i64));
        Settings::resolve(table, &self.source, registry)
    }
}

#[cfg(test)]
mod tests {
    use super::super::experiment::{EXPERIMENTS, Experiment};
    use super::*;

    #[test]
    fn every_experiment_can_be_read_and_names_settings_that_exist() {
        for (name, text) in EXPERIMENTS {
            let experiment: Experiment = toml::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            for scale in experiment.scale.keys() {
                let arguments = Arguments {
                    quiet: false,
                    experiment: name.into(),
                    scale: scale.clone(),
                    seeds: None,
                    out: None,
                    only: Vec::new(),
                    jobs: 1,
                    finished: false,
                    threads: Default::default(),
                };
                let plan = Plan::new(&arguments).unwrap();
                let files = spread(&experiment, name).unwrap();
                assert_eq!(plan.cases.len(), files.len());
                for (case, file) in plan.cases.iter().zip(&files) {
                    plan.settings(case, case.seeds[0], &crate::registry()).unwrap();
                    // A scale that is not there would never be seen.
                    let known = |scale: &String| experiment.scale.contains_key(scale);
                    assert!(file.scale.keys().all(known), "{name}: {}", case.label);
                }
            }
        }
    }
}
