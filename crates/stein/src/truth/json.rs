//! A tabular problem of the user, from a JSON file.
//!
//! ```text
//! { "gamma": γ, "initial": [S], "transition": [S][A][S], "policies": [[S][A], [S][A]],
//!   "reward": [S][A] (0 if absent), "termination": [S][A] (0 if absent) }
//! ```
//!
//! Distributions may miss 1 by up to 1e-6, like rounded decimals; they are then rescaled. States that a policy never
//! reaches are allowed: the ratio is undefined there.

use serde::Deserialize;
use serde_json::error::Category;

use super::tabular::{TabularMdp, TabularPolicy};
use crate::error::{Error, Result};

/// How far a distribution may be from summing to 1.
const TOLERANCE: f64 = 1e-6;

/// Maximum number of entries of `transition`.
const ENTRIES: usize = 10_000_000;

/// The largest discount: the linear solve loses as many digits as 1-γ has leading zeros.
const LARGEST_GAMMA: f64 = 1.0 - 1e-9;

/// A process and two policies.
#[derive(Clone, Debug, PartialEq)]
pub struct TabularProblem {
    /// The process.
    pub mdp: TabularMdp,
    /// The policies a and b.
    pub policies: [TabularPolicy; 2],
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    gamma: f64,
    initial: Vec<f64>,
    transition: Vec<Vec<Vec<f64>>>,
    policies: Vec<Vec<Vec<f64>>>,
    reward: Option<Vec<Vec<f64>>>,
    termination: Option<Vec<Vec<f64>>>,
}

impl TabularProblem {
    /// Reads a problem; `source` is the file name, with which every error starts.
    pub fn from_json(text: &str, source: &str) -> Result<TabularProblem> {
        let reader = &mut serde_json::Deserializer::from_str(text);
        let file = serde_path_to_error::deserialize(&mut *reader).map_err(|error| {
            let path = error.path().to_string();
            let (words, category) = (error.inner().to_string(), error.inner().classify());
            match category {
                Category::Data if path != "." && !path.ends_with('?') => {
                    format!("{source}: {path} is wrong: {words}; write numbers in the shape {SHAPES}")
                }
                Category::Data => format!("{source}: {words}; write an object of {SHAPES}"),
                _ => not_json(source, &words),
            }
        });
        let file: File = file.map_err(Error::Input)?;
        reader
            .end()
            .map_err(|error| Error::Input(not_json(source, &error.to_string())))?;
        problem(file).map_err(|complaint| Error::Input(format!("{source}: {complaint}")))
    }
}

/// The keys of a file and their shapes.
const SHAPES: &str = "gamma, initial [S], transition [S][A][S], policies [2][S][A], and if wanted reward [S][A] and \
                      termination [S][A]";

fn not_json(source: &str, words: &str) -> String {
    format!("{source}: this is not JSON: {words}; fix the text there")
}

/// What is wrong and what to do, without the file name.
type Checked<T> = std::result::Result<T, String>;

fn problem(mut file: File) -> Checked<TabularProblem> {
    if !(0.0..=LARGEST_GAMMA).contains(&file.gamma) {
        return Err(format!(
            "gamma is {}; choose a discount from 0 to {LARGEST_GAMMA}",
            file.gamma
        ));
    }
    let states = file.initial.len();
    if states == 0 {
        return Err("initial is empty; give each state its probability".into());
    }
    distribution(&mut file.initial, "initial")?;
    length(&file.transition, states, "transition", "state")?;
    let actions = file.transition[0].len();
    if actions == 0 {
        return Err("transition[0] is empty; give each action its row of probabilities".into());
    }
    let entries = states.saturating_mul(states).saturating_mul(actions);
    if entries > ENTRIES {
        return Err(format!(
            "transition has {states} × {actions} × {states} entries; use fewer states or actions (at most {ENTRIES} entries)"
        ));
    }
    let mut transition = Vec::with_capacity(entries);
    for (state, rows) in file.transition.into_iter().enumerate() {
        length(&rows, actions, &format!("transition[{state}]"), "action")?;
        for (action, mut row) in rows.into_iter().enumerate() {
            let key = format!("transition[{state}][{action}]");
            length(&row, states, &key, "state")?;
            distribution(&mut row, &key)?;
            transition.extend(row);
        }
    }
    let policies = <[Vec<Vec<f64>>; 2]>::try_from(file.policies)
        .map_err(|policies| format!("policies has {} policies; give exactly two", policies.len()))?;
    let [a, b] = policies;
    let mut policies = [
        table(a, states, actions, "policies[0]")?,
        table(b, states, actions, "policies[1]")?,
    ];
    for (index, policy) in policies.iter_mut().enumerate() {
        for (state, row) in policy.chunks_exact_mut(actions).enumerate() {
            distribution(row, &format!("policies[{index}][{state}]"))?;
        }
    }
    let pairs = |rows: Option<Vec<Vec<f64>>>, key: &str| match rows {
        Some(rows) => table(rows, states, actions, key),
        None => Ok(vec![0.0; states * actions]),
    };
    let reward = pairs(file.reward, "reward")?;
    let termination = pairs(file.termination, "termination")?;
    if let Some(pair) = termination.iter().position(|ending| !(0.0..=1.0).contains(ending)) {
        return Err(format!(
            "termination[{}][{}] is {}; choose a probability from 0 to 1",
            pair / actions,
            pair % actions,
            termination[pair]
        ));
    }
    let mdp = TabularMdp {
        states,
        actions,
        gamma: file.gamma,
        initial: file.initial,
        transition,
        reward,
        termination,
    };
    Ok(TabularProblem { mdp, policies })
}

/// Rejects an array that does not have one entry for each `item`.
fn length<T>(array: &[T], expected: usize, key: &str, item: &str) -> Checked<()> {
    if array.len() == expected {
        return Ok(());
    }
    Err(format!(
        "{key} has {} entries; give one for each {item} ({expected})",
        array.len()
    ))
}

/// Flattens an array with one number for each state and action.
fn table(rows: Vec<Vec<f64>>, states: usize, actions: usize, key: &str) -> Checked<Vec<f64>> {
    length(&rows, states, key, "state")?;
    for (state, row) in rows.iter().enumerate() {
        length(row, actions, &format!("{key}[{state}]"), "action")?;
    }
    Ok(rows.concat())
}

/// Rejects what is not a distribution, and rescales rounded ones.
fn distribution(row: &mut [f64], key: &str) -> Checked<()> {
    if let Some(index) = row.iter().position(|&probability| probability < 0.0) {
        return Err(format!("{key}[{index}] is {}; a probability is at least 0", row[index]));
    }
    let sum: f64 = row.iter().sum();
    if (sum - 1.0).abs() > TOLERANCE {
        // Without the rounding of the sum itself, which is of no interest to the reader.
        let shown = (sum * 1e9).round() / 1e9;
        return Err(format!("{key} sums to {shown}; make it sum to 1"));
    }
    row.iter_mut().for_each(|probability| *probability /= sum);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn example() -> Value {
        json!({
            "gamma": 0.5,
            "initial": [1, 0],
            "transition": [[[0.5, 0.5], [0, 1], [1, 0]], [[0, 1], [1.0, 0.0], [0.3333333, 0.6666666]]],
            "policies": [[[0.2, 0.3, 0.5], [1, 0, 0]], [[0, 1, 0], [0, 0, 1]]],
            "reward": [[1, 2, 3], [-4, 5e-1, 6]],
            "termination": [[0, 0, 1], [0.25, 0, 0]],
        })
    }

    fn read(value: &Value) -> Result<TabularProblem> {
        TabularProblem::from_json(&value.to_string(), "my.json")
    }

    #[test]
    fn a_file_gives_its_problem() {
        let TabularProblem { mdp, policies } = read(&example()).unwrap();
        assert_eq!((mdp.states, mdp.actions, mdp.gamma), (2, 3, 0.5));
        assert_eq!(mdp.initial, [1.0, 0.0]);
        assert_eq!(mdp.next(0), [0.5, 0.5]);
        assert_eq!(mdp.next(4), [1.0, 0.0]);
        assert_eq!(mdp.next(5).iter().sum::<f64>(), 1.0);
        assert_eq!(policies[0], [0.2, 0.3, 0.5, 1.0, 0.0, 0.0]);
        assert_eq!(policies[1], [0.0, 1.0, 0.0, 0.0, 0.0, 1.0]);
        assert_eq!(mdp.reward, [1.0, 2.0, 3.0, -4.0, 0.5, 6.0]);
        assert_eq!(mdp.termination, [0.0, 0.0, 1.0, 0.25, 0.0, 0.0]);
    }

    #[test]
    fn reward_and_termination_may_be_absent() {
        let mut value = example();
        value.as_object_mut().unwrap().shift_remove("reward");
        value["termination"] = Value::Null;
        let problem = read(&value).unwrap();
        assert_eq!(problem.mdp.reward, [0.0; 6]);
        assert_eq!(problem.mdp.termination, [0.0; 6]);
    }

    fn refused(text: &str, expected: &str) {
        let error = TabularProblem::from_json(text, "my.json").expect_err(expected);
        assert!(matches!(error, Error::Input(_)));
        let sentence = error.to_string();
        let expected = format!("my.json: {expected}");
        assert!(sentence.starts_with(&expected), "{sentence:?} instead of {expected:?}");
        assert!(sentence.contains("; "), "{sentence:?} names no cure");
        assert!(!sentence.contains('\n'), "{sentence:?} is not one line");
    }

    #[test]
    fn every_wrong_value_is_refused_by_its_place() {
        let cases = [
            ("/gamma", json!(1), "gamma is 1;"),
            ("/gamma", json!(-0.1), "gamma is -0.1;"),
            ("/gamma", json!(0.9999999999), "gamma is 0.9999999999;"),
            ("/gamma", json!("high"), "gamma is wrong: invalid type: string \"high\""),
            ("/gamma", Value::Null, "gamma is wrong: invalid type: null"),
            ("/initial", json!([]), "initial is empty;"),
            ("/initial", json!([0.5, 0.4]), "initial sums to 0.9;"),
            ("/initial", json!([2, -1]), "initial[1] is -1;"),
            (
                "/initial",
                json!([0.5, 0.25, 0.25]),
                "transition has 2 entries; give one for each state (3)",
            ),
            ("/initial", json!({"0": 1}), "initial is wrong: invalid type: map"),
            ("/transition", json!([[], []]), "transition[0] is empty;"),
            (
                "/transition/1",
                json!([[0, 1]]),
                "transition[1] has 1 entries; give one for each action (3)",
            ),
            (
                "/transition/1/2",
                json!([1]),
                "transition[1][2] has 1 entries; give one for each state (2)",
            ),
            ("/transition/1/1", json!([0.4, 0.5]), "transition[1][1] sums to 0.9;"),
            (
                "/transition/1/1",
                json!([0.5, 0.500002]),
                "transition[1][1] sums to 1.000002;",
            ),
            ("/transition/0/1/0", json!(-0.5), "transition[0][1][0] is -0.5;"),
            (
                "/transition/0/1/0",
                json!([0]),
                "transition[0][1][0] is wrong: invalid type: sequence",
            ),
            (
                "/transition/0/1/0",
                Value::Null,
                "transition[0][1][0] is wrong: invalid type: null",
            ),
            (
                "/policies",
                json!([[[1, 0, 0], [1, 0, 0]]]),
                "policies has 1 policies; give exactly two",
            ),
            (
                "/policies",
                json!([[], [], []]),
                "policies has 3 policies; give exactly two",
            ),
            (
                "/policies/1",
                json!([[1, 0, 0]]),
                "policies[1] has 1 entries; give one for each state (2)",
            ),
            (
                "/policies/0/1",
                json!([1, 0]),
                "policies[0][1] has 2 entries; give one for each action (3)",
            ),
            ("/policies/0/1", json!([1, 0, 1]), "policies[0][1] sums to 2;"),
            ("/policies/0/1", json!([1, 1, -1]), "policies[0][1][2] is -1;"),
            (
                "/reward",
                json!([[1, 2, 3]]),
                "reward has 1 entries; give one for each state (2)",
            ),
            (
                "/reward/1",
                json!([1]),
                "reward[1] has 1 entries; give one for each action (3)",
            ),
            (
                "/reward/1/0",
                json!(true),
                "reward[1][0] is wrong: invalid type: boolean",
            ),
            ("/termination/1", json!([1, 0]), "termination[1] has 2 entries;"),
            ("/termination/1/2", json!(1.5), "termination[1][2] is 1.5;"),
            ("/termination/0/1", json!(-0.5), "termination[0][1] is -0.5;"),
        ];
        for (pointer, wrong, expected) in cases {
            let mut value = example();
            *value.pointer_mut(pointer).unwrap() = wrong;
            refused(&value.to_string(), expected);
        }
    }

    #[test]
    fn missing_and_unknown_keys_are_named() {
        for key in ["gamma", "initial", "transition", "policies"] {
            let mut value = example();
            value.as_object_mut().unwrap().shift_remove(key);
            refused(&value.to_string(), &format!("missing field `{key}`"));
        }
        let mut value = example();
        value["rewards"] = json!(1);
        refused(&value.to_string(), "rewards is wrong: unknown field `rewards`");
        refused("[]", "invalid length 0");
        refused("7", "invalid type: integer `7`");
    }

    #[test]
    fn text_that_is_not_json_is_refused_with_its_place() {
        let text = example().to_string();
        refused("", "this is not JSON: EOF");
        refused(&text[..text.len() - 1], "this is not JSON: EOF");
        refused(&format!("{text} x"), "this is not JSON: trailing characters");
        refused(&text.replace("-4", "NaN"), "this is not JSON: expected value");
        refused(&text.replace("-4", "1e999"), "this is not JSON: number out of range");
        refused(&format!("{{\"gamma\": 0.5, {}", &text[1..]), "duplicate field `gamma`");
    }

    #[test]
    fn absurd_sizes_are_refused_before_they_are_used() {
        let states = 3163;
        let mut initial = vec![0.0; states];
        initial[0] = 1.0;
        let value = json!({
            "gamma": 0.5, "initial": initial, "transition": vec![[[1.0]]; states], "policies": [],
        });
        refused(&value.to_string(), "transition has 3163 × 1 × 3163 entries;");
    }
}
