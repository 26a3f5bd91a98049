//! Prediction of the memory that a run needs, from its settings and before allocation; and how much the machine has.
//!
//! ```text
//! networks   16 bytes per parameter: itself, Adam's two moments, its gradient
//! rollouts   n·steps rows of transitions, with the critics' values and the minibatch orders
//! memory     n·steps·ratio.rollouts rows of what the estimator trains on, twice: stored, and assembled for it
//! pairs      log ζ_ab of all n(n-1) pairs on both policies' samples, and the log-densities they are differences of
//! evaluation rewards, signals and observations of the episodes that are run at the end
//! pool       φ of the pooled samples (DICE): once, and twice more per thread
//! ```
//!
//! `stein bench --dry-run` prints it. Small parts are left out; `BASE` is what the program and its libraries need.
//! docs/performance.md compares it with measurements.

use crate::config::Config;
use crate::env::Spec;
use crate::error::{Advice, Error, Result};
use crate::machine::{available, size};
use crate::nn::Shape;
use crate::nn::product::padded;
use crate::policy::evaluate::{self, EPISODES};
use crate::ratio::blur::COPIES;
use crate::ratio::kind::Networks;
use crate::ratio::pooled::problem::entries;

/// What the program needs before training.
const BASE: f64 = 30e6;

/// Memory of one part of a run.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Part {
    /// Its name.
    pub name: &'static str,
    /// Its size in bytes.
    pub bytes: f64,
    /// The settings that make it large.
    pub settings: &'static str,
}

/// The parts of a run with these settings, which must be resolved.
pub fn foresee(config: &Config, spec: &Spec, threads: usize) -> Result<Vec<Part>> {
    // Entries of φ(s); 0 if ratios are of (s,a).
    let behaviour = match &config.qd.behaviour {
        Some(behaviour) if config.has_part("qd") => behaviour.columns(spec)?.len(),
        _ => 0,
    };
    let (n, steps) = (config.ensemble as f64, config.steps as f64);
    let (state, action, phi) = (spec.observation as f64, spec.action() as f64, behaviour as f64);
    let parameters =
        |input: usize, hidden: &[usize], output: usize| Shape::new(input, hidden, output).parameters() as f64;
    let streams = 1.0 + config.method.streams() as f64;
    let mut parts = vec![Part {
        name: "the program",
        bytes: BASE,
        settings: "nothing",
    }];
    let mut add = |name, bytes, settings| parts.push(Part { name, bytes, settings });
    let policy = parameters(spec.observation, &config.policy.hidden, spec.action()) + action;
    add("policies", 16.0 * n * policy, "ensemble, policy.hidden");
    let critic = parameters(spec.observation, &config.critic.hidden, 1);
    add("critics", 16.0 * n * streams * critic, "ensemble, critic.hidden");
    let row = 8.0 * state + 8.0 * action + 4.0 * phi + 40.0;
    let values = 20.0 * streams + 4.0 * config.ppo.epochs as f64;
    add("rollouts", n * steps * (row + values), "ensemble, steps");
    add(
        "evaluation",
        evaluate::memory(config.ensemble, EPISODES, spec),
        "ensemble, env.horizon",
    );
    if !config.has_part("ratio") {
        return Ok(parts);
    }
    let ratio = &config.ratio;
    let width = if behaviour > 0 {
        behaviour
    } else {
        spec.observation + spec.action()
    };
    let kept = steps * ratio.rollouts as f64;
    let row = 8.0 * state + 4.0 * action + 4.0 * phi + 9.0;
    let features = 8.0 * width as f64;
    add(
        "ratio memory",
        n * kept * (2.0 * row + features),
        "ensemble, steps, ratio.rollouts",
    );
    if !config.has_part("qd") {
        return Ok(parts);
    }
    let copies = if behaviour > 0 && config.qd.resolution.unwrap_or(0.0) > 0.0 {
        COPIES as f64
    } else {
        1.0
    };
    let pairs = n * (n - 1.0);
    let ratios = 9.5 * pairs + 4.0 * n * n;
    add("ratios of all pairs", ratios * steps * copies, "ensemble, steps");
    let networks = config.qd.estimator.networks(ratio);
    let (copies, outputs) = match networks {
        Networks::Shared | Networks::Pooled => (1.0, config.ensemble),
        Networks::PerPolicy(each) => (n * each as f64, 1),
        Networks::PerPair(each) => (pairs * each as f64, 1),
    };
    let bytes = 16.0 * copies * parameters(width, &ratio.hidden, outputs);
    add("ratio networks", bytes, "ensemble, ratio.hidden");
    if networks == Networks::Pooled {
        let samples = n * kept.min(ratio.pool as f64);
        let size = entries(&ratio.hidden, width);
        let rows = samples * padded(size) as f64 * 4.0;
        let dense = (size * size) as f64 * 8.0 * 4.0;
        let bytes = rows + threads as f64 * (2.0 * rows + dense);
        add("pooled samples", bytes, "ensemble, ratio.pool, ratio.rollouts, threads");
    }
    Ok(parts)
}

/// Rejects settings that need more memory than there is.
pub fn check(config: &Config, spec: &Spec) -> Result<()> {
    let parts = foresee(config, spec, crate::parallel::threads())?;
    match available() {
        Some(there) => compare(&parts, there),
        None => Ok(()),
    }
}

fn compare(parts: &[Part], there: f64) -> Result<()> {
    let needed: f64 = parts.iter().map(|part| part.bytes).sum();
    if needed <= there {
        return Ok(());
    }
    let largest = parts.iter().max_by(|a, b| a.bytes.total_cmp(&b.bytes));
    let (name, bytes, settings) = largest.map_or(("", 0.0, ""), |part| (part.name, part.bytes, part.settings));
    Err(Error::input(format!(
        "these settings need about {} of memory and {} are free here: lower {settings} ({name}: {}), or take a larger machine;",
        size(needed),
        size(there),
        size(bytes)
    ))
    .advise(Advice::Memory))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(ensemble: usize) -> Config {
        let text = format!("ensemble = {ensemble}\nsteps = 2048\n[qd]\nresolution = 0.25\nbehaviour = [\"velocity\"]");
        Config::from_table(text.parse().unwrap(), "test").unwrap()
    }

    fn spec() -> Spec {
        Spec {
            observation: 17,
            action_low: vec![-1.0; 6],
            action_high: vec![1.0; 6],
            horizon: 1000,
            can_terminate: false,
            signals: vec!["velocity"],
        }
    }

    #[test]
    fn all_pairs_make_a_large_ensemble_too_large() {
        let total = |n: usize| {
            foresee(&config(n), &spec(), 2)
                .unwrap()
                .iter()
                .map(|part| part.bytes)
                .sum::<f64>()
        };
        assert!(total(10) < 200e6, "{}", size(total(10)));
        assert!(total(1000) > 20e9, "{}", size(total(1000)));
        let error = compare(&foresee(&config(1000), &spec(), 2).unwrap(), 8e9).unwrap_err();
        let sentence = error.to_string();
        for words in [
            "8.0 GB are free",
            "lower ensemble, steps",
            "ratios of all pairs",
            "what needs how much",
        ] {
            assert!(sentence.contains(words), "{sentence}");
        }
        assert_eq!(error.exit_code(), 2);
        assert!(compare(&foresee(&config(10), &spec(), 2).unwrap(), 8e9).is_ok());
    }
}
