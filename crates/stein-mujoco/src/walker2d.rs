//! Walker2d: a torso on two legs that should walk forwards. Constants from Gymnasium's Walker2d-v5.

use serde::{Deserialize, Serialize};

use crate::runner::{RewardSource, Rules, VelocityNoise, runner_task};
use crate::stage::View;

/// Description for `stein envs`.
pub(crate) const ABOUT: &str = "two legs that walk in a plane (MuJoCo, Gymnasium's Walker2d-v5)";

/// Settings of Walker2d.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Walker2dConfig {
    /// `"task"`, or `"none"` for a reward of 0.
    pub reward: RewardSource,
    /// Reward per m/s of forward velocity.
    pub forward_reward_weight: f64,
    /// Cost of the squared norm of an action.
    pub control_cost_weight: f64,
    /// Reward per step that ends in a healthy state.
    pub healthy_reward: f64,
    /// Whether a fall ends the episode.
    pub terminate_when_unhealthy: bool,
    /// Size of the uniform initial-state noise on positions and velocities.
    pub reset_noise: f64,
    /// Steps after which an episode is truncated.
    pub horizon: usize,
}

impl Default for Walker2dConfig {
    fn default() -> Self {
        Walker2dConfig {
            reward: RewardSource::Task,
            forward_reward_weight: 1.0,
            control_cost_weight: 1e-3,
            healthy_reward: 1.0,
            terminate_when_unhealthy: true,
            reset_noise: 5e-3,
            horizon: 1000,
        }
    }
}

/// Roughly upright, neither fallen nor flying.
fn healthy(qpos: &[f64], _qvel: &[f64]) -> bool {
    let (z, pitch) = (qpos[1], qpos[2]);
    0.8 < z && z < 2.0 && pitch.abs() < 1.0
}

impl Walker2dConfig {
    pub(crate) fn rules(&self) -> Rules {
        Rules {
            model: include_str!("../models/walker2d.xml"),
            frames: 4,
            step_time: 0.008,
            velocity_clip: 10.0,
            healthy: Some(healthy),
            velocity_noise: VelocityNoise::Uniform,
            reward: self.reward,
            forward_reward_weight: self.forward_reward_weight,
            control_cost_weight: self.control_cost_weight,
            healthy_reward: self.healthy_reward,
            threshold: None,
            terminate_when_unhealthy: self.terminate_when_unhealthy,
            reset_noise: self.reset_noise,
            horizon: self.horizon,
            view: View::following(0.8, 2.9),
        }
    }
}

runner_task!(Walker2dConfig);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_of_health() {
        let at = |z: f64, pitch: f64| healthy(&[1e5, z, pitch, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], &[1e3; 9]);
        // The bounds themselves are unhealthy.
        for (outside, inside) in [
            ((0.8, 0.0), (0.8001, 0.0)),
            ((2.0, 0.0), (1.9999, 0.0)),
            ((1.25, 1.0), (1.25, 0.9999)),
            ((1.25, -1.0), (1.25, -0.9999)),
        ] {
            assert!(!at(outside.0, outside.1) && at(inside.0, inside.1), "{outside:?}");
        }
        assert!(!at(f64::NAN, 0.0) && !at(1.25, f64::NAN));
    }
}
