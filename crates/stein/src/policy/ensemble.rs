//! The ensemble: n policies in one stack, each with its own observation normaliser.

use serde::{Deserialize, Serialize};

use crate::check::{layers, real};
use crate::checkpoint::Checkpoint;
use crate::env::Spec;
use crate::error::Result;
use crate::nn::{AdamConfig, Network, Normalizer, Shape, Stack};
use crate::policy::gaussian::Actor;
use crate::policy::ppo::PpoConfig;
use crate::policy::rollout::Rollout;
use crate::rng::{Purpose, stream};

/// Settings of the policies' networks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyConfig {
    /// Widths of the tanh layers.
    pub hidden: Vec<usize>,
    /// First value of the state-independent log-standard-std.
    pub initial_log_std: f64,
    /// Gain of the orthogonal first weights of the output layer.
    pub output_gain: f64,
    /// Whether observations are standardised by their running mean and variance.
    pub normalize_observations: bool,
    /// Normalised observations are clipped to plus or minus this.
    pub observation_clip: f64,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        PolicyConfig {
            hidden: vec![64, 64],
            initial_log_std: 0.0,
            output_gain: 0.01,
            normalize_observations: true,
            observation_clip: 10.0,
        }
    }
}

impl PolicyConfig {
    /// Refuses impossible values.
    pub fn validate(&self) -> Result<()> {
        layers("policy.hidden", &self.hidden)?;
        real("policy.initial_log_std", self.initial_log_std, -10.0, 2.0)?;
        real("policy.output_gain", self.output_gain, 0.0, 100.0)?;
        real("policy.observation_clip", self.observation_clip, 1e-6, 1e9)
    }
}

/// n policies.
#[derive(Clone)]
pub struct Ensemble {
    /// Their networks: means, and one log-std parameter for each action coordinate.
    pub policies: Stack<f32>,
    /// Their observation normalisers.
    pub normalizers: Vec<Normalizer>,
    normalize: bool,
}

impl Ensemble {
    /// Draws n policies for an environment.
    pub fn new(n: usize, spec: &Spec, policy: &PolicyConfig, ppo: &PpoConfig, seed: u64) -> Self {
        let shape = Shape::new(spec.observation, &policy.hidden, spec.action()).with_extra(spec.action());
        let adam = AdamConfig {
            epsilon: ppo.adam_epsilon,
            ..AdamConfig::default()
        };
        let gains = (std::f64::consts::SQRT_2, policy.output_gain);
        let random = |i| stream(seed, Purpose::PolicyInit, i, 0);
        let mut policies = Stack::new(shape, n, adam, gains, random);
        policies.fill_extra(policy.initial_log_std as f32);
        Ensemble {
            policies,
            normalizers: vec![Normalizer::new(spec.observation, policy.observation_clip); n],
            normalize: policy.normalize_observations,
        }
    }

    /// The same policies, to be updated on minibatches of up to this size.
    pub fn with_minibatch(mut self, minibatch: usize) -> Self {
        self.policies = self.policies.with_capacity(minibatch);
        self
    }

    /// Number of policies.
    pub fn n(&self) -> usize {
        self.normalizers.len()
    }

    /// Policy i, ready to act.
    pub fn actor(&self, i: usize) -> Actor {
        Actor::new(self.network(i))
    }

    /// The network of policy i; its extra parameters are the log-std.
    pub fn network(&self, i: usize) -> Network<'_, f32> {
        self.policies.network(i)
    }

    /// Takes the observations of the rollouts into the normalisers. Done at the end of an iteration, so that everything
    /// within one sees the same policies.
    pub fn update_normalizers(&mut self, rollouts: &[Rollout]) {
        if self.normalize {
            for (normalizer, rollout) in self.normalizers.iter_mut().zip(rollouts) {
                let width = normalizer.mean.len();
                normalizer.update(&rollout.observations[..rollout.steps() * width]);
            }
        }
    }

    /// Adds all state to a checkpoint.
    pub fn save(&self, checkpoint: &mut Checkpoint) {
        self.policies.save("policy", checkpoint);
        for (i, normalizer) in self.normalizers.iter().enumerate() {
            save_normalizer(&format!("normalizer.{i}"), normalizer, checkpoint);
        }
    }

    /// Takes all state from a checkpoint.
    pub fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        self.policies.restore("policy", checkpoint)?;
        for (i, normalizer) in self.normalizers.iter_mut().enumerate() {
            restore_normalizer(&format!("normalizer.{i}"), normalizer, checkpoint)?;
        }
        Ok(())
    }
}

/// Adds a normaliser to a checkpoint under `name`.
pub fn save_normalizer(name: &str, normalizer: &Normalizer, checkpoint: &mut Checkpoint) {
    let width = normalizer.mean.len();
    checkpoint.insert_f64(&format!("{name}.count"), &[1], &[normalizer.count]);
    checkpoint.insert_f64(&format!("{name}.mean"), &[width], &normalizer.mean);
    checkpoint.insert_f64(&format!("{name}.squares"), &[width], &normalizer.squares);
}

/// Takes the statistics of a normaliser from a checkpoint.
pub fn restore_normalizer(name: &str, normalizer: &mut Normalizer, checkpoint: &mut Checkpoint) -> Result<()> {
    let width = normalizer.mean.len();
    let count = checkpoint.take_f64(&format!("{name}.count"), &[1])?[0];
    let mean = checkpoint.take_f64(&format!("{name}.mean"), &[width])?;
    let squares = checkpoint.take_f64(&format!("{name}.squares"), &[width])?;
    let countable = (0.0..Checkpoint::COUNTABLE as f64).contains(&count);
    checkpoint.require(countable, &format!("{name}.count"), "counts")?;
    let narrow = mean.iter().all(|x| x.abs() <= f64::from(f32::MAX));
    checkpoint.require(narrow, &format!("{name}.mean"), "means of observations")?;
    let squares_name = format!("{name}.squares");
    checkpoint.require(squares.iter().all(|&x| x >= 0.0), &squares_name, "sums of squares")?;
    normalizer.restore(count, mean, squares);
    Ok(())
}
