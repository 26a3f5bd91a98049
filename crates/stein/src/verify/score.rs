//! How far a learned ratio is from the exact one, and whether that is near enough.
//!
//! ```text
//! rmse    √(Σ ρ_b·(ζ̂ - ζ)²)                      rank    Spearman's correlation of log ζ̂ and log ζ
//! js, kls D_JS and D_KLS from ζ̂ on both policies' samples, as in training (ratios clamped to [1/20, 20], the default)
//! mean    E_{ρ_b}[ζ̂] before normalisation         value   |E_{ρ_b}[ζ̂·r] - η(π_a)|, the error of off-policy evaluation
//! ```

use serde::Serialize;

use crate::divergence::{Divergence, JensenShannon, LOG_CLAMP, SymmetricKl};
pub use crate::ratio::rank::rank_correlation;
use crate::ratio::{Ratios, Transitions};

/// Largest ρ_b-weighted root mean square error of ζ on a ring.
pub const RMSE: f64 = 0.10;

/// Largest error of D_JS on a ring: this, and [`JS_SHARE`] of the exact value.
pub const JS: f64 = 0.002;

/// See [`JS`].
pub const JS_SHARE: f64 = 0.05;

/// Smallest rank correlation of log ζ on a linear-Gaussian system.
pub const RANK: f64 = 0.95;

/// Largest error of D_JS on a linear-Gaussian system.
pub const GAUSSIAN_JS: f64 = 0.03;

/// An exact number beside its estimate.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Compared {
    /// The exact number.
    pub exact: f64,
    /// The estimate.
    pub estimated: f64,
    /// estimated - exact.
    pub error: f64,
}

impl Compared {
    /// Both numbers.
    pub fn new(exact: f64, estimated: f64) -> Self {
        Compared {
            exact,
            estimated,
            error: estimated - exact,
        }
    }
}

/// How well one estimator learned one ratio of one system.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Score {
    /// The system.
    pub system: String,
    /// The seed that made the system, its data and the first weights.
    pub seed: u64,
    /// The estimator.
    pub estimator: String,
    /// "01" for ζ_01 = ρ_0/ρ_1, "10" for ζ_10.
    pub direction: &'static str,
    /// ρ_b-weighted root mean square error of ζ.
    pub rmse: f64,
    /// Spearman's rank correlation of log ζ.
    pub rank: f64,
    /// Jensen-Shannon divergence.
    pub js: Compared,
    /// Symmetric Kullback-Leibler divergence.
    pub kls: Compared,
    /// Mean of ζ before normalisation beside what it should be; the constant is free for ValueDICE, which has no
    /// such number.
    pub mean: Option<Compared>,
    /// `η(π_a) = E_{ρ_a}[r]` beside its estimate `E_{ρ_b}[ζ·r]`.
    pub value: Compared,
    /// Whether the bounds apply.
    pub judged: bool,
    /// The bounds that were missed, in words; also whatever is not finite, judged or not.
    pub missed: Vec<String>,
}

impl Score {
    /// Adds to `missed` what is beyond the bounds: those of rings, or those of linear-Gaussian systems.
    pub fn check(mut self, ring: bool) -> Score {
        let (js, mean) = (self.js.error.abs(), self.mean.map_or(1.0, |mean| mean.estimated));
        // The rank correlation has no value where ζ is constant, which is fine on a ring.
        let rank = if ring { 0.0 } else { self.rank };
        let numbers = [self.rmse, rank, js, self.kls.estimated, mean, self.value.estimated];
        if numbers.iter().any(|number| !number.is_finite()) {
            self.missed.push("a number is not finite".into());
        } else if self.judged && ring {
            if self.rmse > RMSE {
                self.missed.push(format!("rmse {:.3} is above {RMSE}", self.rmse));
            }
            let bound = JS + JS_SHARE * self.js.exact;
            if js > bound {
                self.missed.push(format!("error of D_JS {js:.4} is above {bound:.4}"));
            }
        } else if self.judged {
            if self.rank < RANK {
                self.missed
                    .push(format!("rank correlation {:.3} is below {RANK}", self.rank));
            }
            if js > GAUSSIAN_JS {
                self.missed
                    .push(format!("error of D_JS {js:.3} is above {GAUSSIAN_JS}"));
            }
        }
        self
    }

    /// One sentence about what was missed, or nothing.
    pub fn complaint(&self) -> Option<String> {
        (!self.missed.is_empty()).then(|| {
            format!(
                "{} on {} with seed {}, ζ_{}: {}",
                self.estimator,
                self.system,
                self.seed,
                self.direction,
                self.missed.join(", ")
            )
        })
    }
}

/// D_JS and D_KLS of the two policies, as training computes them.
pub fn divergences(ratios: &Ratios, data: &[Transitions; 2]) -> (f64, f64) {
    let newest = data.each_ref();
    let value = |divergence: &dyn Divergence| ratios.divergence(divergence, LOG_CLAMP, (1, 0), &newest);
    (value(&JensenShannon), value(&SymmetricKl))
}

/// √(Σ w·(x-y)²/Σ w).
pub fn weighted_rmse(points: impl Iterator<Item = (f64, f64, f64)>) -> f64 {
    let (sum, total) = points.fold((0.0, 0.0), |(sum, total), (weight, x, y)| {
        (sum + weight * (x - y).powi(2), total + weight)
    });
    f64::sqrt(sum / total)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_are_weighted() {
        let points = [(3.0, 1.0, 1.0), (1.0, 2.0, 4.0)];
        assert!((weighted_rmse(points.into_iter()) - 1.0).abs() < 1e-15);
    }

    #[test]
    fn bounds_are_told_apart() {
        let score = Score {
            system: "ring".into(),
            seed: 1,
            estimator: "nce".into(),
            direction: "01",
            rmse: 0.09,
            rank: 0.96,
            js: Compared::new(0.1, 0.1069),
            kls: Compared::new(0.8, 0.9),
            mean: None,
            value: Compared::new(0.0, 0.1),
            judged: true,
            missed: Vec::new(),
        };
        assert_eq!(score.clone().check(true).complaint(), None);
        let with = |change: &dyn Fn(&mut Score), ring: bool| {
            let mut score = score.clone();
            change(&mut score);
            score.check(ring).complaint().unwrap_or_default()
        };
        assert!(with(&|s| s.rmse = 0.11, true).ends_with("rmse 0.110 is above 0.1"));
        assert!(with(&|s| s.js = Compared::new(0.1, 0.0929), true).contains("D_JS 0.0071 is above 0.0070"));
        assert_eq!(with(&|s| s.rmse = 0.11, false), "");
        assert!(with(&|s| s.rank = 0.94, false).contains("rank correlation 0.940"));
        assert!(with(&|s| s.js = Compared::new(0.1, 0.131), false).contains("D_JS"));
        let unjudged = |s: &mut Score| (s.judged, s.rmse) = (false, 0.5);
        assert_eq!(with(&unjudged, true), "");
        let broken = |s: &mut Score| (s.judged, s.rmse) = (false, f64::NAN);
        assert!(with(&broken, true).contains("nce on ring with seed 1, ζ_01: a number is not finite"));
    }
}
