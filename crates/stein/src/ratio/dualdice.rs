//! DualDICE: on pooled data (`pooled/dualdice.rs`, the default) or pair by pair (`pair/dualdice.rs`, the paper's form).

use super::config::{Data, EstimatorConfig, RatioConfig};
use super::kind::{Kind, Mean, Networks, Rates, Training};
use super::pair::{self, Dice};
use super::pooled::{self, Pooled};
use super::Estimator;

/// DualDICE.
pub struct DualDice;

impl Kind for DualDice {
    fn name(&self) -> &'static str {
        "dualdice"
    }

    fn rates(&self, ratio: &RatioConfig) -> Rates {
        match ratio.data {
            Data::Pooled => pooled::RATES,
            Data::Pair => Rates {
                learning_rate: 5e-4,
                zeta_learning_rate: 4e-3,
                next_actions: 1,
            },
        }
    }

    fn unused(&self, ratio: &RatioConfig) -> Option<(&'static [&'static str], &'static str)> {
        (ratio.data == Data::Pooled).then_some((&["gradient_penalty", "zeta_learning_rate"], pair::FORM))
    }

    fn build(&self, settings: EstimatorConfig) -> Box<dyn Estimator> {
        match settings.ratio.data {
            Data::Pooled => Box::new(Pooled::new(settings, pooled::dualdice::DualDice)),
            Data::Pair => Box::new(Dice::new(settings, pair::dualdice::DualDice)),
        }
    }

    fn networks(&self, ratio: &RatioConfig) -> Networks {
        match ratio.data {
            Data::Pooled => Networks::Pooled,
            Data::Pair => Networks::PerPair(2),
        }
    }

    fn mean(&self) -> Mean {
        Mean::Mass
    }

    fn training(&self) -> [Training; 2] {
        [
            Training {
                updates: 2500,
                learning_rate: 2e-3,
                zeta_learning_rate: 1.6e-2,
                minibatch: 2048,
            },
            Training {
                updates: 4000,
                learning_rate: 1e-3,
                zeta_learning_rate: 8e-3,
                minibatch: 1024,
            },
        ]
    }

    fn bounds(&self) -> (f64, f64, f64) {
        (0.75, 0.45, 0.06)
    }
}
