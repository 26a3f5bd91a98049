//! GenDICE: on pooled data (`pooled/gendice.rs`, the default) or pair by pair (`pair/gendice.rs`, the paper's form).

use super::config::{Data, EstimatorConfig, RatioConfig};
use super::kind::{Kind, Mean, Networks, Rates, Training};
use super::pair::{self, Dice};
use super::pooled::{self, Pooled};
use super::Estimator;

/// GenDICE.
pub struct GenDice;

impl Kind for GenDice {
    fn name(&self) -> &'static str {
        "gendice"
    }

    fn rates(&self, ratio: &RatioConfig) -> Rates {
        match ratio.data {
            Data::Pooled => pooled::RATES,
            Data::Pair => Rates {
                learning_rate: 4e-3,
                zeta_learning_rate: 4e-4,
                next_actions: 1,
            },
        }
    }

    fn unused(&self, ratio: &RatioConfig) -> Option<(&'static [&'static str], &'static str)> {
        (ratio.data == Data::Pooled).then_some((&["gradient_penalty", "zeta_learning_rate", "gendice_lambda", "gendice_average"], pair::FORM))
    }

    fn build(&self, settings: EstimatorConfig) -> Box<dyn Estimator> {
        match settings.ratio.data {
            Data::Pooled => Box::new(Pooled::new(settings, pooled::gendice::GenDice)),
            Data::Pair => Box::new(Dice::new(settings, pair::gendice::GenDice)),
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
                learning_rate: 1.6e-2,
                zeta_learning_rate: 4e-4,
                minibatch: 2048,
            },
            Training {
                updates: 8000,
                learning_rate: 4e-3,
                zeta_learning_rate: 5e-4,
                minibatch: 1024,
            },
        ]
    }

    fn bounds(&self) -> (f64, f64, f64) {
        (0.78, 0.55, 0.04)
    }
}
