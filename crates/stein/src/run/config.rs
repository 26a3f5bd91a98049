//! Settings of a run: one documented field each, checked before anything starts. `docs/algorithm.md` says where defaults come from.

use serde::{Deserialize, Serialize};

use crate::env::Task;
use crate::env::behaviour::Behaviour;
use crate::error::{Error, Result};
use crate::method::{DiaynConfig, QdConfig, SiConfig, SvpgConfig, Weighting};
use crate::ratio::{Occupancy, RatioConfig};

/// All settings of a training run. `config.toml` in a run folder is this, resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// Version of the program that wrote the file. A run is gone on with by versions that differ in the last number alone.
    pub stein_version: String,
    /// How the ensemble is trained: `qd`, `ppo`, `svpg`, `diayn` or `si`.
    pub method: String,
    /// Seed of all randomness.
    pub seed: u64,
    /// Number of policies n.
    pub ensemble: usize,
    /// Iterations of Algorithm 1.
    pub iterations: usize,
    /// Steps each policy takes per iteration.
    pub steps: usize,
    /// The policies' networks.
    pub policy: PolicyConfig,
    /// The critics.
    pub critic: CriticConfig,
    /// Proximal policy optimisation.
    pub ppo: PpoConfig,
    /// The method `qd`: kernels, divergences, weights.
    pub qd: QdConfig,
    /// Ratio estimation.
    pub ratio: RatioConfig,
    /// The method `svpg`.
    pub svpg: SvpgConfig,
    /// The method `diayn`.
    pub diayn: DiaynConfig,
    /// The method `si`.
    pub si: SiConfig,
    /// Checkpoints.
    pub checkpoint: CheckpointConfig,
    /// The environment: its `name`, and its own settings (`stein envs NAME` lists them).
    pub env: toml::Table,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            stein_version: env!("CARGO_PKG_VERSION").into(),
            method: "qd".into(),
            seed: 1,
            ensemble: 10,
            iterations: 200,
            steps: 2048,
            policy: PolicyConfig::default(),
            critic: CriticConfig::default(),
            ppo: PpoConfig::default(),
            qd: QdConfig::default(),
            ratio: RatioConfig::default(),
            svpg: SvpgConfig::default(),
            diayn: DiaynConfig::default(),
            si: SiConfig::default(),
            checkpoint: CheckpointConfig::default(),
            env: toml::Table::new(),
        }
    }
}

/// Settings of the policies' networks.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct PolicyConfig {
    /// Widths of the tanh layers.
    pub hidden: Vec<usize>,
    /// First value of the state-independent log-standard-deviation.
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

/// Settings of the critics.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CriticConfig {
    /// Widths of the tanh layers.
    pub hidden: Vec<usize>,
    /// The critics' learning rate is that of the policies times this.
    pub learning_rate_factor: f64,
    /// Bound on how far a value moves in one iteration, in standard deviations of its targets; 0 for none.
    pub value_clip: f64,
    /// Whether each critic learns standardised targets (PopArt).
    pub normalize_targets: bool,
}

impl Default for CriticConfig {
    fn default() -> Self {
        CriticConfig {
            hidden: vec![64, 64],
            learning_rate_factor: 3.0,
            value_clip: 0.2,
            normalize_targets: true,
        }
    }
}

/// How task rewards are scaled before they are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RewardScaling {
    /// As they are.
    None,
    /// Divided by the running standard deviation of the discounted return, per policy.
    Return,
}

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

/// Settings of checkpoints.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CheckpointConfig {
    /// A checkpoint every so many iterations (and at the end, and at Ctrl-C).
    pub every: usize,
    /// How many of them are kept.
    pub keep: usize,
}

impl Default for CheckpointConfig {
    fn default() -> Self {
        CheckpointConfig { every: 10, keep: 3 }
    }
}

/// What is wrong with a setting, in the words of TOML rather than of Rust.
pub(crate) fn plain_words(error: &toml::de::Error) -> String {
    let (wrong, expected) = match error.message().split_once(", expected ") {
        Some((wrong, expected)) => (wrong, Some(expected)),
        None => (error.message(), None),
    };
    let wrong = wrong
        .replace("invalid type: map", "invalid type: table")
        .replace('\n', " ");
    match expected {
        None if wrong.contains("untagged enum Behaviour") => {
            "expected state-action, state, task or a list of signals and numbers of observations, as in [\"velocity\", 3]".into()
        }
        None => wrong,
        Some("u64" | "usize") => wrong + ", expected a whole number, 0 or more",
        Some("f64") => wrong + ", expected a number",
        Some("a sequence") => wrong + ", expected a list, as in [1, 2]",
        Some(kind) if kind.starts_with("struct ") => wrong + ", expected a table of settings",
        Some(other) => wrong + ", expected " + &other.replace('\n', " "),
    }
}

impl Config {
    /// Reads settings from a table; an unknown key or a wrong type gets a sentence that names it. `source` is the file.
    pub fn from_table(table: toml::Table, source: &str) -> Result<Config> {
        serde_path_to_error::deserialize(table).map_err(|error| {
            let words = plain_words(error.inner());
            Error::input(format!("{source}: the setting {} is wrong: {words}", error.path()))
        })
    }

    /// Fills in what is absent and depends on the method and the task.
    pub fn resolve(&mut self, task: &dyn Task) -> Result<()> {
        if self.method == "si" {
            self.qd.behaviour.get_or_insert(Behaviour::state_action());
        }
        if self.method == "diayn" {
            self.ratio.resolve("nce")?;
        }
        if ["qd", "si"].contains(&self.method.as_str()) {
            self.qd.resolve(task)?;
            self.ratio.resolve(&self.qd.estimator)?;
            let discounted = self.qd.behaviour.as_ref().is_none_or(Behaviour::is_state_action);
            self.ratio.occupancy.get_or_insert(if discounted {
                Occupancy::Discounted
            } else {
                Occupancy::Visited
            });
        }
        Ok(())
    }

    /// Whether a setting has a part in a run of this method: independent PPO knows neither ratios nor diversity.
    pub fn has_part(&self, key: &str) -> bool {
        let own: &[&str] = match self.method.as_str() {
            "qd" => &["qd", "ratio"],
            "si" => &["si", "qd", "ratio"],
            "diayn" => &["diayn", "ratio"],
            "svpg" => &["svpg"],
            _ => &[],
        };
        let (section, _) = key.split_once('.').unwrap_or((key, ""));
        !["qd", "ratio", "svpg", "diayn", "si"].contains(&section) || own.contains(&section)
    }

    /// Refuses impossible values.
    pub fn validate(&self) -> Result<()> {
        let whole = |key: &str, value: usize, least: usize, largest: usize| {
            if (least..=largest).contains(&value) {
                return Ok(());
            }
            Err(Error::input(format!(
                "{key} = {value} is out of range: set it between {least} and {largest}"
            )))
        };
        let real = |key: &str, value: f64, least: f64, largest: f64| {
            // A NaN fails the comparison too.
            if value >= least && value <= largest {
                return Ok(());
            }
            Err(Error::input(format!(
                "{key} = {value} is out of range: set it between {least} and {largest}"
            )))
        };
        whole("ensemble", self.ensemble, 1, 1000)?;
        whole("iterations", self.iterations, 1, 10_000_000)?;
        whole("steps", self.steps, 2, 1_000_000)?;
        for (key, hidden) in [
            ("policy.hidden", &self.policy.hidden),
            ("critic.hidden", &self.critic.hidden),
        ] {
            whole(&format!("the number of layers in {key}"), hidden.len(), 0, 8)?;
            for &width in hidden {
                whole(&format!("a width in {key}"), width, 1, 4096)?;
            }
        }
        real("policy.initial_log_std", self.policy.initial_log_std, -10.0, 2.0)?;
        real("policy.output_gain", self.policy.output_gain, 0.0, 100.0)?;
        real("policy.observation_clip", self.policy.observation_clip, 1e-6, 1e9)?;
        real(
            "critic.learning_rate_factor",
            self.critic.learning_rate_factor,
            0.0,
            1e6,
        )?;
        real("critic.value_clip", self.critic.value_clip, 0.0, 1e9)?;
        let ppo = &self.ppo;
        real("ppo.gamma", ppo.gamma, 0.0, 0.999_999)?;
        real("ppo.lambda", ppo.lambda, 0.0, 1.0)?;
        real("ppo.clip", ppo.clip, 1e-6, 1e6)?;
        whole("ppo.epochs", ppo.epochs, 1, 1000)?;
        whole("ppo.minibatches", ppo.minibatches, 1, self.steps)?;
        real("ppo.learning_rate", ppo.learning_rate, 0.0, 10.0)?;
        real("ppo.adam_epsilon", ppo.adam_epsilon, 1e-12, 1.0)?;
        real("ppo.kl_limit", ppo.kl_limit, 0.0, 1e9)?;
        real("ppo.anneal.from", ppo.anneal.from, 0.0, 1.0)?;
        real("ppo.anneal.to", ppo.anneal.to, 0.0, 1.0)?;
        real("ppo.gradient_clip", ppo.gradient_clip, 1e-9, 1e9)?;
        real("ppo.entropy", ppo.entropy, 0.0, 1e3)?;
        let (qd, ratio) = (&self.qd, &self.ratio);
        if let Some(temperature) = qd.temperature {
            real("qd.temperature", temperature, 1e-6, 1e6)?;
        }
        real("qd.ladder", qd.ladder, 0.0, 10.0)?;
        real("qd.omega_start", qd.omega_start, 0.0, 1e6)?;
        real("qd.omega_end", qd.omega_end, 0.0, 1e6)?;
        let most = (1.0 + qd.ladder) * qd.omega_start.max(qd.omega_end);
        if qd.weighting == Weighting::Normalised && most > 1.0 {
            return Err(Error::input(format!(
                "with qd.weighting = \"normalised\" ω is a share of 1, but the last policy's would be {most}, (1 + qd.ladder) times \
                 qd.omega_start or qd.omega_end; set qd.ladder=0 and both of them at most 1, or all three lower"
            )));
        }
        real("qd.resolution", qd.resolution.unwrap_or(0.0), 0.0, 1e9)?;
        real("qd.power", qd.power, 1e-3, 1.0)?;
        real("qd.clamp", qd.clamp, 1.001, 1e12)?;
        real("qd.quota", qd.quota, 0.0, 1.0)?;
        real("qd.slack", qd.slack, 0.0, 1e6)?;
        real("qd.omega_until", qd.omega_until, 0.0, 1.0)?;
        real("qd.omega_off", qd.omega_off, 0.0, 1.0)?;
        whole("the number of layers in ratio.hidden", ratio.hidden.len(), 0, 8)?;
        for &width in &ratio.hidden {
            whole("a width in ratio.hidden", width, 1, 4096)?;
        }
        whole("ratio.minibatch", ratio.minibatch, 2, 1_000_000)?;
        whole("ratio.epochs", ratio.epochs, 0, 10_000)?;
        whole("ratio.warmup_updates", ratio.warmup_updates, 0, 10_000_000)?;
        whole("ratio.rollouts", ratio.rollouts, 1, 1000)?;
        whole("ratio.idle", ratio.idle, 1, 1_000_000_000)?;
        for (key, rate) in [
            ("ratio.learning_rate", ratio.learning_rate),
            ("ratio.zeta_learning_rate", ratio.zeta_learning_rate),
        ] {
            real(key, rate.unwrap_or(1e-4), 0.0, 10.0)?;
        }
        whole("ratio.next_actions", ratio.next_actions.unwrap_or(1), 1, 1000)?;
        real("ratio.gradient_penalty", ratio.gradient_penalty, 0.0, 1e6)?;
        real("ratio.gradient_clip", ratio.gradient_clip, 1e-9, 1e9)?;
        real("ratio.weight_decay", ratio.weight_decay, 0.0, 1e3)?;
        real("ratio.l2", ratio.l2, 0.0, 1e3)?;
        whole("ratio.pool", ratio.pool, 2, 10_000_000)?;
        real("ratio.ridge", ratio.ridge, 1e-12, 1e6)?;
        real("ratio.gendice_lambda", ratio.gendice_lambda, 0.0, 1e6)?;
        real("ratio.gendice_average", ratio.gendice_average, 0.0, 0.999_999)?;
        real("diayn.task", self.diayn.task, 0.0, 1e6)?;
        real("si.imitation", self.si.imitation, 0.0, 1.0)?;
        whole("si.trajectories", self.si.trajectories, 1, 100_000)?;
        real("svpg.temperature", self.svpg.temperature, 0.0, 1e9)?;
        whole("checkpoint.every", self.checkpoint.every, 1, 10_000_000)?;
        whole("checkpoint.keep", self.checkpoint.keep, 1, 10_000_000)?;
        Ok(())
    }

    /// As TOML text.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).expect("settings are plain numbers, texts and tables")
    }
}
