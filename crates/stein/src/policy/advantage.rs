//! Generalised advantage estimation, with termination and truncation apart.
//!
//! ```text
//! δ_t = r_t + γ·V(s'_t)·[not terminated] - V(s_t)
//! A_t = δ_t + γ·λ·[episode goes on]·A_{t+1},      return target R_t = A_t + V(s_t)
//! ```
//!
//! After a true termination the next state has no value; a time limit and the end of the rollout bootstrap from the
//! last observation. Reference: Schulman et al. 2016.

use super::rollout::Rollout;

/// Advantages of one reward stream over one rollout. `values` has one entry for each observation row of the rollout.
pub fn gae(rollout: &Rollout, rewards: &[f32], values: &[f32], gamma: f32, lambda: f32, out: &mut [f32]) {
    let mut after = 0.0;
    for t in (0..rollout.steps()).rev() {
        let next = if rollout.terminated[t] {
            0.0
        } else {
            values[rollout.next[t] as usize]
        };
        let delta = rewards[t] + gamma * next - values[t];
        let carried = if rollout.ended[t] { 0.0 } else { gamma * lambda * after };
        after = delta + carried;
        out[t] = after;
    }
}

/// In which units advantages enter the policy update.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Units {
    /// As they are.
    Raw,
    /// Minus their mean.
    Centred,
    /// Of mean 0 and std 1.
    Standard,
}

impl Units {
    /// Brings advantages to these units. Standardised, a stream without spread (std < 1e-6·(1 + |mean|)) becomes 0,
    /// not noise.
    pub fn apply(self, values: &mut [f32]) {
        let count = values.len() as f64;
        let mean = values.iter().map(|&x| f64::from(x)).sum::<f64>() / count;
        let variance = values.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / count;
        let std = match self {
            Units::Raw => return,
            Units::Centred => 1.0,
            Units::Standard => variance.sqrt(),
        };
        if self == Units::Standard && std < 1e-6 * (1.0 + mean.abs()) {
            values.fill(0.0);
        } else {
            values
                .iter_mut()
                .for_each(|x| *x = ((f64::from(*x) - mean) / std) as f32);
        }
    }
}

/// Whether these rewards of a rollout tell a policy nothing: all 0, or all the same and no episode terminated, so that
/// whatever it did it would have got as much. Advantages are then errors of a critic alone.
pub fn is_silent(rollout: &Rollout, rewards: &[f32]) -> bool {
    let first = rewards.first().copied().unwrap_or(0.0);
    let same = rewards.iter().all(|&r| (r - first).abs() <= 1e-6 * first.abs());
    same && (first == 0.0 || !rollout.terminated.contains(&true))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Four steps: 0,1 end by termination, 2 is cut by the time limit, 3 by the end of the rollout.
    fn rollout() -> Rollout {
        Rollout {
            next: vec![1, 4, 5, 6],
            terminated: vec![false, true, false, false],
            ended: vec![false, true, true, true],
            rewards: vec![1.0, 2.0, 3.0, 4.0],
            ..Rollout::default()
        }
    }

    #[test]
    fn termination_has_no_value_and_truncation_bootstraps() {
        let rollout = rollout();
        let values = [10.0, 20.0, 30.0, 40.0, 1000.0, 60.0, 70.0];
        let (gamma, lambda) = (0.9f32, 0.5f32);
        let mut out = [0.0; 4];
        gae(&rollout, &rollout.rewards, &values, gamma, lambda, &mut out);
        let a1 = 2.0 - 20.0;
        let a0 = 1.0 + 0.9 * 20.0 - 10.0 + 0.45 * a1;
        let expected = [a0, a1, 3.0 + 0.9 * 60.0 - 30.0, 4.0 + 0.9 * 70.0 - 40.0];
        for (out, expected) in out.iter().zip(expected) {
            assert!((out - expected).abs() < 1e-4, "{out} {expected}");
        }
    }

    #[test]
    fn advantages_are_linear_so_that_one_reward_does_for_a_weighted_sum() {
        let rollout = rollout();
        let of = |rewards: &[f32], values: &[f32]| {
            let mut out = [0.0; 4];
            gae(&rollout, rewards, values, 0.9, 0.5, &mut out);
            out
        };
        let (first, second) = ([1.0f32, -2.0, 0.5, 3.0], [0.3f32, 0.7, -1.0, 2.0]);
        let (v, w) = (
            [1.0f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0],
            [0.5f32, -1.0, 2.0, 0.0, 1.0, 3.0, -2.0],
        );
        let mix = |x: &[f32], y: &[f32]| -> Vec<f32> { x.iter().zip(y).map(|(x, y)| 0.2 * x + 0.7 * y).collect() };
        let together = of(&mix(&first, &second), &mix(&v, &w));
        let apart = mix(&of(&first, &v), &of(&second, &w));
        for (together, apart) in together.iter().zip(apart) {
            assert!((together - apart).abs() < 1e-5);
        }
    }

    #[test]
    fn lambda_one_gives_the_discounted_return() {
        let rollout = Rollout {
            next: vec![1, 2, 3],
            terminated: vec![false, false, true],
            ended: vec![false, false, true],
            ..Rollout::default()
        };
        let mut out = [0.0; 3];
        gae(&rollout, &[1.0, 1.0, 1.0], &[5.0, 6.0, 7.0, 8.0], 0.5, 1.0, &mut out);
        assert!((out[0] + 5.0 - 1.75).abs() < 1e-6);
    }

    #[test]
    fn a_stream_without_spread_counts_as_zero() {
        let mut flat = [1000.0001f32, 1000.0, 1000.0];
        Units::Standard.apply(&mut flat);
        assert_eq!(flat, [0.0; 3]);
        let mut spread = [1.0f32, 2.0, 3.0];
        Units::Standard.apply(&mut spread);
        assert!((spread[2] - 1.5f32.sqrt()).abs() < 1e-6 && spread[1] == 0.0);
        let (mut centred, mut raw) = ([1.0f32, 2.0, 6.0], [1.0f32, 2.0, 6.0]);
        Units::Centred.apply(&mut centred);
        Units::Raw.apply(&mut raw);
        assert_eq!((centred, raw), ([-2.0, -1.0, 3.0], [1.0, 2.0, 6.0]));
    }

    #[test]
    fn constant_rewards_are_silent_unless_living_on_earns_them() {
        let mut rollout = rollout();
        assert!(is_silent(&rollout, &[0.0; 4]));
        assert!(!is_silent(&rollout, &[1.0; 4]), "an episode terminated: it got less");
        assert!(!is_silent(&rollout, &[0.0, 0.0, 0.0, 1e-3]));
        rollout.terminated.fill(false);
        assert!(is_silent(&rollout, &[1.0; 4]));
    }
}
