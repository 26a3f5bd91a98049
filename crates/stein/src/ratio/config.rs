//! Settings of ratio estimation.

use serde::{Deserialize, Serialize};

use super::kind::{EstimatorChoice, Rates};
use crate::check::{layers, real, whole};
use crate::error::{Error, Result};

/// Which distribution of (s,a) the ratios are of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Occupancy {
    /// Samples weigh γ^t; initial states come from real resets.
    Discounted,
    /// Samples weigh the same; initial states of policy a are its own recent states.
    Visited,
}

/// Which form of NCE.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum NceForm {
    /// One n-way classifier: cost grows with n.
    Softmax,
    /// n log-densities, each told apart from the mixture of the others, as in the paper: cost grows with n².
    Densities,
}

/// Whose samples the DICE estimators learn from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Data {
    /// Those of all policies: ρ_i over their mean, n problems.
    Pooled,
    /// Those of b alone for ρ_a/ρ_b, as in the paper: n(n-1) problems.
    Pair,
}

/// Settings of ratio estimation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct RatioConfig {
    /// Widths of the tanh layers.
    pub hidden: Vec<usize>,
    /// Samples a minibatch.
    pub minibatch: usize,
    /// Passes over the data in each iteration.
    pub epochs: usize,
    /// Further minibatch updates before the first iteration's.
    pub warmup_updates: usize,
    /// How many of a policy's last rollouts are its data.
    pub rollouts: usize,
    /// While ratios steer nothing (ω = 0, nothing is shared, every policy's task says something), they are updated for the
    /// metrics in every so many iterations only, and in the last, by eight times as many passes.
    pub idle: usize,
    /// Adam's learning rate of n-way classifiers, densities (NCE), ν (DualDICE, ValueDICE) and the adversary g (GenDICE);
    /// absent: 2e-3 for classifiers, 5e-4 for the others, for GenDICE 4e-3.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub learning_rate: Option<f64>,
    /// Adam's learning rate of g (DualDICE) and ζ (GenDICE); absent: 4e-3 and 4e-4.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zeta_learning_rate: Option<f64>,
    /// Next actions that are averaged inside B^π ν; absent: 4 on pooled data and for ValueDICE, else 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_actions: Option<usize>,
    /// Weight of the gradient penalty of NCE with densities and of ValueDICE on pairs; 0 for none.
    pub gradient_penalty: f64,
    /// Largest norm of a gradient.
    pub gradient_clip: f64,
    /// Decoupled weight decay.
    pub weight_decay: f64,
    /// Weight of ‖θ‖² in the loss of n-way classifiers.
    pub l2: f64,
    /// Form of NCE: "softmax" or "densities".
    pub nce: NceForm,
    /// Whose samples the DICE estimators learn from: "pooled" or "pair".
    pub data: Data,
    /// Samples of each policy in the pool; where there are more, so many are drawn by their weights.
    pub pool: usize,
    /// Weight of the ridges on pooled data.
    pub ridge: f64,
    /// Weight λ of GenDICE's constraint on the mean of ζ.
    pub gendice_lambda: f64,
    /// GenDICE's ζ is read from an exponential average of its network with this decay; 0 for none.
    pub gendice_average: f64,
    /// Which distribution is meant: "discounted" or "visited"; absent: "discounted" of states and actions, "visited" of other
    /// behaviour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub occupancy: Option<Occupancy>,
}

impl Default for RatioConfig {
    fn default() -> Self {
        RatioConfig {
            hidden: vec![100, 100],
            minibatch: 512,
            epochs: 1,
            warmup_updates: 0,
            rollouts: 2,
            idle: 20,
            learning_rate: None,
            zeta_learning_rate: None,
            next_actions: None,
            gradient_penalty: 0.0,
            gradient_clip: 1.0,
            weight_decay: 0.0,
            l2: 3e-4,
            nce: NceForm::Softmax,
            data: Data::Pooled,
            pool: 1024,
            ridge: 1e-4,
            gendice_lambda: 1.0,
            gendice_average: 0.99,
            occupancy: None,
        }
    }
}

impl RatioConfig {
    /// Refuses impossible values.
    pub fn validate(&self) -> Result<()> {
        layers("ratio.hidden", &self.hidden)?;
        whole("ratio.minibatch", self.minibatch, 2, 1_000_000)?;
        whole("ratio.epochs", self.epochs, 0, 10_000)?;
        whole("ratio.warmup_updates", self.warmup_updates, 0, 10_000_000)?;
        whole("ratio.rollouts", self.rollouts, 1, 1000)?;
        whole("ratio.idle", self.idle, 1, 1_000_000_000)?;
        real("ratio.learning_rate", self.learning_rate.unwrap_or(1e-4), 0.0, 10.0)?;
        let zeta_rate = self.zeta_learning_rate.unwrap_or(1e-4);
        real("ratio.zeta_learning_rate", zeta_rate, 0.0, 10.0)?;
        whole("ratio.next_actions", self.next_actions.unwrap_or(1), 1, 1000)?;
        real("ratio.gradient_penalty", self.gradient_penalty, 0.0, 1e6)?;
        real("ratio.gradient_clip", self.gradient_clip, 1e-9, 1e9)?;
        real("ratio.weight_decay", self.weight_decay, 0.0, 1e3)?;
        real("ratio.l2", self.l2, 0.0, 1e3)?;
        whole("ratio.pool", self.pool, 2, 10_000_000)?;
        real("ratio.ridge", self.ridge, 1e-12, 1e6)?;
        real("ratio.gendice_lambda", self.gendice_lambda, 0.0, 1e6)?;
        real("ratio.gendice_average", self.gendice_average, 0.0, 0.999_999)
    }

    /// Minibatch updates of an iteration on so many samples; the first one has `warmup_updates` more.
    pub fn updates(&self, samples: usize, first: bool) -> usize {
        self.epochs * samples.div_ceil(self.minibatch) + if first { self.warmup_updates } else { 0 }
    }

    /// Fills in what depends on the estimator. Refuses settings that were changed and have no part in its form.
    pub fn resolve(&mut self, kind: EstimatorChoice) -> Result<()> {
        let Rates {
            learning_rate,
            zeta_learning_rate,
            next_actions,
        } = kind.rates(self);
        let usual = RatioConfig {
            zeta_learning_rate: Some(zeta_learning_rate),
            ..RatioConfig::default()
        };
        let table = |config: &RatioConfig| toml::Table::try_from(config).expect("settings are plain values");
        let (own, usual) = (table(self), table(&usual));
        let (keys, form) = kind.unused(self).unwrap_or_default();
        // A finished configuration has them all; only what was changed is told.
        let changed = |key: &&&str| own.get(**key).is_some_and(|value| Some(value) != usual.get(**key));
        if let Some(key) = keys.iter().find(changed) {
            return Err(Error::input(format!(
                "ratio.{key} has no part in this form of {kind}: set it to {}, or {form}",
                usual[*key]
            )));
        }
        self.learning_rate.get_or_insert(learning_rate);
        self.zeta_learning_rate.get_or_insert(zeta_learning_rate);
        self.next_actions.get_or_insert(next_actions);
        Ok(())
    }
}

/// Everything an estimator needs to know when it is made.
#[derive(Clone, Debug)]
pub struct EstimatorConfig {
    /// Number of policies.
    pub n: usize,
    /// Features of (s,a).
    pub width: usize,
    /// Discount γ.
    pub gamma: f32,
    /// Learning rate of the value-like network.
    pub learning_rate: f64,
    /// Learning rate of the ζ-like network.
    pub zeta_learning_rate: f64,
    /// Next actions averaged.
    pub next_actions: usize,
    /// The settings.
    pub ratio: RatioConfig,
    /// Seed of the first weights.
    pub seed: u64,
}

impl EstimatorConfig {
    /// Resolves the settings for an estimator.
    pub fn new(
        kind: EstimatorChoice,
        n: usize,
        width: usize,
        gamma: f64,
        ratio: &RatioConfig,
        seed: u64,
    ) -> Result<Self> {
        let mut ratio = ratio.clone();
        ratio.resolve(kind)?;
        Ok(EstimatorConfig {
            n,
            width,
            gamma: gamma as f32,
            learning_rate: ratio.learning_rate.unwrap_or(5e-4),
            zeta_learning_rate: ratio.zeta_learning_rate.unwrap_or(5e-4),
            next_actions: ratio.next_actions.unwrap_or(1),
            ratio,
            seed,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_without_a_part_in_an_estimator_are_refused_where_they_were_changed() {
        type Change = fn(&mut RatioConfig);
        let changes: [(&str, Change); 4] = [
            ("gradient_penalty", |ratio| ratio.gradient_penalty = 1.0),
            ("zeta_learning_rate", |ratio| ratio.zeta_learning_rate = Some(1e-4)),
            ("gendice_lambda", |ratio| ratio.gendice_lambda = 2.0),
            ("gendice_average", |ratio| ratio.gendice_average = 0.0),
        ];
        let gendice = EstimatorChoice::named("gendice").unwrap();
        for (key, change) in changes {
            let mut ratio = RatioConfig::default();
            change(&mut ratio);
            let words = ratio.clone().resolve(gendice).unwrap_err().to_string();
            assert!(
                words.contains(&format!("ratio.{key} has no part")) && words.contains("ratio.data=pair"),
                "{words}"
            );
            ratio.data = Data::Pair;
            ratio.resolve(gendice).unwrap();
            // Nor is a finished configuration refused.
            ratio.resolve(gendice).unwrap();
        }
        for estimator in EstimatorChoice::all() {
            let mut ratio = RatioConfig::default();
            ratio.resolve(estimator).unwrap();
            ratio.resolve(estimator).unwrap();
        }
    }
}
