//! What `stein eval` prints and `summary.json` holds: returns and the task's own measures, per policy and of the ensemble.

use serde_json::{Map, Value, json};

use super::settings::Settings;
use crate::env::{Episode, Measure};
use crate::policy::evaluate::mean_and_deviation;

/// The evaluation of an ensemble as JSON; `policies[i]` are the episodes of policy i.
pub fn report(settings: &Settings, policies: &[Vec<Episode>]) -> Map<String, Value> {
    let each = policies.iter().map(|episodes| {
        let returns: Vec<f64> = episodes.iter().map(Episode::total).collect();
        let (mean, deviation) = mean_and_deviation(&returns);
        let mut policy = Map::new();
        policy.insert("return_mean".into(), number(mean));
        policy.insert("return_std".into(), number(deviation));
        add(&mut policy, settings.task.measure(episodes));
        Value::Object(policy)
    });
    let mut ensemble = Map::new();
    add(&mut ensemble, settings.task.measure_ensemble(policies));
    let mut report = Map::new();
    report.insert("env".into(), json!(settings.env()));
    report.insert("method".into(), json!(settings.config.method));
    report.insert("seed".into(), json!(settings.config.seed));
    report.insert("policies".into(), each.collect());
    report.insert("ensemble".into(), Value::Object(ensemble));
    report
}

fn add(object: &mut Map<String, Value>, measures: Vec<Measure>) {
    object.extend(measures.into_iter().map(|(name, value)| (name.into(), number(value))));
}

/// A number; JSON has none for NaN, which becomes null.
fn number(value: f64) -> Value {
    serde_json::Number::from_f64(value).map_or(Value::Null, Value::Number)
}
