//! Hopper: a torso on one leg that should hop forwards. Constants from Gymnasium's Hopper-v5.

use serde::{Deserialize, Serialize};

use crate::runner::{RewardSource, Rules, VelocityNoise, runner_task};
use crate::stage::View;

/// Description for `stein envs`.
pub(crate) const ABOUT: &str = "one leg that hops (MuJoCo, Gymnasium's Hopper-v5)";

/// Settings of Hopper.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HopperConfig {
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

impl Default for HopperConfig {
    fn default() -> Self {
        HopperConfig {
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

/// Upright, above the ground, and nothing moves too fast.
fn healthy(qpos: &[f64], qvel: &[f64]) -> bool {
    let (z, pitch) = (qpos[1], qpos[2]);
    let calm = qpos[2..].iter().chain(qvel).all(|value| value.abs() < 100.0);
    calm && z > 0.7 && pitch.abs() < 0.2
}

impl HopperConfig {
    pub(crate) fn rules(&self) -> Rules {
        Rules {
            model: include_str!("../models/hopper.xml"),
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
            view: View::following(0.88, 3.0),
        }
    }
}

runner_task!(HopperConfig);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bounds_of_health() {
        let upright = ([0.0, 1.25, 0.0, 0.0, 0.0, 0.0], [0.0; 6]);
        let with = |index: usize, value: f64| {
            let (mut qpos, mut qvel) = upright;
            *qpos.iter_mut().chain(&mut qvel).nth(index).unwrap() = value;
            healthy(&qpos, &qvel)
        };
        // The bounds themselves are unhealthy; the distance covered does not matter.
        for (index, outside, inside) in [
            (1, 0.7, 0.7001),
            (2, 0.2, 0.1999),
            (2, -0.2, -0.1999),
            (3, -100.0, -99.0),
            (6, 100.0, 99.0),
            (11, f64::NAN, -99.0),
        ] {
            assert!(!with(index, outside) && with(index, inside), "{index}");
        }
        assert!(with(0, 1e5) && with(1, 1e5));
    }
}
