//! HalfCheetah: a torso with a hind leg and a foreleg that should run forwards; it cannot fall. Constants from
//! Gymnasium's HalfCheetah-v5.

use serde::{Deserialize, Serialize};

use crate::runner::{RewardSource, Rules, VelocityNoise, runner_task};
use crate::stage::View;

/// Description for `stein envs`.
pub(crate) const ABOUT: &str = "two legs and a long trunk that run (MuJoCo, Gymnasium's HalfCheetah-v5)";

/// Settings of HalfCheetah.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HalfCheetahConfig {
    /// `"task"`, or `"none"` for a reward of 0.
    pub reward: RewardSource,
    /// Reward per m/s of forward velocity.
    pub forward_reward_weight: f64,
    /// Cost of the squared norm of an action.
    pub control_cost_weight: f64,
    /// Initial-state noise: uniform within ± this on positions, normal with this std on velocities.
    pub reset_noise: f64,
    /// Steps after which an episode is truncated.
    pub horizon: usize,
}

impl Default for HalfCheetahConfig {
    fn default() -> Self {
        HalfCheetahConfig {
            reward: RewardSource::Task,
            forward_reward_weight: 1.0,
            control_cost_weight: 0.1,
            reset_noise: 0.1,
            horizon: 1000,
        }
    }
}

impl HalfCheetahConfig {
    pub(crate) fn rules(&self) -> Rules {
        Rules {
            model: include_str!("../models/half_cheetah.xml"),
            frames: 5,
            step_time: 0.05,
            velocity_clip: f64::INFINITY,
            healthy: None,
            velocity_noise: VelocityNoise::Normal,
            reward: self.reward,
            forward_reward_weight: self.forward_reward_weight,
            control_cost_weight: self.control_cost_weight,
            healthy_reward: 0.0,
            threshold: None,
            terminate_when_unhealthy: false,
            reset_noise: self.reset_noise,
            horizon: self.horizon,
            view: View::following(0.5, 2.6),
        }
    }
}

runner_task!(HalfCheetahConfig);
