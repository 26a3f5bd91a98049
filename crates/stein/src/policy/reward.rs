//! Reward scaling: task rewards divided by the running std of the discounted return, as PPO programs commonly do.
//!
//! ```text
//! R_t = γ·R_{t-1}·[episode went on] + r_t,     r̂_t = clip(r_t / √(Var R + 1e-8), ±10)
//! ```

use serde::{Deserialize, Serialize};

use super::rollout::Rollout;
use crate::checkpoint::Checkpoint;
use crate::error::Result;

/// How task rewards are scaled before they are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RewardScaling {
    /// As they are.
    None,
    /// Divided by the running standard std of the discounted return, per policy.
    Return,
}

/// Running statistics of one policy's discounted return.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RewardScaler {
    running: f64,
    count: f64,
    mean: f64,
    squares: f64,
}

impl RewardScaler {
    /// The scaled rewards of a rollout, after it has been taken into the statistics.
    pub fn scale(&mut self, rollout: &Rollout, gamma: f64) -> Vec<f32> {
        let last = rollout.steps() - 1;
        for (t, &reward) in rollout.rewards.iter().enumerate() {
            self.running = gamma * self.running + f64::from(reward);
            self.count += 1.0;
            let delta = self.running - self.mean;
            self.mean += delta / self.count;
            self.squares += delta * (self.running - self.mean);
            // The last step of a rollout counts as an end too; only an episode's own end resets the return.
            if rollout.ended[t] && (t < last || rollout.next_is_new_episode) {
                self.running = 0.0;
            }
        }
        let std = (self.squares / self.count + 1e-8).sqrt();
        rollout
            .rewards
            .iter()
            .map(|&r| (f64::from(r) / std).clamp(-10.0, 10.0) as f32)
            .collect()
    }

    /// Adds its state to a checkpoint.
    pub fn save(&self, policy: usize, checkpoint: &mut Checkpoint) {
        let state = [self.running, self.count, self.mean, self.squares];
        checkpoint.insert_f64(&format!("reward_scaler.{policy}"), &[4], &state);
    }

    /// Takes its state from a checkpoint.
    pub fn restore(&mut self, policy: usize, checkpoint: &mut Checkpoint) -> Result<()> {
        let name = format!("reward_scaler.{policy}");
        let state = checkpoint.take_f64(&name, &[4])?;
        checkpoint.require(state[1] >= 0.0 && state[3] >= 0.0, &name, "counts and squares")?;
        (self.running, self.count, self.mean, self.squares) = (state[0], state[1], state[2], state[3]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constant_scale_of_rewards_disappears() {
        let scaled = |factor: f32| {
            let rollout = Rollout {
                rewards: (0..200).map(|t| factor * (t % 7) as f32).collect(),
                next: vec![0; 200],
                ended: (0..200).map(|t| t % 50 == 49).collect(),
                ..Rollout::default()
            };
            RewardScaler::default().scale(&rollout, 0.9)
        };
        let (one, thousand) = (scaled(1.0), scaled(1000.0));
        assert!(one.iter().zip(&thousand).all(|(a, b)| (a - b).abs() < 1e-3));
        assert!(one.iter().any(|&r| r > 0.1));
    }

    #[test]
    fn the_return_goes_on_over_the_cut_between_rollouts() {
        let part = |rewards: &[f32], last_ended: bool| Rollout {
            rewards: rewards.to_vec(),
            next: vec![0; rewards.len()],
            ended: (0..rewards.len()).map(|t| t + 1 == rewards.len()).collect(),
            next_is_new_episode: last_ended,
            ..Rollout::default()
        };
        let mut cut = RewardScaler::default();
        cut.scale(&part(&[1.0, 2.0], false), 0.5);
        assert_eq!(cut.running, 2.5);
        cut.scale(&part(&[4.0], true), 0.5);
        assert_eq!(cut.running, 0.0);
        assert!((cut.mean - (1.0 + 2.5 + 5.25) / 3.0).abs() < 1e-12);
    }
}
