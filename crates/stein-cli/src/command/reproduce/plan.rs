//! What an experiment trains: its file, and what the command line picks of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use stein::env::Registry;
use stein::run::settings::{self, Settings};
use stein::{Error, Result};

use super::Arguments;

/// The experiments that there are, with their files.
const EXPERIMENTS: [(&str, &str); 8] = [
    ("maze", include_str!("../../../../../experiments/maze.toml")),
    ("cheetah", include_str!("../../../../../experiments/cheetah.toml")),
    ("table2", include_str!("../../../../../experiments/table2.toml")),
    ("rewardfree", include_str!("../../../../../experiments/rewardfree.toml")),
    ("sawyer", include_str!("../../../../../experiments/sawyer.toml")),
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
    /// Lists of values of settings: every case is made anew for each combination.
    #[serde(default)]
    grid: toml::Table,
    /// Whose returns the learning curves show.
    #[serde(default)]
    curve: Curve,
    /// What it asks, for the report.
    #[serde(default)]
    question: String,
    /// The measure that answers it; `return_mean` where none is named.
    measure: Option<String>,
    /// Further columns of its NAME.csv: what they are called, and the measures they show.
    #[serde(default)]
    columns: BTreeMap<String, String>,
    case: Vec<CaseFile>,
}

/// Whose returns a learning curve shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Curve {
    /// The mean of all policies.
    #[default]
    Mean,
    /// Those of the policy that is best after training.
    Best,
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

#[derive(Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct CaseFile {
    label: String,
    #[serde(default)]
    title: String,
    #[serde(default)]
    settings: toml::Table,
    /// As the experiment's, of this case alone.
    #[serde(default)]
    grid: toml::Table,
    /// Whether it is evaluated with sampled actions too, whatever the scale says.
    #[serde(default)]
    stochastic: bool,
    /// Whether its first seed is filmed.
    #[serde(default)]
    film: bool,
    /// What the paper has of the experiment's measure.
    paper: Option<f64>,
    /// What is its own at a scale.
    #[serde(default)]
    scale: BTreeMap<String, OwnScale>,
}

#[derive(Clone, Default, Deserialize)]
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
    /// Its file.
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
        let (name, source, mut experiment) = read(&arguments.experiment)?;
        experiment.case = spread(&experiment, &source)?;
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

/// The name of an experiment, its file, and what that says: one of the program's own, or a file of the user's.
fn read(asked: &str) -> Result<(String, String, Experiment)> {
    if let Some((name, text)) = EXPERIMENTS.iter().find(|(name, _)| *name == asked) {
        let source = format!("experiments/{name}.toml");
        let experiment = toml::from_str(text).map_err(|error| Error::failed(format!("{source}: {error}")))?;
        return Ok((name.to_string(), source, experiment));
    }
    let path = Path::new(asked);
    if path.extension().is_none_or(|ending| ending != "toml") {
        return Err(Error::input(format!(
            "there is no experiment \"{asked}\"; choose one of: {}, or a file of your own, as in my.toml",
            EXPERIMENTS.map(|(name, _)| name).join(", ")
        )));
    }
    let table = settings::read_table(path)?;
    let experiment = serde_path_to_error::deserialize(table).map_err(|error| {
        let place = error.path().to_string();
        let what = error.into_inner().to_string();
        Error::input(format!(
            "{asked}: {place}: {}; docs/experiments.md has the form of such a file",
            what.trim_end().replace('\n', " ")
        ))
    })?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    if ["table", "runs"].contains(&&name[..]) {
        return Err(Error::input(format!(
            "{asked}: {name}.csv is a file of every experiment: give this one another name"
        )));
    }
    Ok((name, asked.into(), experiment))
}

/// The cases of an experiment, one for each combination of the values in their grids.
fn spread(experiment: &Experiment, source: &str) -> Result<Vec<CaseFile>> {
    let mut cases: Vec<CaseFile> = Vec::new();
    for case in &experiment.case {
        let mut axes = axes("", &experiment.grid, source)?;
        for (key, values) in self::axes("", &case.grid, source)? {
            axes.retain(|(other, _)| *other != key);
            axes.push((key, values));
        }
        let mut made = vec![CaseFile {
            title: match &case.title[..] {
                "" => case.label.clone(),
                title => title.into(),
            },
            ..case.clone()
        }];
        for (key, values) in axes {
            let short = key.rsplit('.').next().unwrap_or_default();
            let with = |case: &CaseFile, value: &toml::Value| -> Result<CaseFile> {
                let text = match value {
                    toml::Value::String(text) => text.clone(),
                    value => value.to_string().replace(' ', ""),
                };
                let mut case = case.clone();
                settings::set(&mut case.settings, &format!("{key}={value}"))?;
                case.label += &format!("-{short}={}", text.replace(['/', '"'], "_"));
                case.title += &format!(", {short} = {text}");
                Ok(case)
            };
            let each = made
                .iter()
                .flat_map(|case| values.iter().map(move |value| (case, value)));
            made = each.map(|(case, value)| with(case, value)).collect::<Result<_>>()?;
        }
        cases.extend(made);
    }
    for (number, case) in cases.iter().enumerate() {
        let label = &case.label;
        let plain = |c: char| c.is_ascii_alphanumeric() || "-_.=,+[]".contains(c);
        if label.is_empty() || label.starts_with('.') || !label.chars().all(plain) {
            return Err(Error::input(format!(
                "{source}: the label \"{label}\" cannot be the name of a folder: give the case one of letters, digits, - and _"
            )));
        }
        if cases[..number].iter().any(|other| other.label == *label) || label == "figures" {
            return Err(Error::input(format!(
                "{source}: the label \"{label}\" is taken already: give every case one of its own"
            )));
        }
    }
    if cases.is_empty() {
        return Err(Error::input(format!(
            "{source}: there is no case: add a [[case]] with a label and settings"
        )));
    }
    Ok(cases)
}

/// The keys of a grid, dotted, with their values.
fn axes(prefix: &str, grid: &toml::Table, source: &str) -> Result<Vec<(String, Vec<toml::Value>)>> {
    let mut found = Vec::new();
    for (key, value) in grid {
        let key = format!("{prefix}{key}");
        match value {
            toml::Value::Table(inner) => found.extend(axes(&format!("{key}."), inner, source)?),
            toml::Value::Array(values) if !values.is_empty() => found.push((key, values.clone())),
            other => {
                return Err(Error::input(format!(
                    "{source}: grid.{key} = {other} is no list of values: write it as in {key} = [1e-4, 3e-4]"
                )));
            }
        }
    }
    Ok(found)
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
    fn a_grid_makes_a_case_of_every_combination() {
        let text = "
            [settings]
            env.name = 'maze'
            [scale.paper]
            seeds = 1
            episodes = 1
            settings = {}
            [grid]
            ppo.learning_rate = [1e-4, 3e-4]
            [[case]]
            label = 'a'
            [[case]]
            label = 'b'
            title = 'B'
            settings = { method = 'ppo' }
            grid = { ppo.clip = [0.1, 0.2], ppo.learning_rate = [1e-3] }";
        let experiment: Experiment = toml::from_str(text).unwrap();
        let cases = spread(&experiment, "x.toml").unwrap();
        let labels: Vec<&str> = cases.iter().map(|case| &case.label[..]).collect();
        assert_eq!(
            labels,
            [
                "a-learning_rate=0.0001",
                "a-learning_rate=0.0003",
                "b-clip=0.1-learning_rate=0.001",
                "b-clip=0.2-learning_rate=0.001"
            ]
        );
        assert_eq!(cases[3].title, "B, clip = 0.2, learning_rate = 0.001");
        assert_eq!(cases[3].settings["ppo"]["clip"].as_float(), Some(0.2));
        assert_eq!(cases[3].settings["method"].as_str(), Some("ppo"));
        assert_eq!(cases[0].title, "a, learning_rate = 0.0001");
        for (wrong, words) in [
            (text.replace("label = 'b'", "label = 'b/c'"), "name of a folder"),
            (text.replace("[1e-3]", "1e-3"), "no list of values"),
            (
                text.replace("ppo.clip = [0.1, 0.2]", "ppo.clip = [0.1, 0.1]"),
                "taken already",
            ),
        ] {
            let error = spread(&toml::from_str(&wrong).unwrap(), "x.toml")
                .err()
                .unwrap()
                .to_string();
            assert!(error.contains(words), "{error}");
        }
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
