//! How task and diversity are weighed against each other (Equation 3 and its variants).
//!
//! ```text
//! g_i  gradient of the clipped surrogate of the task
//! d_i  that of the one diversity reward R_i = 1/(n-1)·Σ_{j≠i} k'_ij·r_ij, k' the derivative of the kernel (kernel.rs)
//!
//! nats          Δθ_i = g_i + (ω_i/T)·d_i                      advantages of the task of std 1, of R_i in nats
//! constrained   Δθ_i = g_i + h_i·(ω_i/T)·d_i                  h_i falls while policy i earns less than its quota; 0 for the best
//! fading        Δθ_i = g_i + (ω_i/T)/(1 + G_i)·d_i            G_i = max(J_i - J_0, 0)/|J_0|: falls by itself as returns rise
//! normalised    Δθ_i = (1-ω_i)·g_i + ω_i·d_i                  both of std 1
//! published     Δθ_i = (1/n)·[ g_i + (1/T)·(n-1)·d_i ]        both raw: Equation 3 as printed, where p = 1
//!
//! ω_i = ω·(1 + l)·(i/(n-1))^l,  i = 0 … n-1                   l = `qd.ladder`: 0, all alike; above, policy 0 follows the task alone
//! ```
//!
//! With `share`, g_i is g_i + Σ_{j≠i} k_ij·g_j, divided by 1 + Σ_{j≠i} k_ij but for "published". A policy whose task has said
//! nothing so far (`Rollout::silent`) follows d_i alone, with the weight 1/T: there ω has nothing to weigh.
//!
//! In nats the advantage of R_i needs no unit of the task, does not grow with n, and fades by itself: where policies are
//! told apart for certain, r_ij is the same at every step. Standardised, such a stream would be noise of size 1.
//!
//! The quota is a share α of what the best policy has gained over untrained ones, less a slack of so many times what these
//! earned, for rewards that are found late only by policies which first earn less:
//!
//! ```text
//! J_i ≥ min(J_0 + α·(J* - J_0), J*) - slack·|J_0|,   J* = max_j J_j,       h_i = 1/(1 + exp(-x_i)),   x_i ← x_i + ½·(J_i - quota)/(J* - quota)
//! ```
//!
//! x_i, kept in [-4, 4] and 4 at first, is minus the logarithm of a Lagrange multiplier; the fraction is kept in [-1, 1]. J is a
//! running mean of returns while training, J_0 the mean of the first ones. References: Gangwani, Peng & Zhou 2020; Kumar et al. 2020 (SMERL); Zahavy et al. 2022 (DOMiNO).

use serde::{Deserialize, Serialize};

use crate::checkpoint::Checkpoint;
use crate::error::Result;
use crate::policy::Rollout;
use crate::policy::advantage::Units;

/// How the parts of the Stein gradient are weighed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Weighting {
    /// Task advantages of std 1, diversity in nats.
    Nats,
    /// The same, and a quota of return for each policy.
    Constrained,
    /// As `Nats`, and ω falls by itself as a policy's returns rise above those of untrained ones.
    Fading,
    /// Both of std 1, weighed by ω.
    Normalised,
    /// As Equation 3 has it (with `qd.power = 1`): 1/n and 1/T, raw advantages; ω plays no part.
    Published,
}

impl Weighting {
    /// Units of the advantages of the task and of diversity.
    pub fn units(self) -> [Units; 2] {
        match self {
            Weighting::Nats | Weighting::Constrained | Weighting::Fading => [Units::Standard, Units::Centred],
            Weighting::Normalised => [Units::Standard; 2],
            Weighting::Published => [Units::Raw; 2],
        }
    }

    /// Weights of (own task, a neighbour's task where shared, diversity) of a policy with Σ_{j≠i} k_ij = `neighbours`.
    pub fn of_policy(self, omega: f64, temperature: f64, n: usize, neighbours: f64, share: bool) -> [f64; 3] {
        let total = if share { 1.0 + neighbours } else { 1.0 };
        let [task, diversity] = match self {
            Weighting::Nats | Weighting::Constrained | Weighting::Fading => [1.0 / total, omega / temperature],
            Weighting::Normalised => [(1.0 - omega) / total, omega],
            Weighting::Published => [1.0 / n as f64, (n - 1) as f64 / (n as f64 * temperature)],
        };
        [task, if share { task } else { 0.0 }, diversity]
    }
}

/// Rate of the running means of returns.
const RETURN_RATE: f64 = 0.3;

/// Step of x, and its bound.
const STEP: f64 = 0.5;
const LARGEST: f64 = 4.0;

/// What policies earn, and how much diversity they may follow for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Quota {
    /// Running mean of each policy's returns; NaN before its first episode has ended.
    returns: Vec<f64>,
    /// Mean return of the first episodes of all policies, J_0.
    untrained: f64,
    /// x of each policy.
    x: Vec<f64>,
}

impl Quota {
    /// Nothing earned yet: everybody may.
    pub fn new(n: usize) -> Self {
        Quota {
            returns: vec![f64::NAN; n],
            untrained: f64::NAN,
            x: vec![LARGEST; n],
        }
    }

    /// Takes in the episodes that ended in these rollouts.
    pub fn update(&mut self, rollouts: &[Rollout], share: f64, slack: f64) {
        for (known, rollout) in self.returns.iter_mut().zip(rollouts) {
            if rollout.episodes.is_empty() {
                continue;
            }
            let mean = rollout.episodes.iter().map(|e| e.0).sum::<f64>() / rollout.episodes.len() as f64;
            *known = if known.is_nan() {
                mean
            } else {
                *known + RETURN_RATE * (mean - *known)
            };
        }
        if self.returns.iter().any(|earned| earned.is_nan()) {
            return;
        }
        if self.untrained.is_nan() {
            self.untrained = self.returns.iter().sum::<f64>() / self.returns.len() as f64;
        }
        let best = self.returns.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let first = self.untrained;
        let quota = (first + share * (best - first)).min(best) - slack * first.abs();
        for (x, &earned) in self.x.iter_mut().zip(&self.returns) {
            // Where all earn the same there is no quota to miss.
            let above = (earned - quota) / (best - quota).max(1e-9);
            *x = (*x + STEP * above.clamp(-1.0, 1.0)).clamp(-LARGEST, LARGEST);
        }
    }

    /// The factor h_i of policy i: 0 for the best, who sets the pace of the task for all.
    pub fn allows(&self, i: usize) -> f64 {
        let earned = |j: usize| {
            if self.returns[j].is_nan() {
                f64::NEG_INFINITY
            } else {
                self.returns[j]
            }
        };
        let best = (0..self.x.len()).fold(0, |best, j| if earned(j) > earned(best) { j } else { best });
        if i == best && !self.returns[i].is_nan() {
            return 0.0;
        }
        1.0 / (1.0 + (-self.x[i]).exp())
    }

    /// 1/(1 + G_i) of policy i: 1 for who has gained nothing over untrained policies, ½ for who has gained as much as they earned.
    pub fn fades(&self, i: usize) -> f64 {
        let gained = self.returns[i] - self.untrained;
        // Nothing gained, or nothing known yet.
        if gained.is_nan() || gained <= 0.0 {
            return 1.0;
        }
        self.untrained.abs() / (self.untrained.abs() + gained)
    }

    /// Adds all of it to a checkpoint.
    pub fn save(&self, checkpoint: &mut Checkpoint) {
        let n = self.x.len();
        checkpoint.insert_f64("quota.returns", &[n], &self.returns);
        checkpoint.insert_f64("quota.untrained", &[1], &[self.untrained]);
        checkpoint.insert_f64("quota.x", &[n], &self.x);
    }

    /// Takes all of it from a checkpoint.
    pub fn restore(&mut self, checkpoint: &mut Checkpoint) -> Result<()> {
        let n = self.x.len();
        self.returns = checkpoint.take_f64("quota.returns", &[n])?;
        self.untrained = checkpoint.take_f64("quota.untrained", &[1])?[0];
        self.x = checkpoint.take_f64("quota.x", &[n])?;
        // NaN: not measured yet.
        let returns = self.returns.iter().chain([&self.untrained]);
        checkpoint.require(!returns.clone().any(|x| x.is_infinite()), "quota.returns", "returns")?;
        checkpoint.require(self.x.iter().all(|x| x.is_finite()), "quota.x", "finite numbers")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn weights_are_those_of_the_formulas() {
        let of = |weighting: Weighting, share| weighting.of_policy(0.2, 0.5, 5, 3.0, share);
        assert_eq!(of(Weighting::Nats, false), [1.0, 0.0, 0.4]);
        assert_eq!(of(Weighting::Nats, true), [0.25, 0.25, 0.4]);
        assert_eq!(of(Weighting::Normalised, false), [0.8, 0.0, 0.2]);
        assert_eq!(of(Weighting::Published, true), [0.2, 0.2, 4.0 / 2.5]);
    }

    fn earning(returns: &[f64]) -> Vec<Rollout> {
        let rollout = |&earned: &f64| Rollout {
            episodes: vec![(earned, 10)],
            ..Rollout::default()
        };
        returns.iter().map(rollout).collect()
    }

    #[test]
    fn who_misses_the_quota_loses_diversity_and_gets_it_back() {
        let mut quota = Quota::new(3);
        quota.update(&earning(&[10.0, 10.0, 10.0]), 0.9, 0.0);
        for _ in 0..40 {
            quota.update(&earning(&[1000.0, 950.0, 500.0]), 0.9, 0.0);
        }
        assert_eq!(quota.allows(0), 0.0, "the best follows the task alone");
        assert!(quota.allows(1) > 0.9 && quota.allows(2) < 0.1, "{quota:?}");
        for _ in 0..40 {
            quota.update(&earning(&[1000.0, 950.0, 960.0]), 0.9, 0.0);
        }
        assert!(quota.allows(2) > 0.9, "{quota:?}");
    }

    #[test]
    fn who_earns_no_less_than_the_others_misses_nothing() {
        // Nobody does better than untrained: the quota is what the best has, not more.
        let mut quota = Quota::new(3);
        quota.update(&earning(&[0.0, 0.0, 0.0]), 0.9, 0.0);
        (0..40).for_each(|_| quota.update(&earning(&[-1.0, -1.0, -1.0]), 0.9, 0.0));
        assert!(quota.allows(1) > 0.4, "{quota:?}");
    }

    #[test]
    fn slack_lets_policies_earn_less_than_the_idle() {
        // Untrained policies pay 200 for their movements, the idle nothing, those on their way to the reward 300.
        let run = |slack: f64| {
            let mut quota = Quota::new(2);
            quota.update(&earning(&[-200.0, -200.0]), 0.9, slack);
            (0..40).for_each(|_| quota.update(&earning(&[0.0, -300.0]), 0.9, slack));
            quota.allows(1)
        };
        assert!(run(0.0) < 0.1 && run(2.0) > 0.9, "{} {}", run(0.0), run(2.0));
    }

    #[test]
    fn diversity_fades_as_returns_rise_above_those_of_untrained_policies() {
        let mut quota = Quota::new(4);
        assert_eq!(quota.fades(0), 1.0, "nothing is known yet");
        quota.update(&earning(&[-100.0; 4]), 0.9, 0.0);
        (0..100).for_each(|_| quota.update(&earning(&[-100.0, 0.0, 800.0, -300.0]), 0.9, 0.0));
        for (i, factor) in [1.0, 0.5, 0.1, 1.0].into_iter().enumerate() {
            assert!((quota.fades(i) - factor).abs() < 1e-9, "{i}: {}", quota.fades(i));
        }
        // Where untrained policies earn nothing, the first reward ends it.
        let mut sparse = Quota::new(2);
        sparse.update(&earning(&[0.0, 0.0]), 0.9, 0.0);
        sparse.update(&earning(&[0.0, 1.0]), 0.9, 0.0);
        assert_eq!((sparse.fades(0), sparse.fades(1)), (1.0, 0.0));
    }

    #[test]
    fn it_survives_a_checkpoint() {
        let mut quota = Quota::new(2);
        quota.update(&earning(&[1.0, 2.0]), 0.9, 0.5);
        let mut checkpoint = Checkpoint::new(1, "");
        quota.save(&mut checkpoint);
        let mut again = Quota::new(2);
        again.restore(&mut checkpoint).unwrap();
        assert_eq!(again, quota);
    }
}
