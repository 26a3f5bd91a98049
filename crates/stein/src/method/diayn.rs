//! DIAYN: every policy of the ensemble is a skill z, and is rewarded where its states tell whose they are.
//!
//! ```text
//! r_z(s') = log q(z|s') - log p(z),      p(z) = 1/n
//! min  -1/n·Σ_z E_{s ~ z}[ log q(z|s) ]                        q: n-way classifier of states (ratio/softmax.rs)
//! Δθ_z = diayn.task·g_z + ∇L(r_z)                              both advantages of std 1
//! ```
//!
//! At the optimum q(z|s) = ρ_z(s)/Σ_j ρ_j(s), and the mean of r over all policies is the mutual information I(S; Z), between
//! 0 and log n. As published there is no task: `diayn.task` is 0. The skills are policies of their own instead of one network
//! that is told z, and PPO learns instead of soft actor-critic. The classifier has the settings `ratio.*` of NCE's n-way form.
//! Reference: Eysenbach et al. 2019, "Diversity is all you need".

use serde::{Deserialize, Serialize};

use super::{Guidance, Kind, Method};
use crate::check::real;
use crate::checkpoint::Checkpoint;
use crate::config::Config;
use crate::env::{Spec, Task};
use crate::error::{Error, Result};
use crate::metric::Metric;
use crate::nn::Normalizer;
use crate::parallel;
use crate::policy::advantage::Units;
use crate::policy::ensemble::{restore_normalizer, save_normalizer};
use crate::policy::{Ensemble, Rollout};
use crate::ratio::{EstimatorChoice, EstimatorConfig};
use crate::ratio::softmax::{FALL, Lessons, SPLIT, Softmax};
use crate::rng::{Purpose, stream};

/// Settings of the method.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DiaynConfig {
    /// Weight of the task beside that of the skills, which is 1; 0 as published.
    pub task: f64,
}

impl DiaynConfig {
    /// Refuses impossible values.
    pub fn validate(&self) -> Result<()> {
        real("diayn.task", self.task, 0.0, 1e6)
    }
}

/// Tells from a state whose it is: q(z|s).
pub struct Discriminator {
    settings: EstimatorConfig,
    net: Softmax,
    features: Normalizer,
    /// States of each policy's last rollouts.
    recent: Vec<Vec<Vec<f32>>>,
}

impl Discriminator {
    /// Draws the network.
    pub fn new(settings: EstimatorConfig) -> Self {
        let (n, width, ratio) = (settings.n, settings.width, &settings.ratio);
        let random = |p| stream(settings.seed, Purpose::RatioInit, p, 4);
        Discriminator {
            net: Softmax::new(n, width, &ratio.hidden, ratio.weight_decay, ratio.minibatch, random),
            features: Normalizer::new(width, 10.0),
            recent: vec![Vec::new(); n],
            settings,
        }
    }

    /// Learns from new states of every policy, row after row; returns the mean cross-entropy.
    pub fn update(&mut self, states: Vec<Vec<f32>>, round: usize) -> f64 {
        let (n, width, ratio) = (self.settings.n, self.settings.width, &self.settings.ratio);
        for (recent, states) in self.recent.iter_mut().zip(states) {
            self.features.update(&states);
            recent.push(states);
            if recent.len() > ratio.rollouts {
                recent.remove(0);
            }
        }
        let features = parallel::map(&self.recent[..], |_, recent| {
            let mut rows = recent.concat();
            self.features.apply_in_place(&mut rows);
            rows
        });
        let ones: Vec<Vec<f32>> = features.iter().map(|rows| vec![1.0; rows.len() / width]).collect();
        let weights: Vec<&[f32]> = ones.iter().map(|ones| &ones[..]).collect();
        let draw = |i| stream(self.settings.seed, Purpose::RatioOrder, i, round);
        let mut randoms: Vec<_> = (0..n).map(draw).collect();
        let rate = self.settings.learning_rate;
        let lessons = Lessons {
            updates: SPLIT * ratio.epochs * ones[0].len().div_ceil(ratio.minibatch),
            each: ratio.minibatch.div_ceil(SPLIT),
            rate: (rate, FALL * rate),
            l2: ratio.l2,
            clip: ratio.gradient_clip,
            features: &features,
            weights: &weights,
        };
        self.net.train(&lessons, &mut randoms)
    }

    /// log q(z|s) of states, row after row.
    pub fn log_posterior(&self, z: usize, states: &[f32]) -> Vec<f32> {
        let mut rows = states.to_vec();
        self.features.apply_in_place(&mut rows);
        let logits = self.net.logits(&rows);
        let of_row = |row: usize| {
            let largest = logits.iter().map(|l| l[row]).fold(f32::NEG_INFINITY, f32::max);
            let sum: f32 = logits.iter().map(|l| (l[row] - largest).exp()).sum();
            logits[z][row] - largest - sum.ln()
        };
        (0..logits[z].len()).map(of_row).collect()
    }

    fn save(&self, checkpoint: &mut Checkpoint) {
        let width = self.settings.width;
        self.net.save("diayn.discriminator", checkpoint);
        save_normalizer("diayn.features", &self.features, checkpoint);
        for (i, recent) in self.recent.iter().enumerate() {
            checkpoint.insert_u64(&format!("diayn.{i}.rollouts"), &[1], &[recent.len() as u64]);
            for (r, states) in recent.iter().enumerate() {
                checkpoint.insert_f32(&format!("diayn.{i}.{r}"), &[states.len() / width, width], states);
            }
        }
    }

    fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        let width = self.settings.width;
        self.net.restore("diayn.discriminator", checkpoint)?;
        restore_normalizer("diayn.features", &mut self.features, checkpoint)?;
        for (i, recent) in self.recent.iter_mut().enumerate() {
            recent.clear();
            for r in 0..checkpoint.take_u64(&format!("diayn.{i}.rollouts"), &[1])?[0] {
                let name = format!("diayn.{i}.{r}");
                let rows = checkpoint.rows(&name);
                recent.push(checkpoint.take_f32(&name, &[rows, width])?);
            }
        }
        Ok(())
    }
}

/// The method, before it is made.
pub struct DiaynKind;

impl Kind for DiaynKind {
    fn name(&self) -> &'static str {
        "diayn"
    }

    fn page(&self) -> &'static str {
        "diayn.md"
    }

    fn sections(&self) -> &'static [&'static str] {
        &["diayn", "ratio"]
    }

    fn streams(&self) -> usize {
        1
    }

    fn resolve(&self, config: &mut Config, _task: &dyn Task) -> Result<()> {
        // The discriminator is trained as NCE's classifier is.
        config.ratio.resolve(EstimatorChoice::default())
    }

    fn build(&self, config: &Config, spec: &Spec) -> Result<Box<dyn Method>> {
        Ok(Box::new(Diayn::new(config, spec)?))
    }
}

/// The method.
pub struct Diayn {
    n: usize,
    width: usize,
    task: f32,
    discriminator: Discriminator,
    metrics: [f64; 2],
}

impl Diayn {
    /// Draws the discriminator.
    pub fn new(config: &Config, spec: &Spec) -> Result<Self> {
        let n = config.ensemble;
        if n < 2 {
            return Err(Error::input(
                "ensemble = 1 has one skill and nothing to tell apart: set it to 2 or more, or method to ppo",
            ));
        }
        let width = spec.observation;
        let settings = EstimatorConfig::new(EstimatorChoice::default(), n, width, config.ppo.gamma, &config.ratio, config.seed)?;
        Ok(Diayn {
            n,
            width,
            task: config.diayn.task as f32,
            discriminator: Discriminator::new(settings),
            metrics: [f64::NAN; 2],
        })
    }
}

/// The state after each step.
fn next_states(rollout: &Rollout, width: usize) -> Vec<f32> {
    let row = |&row: &u32| rollout.observations[row as usize * width..][..width].iter().copied();
    rollout.next.iter().flat_map(row).collect()
}

impl Method for Diayn {
    fn streams(&self) -> usize {
        1
    }

    fn guide(&mut self, _ensemble: &Ensemble, rollouts: &[Rollout], iteration: usize) -> Result<Guidance> {
        let n = self.n;
        let states: Vec<Vec<f32>> = rollouts
            .iter()
            .map(|rollout| next_states(rollout, self.width))
            .collect();
        let loss = self.discriminator.update(states.clone(), iteration);
        let rewards = parallel::map(&states[..], |z, states| {
            let mut rewards = self.discriminator.log_posterior(z, states);
            rewards.iter_mut().for_each(|r| *r += (n as f32).ln());
            rewards
        });
        let mean = |rewards: &Vec<f32>| rewards.iter().map(|&r| f64::from(r)).sum::<f64>() / rewards.len() as f64;
        let information = rewards.iter().map(mean).sum::<f64>() / n as f64;
        if !(loss.is_finite() && information.is_finite()) {
            return Err(Error::failed(format!(
                "iteration {}: the discriminator is no longer finite; lower ratio.learning_rate or raise ratio.l2",
                iteration + 1
            )));
        }
        self.metrics = [loss, information];
        let mut task = vec![0.0; n * n];
        for (i, rollout) in rollouts.iter().enumerate() {
            task[i * n + i] = if rollout.silent { 0.0 } else { self.task };
        }
        Ok(Guidance {
            task,
            streams: vec![1.0; n],
            rewards,
            units: vec![Units::Standard; 2],
            drift: Vec::new(),
        })
    }

    fn metrics(&self) -> Vec<(Metric, f64)> {
        let metrics = [
            Metric::of_diversity("discriminator_loss", "mean cross-entropy of q(z\\|s) over the minibatches of this iteration"),
            Metric::of_diversity("skill_information", "mean over policies and their steps of log q(z\\|s') + log n"),
        ];
        metrics.into_iter().zip(self.metrics).collect()
    }

    fn save(&self, checkpoint: &mut Checkpoint) {
        self.discriminator.save(checkpoint);
    }

    fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        self.discriminator.restore(checkpoint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratio::RatioConfig;
    use crate::truth::ring::Ring;
    use rand::RngExt;

    /// On a ring of states with three policies: q(z|s) against ρ_z(s)/Σ_j ρ_j(s), and the mean reward against I(S; Z).
    #[test]
    fn the_discriminator_finds_the_exact_posteriors_of_tabular_occupancies() {
        let (states, actions) = (8, 2);
        let ring = Ring {
            states,
            actions,
            gamma: 0.9,
            termination: true,
            deterministic: false,
        };
        let problem = ring.problem(1).unwrap();
        // One that goes on mostly one way round, one that goes the other way, and one that has no preference.
        let occupancy: Vec<Vec<f64>> = [0.95, 0.05, 0.5]
            .iter()
            .map(|&first| {
                let policy = [first, 1.0 - first].repeat(states);
                let pairs = problem.mdp.occupancy(&policy).rho;
                pairs.chunks(actions).map(|row| row.iter().sum()).collect()
            })
            .collect();

        let n = occupancy.len();
        let ratio = RatioConfig {
            l2: 1e-6,
            ..RatioConfig::default()
        };
        let mut discriminator = Discriminator::new(EstimatorConfig::new(EstimatorChoice::default(), n, states, 0.9, &ratio, 3).unwrap());
        let one_hot = |state: usize| (0..states).map(move |s| f32::from(u8::from(s == state)));
        let mut random = stream(9, Purpose::Truth, 0, 0);
        let mut draw = |rho: &Vec<f64>| -> Vec<f32> {
            let mut rows = Vec::new();
            for _ in 0..16_384 {
                let mut left = random.random::<f64>();
                let state = rho.iter().position(|&p| {
                    left -= p;
                    left < 0.0
                });
                rows.extend(one_hot(state.unwrap_or(states - 1)));
            }
            rows
        };
        for round in 0..20 {
            let drawn = occupancy.iter().map(&mut draw).collect();
            discriminator.update(drawn, round);
        }

        let every: Vec<f32> = (0..states).flat_map(one_hot).collect();
        let (mut information, mut exact) = (0.0, 0.0);
        for (z, rho) in occupancy.iter().enumerate() {
            let learned = discriminator.log_posterior(z, &every);
            for s in 0..states {
                let posterior = rho[s] / occupancy.iter().map(|rho| rho[s]).sum::<f64>();
                let q = f64::from(learned[s]).exp();
                assert!((q - posterior).abs() < 0.02, "z {z}, s {s}: {q} instead of {posterior}");
                information += rho[s] / n as f64 * (f64::from(learned[s]) + (n as f64).ln());
                exact += rho[s] / n as f64 * (posterior.ln() + (n as f64).ln());
            }
        }
        assert!(exact > 0.02, "the policies differ: {exact}");
        assert!(
            (information - exact).abs() < 0.1 * exact,
            "{information} instead of {exact}"
        );
    }

    #[test]
    fn states_are_those_after_the_steps() {
        let rollout = Rollout {
            observations: vec![0.0, 1.0, 2.0, 3.0, 10.0, 11.0],
            next: vec![1, 2],
            ..Rollout::default()
        };
        assert_eq!(next_states(&rollout, 2), [2.0, 3.0, 10.0, 11.0]);
    }
}
