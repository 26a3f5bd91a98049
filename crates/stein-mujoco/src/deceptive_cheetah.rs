//! The deceptive cheetah (Section 5 of the paper): a HalfCheetah that is rewarded only beyond a distance.
//!
//! ```text
//! r = v·[x ≥ d] - 0.1·|a|²
//! ```
//!
//! Before that, every motion costs, and standing still is a local optimum. The paper does not give d.

use serde::{Deserialize, Serialize};

use crate::half_cheetah::HalfCheetahConfig;
use crate::runner::{RewardSource, Rules, runner_task};

/// Description for `stein envs`.
pub(crate) const ABOUT: &str = "a HalfCheetah that is rewarded only beyond a distance (MuJoCo)";

/// Settings of the deceptive cheetah.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeceptiveCheetahConfig {
    /// Distance d in metres beyond which forward motion is rewarded.
    pub threshold: f64,
    /// Reward per m/s of forward velocity beyond the threshold.
    pub forward_reward_weight: f64,
    /// Cost of the squared norm of an action.
    pub control_cost_weight: f64,
    /// Initial-state noise: uniform within ± this on positions, normal with this std on velocities.
    pub reset_noise: f64,
    /// Steps after which an episode is truncated.
    pub horizon: usize,
}

impl Default for DeceptiveCheetahConfig {
    fn default() -> Self {
        DeceptiveCheetahConfig {
            threshold: 5.0,
            forward_reward_weight: 1.0,
            control_cost_weight: 0.1,
            reset_noise: 0.1,
            horizon: 1000,
        }
    }
}

impl DeceptiveCheetahConfig {
    fn rules(&self) -> Rules {
        let cheetah = HalfCheetahConfig {
            reward: RewardSource::Task,
            forward_reward_weight: self.forward_reward_weight,
            control_cost_weight: self.control_cost_weight,
            reset_noise: self.reset_noise,
            horizon: self.horizon,
        };
        Rules {
            threshold: Some(self.threshold),
            ..cheetah.rules()
        }
    }
}

runner_task!(DeceptiveCheetahConfig);
