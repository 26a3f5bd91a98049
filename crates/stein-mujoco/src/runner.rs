//! Runners in the vertical plane: what Hopper, Walker2d and the cheetahs share.
//!
//! ```text
//! state        qpos = (x, z, pitch, joints…), qvel likewise
//! observation  qpos without x, qvel (clipped)
//! velocity     v = (x' - x)/dt
//! reward       r = w_f·v·[x' ≥ threshold] + w_h·[healthy] - w_c·|a|²          0 if there is no task reward
//! terminated   not healthy, or the simulation blew up (then r = 0)
//! ```
//!
//! Reference: the definitions of Gymnasium's Hopper-v5, Walker2d-v5 and HalfCheetah-v5 (Towers et al. 2024, "Gymnasium:
//! a standard interface for reinforcement learning environments"; the tasks go back to Erez et al. 2011 and Wawrzyński
//! 2009).

use rand::{RngExt, SeedableRng};
use rand_distr::StandardNormal;
use serde::{Deserialize, Serialize};
use stein::env::{Env, SetState, Spec, Stage, Step};
use stein::rng::Stream;
use stein::{Error, Result};

use crate::simulation::{Outcome, Simulation};
use crate::stage::{RobotStage, View};

/// Names of the signals. The velocity is that of the last step, 0 in the first state; `com_x` is the position of the
/// centre of mass; `pace` is the velocity averaged over about [`PACE_TIME`].
pub(crate) const SIGNALS: [&str; 7] = ["x", "z", "pitch", "velocity", "com_x", "unstable", "pace"];

/// Time constant of the running mean of the velocity, in seconds: somewhat less than a stride, so that it shows the
/// speed of a robot rather than the phase of its stride.
const PACE_TIME: f64 = 0.3;

/// The resolution of behaviour: differences in pace well below this, in m/s, do not count.
pub(crate) const RESOLUTION: f64 = 0.25;

/// The largest weight, cost or distance: above it returns could overflow.
const LARGEST: f64 = 1e6;

/// Longest episode.
pub(crate) const LONGEST: usize = 1_000_000;

/// The source of the reward.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RewardSource {
    /// The task's formula.
    Task,
    /// None: it is 0, so that policies are trained on diversity alone.
    None,
}

/// How velocities are drawn at a reset; positions are always uniform.
#[derive(Clone, Copy, Debug)]
pub(crate) enum VelocityNoise {
    Uniform,
    Normal,
}

/// Whether a state (qpos, qvel) is healthy.
pub(crate) type Healthy = fn(&[f64], &[f64]) -> bool;

/// Everything in which runners differ.
#[derive(Clone, Debug)]
pub(crate) struct Rules {
    /// Its model as MuJoCo XML.
    pub model: &'static str,
    /// Integrator steps per environment step.
    pub frames: usize,
    /// Their total time in seconds.
    pub step_time: f64,
    /// Observed velocities are clipped to this.
    pub velocity_clip: f64,
    /// Which states are healthy; none if all are.
    pub healthy: Option<Healthy>,
    pub velocity_noise: VelocityNoise,
    pub reward: RewardSource,
    pub forward_reward_weight: f64,
    pub control_cost_weight: f64,
    pub healthy_reward: f64,
    /// Where the forward reward starts; none if everywhere.
    pub threshold: Option<f64>,
    pub terminate_when_unhealthy: bool,
    pub reset_noise: f64,
    pub horizon: usize,
    /// Where the camera of its stage is.
    pub view: View,
}

impl Rules {
    /// Rejects invalid settings.
    pub fn validate(&self) -> Result<()> {
        for (key, value) in [
            ("forward_reward_weight", self.forward_reward_weight),
            ("healthy_reward", self.healthy_reward),
        ] {
            if !(-LARGEST..=LARGEST).contains(&value) {
                return Err(Error::input(format!(
                    "env.{key} is {value}; choose a number from {:e} to {LARGEST:e}",
                    -LARGEST
                )));
            }
        }
        if !(0.0..=LARGEST).contains(&self.control_cost_weight) {
            return Err(Error::input(format!(
                "env.control_cost_weight is {}; choose a number from 0 to {LARGEST:e}",
                self.control_cost_weight
            )));
        }
        if let Some(threshold) = self.threshold
            && !(-LARGEST..=LARGEST).contains(&threshold)
        {
            return Err(Error::input(format!(
                "env.threshold is {threshold}; choose a distance in metres up to {LARGEST:e}"
            )));
        }
        if !(0.0..=1.0).contains(&self.reset_noise) {
            return Err(Error::input(format!(
                "env.reset_noise is {}; choose a number from 0 to 1",
                self.reset_noise
            )));
        }
        if !(1..=LONGEST).contains(&self.horizon) {
            return Err(Error::input(format!(
                "env.horizon is {}; choose 1 to {LONGEST} steps",
                self.horizon
            )));
        }
        Ok(())
    }

    /// The stage that renders this runner.
    pub fn stage(&self, width: u32, height: u32) -> Result<Option<Box<dyn Stage>>> {
        let stage = RobotStage::new(self.model, self.step_time, self.view, width, height)?;
        Ok(Some(Box::new(stage)))
    }

    /// The reward of a step, with `x` and `velocity` after it.
    fn reward(&self, x: f64, velocity: f64, healthy: bool, action: &[f64]) -> f64 {
        if self.reward == RewardSource::None {
            return 0.0;
        }
        let paid = self.threshold.is_none_or(|threshold| x >= threshold);
        let forward = if paid {
            self.forward_reward_weight * velocity
        } else {
            0.0
        };
        let survival = if healthy { self.healthy_reward } else { 0.0 };
        let control: f64 = action.iter().map(|a| a * a).sum();
        forward + survival - self.control_cost_weight * control
    }
}

/// A runner as an environment.
pub(crate) struct Runner {
    spec: Spec,
    rules: Rules,
    simulation: Simulation,
    /// Time of one step.
    dt: f64,
    steps: usize,
    velocity: f64,
    /// Running mean of the velocity, initially 0.
    pace: f64,
    unstable: bool,
}

impl Runner {
    /// Creates a runner after checking its settings.
    pub fn new(rules: Rules) -> Result<Self> {
        rules.validate()?;
        let simulation = Simulation::new(rules.model)?;
        let actions = simulation.model().ffi().nu as usize;
        Ok(Runner {
            spec: Spec {
                observation: simulation.positions().len() - 1 + simulation.velocities().len(),
                action_low: vec![-1.0; actions],
                action_high: vec![1.0; actions],
                horizon: rules.horizon,
                can_terminate: rules.healthy.is_some() && rules.terminate_when_unhealthy,
                signals: SIGNALS.to_vec(),
            },
            dt: simulation.timestep() * rules.frames as f64,
            simulation,
            rules,
            steps: 0,
            velocity: 0.0,
            pace: 0.0,
            unstable: false,
        })
    }

    fn observe(&self, observation: &mut [f64]) {
        let (positions, velocities) = (&self.simulation.positions()[1..], self.simulation.velocities());
        let (first, rest) = observation.split_at_mut(positions.len());
        first.copy_from_slice(positions);
        let clip = self.rules.velocity_clip;
        for (seen, velocity) in rest.iter_mut().zip(velocities) {
            *seen = velocity.clamp(-clip, clip);
        }
    }

    fn is_healthy(&self) -> bool {
        let healthy = self.rules.healthy;
        healthy.is_none_or(|healthy| healthy(self.simulation.positions(), self.simulation.velocities()))
    }
}

impl Env for Runner {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, observation: &mut [f64]) {
        let mut stream = Stream::seed_from_u64(seed);
        let noise = self.rules.reset_noise;
        let uniform = |stream: &mut Stream| noise * (2.0 * stream.random::<f64>() - 1.0);
        let mut positions = self.simulation.model().qpos0().to_vec();
        positions
            .iter_mut()
            .for_each(|position| *position += uniform(&mut stream));
        let mut velocities = vec![0.0; self.simulation.velocities().len()];
        for velocity in &mut velocities {
            *velocity = match self.rules.velocity_noise {
                VelocityNoise::Uniform => uniform(&mut stream),
                VelocityNoise::Normal => noise * stream.sample::<f64, _>(StandardNormal),
            };
        }
        self.set_state(&positions, &velocities, observation);
    }

    fn step(&mut self, action: &[f64], observation: &mut [f64]) -> Step {
        let before = self.simulation.positions()[0];
        self.unstable = self.simulation.step(action, self.rules.frames) == Outcome::Unstable;
        self.steps += 1;
        self.observe(observation);
        let truncated = self.steps >= self.spec.horizon;
        if self.unstable {
            (self.velocity, self.pace) = (0.0, 0.0);
            return Step {
                reward: 0.0,
                terminated: true,
                truncated,
            };
        }
        let x = self.simulation.positions()[0];
        self.velocity = (x - before) / self.dt;
        self.pace += (1.0 - (-self.dt / PACE_TIME).exp()) * (self.velocity - self.pace);
        let healthy = self.is_healthy();
        Step {
            reward: self.rules.reward(x, self.velocity, healthy, action),
            terminated: !healthy && self.rules.terminate_when_unhealthy,
            truncated,
        }
    }

    fn signals(&mut self, signals: &mut [f64]) {
        signals[..3].copy_from_slice(&self.simulation.positions()[..3]);
        signals[3] = self.velocity;
        signals[4] = self.simulation.centre_of_mass()[0];
        signals[5] = f64::from(u8::from(self.unstable));
        signals[6] = self.pace;
    }

    fn unstable(&self) -> bool {
        self.unstable
    }

    fn pose(&self) -> &[f64] {
        self.simulation.positions()
    }

    fn settable(&mut self) -> Option<&mut dyn SetState> {
        Some(self)
    }
}

impl SetState for Runner {
    fn state_sizes(&self) -> (usize, usize) {
        (self.simulation.positions().len(), self.simulation.velocities().len())
    }

    fn set_state(&mut self, positions: &[f64], velocities: &[f64], observation: &mut [f64]) {
        self.simulation.set_state(positions, velocities);
        self.steps = 0;
        self.velocity = 0.0;
        self.pace = 0.0;
        self.unstable = false;
        self.observe(observation);
    }
}

/// Implements `Task` for settings that have `rules()`: everything that follows from the rules.
macro_rules! runner_task {
    ($config:ty) => {
        impl stein::env::Task for $config {
            fn validate(&self) -> stein::Result<()> {
                self.rules().validate()
            }

            fn make(&self) -> stein::Result<Box<dyn stein::env::Env>> {
                Ok(Box::new($crate::runner::Runner::new(self.rules())?))
            }

            fn stage(&self, width: u32, height: u32) -> stein::Result<Option<Box<dyn stein::env::Stage>>> {
                self.rules().stage(width, height)
            }

            fn behaviour(&self) -> &'static [&'static str] {
                &["pace"]
            }

            fn resolution(&self) -> f64 {
                $crate::runner::RESOLUTION
            }

            fn grid(&self) -> Option<stein::env::Grid> {
                Some($crate::measure::grid())
            }

            fn measure(&self, episodes: &[stein::env::Episode]) -> Vec<stein::env::Measure> {
                $crate::measure::of_policy(episodes, self.rules().step_time)
            }

            fn measure_ensemble(&self, policies: &[Vec<stein::env::Episode>]) -> Vec<stein::env::Measure> {
                $crate::measure::of_ensemble(policies, self.rules().step_time)
            }

            fn figures(&self, policies: &[Vec<stein::env::Episode>]) -> Vec<(String, stein::plot::Figure)> {
                let rules = self.rules();
                $crate::measure::figures(policies, rules.step_time, rules.threshold)
            }

            fn outcome(&self, episode: &stein::env::Episode) -> Option<String> {
                $crate::measure::outcome(episode)
            }
        }
    };
}
pub(crate) use runner_task;
