//! Settings of proximal policy optimisation, and how its learning rate falls. The update is `update.rs`.

use serde::{Deserialize, Serialize};

use super::reward::RewardScaling;
use crate::check::{real, whole};
use crate::error::Result;

/// Settings of proximal policy optimisation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PpoConfig {
    /// Discount γ.
    pub gamma: f64,
    /// λ of the generalised advantage estimate.
    pub lambda: f64,
    /// Clip ε of the probability ratio.
    pub clip: f64,
    /// A policy takes no further step in an iteration once its KL divergence from the policy that acted exceeds this, as
    /// estimated on a minibatch; 0: no limit.
    pub kl_limit: f64,
    /// Passes over a rollout.
    pub epochs: usize,
    /// Minibatches a pass.
    pub minibatches: usize,
    /// Adam's learning rate for the policies.
    pub learning_rate: f64,
    /// Adam's epsilon.
    pub adam_epsilon: f64,
    /// Largest norm of a gradient.
    pub gradient_clip: f64,
    /// Weight of the entropy bonus.
    pub entropy: f64,
    /// Scaling of the task rewards: "none" or "return".
    pub reward_scaling: RewardScaling,
    /// How the learning rate falls. Files of before have `anneal_learning_rate`: true stands for a fall to 0 from the start on.
    #[serde(alias = "anneal_learning_rate", deserialize_with = "fall_or_flag")]
    pub anneal: AnnealConfig,
}

impl PpoConfig {
    /// Samples of a minibatch, out of rollouts of so many steps.
    pub fn minibatch(&self, steps: usize) -> usize {
        steps.div_ceil(self.minibatches)
    }
}

impl Default for PpoConfig {
    fn default() -> Self {
        PpoConfig {
            gamma: 0.99,
            lambda: 0.95,
            clip: 0.2,
            kl_limit: 0.05,
            epochs: 10,
            minibatches: 32,
            learning_rate: 3e-4,
            adam_epsilon: 1e-5,
            gradient_clip: 1.0,
            entropy: 0.0,
            reward_scaling: RewardScaling::None,
            anneal: AnnealConfig::default(),
        }
    }
}

/// How a learning rate falls: it is constant at first and then goes linearly to a share of itself.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AnnealConfig {
    /// Share of the run after which it falls.
    pub from: f64,
    /// Share of it that is left at the end of the run; 1: it does not fall.
    pub to: f64,
}

impl Default for AnnealConfig {
    fn default() -> Self {
        AnnealConfig { from: 0.5, to: 0.2 }
    }
}

impl AnnealConfig {
    /// What is left of it after this share of the run.
    pub fn left(&self, done: f64) -> f64 {
        if done <= self.from || self.from >= 1.0 {
            return 1.0;
        }
        1.0 - (1.0 - self.to) * ((done - self.from) / (1.0 - self.from)).min(1.0)
    }
}

/// A fall, or the flag that stood for one.
fn fall_or_flag<'de, D: serde::Deserializer<'de>>(source: D) -> std::result::Result<AnnealConfig, D::Error> {
    struct FallOrFlag;
    impl<'de> serde::de::Visitor<'de> for FallOrFlag {
        type Value = AnnealConfig;
        fn expecting(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            out.write_str("a table, as in { from = 0.5, to = 0.2 }")
        }
        fn visit_bool<E>(self, falls: bool) -> std::result::Result<AnnealConfig, E> {
            let to = if falls { 0.0 } else { 1.0 };
            Ok(AnnealConfig { from: 0.0, to })
        }
        fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> std::result::Result<AnnealConfig, A::Error> {
            AnnealConfig::deserialize(serde::de::value::MapAccessDeserializer::new(map))
        }
    }
    source.deserialize_any(FallOrFlag)
}

impl PpoConfig {
    /// Refuses impossible values, for rollouts of `steps` steps.
    pub fn validate(&self, steps: usize) -> Result<()> {
        real("ppo.gamma", self.gamma, 0.0, 0.999_999)?;
        real("ppo.lambda", self.lambda, 0.0, 1.0)?;
        real("ppo.clip", self.clip, 1e-6, 1e6)?;
        whole("ppo.epochs", self.epochs, 1, 1000)?;
        whole("ppo.minibatches", self.minibatches, 1, steps)?;
        real("ppo.learning_rate", self.learning_rate, 0.0, 10.0)?;
        real("ppo.adam_epsilon", self.adam_epsilon, 1e-12, 1.0)?;
        real("ppo.kl_limit", self.kl_limit, 0.0, 1e9)?;
        real("ppo.anneal.from", self.anneal.from, 0.0, 1.0)?;
        real("ppo.anneal.to", self.anneal.to, 0.0, 1.0)?;
        real("ppo.gradient_clip", self.gradient_clip, 1e-9, 1e9)?;
        real("ppo.entropy", self.entropy, 0.0, 1e3)
    }
}
