//! What a finished run leaves for tables, curves and reports: one small file, `CASE/seedS.json`, beside its folder.
//!
//! A run whose record is there is not trained again, even where its folder is not: records can be kept in a repository, and
//! an experiment be put together from several machines by copying their records into one folder.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use stein::config::Config;
use stein::env::Registry;
use stein::files::atomic;
use stein::run::folder::check_version;
use stein::run::settings::{Settings, differences};
use stein::{Error, Result};

use super::experiment::Curve;
use super::table::Measures;
use crate::program;

/// A finished run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Record {
    /// Its settings, resolved, as in config.toml.
    config: String,
    /// Episodes of each policy in the evaluation.
    episodes: usize,
    /// Whether it was evaluated with sampled actions too.
    stochastic: bool,
    /// What it was trained by, and where.
    pub commit: Option<String>,
    /// The processor, its cores and the system.
    pub machine: String,
    /// Measures of the ensemble, and `wall_seconds`; null for none.
    measures: Map<String, Value>,
    /// Return in each iteration, the mean of all policies; null where no episode ended.
    return_mean: Vec<Option<f64>>,
    /// That of the policy which is best after training.
    return_best: Vec<Option<f64>>,
}

/// How policies were evaluated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Evaluation {
    /// Episodes of each policy.
    pub episodes: usize,
    /// Whether with sampled actions too.
    pub stochastic: bool,
}

impl Record {
    /// The record of a run that this program has trained on this machine.
    pub fn new(
        config: &Config,
        evaluation: Evaluation,
        measures: &Measures,
        curves: [&[f64]; 2],
        machine: String,
    ) -> Self {
        let value = |value: f64| serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number);
        let [mean, best] = curves.map(|curve| curve.iter().map(|&y| short(y)).collect());
        Record {
            config: config.to_toml(),
            episodes: evaluation.episodes,
            stochastic: evaluation.stochastic,
            commit: option_env!("STEIN_COMMIT").map(String::from),
            machine,
            measures: measures.iter().map(|(name, x)| (name.clone(), value(*x))).collect(),
            return_mean: mean,
            return_best: best,
        }
    }

    /// Where the record of a run is.
    pub fn path(experiment: &Path, label: &str, seed: u64) -> PathBuf {
        experiment.join(label).join(format!("seed{seed}.json"))
    }

    /// Reads a record; none where there is no such file.
    pub fn read(path: &Path) -> Result<Option<Record>> {
        let text = match std::fs::read_to_string(path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|error| Error::io("read", path, error))?,
        };
        serde_json::from_str(&text).map(Some).map_err(|error| {
            Error::input(format!(
                "{} is no record of a run ({error}): delete it, and `{} reproduce` trains that run again",
                path.display(),
                program::name()
            ))
        })
    }

    /// Writes it down.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string(self).map_err(|error| Error::failed(error.to_string()))?;
        atomic::write(path, (text + "\n").as_bytes())
    }

    /// The settings that it was trained with.
    pub fn settings(&self, path: &Path, registry: &Registry) -> Result<Settings> {
        let source = path.display().to_string();
        let table = self
            .config
            .parse::<toml::Table>()
            .map_err(|_| Error::input(format!("{source}: its settings are not valid TOML: delete it")))?;
        if let Some(version) = table.get("stein_version").and_then(|version| version.as_str()) {
            check_version(path, version)?;
        }
        Settings::resolve(table, &source, registry)
    }

    /// Whether it has been evaluated as asked.
    pub fn is_of(&self, asked: Evaluation) -> bool {
        self.episodes == asked.episodes && (self.stochastic || !asked.stochastic)
    }

    /// Its measures.
    pub fn measures(&self) -> Measures {
        let each = self.measures.iter();
        each.map(|(name, value)| (name.clone(), value.as_f64().unwrap_or(f64::NAN)))
            .collect()
    }

    /// Return over iterations, which count from 1.
    pub fn curve(&self, whose: Curve) -> Vec<[f64; 2]> {
        let returns = match whose {
            Curve::Mean => &self.return_mean,
            Curve::Best => &self.return_best,
        };
        let each = returns.iter().enumerate();
        each.map(|(k, y)| [(k + 1) as f64, y.unwrap_or(f64::NAN)]).collect()
    }

    /// Iterations that it was trained for.
    pub fn iterations(&self) -> usize {
        self.return_mean.len()
    }
}

/// Refuses what was trained with other settings than the experiment asks for, where these have a part in the run.
pub fn check_settings(path: &Path, stored: &Config, asked: &Config) -> Result<()> {
    let differ = differences(stored, asked);
    match differ.into_iter().find(|(key, ..)| asked.has_part(key)) {
        None => Ok(()),
        Some((key, old, new)) => Err(Error::input(format!(
            "the run in {} has {key} = {old}, but the experiment asks for {new}; choose another folder with --out, or \
             delete that run",
            path.display()
        ))),
    }
}

/// A number of a curve with six digits, which are more than a picture shows.
fn short(value: f64) -> Option<f64> {
    value
        .is_finite()
        .then(|| format!("{value:.5e}").parse().unwrap_or(value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_as_it_was_written() {
        let place = tempfile::tempdir().unwrap();
        let path = Record::path(place.path(), "ppo", 7);
        std::fs::create_dir(place.path().join("ppo")).unwrap();
        assert!(Record::read(&path).unwrap().is_none());
        let asked = Evaluation {
            episodes: 10,
            stochastic: false,
        };
        let measures = vec![("ways".into(), 3.0), ("coverage".into(), f64::NAN)];
        let (mean, best) = ([f64::NAN, 1234.56789], [2.0, 3.0]);
        let record = Record::new(&Config::default(), asked, &measures, [&mean, &best], "a machine".into());
        record.write(&path).unwrap();
        let read = Record::read(&path).unwrap().unwrap();
        assert_eq!(read.config, Config::default().to_toml());
        assert_eq!(read.measures()[0], ("ways".into(), 3.0));
        assert!(read.measures()[1].1.is_nan());
        assert_eq!(read.curve(Curve::Mean)[1], [2.0, 1234.57]);
        assert!(read.curve(Curve::Mean)[0][1].is_nan());
        assert_eq!(read.curve(Curve::Best), [[1.0, 2.0], [2.0, 3.0]]);
        assert!(read.is_of(asked));
        assert!(!read.is_of(Evaluation {
            stochastic: true,
            ..asked
        }));

        std::fs::write(&path, "{}").unwrap();
        let words = Record::read(&path).unwrap_err().to_string();
        assert!(words.contains("seed7.json is no record of a run"), "{words}");
    }
}
