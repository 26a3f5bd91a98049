//! What an experiment trains: its file, and what the command line picks of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::Deserialize;
use stein::env::Registry;
use stein::run::settings::{self, Settings};
use stein::{Error, Result};

use super::Arguments;

/// The experiments that there are, with their files.
const EXPERIMENTS: [(&str, &str); 4] = [
    ("maze", include_str!("../../../../../experiments/maze.toml")),
    ("diversity", include_str!("../../../../../experiments/diversity.toml")),
    ("ablation", include_str!("../../../../../experiments/ablation.toml")),
    ("locomotion", include_str!("../../../../../experiments/locomotion.toml")),
];

/// Seeds of one case, at most.
const MOST: usize = 1000;

/// An experiment, as its file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Experiment {
    /// Over the defaults, in every case.
    settings: toml::Table,
    scale: BTreeMap<String, Scale>,
    case: Vec<CaseFile>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Scale {
    seeds: SeedsFile,
    /// Episodes of each policy in the evaluation.
    episodes: usize,
    /// Whether policies are evaluated with sampled actions too.
    #[serde(default)]
    stochastic: bool,
    settings: toml::Table,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    label: String,
    title: String,
    settings: toml::Table,
    /// Whether it is evaluated with sampled actions too, whatever the scale says.
    #[serde(default)]
    stochastic: bool,
    /// What is its own at a scale.
    #[serde(default)]
    scale: BTreeMap<String, OwnScale>,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct OwnScale {
    seeds: Option<SeedsFile>,
    /// Over all other settings.
    settings: toml::Table,
}

/// `seeds = 5` is 1 to 5, `seeds = [101, 102]` these two.
#[derive(Clone, Deserialize)]
#[serde(untagged)]
enum SeedsFile {
    Number(usize),
    List(Vec<u64>),
}

impl SeedsFile {
    fn seeds(self) -> Vec<u64> {
        match self {
            SeedsFile::Number(number) => (1..=number as u64).collect(),
            SeedsFile::List(seeds) => seeds,
        }
    }
}

/// What is trained, and where it goes.
pub struct Plan {
    pub name: String,
    pub scale: String,
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
    settings: toml::Table,
}

impl Case {
    /// The name of its task.
    pub fn task(&self) -> &str {
        let env = self.settings.get("env").and_then(|env| env.get("name"));
        env.and_then(|name| name.as_str()).unwrap_or_default()
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
            settings: toml::Table::new(),
        }
    }
}

impl Plan {
    /// Reads the experiment and picks what was asked for.
    pub fn new(arguments: &Arguments) -> Result<Plan> {
        let (name, scale_name) = (&arguments.experiment, &arguments.scale);
        let choose = |what: &str, given: &str, all: Vec<&str>| {
            Error::input(format!(
                "there is no {what} \"{given}\"; choose one of: {}",
                all.join(", ")
            ))
        };
        let (_, text) = EXPERIMENTS
            .iter()
            .find(|(known, _)| known == name)
            .ok_or_else(|| choose("experiment", name, EXPERIMENTS.map(|(name, _)| name).to_vec()))?;
        let experiment: Experiment =
            toml::from_str(text).map_err(|error| Error::failed(format!("experiments/{name}.toml: {error}")))?;
        let scales = || experiment.scale.keys().map(String::as_str).collect();
        let scale = experiment.scale.get(scale_name);
        let scale = scale.ok_or_else(|| choose("scale", scale_name, scales()))?;
        let labels: Vec<&str> = experiment.case.iter().map(|case| &case.label[..]).collect();
        if let Some(unknown) = arguments.only.iter().find(|label| !labels.contains(&&label[..])) {
            return Err(choose("case", unknown, labels));
        }
        let asked = arguments.seeds.as_deref().map(read_seeds).transpose()?;
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
                settings: table,
            }
        });
        Ok(Plan {
            cases: cases.collect(),
            episodes: scale.episodes,
            scale: scale_name.clone(),
            out: arguments
                .out
                .clone()
                .unwrap_or_else(|| PathBuf::from(format!("runs/reproduce-{name}"))),
            name: name.clone(),
        })
    }

    /// The settings of one run.
    pub fn settings(&self, case: &Case, seed: u64, registry: &Registry) -> Result<Settings> {
        let mut table = case.settings.clone();
        table.insert("seed".into(), toml::Value::Integer(seed as i64));
        Settings::resolve(table, &format!("experiments/{}.toml", self.name), registry)
    }
}

/// Seeds as the command line has them. A number alone is how many: `3` is 1, 2, 3. With a comma or a hyphen it is a list of
/// seeds and of ranges with both ends: `101,102`, `101-105`, `1-3,7`; `101,` is the one seed 101.
fn read_seeds(text: &str) -> Result<Vec<u64>> {
    let wrong = |why: &str| {
        Error::input(format!(
            "--seeds {text} {why}: give a number of seeds as in 3, or seeds and ranges as in 101,102 or 101-105"
        ))
    };
    let number = |text: &str| {
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text
            .parse::<u64>()
            .ok()
            .filter(|&number| plain && number <= i64::MAX as u64);
        number.ok_or_else(|| wrong("cannot be read"))
    };
    if !text.contains([',', '-']) {
        let count = number(text)?;
        if !(1..=MOST as u64).contains(&count) {
            return Err(Error::input(format!(
                "--seeds {count} is out of range: choose 1 to {MOST}, or write {count}, with a comma for the one seed {count}"
            )));
        }
        return Ok((1..=count).collect());
    }
    let mut seeds = Vec::new();
    for part in text.strip_suffix(',').unwrap_or(text).split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if last < first {
            return Err(wrong("has a range that runs backwards"));
        }
        if last - first >= MOST as u64 || seeds.len() + (last - first) as usize >= MOST {
            return Err(wrong("names more than 1000 seeds"));
        }
        seeds.extend(first..=last);
    }
    let mut sorted = seeds.clone();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(wrong("names a seed twice"));
    }
    Ok(seeds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_number_or_a_list() {
        for (text, seeds) in [
            ("1", vec![1]),
            ("3", vec![1, 2, 3]),
            ("101,", vec![101]),
            ("101-101", vec![101]),
            ("101,103,102", vec![101, 103, 102]),
            ("101-103", vec![101, 102, 103]),
            ("1-3,7", vec![1, 2, 3, 7]),
            ("0,5", vec![0, 5]),
            ("9223372036854775807,", vec![i64::MAX as u64]),
        ] {
            assert_eq!(read_seeds(text).unwrap(), seeds, "{text}");
        }
        for (text, words) in [
            ("0", "out of range"),
            ("1001", "out of range"),
            ("", "cannot be read"),
            (",", "cannot be read"),
            ("a", "cannot be read"),
            ("-3", "cannot be read"),
            ("1,,2", "cannot be read"),
            ("1-2-3", "cannot be read"),
            ("+1,2", "cannot be read"),
            ("9223372036854775808,", "cannot be read"),
            ("5-3", "backwards"),
            ("1-2000", "more than 1000"),
            ("1-600,1001-1600", "more than 1000"),
            ("1-3,2", "twice"),
        ] {
            let error = read_seeds(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }

    #[test]
    fn a_file_may_list_seeds_and_a_case_its_own() {
        let text = "
            [settings]
            env.name = 'maze'
            [scale.paper]
            seeds = [101, 102]
            episodes = 1
            settings = { iterations = 9 }
            [scale.smoke]
            seeds = 2
            episodes = 1
            settings = {}
            [[case]]
            label = 'a'
            title = 'A'
            settings = {}
            scale.paper = { seeds = [7, 8, 9], settings = { iterations = 5 } }
            stochastic = true";
        let experiment: Experiment = toml::from_str(text).unwrap();
        assert_eq!(experiment.scale["paper"].seeds.clone().seeds(), [101, 102]);
        assert_eq!(experiment.scale["smoke"].seeds.clone().seeds(), [1, 2]);
        let own = &experiment.case[0].scale["paper"];
        assert_eq!(own.seeds.clone().unwrap().seeds(), [7, 8, 9]);
        assert_eq!(own.settings["iterations"].as_integer(), Some(5));
        assert!(experiment.case[0].stochastic && !experiment.scale["paper"].stochastic);
    }

    #[test]
    fn every_experiment_can_be_read_and_names_settings_that_exist() {
        for (name, text) in EXPERIMENTS {
            let experiment: Experiment = toml::from_str(text).unwrap_or_else(|error| panic!("{name}: {error}"));
            for scale in experiment.scale.keys() {
                let arguments = Arguments {
                    experiment: name.into(),
                    scale: scale.clone(),
                    seeds: None,
                    out: None,
                    only: Vec::new(),
                    jobs: 1,
                    threads: Default::default(),
                };
                let plan = Plan::new(&arguments).unwrap();
                assert_eq!(plan.cases.len(), experiment.case.len());
                for (case, file) in plan.cases.iter().zip(&experiment.case) {
                    plan.settings(case, case.seeds[0], &crate::registry()).unwrap();
                    // A scale that is not there would never be seen.
                    let known = |scale: &String| experiment.scale.contains_key(scale);
                    assert!(file.scale.keys().all(known), "{name}: {}", case.label);
                }
            }
        }
    }
}
