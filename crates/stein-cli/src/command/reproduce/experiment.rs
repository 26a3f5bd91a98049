//! The file of an experiment: those that are built into the program, and files of the user's.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use stein::run::settings;
use stein::{Error, Result};

use super::seeds::SeedsFile;

/// The experiments that there are, with their files.
pub const EXPERIMENTS: [(&str, &str); 8] = [
    ("maze", include_str!("../../../experiments/maze.toml")),
    ("cheetah", include_str!("../../../experiments/cheetah.toml")),
    ("table2", include_str!("../../../experiments/table2.toml")),
    ("rewardfree", include_str!("../../../experiments/rewardfree.toml")),
    ("sawyer", include_str!("../../../experiments/sawyer.toml")),
    ("diversity", include_str!("../../../experiments/diversity.toml")),
    ("ablation", include_str!("../../../experiments/ablation.toml")),
    ("locomotion", include_str!("../../../experiments/locomotion.toml")),
];

/// An experiment, as its file has it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Over the defaults, in every case.
    pub settings: toml::Table,
    pub scale: BTreeMap<String, Scale>,
    /// Lists of values of settings: every case is made anew for each combination.
    #[serde(default)]
    pub grid: toml::Table,
    /// Whose returns the learning curves show.
    #[serde(default)]
    pub curve: Curve,
    /// What it asks, for the report.
    #[serde(default)]
    pub question: String,
    /// The measure that answers it; `return_mean` where none is named.
    pub measure: Option<String>,
    /// Further columns of its NAME.csv: what they are called, and the measures they show.
    #[serde(default)]
    pub columns: BTreeMap<String, String>,
    pub case: Vec<CaseFile>,
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

/// A size of an experiment.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Scale {
    pub seeds: SeedsFile,
    /// Episodes of each policy in the evaluation.
    pub episodes: usize,
    /// Whether policies are evaluated with sampled actions too.
    #[serde(default)]
    pub stochastic: bool,
    pub settings: toml::Table,
}

/// A case, as the file has it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CaseFile {
    pub label: String,
    #[serde(default)]
    pub title: String,
    #[serde(default)]
    pub settings: toml::Table,
    /// As the experiment's, of this case alone.
    #[serde(default)]
    pub grid: toml::Table,
    /// Whether it is evaluated with sampled actions too, whatever the scale says.
    #[serde(default)]
    pub stochastic: bool,
    /// Whether its first seed is filmed.
    #[serde(default)]
    pub film: bool,
    /// What the paper has of the experiment's measure.
    pub paper: Option<f64>,
    /// What is its own at a scale.
    #[serde(default)]
    pub scale: BTreeMap<String, OwnScale>,
}

/// What a case has of its own at a scale.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct OwnScale {
    pub seeds: Option<SeedsFile>,
    /// Over all other settings.
    pub settings: toml::Table,
}

/// The name of an experiment, what error messages call it, and what its file says: one of the program's own, or a file of the user's.
pub fn read(asked: &str) -> Result<(String, String, Experiment)> {
    if let Some((name, text)) = EXPERIMENTS.iter().find(|(name, _)| *name == asked) {
        let source = format!("the experiment {name}");
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn every_file_of_the_folder_is_built_in() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("experiments");
        let entries = std::fs::read_dir(folder).unwrap();
        let mut files: Vec<String> = entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        let mut known = EXPERIMENTS.map(|(name, _)| format!("{name}.toml"));
        files.sort();
        known.sort();
        assert_eq!(files, known);
    }
}
