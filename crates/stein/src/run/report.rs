//! The output of `stein eval` and `summary.json`: returns and the task's metrics, per policy and of the ensemble, and
//! the mutual information of behaviour or states and the policy.

use serde_json::{Map, Value, json};

use super::settings::Settings;
use crate::env::{Episode, Measure};
use crate::error::Result;
use crate::policy::evaluate::mean_and_std;
use crate::policy::information;

/// The evaluation of an ensemble as JSON; `policies[i]` are the episodes of policy i.
pub fn report(settings: &Settings, policies: &[Vec<Episode>]) -> Result<Map<String, Value>> {
    let mut means = Vec::new();
    let each = policies.iter().map(|episodes| {
        let returns: Vec<f64> = episodes.iter().map(Episode::total).collect();
        let (mean, std) = mean_and_std(&returns);
        means.push(mean);
        let mut policy = Map::new();
        policy.insert("return_mean".into(), number(mean));
        policy.insert("return_std".into(), number(std));
        add(&mut policy, settings.task.measure(episodes));
        policy.insert("returns".into(), returns.iter().map(|&value| number(value)).collect());
        Value::Object(policy)
    });
    let each: Value = each.collect();
    let mut ensemble = Map::new();
    add(&mut ensemble, settings.task.measure_ensemble(policies));
    let [behaviour, states] = information::of_episodes(settings.task.as_ref(), policies, settings.config.seed)?;
    let general = vec![
        ("return_mean", mean_and_std(&means).0),
        ("return_best", means.iter().copied().fold(f64::NAN, f64::max)),
        ("policy_information", behaviour),
        ("state_information", states),
    ];
    add(&mut ensemble, general);
    if let Some(grid) = settings.task.grid() {
        let signals = settings.task.make()?.spec().signals.clone();
        let [coverage, score] = grid.scores(&signals, policies);
        add(&mut ensemble, vec![("grid_coverage", coverage), ("qd_score", score)]);
    }
    let mut report = Map::new();
    report.insert("env".into(), json!(settings.env()));
    report.insert("method".into(), json!(settings.config.method));
    report.insert("seed".into(), json!(settings.config.seed));
    report.insert("policies".into(), each);
    report.insert("ensemble".into(), Value::Object(ensemble));
    Ok(report)
}

fn add(object: &mut Map<String, Value>, measures: Vec<Measure>) {
    object.extend(measures.into_iter().map(|(name, value)| (name.into(), number(value))));
}

/// A number; NaN becomes null, because JSON has none.
fn number(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number)
}
