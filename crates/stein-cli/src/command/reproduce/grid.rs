//! Grids: cases that are made anew for each combination of values.

use stein::run::settings;
use stein::{Error, Result};

use super::experiment::{CaseFile, Experiment};

/// More cases than this are a mistake.
const MOST_CASES: f64 = 10_000.0;

/// The cases of an experiment, one for each combination of the values in their grids.
pub fn spread(experiment: &Experiment, source: &str) -> Result<Vec<CaseFile>> {
    let mut cases: Vec<CaseFile> = Vec::new();
    for case in &experiment.case {
        let mut axes = axes("", &experiment.grid, source)?;
        for (key, values) in self::axes("", &case.grid, source)? {
            axes.retain(|(other, _)| *other != key);
            axes.push((key, values));
        }
        let many = axes.iter().map(|(_, values)| values.len() as f64).product::<f64>();
        if cases.len() as f64 + many > MOST_CASES {
            return Err(Error::input(format!(
                "{source}: the grid of \"{}\" has {many:.0} combinations, and {MOST_CASES} cases are the most: give its keys fewer values",
                case.label
            )));
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
    if cases.is_empty() {
        return Err(Error::input(format!(
            "{source}: there is no case: add a [[case]] with a label and settings"
        )));
    }
    check_labels(&cases, source)?;
    Ok(cases)
}

/// Refuses labels that cannot be names of folders, and those that two cases have.
fn check_labels(cases: &[CaseFile], source: &str) -> Result<()> {
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
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

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
    fn a_grid_without_end_is_refused() {
        let values: Vec<String> = (1..=100).map(|k| format!("{k}e-6")).collect();
        let keys = ["learning_rate", "clip", "entropy"].map(|key| format!("ppo.{key} = [{}]", values.join(", ")));
        let text = format!(
            "[settings]\n[scale.paper]\nseeds = 1\nepisodes = 1\nsettings = {{}}\n[grid]\n{}\n[[case]]\nlabel = \"a\"",
            keys.join("\n")
        );
        let experiment: Experiment = toml::from_str(&text).unwrap();
        let error = spread(&experiment, "my.toml").unwrap_err().to_string();
        assert!(
            error.contains("1000000 combinations") && error.contains("my.toml"),
            "{error}"
        );
    }
}
