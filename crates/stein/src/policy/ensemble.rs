//! The ensemble: n policies in one stack, each with its own observation normaliser.

use crate::env::Spec;
use crate::error::Result;
use crate::nn::init::Init;
use crate::nn::{AdamConfig, Normalizer, Shape, Stack};
use crate::policy::gaussian::Actor;
use crate::policy::rollout::Rollout;
use crate::rng::{Purpose, stream};
use crate::run::checkpoint::Checkpoint;
use crate::run::config::{PolicyConfig, PpoConfig};

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
        let mut policies = Stack::new(shape, n, adam, Init::Orthogonal, gains, |i| {
            stream(seed, Purpose::PolicyInit, i, 0)
        });
        let extra = policies.shape.extra_offset();
        for i in 0..n {
            policies.member_mut(i)[extra..].fill(policy.initial_log_std as f32);
        }
        Ensemble {
            policies,
            normalizers: vec![Normalizer::new(spec.observation, policy.observation_clip); n],
            normalize: policy.normalize_observations,
        }
    }

    /// Number of policies.
    pub fn n(&self) -> usize {
        self.normalizers.len()
    }

    /// Policy i, ready to act.
    pub fn actor(&self, i: usize) -> Actor {
        Actor::new(&self.policies.shape, self.policies.member(i))
    }

    /// Log-standard-deviations of policy i.
    pub fn log_std(&self, i: usize) -> &[f32] {
        &self.policies.member(i)[self.policies.shape.extra_offset()..]
    }

    /// Takes the observations of the rollouts into the normalisers. Done at the end of an iteration, so that everything
    /// within one sees the same policies.
    pub fn observe(&mut self, rollouts: &[Rollout]) {
        if self.normalize {
            for (normalizer, rollout) in self.normalizers.iter_mut().zip(rollouts) {
                let width = normalizer.mean.len();
                normalizer.update(&rollout.observations[..rollout.steps() * width]);
            }
        }
    }

    /// Adds all state to a checkpoint.
    pub fn save(&self, checkpoint: &mut Checkpoint) {
        save_stack("policy", &self.policies, checkpoint);
        for (i, normalizer) in self.normalizers.iter().enumerate() {
            save_normalizer(&format!("normalizer.{i}"), normalizer, checkpoint);
        }
    }

    /// Takes all state from a checkpoint.
    pub fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        restore_stack("policy", &mut self.policies, checkpoint)?;
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
    normalizer.restore(count, mean, squares);
    Ok(())
}

/// Adds a stack, its optimisers included, to a checkpoint under `name`.
pub fn save_stack(name: &str, stack: &Stack<f32>, checkpoint: &mut Checkpoint) {
    let (members, size) = (stack.members(), stack.shape.parameters());
    let moments =
        |pick: fn(&crate::nn::Adam<f32>) -> &Vec<f32>| stack.adam.iter().flat_map(pick).copied().collect::<Vec<f32>>();
    let steps: Vec<u64> = stack.adam.iter().map(|adam| adam.steps).collect();
    checkpoint.insert_f32(&format!("{name}.parameters"), &[members, size], &stack.parameters);
    checkpoint.insert_f32(&format!("{name}.adam.m"), &[members, size], &moments(|adam| &adam.m));
    checkpoint.insert_f32(&format!("{name}.adam.v"), &[members, size], &moments(|adam| &adam.v));
    checkpoint.insert_u64(&format!("{name}.adam.steps"), &[members], &steps);
}

/// Takes a stack, its optimisers included, from a checkpoint.
pub fn restore_stack(name: &str, stack: &mut Stack<f32>, checkpoint: &mut Checkpoint) -> Result<()> {
    let (members, size) = (stack.members(), stack.shape.parameters());
    stack.parameters = checkpoint.take_f32(&format!("{name}.parameters"), &[members, size])?;
    let m = checkpoint.take_f32(&format!("{name}.adam.m"), &[members, size])?;
    let v = checkpoint.take_f32(&format!("{name}.adam.v"), &[members, size])?;
    let steps = checkpoint.take_u64(&format!("{name}.adam.steps"), &[members])?;
    for (p, adam) in stack.adam.iter_mut().enumerate() {
        adam.m.copy_from_slice(&m[p * size..][..size]);
        adam.v.copy_from_slice(&v[p * size..][..size]);
        adam.steps = steps[p];
    }
    Ok(())
}
