//! ValueDICE: on pooled data (`pooled/valuedice.rs`, the default) or pair by pair (`pair/valuedice.rs`, the paper's form).

use super::config::{Data, EstimatorConfig, RatioConfig};
use super::kind::{Kind, Mean, Networks, Rates, Training};
use super::pair::{self, Dice};
use super::pooled::{self, Pooled};
use super::Estimator;

/// ValueDICE.
pub struct ValueDice;

impl Kind for ValueDice {
    fn name(&self) -> &'static str {
        "valuedice"
    }

    fn rates(&self, ratio: &RatioConfig) -> Rates {
        match ratio.data {
            Data::Pooled => pooled::RATES,
            Data::Pair => Rates {
                learning_rate: 5e-4,
                zeta_learning_rate: 5e-4,
                next_actions: 4,
            },
        }
    }

    fn unused(&self, ratio: &RatioConfig) -> Option<(&'static [&'static str], &'static str)> {
        (ratio.data == Data::Pooled).then_some((&["gradient_penalty", "zeta_learning_rate"], pair::FORM))
    }

    fn build(&self, settings: EstimatorConfig) -> Box<dyn Estimator> {
        match settings.ratio.data {
            Data::Pooled => Box::new(Pooled::new(settings, pooled::valuedice::ValueDice)),
            Data::Pair => Box::new(Dice::new(settings, pair::valuedice::ValueDice)),
        }
    }

    fn networks(&self, ratio: &RatioConfig) -> Networks {
        match ratio.data {
            Data::Pooled => Networks::Pooled,
            Data::Pair => Networks::PerPair(1),
        }
    }

    fn mean(&self) -> Mean {
        Mean::Free
    }

    fn is_biased_by_chance(&self) -> bool {
        true
    }

    fn training(&self) -> [Training; 2] {
        [
            Training {
                updates: 1000,
                learning_rate: 2e-3,
                zeta_learning_rate: 2e-3,
                minibatch: 2048,
            },
            Training {
                updates: 1000,
                learning_rate: 1e-3,
                zeta_learning_rate: 1e-3,
                minibatch: 512,
            },
        ]
    }

    fn bounds(&self) -> (f64, f64, f64) {
        (0.65, 0.35, 0.15)
    }
}
