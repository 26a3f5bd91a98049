//! The deceptive cheetah (Section 5 of the paper): a HalfCheetah that is rewarded only beyond a distance.
//!
//! ```text
//! r = v·[x ≥ d] - 0.1·|a|²
//! ```
//!
//! Up to there every motion costs and standing still is a local optimum. The paper does not give d.

use serde::{Deserialize, Serialize};
use stein::Result;
use stein::env::{Env, Episode, Measure, Stage, Task};
use stein::plot::Figure;

use crate::half_cheetah::HalfCheetahConfig;
use crate::measure;
use crate::runner::{RewardSource, Rules, Runner};

/// What `stein envs` says of it.
pub(crate) const ABOUT: &str = "a HalfCheetah that is rewarded only beyond a distance (MuJoCo)";

/// Settings of the deceptive cheetah.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DeceptiveCheetahConfig {
    /// Distance d in metres that must be passed before motion forwards is rewarded.
    pub threshold: f64,
    /// Reward per m/s forwards, beyond the threshold.
    pub forward_reward_weight: f64,
    /// Cost of the squared norm of an action.
    pub control_cost_weight: f64,
    /// Positions of the first state are off by at most this much, uniformly; velocities have this standard deviation.
    pub reset_noise: f64,
    /// Steps after which an episode is cut off.
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

impl Task for DeceptiveCheetahConfig {
    fn validate(&self) -> Result<()> {
        self.rules().validate()
    }

    fn make(&self) -> Result<Box<dyn Env>> {
        Ok(Box::new(Runner::new(self.rules())?))
    }

    fn stage(&self, width: u32, height: u32) -> Result<Option<Box<dyn Stage>>> {
        self.rules().stage(width, height)
    }

    fn measure(&self, episodes: &[Episode]) -> Vec<Measure> {
        measure::of_policy(episodes)
    }

    fn measure_ensemble(&self, policies: &[Vec<Episode>]) -> Vec<Measure> {
        measure::of_ensemble(policies)
    }

    fn figures(&self, policies: &[Vec<Episode>]) -> Vec<(String, Figure)> {
        measure::figures(policies, self.rules().step_time)
    }
}
