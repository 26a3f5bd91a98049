//! What an estimator is, before it is made: its name, what it can learn, its usual learning rates, how it is verified.

use super::config::EstimatorConfig;
use super::{Estimator, RatioConfig};
use crate::choice::{Choice, Listed};

/// A ratio estimator of the list [`super::ESTIMATORS`].
pub trait Kind: Sync {
    /// Its name in settings, and that of its page in docs/.
    fn name(&self) -> &'static str;

    /// Whether it learns ratios of a behaviour φ(s), besides those of (s,a).
    fn takes_behaviour(&self) -> bool {
        false
    }

    /// What settings that are absent become.
    fn rates(&self, ratio: &RatioConfig) -> Rates;

    /// Settings of `[ratio]` that have no part in the form which is chosen, and the setting of the form in which they have.
    fn unused(&self, _ratio: &RatioConfig) -> Option<(&'static [&'static str], &'static str)> {
        None
    }

    /// Makes it.
    fn build(&self, settings: EstimatorConfig) -> Box<dyn Estimator>;

    /// Networks of the form which is chosen: for all policies in one, or for each ordered pair.
    fn networks(&self, ratio: &RatioConfig) -> Networks;

    /// The mean of ζ_ab over b's samples, before its constant is set.
    fn mean(&self) -> Mean;

    /// Whether it is biased where transitions are a matter of chance, so that it is only reported there.
    fn is_biased_by_chance(&self) -> bool {
        false
    }

    /// How `stein verify` trains it on tabular problems, and on linear-Gaussian ones.
    fn training(&self) -> [Training; 2];

    /// Bounds on robots: least median rank, least 10 % quantile of it, largest median |ΔD_JS|.
    fn bounds(&self) -> (f64, f64, f64);
}

impl Listed for dyn Kind {
    const WHAT: &'static str = "estimator";

    fn list() -> &'static [&'static Self] {
        super::ESTIMATORS
    }

    fn label(&self) -> &'static str {
        self.name()
    }
}

/// The setting that names an estimator.
pub type EstimatorChoice = Choice<dyn Kind>;

/// Learning rates and next actions where settings are silent.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rates {
    /// Of the density, of ν, or of GenDICE's g.
    pub learning_rate: f64,
    /// Of DualDICE's g and GenDICE's ζ.
    pub zeta_learning_rate: f64,
    /// Next actions averaged inside B^π ν.
    pub next_actions: usize,
}

/// How an estimator is trained when it is verified; learning rates go linearly to 0 over the updates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Training {
    /// Updates of every network.
    pub updates: usize,
    /// As [`Rates::learning_rate`].
    pub learning_rate: f64,
    /// As [`Rates::zeta_learning_rate`].
    pub zeta_learning_rate: f64,
    /// Samples of a minibatch.
    pub minibatch: usize,
}

/// How many networks there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Networks {
    /// One n-way classifier.
    Shared,
    /// One n-way classifier, and n dense problems on the pooled samples.
    Pooled,
    /// So many for each policy.
    PerPolicy(usize),
    /// So many for each ordered pair.
    PerPair(usize),
}

/// What the mean of ζ_ab over b's samples is, if the estimator is right.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mean {
    /// 1.
    One,
    /// The mass m_a.
    Mass,
    /// Anything: only differences of log ζ are learned.
    Free,
}

impl Mean {
    /// Its value, where it has one.
    pub fn value(self, mass: f64) -> Option<f64> {
        match self {
            Mean::One => Some(1.0),
            Mean::Mass => Some(mass),
            Mean::Free => None,
        }
    }
}
