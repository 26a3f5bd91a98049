//! Rollouts: a worker per policy steps its own environment with a hand-coded forward pass; no critic runs here.

use rand::Rng;

use super::gaussian::Actor;
use crate::checkpoint::Checkpoint;
use crate::env::behaviour::Column;
use crate::env::{Env, Spec, Step, Task};
use crate::error::{Error, Result};
use crate::nn::Normalizer;
use crate::rng::{Purpose, stream};

/// The transitions of one policy in one iteration, T of them.
///
/// Observation rows 0 … T-1 are s_0 … s_{T-1}; behind them stand the observations after which no step was taken (the
/// last of each episode, and of the rollout), so that `next[t]` is the row of s'_t.
#[derive(Clone, Debug, Default)]
pub struct Rollout {
    /// Raw observations, row after row.
    pub observations: Vec<f32>,
    /// The same, normalised as the policy saw them.
    pub normalized: Vec<f32>,
    /// Unsquashed actions u.
    pub unsquashed: Vec<f32>,
    /// Actions tanh(u) in (-1, 1).
    pub actions: Vec<f32>,
    /// log π of each action.
    pub log_probs: Vec<f32>,
    /// Task rewards.
    pub rewards: Vec<f32>,
    /// Row of the next observation.
    pub next: Vec<u32>,
    /// The episode ended by itself after this step.
    pub terminated: Vec<bool>,
    /// The episode (or the rollout) ended after this step.
    pub ended: Vec<bool>,
    /// Steps of the episode before this one: the t of γ^t.
    pub time: Vec<u32>,
    /// Behaviour φ(s_t) of each step's state, row after row; empty where nobody asked for it.
    pub behaviour: Vec<f32>,
    /// Rows that are first observations of an episode.
    pub initial: Vec<u32>,
    /// Whether the last step also ended its episode.
    pub next_is_new_episode: bool,
    /// Whether the task's rewards have said nothing so far, in this rollout and before: the policy has no task yet.
    pub silent: bool,
    /// Return and length of the episodes that ended in this rollout.
    pub episodes: Vec<(f64, usize)>,
    /// How many of them ended because the simulation broke down.
    pub unstable: usize,
}

impl Rollout {
    /// Number of transitions.
    pub fn steps(&self) -> usize {
        self.next.len()
    }

    /// Number of observation rows.
    pub fn rows(&self, width: usize) -> usize {
        self.observations.len() / width
    }

    fn clear(&mut self) {
        self.observations.clear();
        self.normalized.clear();
        self.unsquashed.clear();
        self.actions.clear();
        self.log_probs.clear();
        self.rewards.clear();
        self.next.clear();
        self.terminated.clear();
        self.ended.clear();
        self.time.clear();
        self.behaviour.clear();
        self.initial.clear();
        self.episodes.clear();
        self.unstable = 0;
    }
}

/// One policy's environment and the episode it is in, which goes on from one rollout to the next.
pub struct Worker {
    policy: usize,
    seed: u64,
    env: Box<dyn Env>,
    spec: Spec,
    /// Episodes begun.
    episode: u64,
    /// Actions of the present episode, as given to the environment: enough to rebuild it.
    taken: Vec<f64>,
    total: f64,
    observation: Vec<f64>,
    action: Vec<f64>,
    /// What is recorded as behaviour.
    behaviour: Vec<Column>,
    signals: Vec<f64>,
    /// The one reward of all steps so far, before the task has said anything; NaN since.
    constant: f64,
}

impl Worker {
    /// Makes the environment of policy `policy` and begins its first episode.
    pub fn new(task: &dyn Task, seed: u64, policy: usize) -> Result<Self> {
        let env = task.make()?;
        let spec = env.spec().clone();
        let mut worker = Worker {
            policy,
            seed,
            observation: vec![0.0; spec.observation],
            action: vec![0.0; spec.action()],
            behaviour: Vec::new(),
            signals: vec![0.0; spec.signals.len()],
            constant: f64::INFINITY,
            env,
            spec,
            episode: 0,
            taken: Vec::new(),
            total: 0.0,
        };
        worker.begin()?;
        Ok(worker)
    }

    /// Lets it record these columns of every state.
    pub fn recording(mut self, behaviour: &[Column]) -> Self {
        self.behaviour = behaviour.to_vec();
        self
    }

    fn begin(&mut self) -> Result<()> {
        let seed = stream(self.seed, Purpose::Episode, self.policy, self.episode as usize).next_u64();
        self.episode += 1;
        self.taken.clear();
        self.total = 0.0;
        self.env.reset(seed, &mut self.observation);
        self.check(&BEGUN)
    }

    fn check(&self, step: &Step) -> Result<()> {
        let steps = self.taken.len() / self.spec.action().max(1);
        check(&self.spec, steps, step, &self.observation).map_err(|trouble| {
            let (policy, episode) = (self.policy, self.episode);
            Error::failed(format!(
                "policy {policy}: after step {steps} of its episode {episode}, {trouble}"
            ))
        })
    }

    /// Collects `steps` transitions with a policy.
    pub fn collect(
        &mut self,
        mut actor: Actor,
        normalizer: &Normalizer,
        iteration: usize,
        steps: usize,
        rollout: &mut Rollout,
    ) -> Result<()> {
        rollout.clear();
        let mut random = stream(self.seed, Purpose::Rollout, self.policy, iteration);
        let (width, coordinates) = (self.spec.observation, self.spec.action());
        let mut normalized = vec![0.0; width];
        let (mut u, mut action) = (vec![0.0; coordinates], vec![0.0; coordinates]);
        let mut last = Vec::new();
        for t in 0..steps {
            let elapsed = self.taken.len() / coordinates;
            if elapsed == 0 {
                rollout.initial.push(t as u32);
            }
            let row = rollout.observations.len();
            rollout.observations.extend(self.observation.iter().map(|&x| x as f32));
            normalizer.apply(&rollout.observations[row..], &mut normalized);
            rollout.normalized.extend_from_slice(&normalized);
            self.behave(&mut rollout.behaviour)?;
            let log_prob = actor.sample(&normalized, &mut random, &mut u, &mut action);
            let step = self.step(&action)?;
            rollout.unsquashed.extend_from_slice(&u);
            rollout.actions.extend_from_slice(&action);
            rollout.log_probs.push(log_prob);
            rollout.rewards.push(step.reward as f32);
            rollout.time.push(elapsed as u32);
            rollout.terminated.push(step.terminated);
            let ended = step.terminated || step.truncated;
            rollout.ended.push(ended || t + 1 == steps);
            if ended || t + 1 == steps {
                rollout.next.push((steps + last.len() / width) as u32);
                last.extend(self.observation.iter().map(|&x| x as f32));
            } else {
                rollout.next.push(t as u32 + 1);
            }
            rollout.next_is_new_episode = ended;
            if ended {
                rollout.episodes.push((self.total, elapsed + 1));
                rollout.unstable += usize::from(step.terminated && self.env.unstable());
                self.begin()?;
            }
        }
        rollout.silent = self.listen(&rollout.rewards);
        rollout.observations.extend_from_slice(&last);
        let row = rollout.normalized.len();
        rollout.normalized.resize(rollout.observations.len(), 0.0);
        normalizer.apply_all(&last, &mut rollout.normalized[row..]);
        Ok(())
    }

    /// Whether rewards have said nothing up to these: all 0, or all the same where no episode can end by itself, so that
    /// whatever the policy did it would have got as much.
    fn listen(&mut self, rewards: &[f32]) -> bool {
        for &reward in rewards {
            let reward = f64::from(reward);
            if self.constant == f64::INFINITY && (reward == 0.0 || !self.spec.can_terminate) {
                self.constant = reward;
            } else if reward != self.constant {
                self.constant = f64::NAN;
            }
        }
        !self.constant.is_nan()
    }

    /// Adds the behaviour of the present state.
    fn behave(&mut self, rows: &mut Vec<f32>) -> Result<()> {
        if self.behaviour.iter().any(|column| matches!(column, Column::Signal(_))) {
            self.env.signals(&mut self.signals);
        }
        for column in &self.behaviour {
            let value = match *column {
                Column::Signal(index) if !self.signals[index].is_finite() => {
                    return Err(Error::failed(format!(
                        "policy {}: the environment returned the signal {} = {}; mend it, or leave it out of qd.behaviour",
                        self.policy, self.spec.signals[index], self.signals[index]
                    )));
                }
                Column::Signal(index) => self.signals[index],
                Column::Observation(index) => self.observation[index],
            };
            rows.push(value as f32);
        }
        Ok(())
    }

    fn step(&mut self, action: &[f32]) -> Result<Step> {
        scale_action(&self.spec, action, &mut self.action);
        self.taken.extend_from_slice(&self.action);
        let step = self.env.step(&self.action, &mut self.observation);
        self.check(&step)?;
        self.total += step.reward;
        Ok(step)
    }

    /// Adds the present episode to a checkpoint.
    pub fn save(&self, checkpoint: &mut Checkpoint) {
        let name = |what: &str| format!("worker.{}.{what}", self.policy);
        checkpoint.insert_u64(&name("episode"), &[1], &[self.episode]);
        checkpoint.insert_f64(&name("taken"), &[self.taken.len()], &self.taken);
        checkpoint.insert_f64(&name("constant"), &[1], &[self.constant]);
        checkpoint.insert_f64(&name("observation"), &[self.observation.len()], &self.observation);
    }

    /// Rebuilds the episode of a checkpoint by repeating its actions.
    pub fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        let policy = self.policy;
        let name = |what: &str| format!("worker.{policy}.{what}");
        let episode = checkpoint.take_u64(&name("episode"), &[1])?[0];
        checkpoint.require(episode < Checkpoint::COUNTABLE, &name("episode"), "counts")?;
        let length = checkpoint.rows(&name("taken"));
        let taken = checkpoint.take_f64(&name("taken"), &[length])?;
        let bounds = || self.spec.action_low.iter().zip(&self.spec.action_high);
        let within = |action: &[f64]| {
            action
                .iter()
                .zip(bounds())
                .all(|(x, (low, high))| (low..=high).contains(&x))
        };
        let good = taken.len().is_multiple_of(self.spec.action()) && taken.chunks_exact(self.spec.action()).all(within);
        checkpoint.require(good, &name("taken"), "actions within the bounds of the environment")?;
        self.constant = checkpoint.take_f64(&name("constant"), &[1])?[0];
        // ∞: no reward yet; NaN: rewards differ.
        checkpoint.require(self.constant != f64::NEG_INFINITY, &name("constant"), "a reward")?;
        let expected = checkpoint.take_f64(&name("observation"), &[self.observation.len()])?;
        self.episode = episode.max(1) - 1;
        self.begin()?;
        for action in taken.chunks_exact(self.spec.action()) {
            self.action.copy_from_slice(action);
            self.taken.extend_from_slice(action);
            let step = self.env.step(&self.action, &mut self.observation);
            self.check(&step)?;
            checkpoint.require(!step.terminated && !step.truncated, &name("taken"), "of one episode")?;
            self.total += step.reward;
        }
        if self
            .observation
            .iter()
            .zip(&expected)
            .any(|(a, b)| a.to_bits() != b.to_bits())
        {
            return Err(Error::failed(format!(
                "the environment of policy {} does not repeat itself: the same seed and actions gave another observation \
                 than before the interruption; make reset(seed) fix all of its randomness, or start a new run",
                self.policy
            )));
        }
        Ok(())
    }
}

/// What stands for a step where an episode has only begun.
pub const BEGUN: Step = Step {
    reward: 0.0,
    terminated: false,
    truncated: false,
};

/// Refuses what an environment may not do: return numbers that are not finite, or go on beyond its horizon. `steps` is
/// the length of the episode so far. The sentence lacks its beginning: who, when.
pub fn check(spec: &Spec, steps: usize, step: &Step, observation: &[f64]) -> std::result::Result<(), String> {
    if !step.reward.is_finite() {
        return Err(format!("the environment returned the reward {}; mend it", step.reward));
    }
    if let Some(index) = observation.iter().position(|x| !x.is_finite()) {
        let value = observation[index];
        return Err(format!(
            "the environment returned observation[{index}] = {value}; mend it"
        ));
    }
    if steps >= spec.horizon && !step.terminated && !step.truncated {
        return Err(format!(
            "the environment goes on, though its horizon is {}; let it truncate the episode there",
            spec.horizon
        ));
    }
    Ok(())
}

/// Scales an action from [-1, 1] to the bounds of the environment.
pub fn scale_action(spec: &Spec, action: &[f32], scaled: &mut [f64]) {
    for (d, (scaled, &action)) in scaled.iter_mut().zip(action).enumerate() {
        let (low, high) = (spec.action_low[d], spec.action_high[d]);
        *scaled = (low + 0.5 * (f64::from(action) + 1.0) * (high - low)).clamp(low, high);
    }
}
