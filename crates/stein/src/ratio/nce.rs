//! NCE: by one n-way classifier (`nce_softmax.rs`, the default) or by n densities (`nce_densities.rs`, the paper's form).

use super::config::{EstimatorConfig, NceForm, RatioConfig};
use super::kind::{Kind, Mean, Networks, Rates, Training};
use super::nce_densities::NceDensities;
use super::nce_softmax::NceSoftmax;
use super::Estimator;

/// Noise-contrastive estimation.
pub struct Nce;

impl Kind for Nce {
    fn name(&self) -> &'static str {
        "nce"
    }

    fn takes_behaviour(&self) -> bool {
        true
    }

    fn rates(&self, ratio: &RatioConfig) -> Rates {
        let rate = match ratio.nce {
            NceForm::Softmax => 2e-3,
            NceForm::Densities => 5e-4,
        };
        Rates {
            learning_rate: rate,
            zeta_learning_rate: rate,
            next_actions: 1,
        }
    }

    fn unused(&self, ratio: &RatioConfig) -> Option<(&'static [&'static str], &'static str)> {
        (ratio.nce == NceForm::Softmax).then_some((&["gradient_penalty"], "ratio.nce=densities"))
    }

    fn build(&self, settings: EstimatorConfig) -> Box<dyn Estimator> {
        match settings.ratio.nce {
            NceForm::Softmax => Box::new(NceSoftmax::new(settings)),
            NceForm::Densities => Box::new(NceDensities::new(settings)),
        }
    }

    fn networks(&self, ratio: &RatioConfig) -> Networks {
        match ratio.nce {
            NceForm::Softmax => Networks::Shared,
            NceForm::Densities => Networks::PerPolicy(1),
        }
    }

    fn mean(&self) -> Mean {
        Mean::One
    }

    fn training(&self) -> [Training; 2] {
        [2048, 512].map(|minibatch| Training {
            updates: 600,
            learning_rate: 1e-3,
            zeta_learning_rate: 1e-3,
            minibatch,
        })
    }

    fn bounds(&self) -> (f64, f64, f64) {
        (0.82, 0.7, 0.04)
    }
}
