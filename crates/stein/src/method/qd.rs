//! The paper's method: f-divergence kernels between stationary distributions, from learned ratios (Algorithm 1).
//!
//! ```text
//! D_ij = D_f(ρ_j‖ρ_i),  k_ij = exp(-(D_ij/T)^p),  k'_ij = k_ij·p·(D_ij/T)^(p-1)                 Equation 3: p = 1, k' = k
//! r_ij = f(ζ) - ζ·f'(ζ) + shift,  ζ = ζ_ji on policy i's samples                              Equation 4
//! R_i  = 1/(n-1)·Σ_{j≠i} k'_ij·r_ij                                                           one reward, one critic
//! Δθ_i = task·g_i + diversity·∇L(R_i)                                                         weighting.rs
//! ```
//!
//! The repulsion uses the policy's own gradient, since ∇_{θ_j} applied to θ_i has no meaning for the weights of different
//! networks. Advantages are linear in rewards: Σ_j k'_ij·A(r_ij) = (n-1)·A(R_i), so that n critics of diversity do what
//! n(n-1) would. `share` says whether the neighbours' g_j enter. Reference: Gangwani, Peng & Zhou 2020.

use serde::{Deserialize, Serialize};

use super::weighting::{Quota, Weighting};
use super::{Guidance, Kind, Method};
use crate::check::real;
use crate::checkpoint::Checkpoint;
use crate::config::Config;
use crate::divergence::{self, Divergence, DivergenceChoice, Shift};
use crate::env::behaviour::{Behaviour, Column};
use crate::env::{Spec, Task};
use crate::error::{Error, Result};
use crate::kernel::{divergence_kernel, divergence_derivatives};
use crate::metric::Metric;
use crate::parallel;
use crate::policy::{Ensemble, Rollout};
use crate::ratio::blur::{average, blur, copies};
use crate::ratio::classifier::Classifier;
use crate::ratio::{
    self, Estimator, EstimatorChoice, EstimatorConfig, GaussianPolicies, Memory, Occupancy, Ratios, Round,
    Transitions,
};

/// Settings of the method.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct QdConfig {
    /// Ratio estimator: nce, dualdice, valuedice or gendice.
    pub estimator: EstimatorChoice,
    /// Divergence: js, kls, kl, rkl, hellinger, triangular or tv.
    pub divergence: DivergenceChoice,
    /// Kernel temperature T; absent: that of the divergence (0.5 for js, 1 for kls).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<f64>,
    /// Power p of the kernel exp(-(D/T)^p): 1 as in the paper, 0.5 for one of the distance √D.
    pub power: f64,
    /// Of what policies are to be different: "state-action" (the paper), "state", "task" (the task's own list) or a list of
    /// signals and numbers of observations; absent: "task" for nce, else "state-action".
    #[serde(skip_serializing_if = "Option::is_none")]
    pub behaviour: Option<Behaviour>,
    /// Behaviour is seen through normal noise of this std, so that smaller differences do not count; absent: the
    /// task's own where behaviour is "task", else 0.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resolution: Option<f64>,
    /// Constant added to the diversity reward: "one" (r(1) = 0), "centred" (the exact gradient also where episodes can
    /// terminate), "none" or "positive" (never negative).
    pub shift: Shift,
    /// Ratios are kept within [1/clamp, clamp] where they are used.
    pub clamp: f64,
    /// Weight ω of diversity at the start.
    pub omega_start: f64,
    /// Weight ω of diversity at the end.
    pub omega_end: f64,
    /// Share of the iterations over which ω goes from its start to its end, linearly; it stays there afterwards.
    pub omega_until: f64,
    /// Share of the iterations after which ω is 0, so that the task has the last word; 1: never.
    pub omega_off: f64,
    /// How unequally ω is shared out: ω_i = ω·(1+ladder)·(i/(n-1))^ladder. 0: every policy has ω. Above: the first follows the
    /// task alone, and the last has (1+ladder)·ω.
    pub ladder: f64,
    /// Whether the neighbours' task gradients enter.
    pub share: bool,
    /// Weighting of the parts: "nats", "constrained", "fading", "normalised" or "published".
    pub weighting: Weighting,
    /// Share of the best policy's gain in return that each is to keep; "constrained" only.
    pub quota: f64,
    /// Slack of that, in multiples of what untrained policies earned.
    pub slack: f64,
}

impl Default for QdConfig {
    fn default() -> Self {
        QdConfig {
            estimator: EstimatorChoice::default(),
            divergence: DivergenceChoice::default(),
            temperature: None,
            power: 0.5,
            behaviour: None,
            resolution: None,
            shift: Shift::AtOne,
            clamp: 20.0,
            omega_start: 1.0,
            omega_end: 0.3,
            omega_until: 0.9,
            omega_off: 0.9,
            ladder: 2.0,
            share: false,
            weighting: Weighting::Nats,
            quota: 0.9,
            slack: 1.0,
        }
    }
}

impl QdConfig {
    /// Fills in what depends on the divergence and the task.
    pub fn resolve(&mut self, task: &dyn Task) -> Result<()> {
        self.temperature.get_or_insert(self.divergence.temperature());
        let spec = task.make()?.spec().clone();
        let usual = || match self.estimator.takes_behaviour() {
            true => Behaviour::Named("task".into()),
            false => Behaviour::state_action(),
        };
        let asked = self.behaviour.clone().unwrap_or_else(usual);
        let of_task = asked == Behaviour::Named("task".into());
        self.resolution
            .get_or_insert(if of_task { task.resolution() } else { 0.0 });
        let behaviour = asked.resolved(task);
        if !behaviour.is_state_action() && !self.estimator.takes_behaviour() {
            return Err(Error::input(format!(
                "qd.behaviour is not \"state-action\", but {} learns ratios of states and actions only; set \
                 qd.behaviour=state-action, or qd.estimator=nce",
                self.estimator
            )));
        }
        if behaviour.is_state_action() && self.resolution.is_some_and(|resolution| resolution > 0.0) {
            return Err(Error::input(
                "qd.resolution is for behaviour φ(s) and qd.behaviour is \"state-action\": name signals there, or leave \
                 qd.resolution out",
            ));
        }
        behaviour.columns(&spec)?;
        self.behaviour = Some(behaviour);
        Ok(())
    }

    /// Refuses impossible values.
    pub fn validate(&self) -> Result<()> {
        real("qd.temperature", self.temperature.unwrap_or(1.0), 1e-6, 1e6)?;
        real("qd.ladder", self.ladder, 0.0, 10.0)?;
        real("qd.omega_start", self.omega_start, 0.0, 1e6)?;
        real("qd.omega_end", self.omega_end, 0.0, 1e6)?;
        let most = (1.0 + self.ladder) * self.omega_start.max(self.omega_end);
        if self.weighting == Weighting::Normalised && most > 1.0 {
            return Err(Error::input(format!(
                "with qd.weighting = \"normalised\" ω is a share of 1, but the last policy's would be {most}, (1 + qd.ladder) times \
                 qd.omega_start or qd.omega_end; set qd.ladder=0 and both of them at most 1, or all three lower"
            )));
        }
        real("qd.resolution", self.resolution.unwrap_or(0.0), 0.0, 1e9)?;
        real("qd.power", self.power, 1e-3, 1.0)?;
        real("qd.clamp", self.clamp, 1.001, 1e12)?;
        real("qd.quota", self.quota, 0.0, 1.0)?;
        real("qd.slack", self.slack, 0.0, 1e6)?;
        real("qd.omega_until", self.omega_until, 0.0, 1.0)?;
        real("qd.omega_off", self.omega_off, 0.0, 1.0)
    }

    /// Whether kernels and ratios have any part in the update: else it is that of independent PPO.
    pub fn steers(&self, omega: f64) -> bool {
        omega != 0.0 || self.share || self.weighting == Weighting::Published
    }

    /// ω_i of policy i of n, where ω is `omega`: a ladder of mean ω, the steeper the larger `ladder` is.
    pub fn rung(&self, omega: f64, i: usize, n: usize) -> f64 {
        let place = i as f64 / (n - 1) as f64;
        omega * (1.0 + self.ladder) * place.powf(self.ladder)
    }

    /// ω in an iteration.
    pub fn omega(&self, iteration: usize, iterations: usize) -> f64 {
        if iteration as f64 >= self.omega_off * iterations as f64 {
            return 0.0;
        }
        let length = self.omega_until * iterations as f64;
        let share = if length > 0.0 {
            (iteration as f64 / length).min(1.0)
        } else {
            1.0
        };
        self.omega_start + (self.omega_end - self.omega_start) * share
    }
}

/// Ratios that have rested are updated by so many times the usual number of passes, for policies have moved since.
const CATCH_UP: usize = 8;

/// The method, before it is made.
pub struct QdKind;

impl Kind for QdKind {
    fn name(&self) -> &'static str {
        "qd"
    }

    fn page(&self) -> &'static str {
        "algorithm.md"
    }

    fn sections(&self) -> &'static [&'static str] {
        &["qd", "ratio"]
    }

    fn streams(&self) -> usize {
        1
    }

    fn resolve(&self, config: &mut Config, task: &dyn Task) -> Result<()> {
        config.qd.resolve(task)?;
        config.ratio.resolve(config.qd.estimator)?;
        let discounted = config.qd.behaviour.as_ref().is_none_or(Behaviour::is_state_action);
        config.ratio.occupancy.get_or_insert(if discounted {
            Occupancy::Discounted
        } else {
            Occupancy::Visited
        });
        Ok(())
    }

    fn build(&self, config: &Config, spec: &Spec) -> Result<Box<dyn Method>> {
        Ok(Box::new(Qd::new(config, spec)?))
    }
}

/// The method.
pub struct Qd {
    config: Config,
    n: usize,
    divergence: &'static dyn Divergence,
    temperature: f64,
    shift: Shift,
    /// Bound on |log ζ|.
    bound: f64,
    behaviour: Vec<Column>,
    /// Deviation of the noise through which behaviour is seen; 0 for none.
    resolution: f64,
    quota: Quota,
    estimator: Box<dyn Estimator>,
    classifier: Classifier,
    memory: Memory,
    metrics: [f64; METRICS.len()],
    kernel: Vec<f64>,
}

impl Qd {
    /// Draws the ratio networks.
    pub fn new(config: &Config, spec: &Spec) -> Result<Self> {
        let (n, qd) = (config.ensemble, &config.qd);
        if n < 2 {
            return Err(Error::input(
                "ensemble = 1 has no pairs to tell apart: set it to 2 or more, or method to ppo",
            ));
        }
        let (state, action) = (spec.observation, spec.action());
        let behaviour = match &qd.behaviour {
            None => Vec::new(),
            Some(behaviour) => behaviour.columns(spec)?,
        };
        let width = if behaviour.is_empty() {
            state + action
        } else {
            behaviour.len()
        };
        let (gamma, seed) = (config.ppo.gamma, config.seed);
        let settings = EstimatorConfig::new(qd.estimator, n, width, gamma, &config.ratio, seed)?;
        Ok(Qd {
            n,
            temperature: qd.temperature.unwrap_or(qd.divergence.temperature()),
            shift: qd.shift,
            bound: qd.clamp.ln(),
            divergence: qd.divergence.get(),
            estimator: ratio::build(qd.estimator, n, width, gamma, &config.ratio, seed)?,
            classifier: Classifier::new(&settings),
            memory: Memory::new(n, state, action, behaviour.len(), gamma, &config.ratio),
            resolution: if behaviour.is_empty() {
                0.0
            } else {
                qd.resolution.unwrap_or(0.0)
            },
            behaviour,
            quota: Quota::new(n),
            config: config.clone(),
            metrics: [f64::NAN; METRICS.len()],
            kernel: Vec::new(),
        })
    }

    /// Minibatch updates of an iteration; `rested` says that ratios rest between measurements and have to catch up.
    fn updates(&self, samples: usize, iteration: usize, rested: bool) -> usize {
        let ratio = &self.config.ratio;
        let times = if rested { ratio.idle.min(CATCH_UP) } else { 1 };
        (times - 1) * ratio.updates(samples, false) + ratio.updates(samples, iteration == 0)
    }

    /// Weights of the task gradients, `[n][n]`, and of each policy's diversity; `idle[i]` says that the task tells policy i
    /// nothing.
    pub fn weights(&self, kernel: &[f64], omega: f64, idle: &[bool]) -> (Vec<f32>, Vec<f32>) {
        let (n, qd) = (self.n, &self.config.qd);
        let (mut task, mut diversity) = (vec![0.0; n * n], vec![0.0; n]);
        for i in 0..n {
            let row = &kernel[i * n..][..n];
            let neighbours = row.iter().sum::<f64>() - row[i];
            let omega = qd.rung(omega, i, n);
            let [own, other, diverse] = qd.weighting.of_policy(omega, self.temperature, n, neighbours, qd.share);
            for j in 0..n {
                task[i * n + j] = if j == i { own } else { other * row[j] } as f32;
            }
            diversity[i] = match qd.weighting {
                Weighting::Constrained => diverse * self.quota.allows(i),
                Weighting::Fading => diverse * self.quota.fades(i),
                _ => diverse,
            } as f32;
            if idle[i] {
                task[i * n..][..n].fill(0.0);
                diversity[i] = (1.0 / self.temperature) as f32;
            }
        }
        (task, diversity)
    }

    /// A rollout as its ratios are read: at the resolution of behaviour.
    fn seen(&self, i: usize, batch: &Transitions, iteration: usize) -> Transitions {
        if self.resolution == 0.0 {
            return batch.clone();
        }
        copies(
            batch,
            self.behaviour.len(),
            self.resolution,
            self.config.seed,
            2 * self.n + i,
            iteration,
        )
    }

    /// The reference classifier's agreement with the ratios on the newest rollouts. Copies of a sample would tell it what it is to find out, so
    /// that it sees each sample once, blurred anew.
    fn agreement(&mut self, policies: &GaussianPolicies<'_>, ratios: &Ratios, iteration: usize) -> f64 {
        let (n, seed) = (self.n, self.config.seed);
        let mut newest: Vec<Transitions> = self.memory.newest().into_iter().cloned().collect();
        let blurred = if self.resolution > 0.0 {
            for (i, batch) in newest.iter_mut().enumerate() {
                blur(batch, self.resolution, seed, n + i, iteration);
            }
            let newest: Vec<&Transitions> = newest.iter().collect();
            Some(self.estimator.log_zetas(policies, &newest, seed, iteration))
        } else {
            None
        };
        let newest: Vec<&Transitions> = newest.iter().collect();
        self.classifier.update(policies, &newest, seed, iteration);
        let on_own = match &blurred {
            Some(logs) => logs.iter().map(|(on_b, _)| &on_b[..]).collect(),
            None => ratios.on_own(),
        };
        self.classifier.agreement(policies, &newest, &on_own)
    }

    /// R_i of every policy on its own newest steps.
    fn rewards(&self, ratios: &Ratios, derivatives: &[f64], newest: &[&Transitions]) -> Vec<Vec<f32>> {
        let n = self.n;
        let of_policy = |i: usize| {
            let mut sum = vec![0.0; newest[i].len()];
            for j in (0..n).filter(|&j| j != i) {
                let zeta_ji = &ratios.of(j, i).on_b;
                let weight = (derivatives[i * n + j] / (n - 1) as f64) as f32;
                let divergence = self.divergence;
                let rewards = divergence::rewards(divergence, self.shift, self.bound, zeta_ji, &newest[i].weights);
                sum.iter_mut().zip(rewards).for_each(|(sum, r)| *sum += weight * r);
            }
            if self.resolution > 0.0 { average(&sum) } else { sum }
        };
        parallel::map(0..n, |_, i| of_policy(i))
    }

    /// Variance, divided by n, of the policies' mean behaviour in these rollouts, summed over its signals; NaN where behaviour
    /// is states and actions.
    fn between(&self, rollouts: &[Rollout]) -> f64 {
        let width = self.behaviour.len();
        if width == 0 {
            return f64::NAN;
        }
        let of_signal = |signal: usize| {
            let mean = |rollout: &Rollout| {
                let values = rollout.behaviour.iter().skip(signal).step_by(width);
                values.map(|&x| f64::from(x)).sum::<f64>() * width as f64 / rollout.behaviour.len() as f64
            };
            let means: Vec<f64> = rollouts.iter().map(mean).collect();
            let centre = means.iter().sum::<f64>() / self.n as f64;
            means.iter().map(|x| (x - centre).powi(2)).sum::<f64>() / self.n as f64
        };
        (0..width).map(of_signal).sum()
    }

    /// An iteration in which ratios steer nothing and are left alone: independent PPO, and no metrics of them.
    fn rest(&mut self, rollouts: &[Rollout], omega: f64) -> Guidance {
        let n = self.n;
        self.metrics = [f64::NAN; METRICS.len()];
        self.metrics[0] = omega;
        self.metrics[1] = self.between(rollouts);
        self.kernel = vec![f64::NAN; n * n];
        let silence = |rollout: &Rollout| vec![0.0; rollout.rewards.len()];
        let (task, streams) = self.weights(&identity(n), omega, &vec![false; n]);
        Guidance {
            task,
            streams,
            rewards: rollouts.iter().map(silence).collect(),
            units: self.config.qd.weighting.units().to_vec(),
            drift: Vec::new(),
        }
    }
}

/// What is told of an iteration, in the order of `Qd::metrics`.
const METRICS: [Metric; 13] = [
    Metric::of_diversity("omega", "ω in this iteration, as scheduled"),
    Metric::of_diversity(
        "behaviour_between",
        "population variance (divided by n) between policies of their mean behaviour φ",
    ),
    Metric::of_diversity(
        "diversity_weight",
        "mean over policies of the weight of the diversity reward R_i in the update",
    ),
    Metric::of_diversity("divergence_mean", "mean and minimum of the estimated D_ij, i ≠ j"),
    Metric::of_diversity("divergence_min", "mean and minimum of the estimated D_ij, i ≠ j"),
    Metric::of_diversity("kernel_row_mean", "mean and maximum over policies i of Σ_{j≠i} k_ij"),
    Metric::of_diversity("kernel_row_max", "mean and maximum over policies i of Σ_{j≠i} k_ij"),
    Metric::of_diversity("ratio_loss", "mean loss of the estimator's networks over the minibatches of this iteration"),
    Metric::of_diversity("zeta_mean", "mean over pairs of Σ w·ζ/Σ w on the data policy's newest samples"),
    Metric::of_diversity("zeta_clamped", "fraction of the data policy's samples with ζ outside [1/c, c]"),
    Metric::of_diversity("zeta_effective", "the relative effective sample size under the ratio"),
    Metric::of_diversity("samples_effective", "(Σ w)²/Σ w² of a policy's newest rollout"),
    Metric::of_diversity("ratio_agreement", "rank correlation of log ζ_ji with logit_j - logit_i"),
];

/// The kernel of policies that have nothing in common.
fn identity(n: usize) -> Vec<f64> {
    (0..n * n).map(|at| f64::from(u8::from(at / n == at % n))).collect()
}

impl Method for Qd {
    fn streams(&self) -> usize {
        1
    }

    fn behaviour(&self) -> &[Column] {
        &self.behaviour
    }

    fn guide(&mut self, ensemble: &Ensemble, rollouts: &[Rollout], iteration: usize) -> Result<Guidance> {
        let n = self.n;
        self.memory.remember(rollouts);
        let qd = &self.config.qd;
        self.quota.update(rollouts, qd.quota, qd.slack);
        let omega = qd.omega(iteration, self.config.iterations);
        let idle: Vec<bool> = rollouts.iter().map(|rollout| rollout.silent).collect();
        let steers = qd.steers(omega) || idle.contains(&true);
        let last = iteration + 1 == self.config.iterations;
        if !steers && !last && !iteration.is_multiple_of(self.config.ratio.idle) {
            return Ok(self.rest(rollouts, omega));
        }
        let mut data = self.memory.data();
        let newest = self.memory.newest().into_iter().enumerate();
        let newest: Vec<Transitions> = newest.map(|(i, batch)| self.seen(i, batch, iteration)).collect();
        if self.resolution > 0.0 {
            for (i, data) in data.iter_mut().enumerate() {
                blur(data, self.resolution, self.config.seed, i, iteration);
            }
        }
        let features = self.memory.features.with_noise(self.resolution.powi(2));
        let policies = GaussianPolicies {
            ensemble,
            features: &features,
        };
        let round = Round {
            policies: &policies,
            data: &data,
            seed: self.config.seed,
            round: iteration,
            updates: self.updates(data[0].len(), iteration, !steers),
            rate: (1.0, 1.0),
        };
        let newest: Vec<&Transitions> = newest.iter().collect();
        let (loss, ratios) = ratio::step(self.estimator.as_mut(), &round, &newest);
        let divergences = ratios.divergences(self.divergence, self.bound, &newest);
        let (divergence, power) = (self.divergence, self.config.qd.power);
        let kernel = divergence_kernel(&divergences, n, divergence, self.temperature, power);
        let derivatives = divergence_derivatives(&divergences, n, divergence, self.temperature, power);
        if !loss.is_finite() || kernel.iter().any(|k| !k.is_finite()) {
            return Err(Error::failed(format!(
                "iteration {}: the ratio estimator {} is no longer finite; lower ratio.learning_rate or raise \
                 ratio.l2 (ratio.ridge for pooled data)",
                iteration + 1,
                self.config.qd.estimator
            )));
        }
        let rewards = self.rewards(&ratios, &derivatives, &newest);
        let (task, streams) = if steers {
            self.weights(&kernel, omega, &idle)
        } else {
            self.weights(&identity(n), omega, &idle)
        };

        let off_diagonal =
            |values: &[f64]| -> Vec<f64> { (0..n * n).filter(|at| at / n != at % n).map(|at| values[at]).collect() };
        let spread = off_diagonal(&divergences);
        let pairs = spread.len() as f64;
        let rows: Vec<f64> = (0..n).map(|i| kernel[i * n..][..n].iter().sum::<f64>() - 1.0).collect();
        let health = ratios.health(self.bound, &newest);
        let agreement = self.agreement(&policies, &ratios, iteration);
        self.metrics = [
            omega,
            self.between(rollouts),
            streams.iter().map(|&w| f64::from(w)).sum::<f64>() / n as f64,
            spread.iter().sum::<f64>() / pairs,
            spread.iter().copied().fold(f64::INFINITY, f64::min),
            rows.iter().sum::<f64>() / n as f64,
            rows.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            loss,
            health.mean,
            health.clamped,
            health.effective,
            self.memory
                .newest()
                .iter()
                .map(|batch| batch.effective_size())
                .sum::<f64>()
                / n as f64,
            agreement,
        ];
        self.kernel = kernel;
        Ok(Guidance {
            task,
            streams,
            rewards,
            units: self.config.qd.weighting.units().to_vec(),
            drift: Vec::new(),
        })
    }

    fn ratio_flops(&self) -> f64 {
        let samples = self.config.steps * self.config.ratio.rollouts;
        self.estimator.update_flops() * self.updates(samples, 1, false) as f64
    }

    fn metrics(&self) -> Vec<(Metric, f64)> {
        METRICS.into_iter().zip(self.metrics).collect()
    }

    fn kernel(&self) -> Option<&[f64]> {
        Some(&self.kernel)
    }

    fn kernel_is_symmetric(&self) -> bool {
        self.divergence.symmetric()
    }

    fn save(&self, checkpoint: &mut Checkpoint) {
        self.estimator.save(checkpoint);
        self.quota.save(checkpoint);
        self.classifier.save(checkpoint);
        self.memory.save(checkpoint);
    }

    fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        self.estimator.restore(checkpoint)?;
        self.quota.restore(checkpoint)?;
        self.classifier.restore(checkpoint)?;
        self.memory.restore(checkpoint)
    }
}
