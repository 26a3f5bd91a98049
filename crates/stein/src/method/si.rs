//! Self-imitating diverse policies: the JS kernel of `qd`, and every policy imitates its own best trajectories.
//!
//! ```text
//! B_i  the trajectories of policy i with the highest returns, as many as `si.trajectories`
//! ζ_i  = ρ_{B_i}/ρ_i                                a classifier of steps (s,a): from B_i, or from the newest rollout?
//! r_i  = log(1 + ζ_i)                               minimises D_JS(ρ_i, ρ_{B_i})
//! Δθ_i = (1-μ)·g_i + μ·∇L(r_i) + diversity·d_i      μ = `si.imitation`; task and r_i of std 1, d_i as in qd.rs
//! ```
//!
//! Without a task reward all trajectories are equally good, there is nothing to imitate, and what is left is the kernel
//! alone. The kernel's settings are those of `qd.*`, of states and actions unless `qd.behaviour` says otherwise. Reference:
//! Gangwani, Liu & Peng 2019, "Learning self-imitating diverse policies"; μ and the number of trajectories are those of its
//! authors' program.

use serde::{Deserialize, Serialize};

use super::qd::QdKind;
use super::{Guidance, Kind, Method, Qd};
use crate::check::{real, whole};
use crate::checkpoint::Checkpoint;
use crate::config::Config;
use crate::env::behaviour::{Behaviour, Column};
use crate::env::{Spec, Task};
use crate::error::{Error, Result};
use crate::metric::Metric;
use crate::nn::Normalizer;
use crate::parallel;
use crate::policy::advantage::Units;
use crate::policy::ensemble::{restore_normalizer, save_normalizer};
use crate::policy::{Ensemble, Rollout};
use crate::ratio::{EstimatorChoice, EstimatorConfig};
use crate::ratio::policies::join_rows;
use crate::ratio::softmax::{FALL, Lessons, SPLIT, Softmax};
use crate::rng::{Purpose, stream};

/// Settings of the method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SiConfig {
    /// Share μ of self-imitation beside the task.
    pub imitation: f64,
    /// Best trajectories that each policy keeps.
    pub trajectories: usize,
}

impl Default for SiConfig {
    fn default() -> Self {
        SiConfig {
            imitation: 0.8,
            trajectories: 10,
        }
    }
}

impl SiConfig {
    /// Refuses impossible values.
    pub fn validate(&self) -> Result<()> {
        real("si.imitation", self.imitation, 0.0, 1.0)?;
        whole("si.trajectories", self.trajectories, 1, 100_000)
    }
}

/// The best trajectories of one policy, and the one it is in.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Best {
    /// Returns and steps (s,a), row after row, the best first; of equal ones the earlier.
    pub trajectories: Vec<(f64, Vec<f32>)>,
    /// Steps of the episode that goes on.
    running: Vec<f32>,
}

impl Best {
    /// Takes in the steps of a rollout, `rows` being its (s,a); keeps `most` trajectories.
    pub fn add(&mut self, rollout: &Rollout, rows: &[f32], most: usize) {
        let (steps, width) = (rollout.steps(), rows.len() / rollout.steps().max(1));
        let mut earned = rollout.episodes.iter();
        for t in 0..steps {
            self.running.extend_from_slice(&rows[t * width..][..width]);
            // The end of the rollout is no end of an episode.
            if !rollout.ended[t] || (t + 1 == steps && !rollout.next_is_new_episode) {
                continue;
            }
            let trajectory = std::mem::take(&mut self.running);
            let Some(&(earned, _)) = earned.next() else { continue };
            let place = self.trajectories.partition_point(|(other, _)| *other >= earned);
            if place < most {
                self.trajectories.insert(place, (earned, trajectory));
                self.trajectories.truncate(most);
            }
        }
    }

    /// All their steps.
    fn rows(&self) -> Vec<f32> {
        let rows = self.trajectories.iter().flat_map(|(_, rows)| rows);
        rows.copied().collect()
    }
}

/// Tells the steps of B_i from those of policy i: log ρ_{B_i}/ρ_i.
pub struct Imitation {
    settings: EstimatorConfig,
    net: Softmax,
    policy: usize,
}

impl Imitation {
    /// Draws the network of policy i.
    pub fn new(settings: EstimatorConfig, policy: usize) -> Self {
        let ratio = &settings.ratio;
        let random = |_| stream(settings.seed, Purpose::RatioInit, policy, 5);
        Imitation {
            net: Softmax::new(
                2,
                settings.width,
                &ratio.hidden,
                ratio.weight_decay,
                ratio.minibatch,
                random,
            ),
            settings,
            policy,
        }
    }

    /// Learns from normalised steps of the policy and of its best trajectories.
    pub fn update(&mut self, own: Vec<f32>, best: Vec<f32>, round: usize) -> f64 {
        let (settings, ratio) = (&self.settings, &self.settings.ratio);
        let features = [own, best];
        let ones = features.each_ref().map(|rows| vec![1.0; rows.len() / settings.width]);
        let rate = settings.learning_rate;
        let lessons = Lessons {
            features: &features,
            weights: &[&ones[0], &ones[1]],
            updates: SPLIT * ratio.epochs * ones[0].len().div_ceil(ratio.minibatch),
            each: ratio.minibatch.div_ceil(SPLIT),
            rate: (rate, FALL * rate),
            l2: ratio.l2,
            clip: ratio.gradient_clip,
        };
        let draw = |which| stream(settings.seed, Purpose::Imitation, 2 * self.policy + which, round);
        self.net.train(&lessons, &mut [draw(0), draw(1)])
    }

    /// r = log(1 + ζ) of normalised steps, |log ζ| at most `bound`.
    pub fn rewards(&self, rows: &[f32], bound: f32) -> Vec<f32> {
        let logits = self.net.logits(rows);
        let each = logits[1].iter().zip(&logits[0]);
        each.map(|(best, own)| (best - own).clamp(-bound, bound).exp().ln_1p())
            .collect()
    }
}

/// The method, before it is made.
pub struct SiKind;

impl Kind for SiKind {
    fn name(&self) -> &'static str {
        "si"
    }

    fn page(&self) -> &'static str {
        "si.md"
    }

    fn sections(&self) -> &'static [&'static str] {
        &["si", "qd", "ratio"]
    }

    fn streams(&self) -> usize {
        2
    }

    fn resolve(&self, config: &mut Config, task: &dyn Task) -> Result<()> {
        config.qd.behaviour.get_or_insert(Behaviour::state_action());
        QdKind.resolve(config, task)
    }

    fn build(&self, config: &Config, spec: &Spec) -> Result<Box<dyn Method>> {
        Ok(Box::new(Si::new(config, spec)?))
    }
}

/// The method.
pub struct Si {
    qd: Qd,
    n: usize,
    state: usize,
    action: usize,
    config: SiConfig,
    bound: f32,
    best: Vec<Best>,
    imitation: Vec<Imitation>,
    features: Normalizer,
    metrics: [f64; 3],
}

impl Si {
    /// Draws the networks of the kernel and of imitation.
    pub fn new(config: &Config, spec: &Spec) -> Result<Self> {
        let (n, state, action) = (config.ensemble, spec.observation, spec.action());
        let width = state + action;
        let settings = EstimatorConfig::new(EstimatorChoice::default(), n, width, config.ppo.gamma, &config.ratio, config.seed)?;
        Ok(Si {
            qd: Qd::new(config, spec)?,
            n,
            state,
            action,
            config: config.si.clone(),
            bound: config.qd.clamp.ln() as f32,
            best: vec![Best::default(); n],
            imitation: (0..n).map(|i| Imitation::new(settings.clone(), i)).collect(),
            features: Normalizer::new(width, 10.0),
            metrics: [f64::NAN; 3],
        })
    }

    /// The steps (s,a) of a rollout.
    fn rows(&self, rollout: &Rollout) -> Vec<f32> {
        let mut rows = vec![0.0; rollout.steps() * (self.state + self.action)];
        let states = &rollout.observations[..rollout.steps() * self.state];
        join_rows(states, self.state, &rollout.actions, self.action, &mut rows);
        rows
    }
}

impl Method for Si {
    fn streams(&self) -> usize {
        2
    }

    fn behaviour(&self) -> &[Column] {
        self.qd.behaviour()
    }

    fn guide(&mut self, ensemble: &Ensemble, rollouts: &[Rollout], iteration: usize) -> Result<Guidance> {
        let (n, bound) = (self.n, self.bound);
        let mut guidance = self.qd.guide(ensemble, rollouts, iteration)?;
        let steps: Vec<Vec<f32>> = rollouts.iter().map(|rollout| self.rows(rollout)).collect();
        for ((best, rollout), rows) in self.best.iter_mut().zip(rollouts).zip(&steps) {
            self.features.update(rows);
            best.add(rollout, rows, self.config.trajectories);
        }
        let features = &self.features;
        let best = &self.best;
        let parts = (&mut self.imitation[..], rollouts, steps);
        let learned: Vec<Option<(f64, Vec<f32>)>> = parallel::map(parts, |i, (imitation, rollout, mut own)| {
            let best = &best[i];
            if rollout.silent || best.trajectories.is_empty() {
                return None;
            }
            let mut rows = best.rows();
            features.apply_in_place(&mut rows);
            features.apply_in_place(&mut own);
            let loss = imitation.update(own.clone(), rows, iteration);
            Some((loss, imitation.rewards(&own, bound)))
        });

        let mu = self.config.imitation as f32;
        let (mut streams, mut rewards) = (Vec::with_capacity(2 * n), Vec::with_capacity(2 * n));
        let diversity = guidance.streams.iter().zip(std::mem::take(&mut guidance.rewards));
        let (mut losses, mut sums) = (Vec::new(), Vec::new());
        for (i, ((&weight, diverse), learned)) in diversity.zip(learned).enumerate() {
            let own = guidance.task[i * n + i];
            streams.extend([weight, if learned.is_some() { mu * own } else { 0.0 }]);
            rewards.push(diverse);
            match learned {
                None => rewards.push(vec![0.0; rollouts[i].steps()]),
                Some((loss, imitated)) => {
                    guidance.task[i * n..][..n].iter_mut().for_each(|w| *w *= 1.0 - mu);
                    losses.push(loss);
                    sums.push(imitated.iter().map(|&r| f64::from(r)).sum::<f64>() / imitated.len() as f64);
                    rewards.push(imitated);
                }
            }
        }
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let kept: Vec<f64> = self
            .best
            .iter()
            .flat_map(|best| best.trajectories.iter().map(|(earned, _)| *earned))
            .collect();
        self.metrics = [mean(&losses), mean(&sums), mean(&kept)];
        if losses.iter().chain(&sums).any(|x| !x.is_finite()) {
            return Err(Error::failed(format!(
                "iteration {}: the ratio of self-imitation is no longer finite; lower ratio.learning_rate or raise ratio.l2",
                iteration + 1
            )));
        }
        (guidance.streams, guidance.rewards) = (streams, rewards);
        guidance.units.push(Units::Standard);
        Ok(guidance)
    }

    fn ratio_flops(&self) -> f64 {
        self.qd.ratio_flops()
    }

    fn metrics(&self) -> Vec<(Metric, f64)> {
        let own = [
            Metric::of_diversity("imitation_loss", "mean cross-entropy of the classifiers of best versus newest steps"),
            Metric::of_diversity("imitation_reward", "mean of log(1 + ζ_i) over steps"),
            Metric::of_diversity("return_kept", "mean return of the stored best trajectories"),
        ];
        let mut metrics = self.qd.metrics();
        metrics.extend(own.into_iter().zip(self.metrics));
        metrics
    }

    fn kernel(&self) -> Option<&[f64]> {
        self.qd.kernel()
    }

    fn kernel_is_symmetric(&self) -> bool {
        self.qd.kernel_is_symmetric()
    }

    fn save(&self, checkpoint: &mut Checkpoint) {
        let width = self.state + self.action;
        self.qd.save(checkpoint);
        save_normalizer("si.features", &self.features, checkpoint);
        for (i, (best, imitation)) in self.best.iter().zip(&self.imitation).enumerate() {
            imitation.net.save(&format!("si.{i}.net"), checkpoint);
            let returns: Vec<f64> = best.trajectories.iter().map(|(earned, _)| *earned).collect();
            checkpoint.insert_f64(&format!("si.{i}.returns"), &[returns.len()], &returns);
            for (k, (_, rows)) in best.trajectories.iter().enumerate() {
                checkpoint.insert_f32(&format!("si.{i}.best.{k}"), &[rows.len() / width, width], rows);
            }
            let running = &best.running;
            checkpoint.insert_f32(&format!("si.{i}.running"), &[running.len() / width, width], running);
        }
    }

    fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        let width = self.state + self.action;
        self.qd.restore(checkpoint)?;
        restore_normalizer("si.features", &mut self.features, checkpoint)?;
        let rows = |checkpoint: &mut Checkpoint, name: String| {
            let rows = checkpoint.rows(&name);
            checkpoint.take_f32(&name, &[rows, width])
        };
        for (i, (best, imitation)) in self.best.iter_mut().zip(&mut self.imitation).enumerate() {
            imitation.net.restore(&format!("si.{i}.net"), checkpoint)?;
            let name = format!("si.{i}.returns");
            let kept = checkpoint.rows(&name);
            let returns = checkpoint.take_f64(&name, &[kept])?;
            best.trajectories.clear();
            for (k, earned) in returns.into_iter().enumerate() {
                let name = format!("si.{i}.best.{k}");
                let trajectory = rows(checkpoint, name.clone())?;
                checkpoint.require(!trajectory.is_empty(), &name, "steps of a trajectory")?;
                best.trajectories.push((earned, trajectory));
            }
            best.running = rows(checkpoint, format!("si.{i}.running"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ratio::RatioConfig;
    use rand_distr::{Distribution, StandardNormal};

    /// Two steps of an episode that began before and earned 5, an episode of one step that earned 7, two of one that goes on.
    fn rollout(earned: [f64; 2]) -> Rollout {
        Rollout {
            next: vec![1, 5, 6, 4, 7],
            ended: vec![false, true, true, false, true],
            episodes: vec![(earned[0], 4), (earned[1], 1)],
            next_is_new_episode: false,
            ..Rollout::default()
        }
    }

    #[test]
    fn the_best_trajectories_are_kept_whole_across_rollouts() {
        let mut best = Best::default();
        best.add(&rollout([5.0, 7.0]), &[1.0, 2.0, 3.0, 4.0, 5.0], 2);
        assert_eq!(best.trajectories, [(7.0, vec![3.0]), (5.0, vec![1.0, 2.0])]);
        // The episode that went on ends with the first two steps of the next rollout. It is as good as the best, which stays first.
        best.add(&rollout([7.0, 6.0]), &[6.0, 7.0, 8.0, 9.0, 10.0], 2);
        assert_eq!(best.trajectories, [(7.0, vec![3.0]), (7.0, vec![4.0, 5.0, 6.0, 7.0])]);
        assert_eq!(best.running, [9.0, 10.0]);
        // An episode may end with the rollout.
        let mut last = rollout([1.0, 2.0]);
        last.episodes.push((9.0, 4));
        last.next_is_new_episode = true;
        best.add(&last, &[11.0, 12.0, 13.0, 14.0, 15.0], 2);
        assert_eq!(best.trajectories[0], (9.0, vec![14.0, 15.0]));
        assert!(best.running.is_empty());
    }

    #[test]
    fn the_reward_is_that_of_the_known_ratio_of_two_normal_distributions() {
        // ρ_B = N(1, 1), ρ = N(0, 1): log ζ = x - 1/2.
        let ratio = RatioConfig::default();
        let settings = EstimatorConfig::new(EstimatorChoice::default(), 2, 1, 0.99, &ratio, 1).unwrap();
        let mut imitation = Imitation::new(settings, 0);
        let mut random = stream(4, Purpose::Truth, 0, 0);
        let mut draw = |mean: f32| -> Vec<f32> {
            let normal = |_| {
                let x: f32 = StandardNormal.sample(&mut random);
                mean + x
            };
            (0..4096).map(normal).collect()
        };
        for round in 0..40 {
            let (own, best) = (draw(0.0), draw(1.0));
            imitation.update(own, best, round);
        }
        let places: Vec<f32> = (-8..=12).map(|k| 0.25 * k as f32).collect();
        for (x, r) in places.iter().zip(imitation.rewards(&places, 3.0)) {
            let exact = (x - 0.5).exp().ln_1p();
            assert!((r - exact).abs() < 0.08 * (1.0 + exact), "{x}: {r} instead of {exact}");
        }
        // Ratios are bounded.
        assert!((imitation.rewards(&[50.0], 3.0)[0] - 3f32.exp().ln_1p()).abs() < 1e-5);
    }
}
