//! Behaviour φ(s): what policies should differ in.
//!
//! ```text
//! ζ_ab = ρ_a(s,a)/ρ_b(s,a)             "state-action": the paper; every ratio estimator
//! ζ_ab = ρ_a(φ(s))/ρ_b(φ(s))           "state", or a list of signals and observation entries; NCE only
//! ```
//!
//! The DICE estimators need a flow equation, which exists for (s,a) but not for a function φ(s), so only a classifier
//! can learn its ratio.

use serde::{Deserialize, Serialize};

use super::{Spec, Task};
use crate::error::{Error, Result};

/// The setting `qd.behaviour`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Behaviour {
    /// "state-action", "state" or "task".
    Named(String),
    /// A list of entries.
    Of(Vec<Entry>),
}

/// One entry of a list: a signal by name, or an observation by index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
#[non_exhaustive]
pub enum Entry {
    /// Index of an observation.
    Observation(usize),
    /// Name of a signal.
    Signal(String),
}

/// The source of one entry of φ(s).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Column {
    /// The observation with this index.
    Observation(usize),
    /// The signal with this index.
    Signal(usize),
}

impl Behaviour {
    /// The paper's: state-action pairs.
    pub fn state_action() -> Self {
        Behaviour::Named("state-action".into())
    }

    /// Whether it is the paper's state-action pairs.
    pub fn is_state_action(&self) -> bool {
        *self == Behaviour::state_action()
    }

    /// Replaces "task" by the task's list.
    pub fn resolved(self, task: &dyn Task) -> Self {
        match (self, task.behaviour()) {
            (Behaviour::Named(name), []) if name == "task" => Behaviour::Named("state".into()),
            (Behaviour::Named(name), names) if name == "task" => {
                Behaviour::Of(names.iter().map(|&name| Entry::Signal(name.into())).collect())
            }
            (other, _) => other,
        }
    }

    /// The columns of φ(s); none for "state-action".
    pub fn columns(&self, spec: &Spec) -> Result<Vec<Column>> {
        let entries = match self {
            Behaviour::Named(name) if name == "state-action" => return Ok(Vec::new()),
            Behaviour::Named(name) if name == "state" => {
                return Ok((0..spec.observation).map(Column::Observation).collect());
            }
            Behaviour::Named(name) => {
                return Err(Error::input(format!(
                    "there is no qd.behaviour \"{name}\"; set it to state-action, state, task or a list of signals as in \
                     [\"{}\"]",
                    spec.signals.first().unwrap_or(&"x")
                )));
            }
            Behaviour::Of(entries) => entries,
        };
        if entries.is_empty() {
            return Err(Error::input(
                "qd.behaviour = [] is empty: name a signal, or set it to state",
            ));
        }
        entries.iter().map(|entry| entry.column(spec)).collect()
    }
}

impl Entry {
    fn column(&self, spec: &Spec) -> Result<Column> {
        match self {
            Entry::Observation(index) if *index < spec.observation => Ok(Column::Observation(*index)),
            Entry::Observation(index) => Err(Error::input(format!(
                "qd.behaviour names observation {index}, but they are numbered 0 to {}",
                spec.observation.saturating_sub(1)
            ))),
            Entry::Signal(name) => match spec.signals.iter().position(|signal| signal == name) {
                Some(index) => Ok(Column::Signal(index)),
                None => Err(Error::input(format!(
                    "qd.behaviour names the signal \"{name}\", which this environment does not have; it has: {}",
                    spec.signals.join(", ")
                ))),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::env::maze::MazeConfig;

    fn read(text: &str) -> Behaviour {
        let mut table: toml::Table = format!("b = {text}").parse().unwrap();
        table.remove("b").unwrap().try_into().unwrap()
    }

    #[test]
    fn settings_name_columns() {
        let task = MazeConfig::default();
        let spec = task.make().unwrap().spec().clone();
        let columns = |text: &str| read(text).resolved(&task).columns(&spec);
        assert_eq!(columns("\"state-action\"").unwrap(), []);
        assert_eq!(columns("\"state\"").unwrap(), [0, 1, 2, 3].map(Column::Observation));
        assert_eq!(columns("\"task\"").unwrap(), [0, 1].map(Column::Signal));
        let mixed = columns("[\"distance\", 3]").unwrap();
        assert_eq!(mixed, [Column::Signal(4), Column::Observation(3)]);
        for (text, named) in [
            ("\"stat\"", "stat"),
            ("[]", "[]"),
            ("[\"z\"]", "distance"),
            ("[4]", "0 to 3"),
        ] {
            let sentence = columns(text).unwrap_err().to_string();
            assert!(sentence.contains(named), "{sentence}");
        }
    }
}
