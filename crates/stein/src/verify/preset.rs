//! How long and how fast the estimators are trained when they are verified.
//!
//! | | updates | rate of density, ν, or GenDICE's g | rate of DualDICE's g, GenDICE's ζ | minibatch |
//! |---|---|---|---|---|
//! | tabular: NCE | 600 | 1e-3 | | all, up to 2048 |
//! | DualDICE | 2500 | 2e-3 | 1.6e-2 | all, up to 2048 |
//! | ValueDICE | 1000 | 2e-3 | | all, up to 2048 |
//! | GenDICE, λ = 1, average .99 | 2500 | 1.6e-2 | 4e-4 | all, up to 2048 |
//! | linear-Gaussian: NCE | 600 | 1e-3 | | 512 |
//! | DualDICE | 4000 | 1e-3 | 8e-3 | 1024 |
//! | ValueDICE, 4 next actions | 1000 | 1e-3 | | 512 |
//! | GenDICE, λ = 1, average .999 | 8000 | 4e-3 | 5e-4 | 1024 |
//!
//! All networks are tanh 100-100, all rates go linearly to 0, and there is no gradient penalty. In both saddle-point
//! problems the inner maximiser has to follow the outer minimiser: with a rate 8 to 40 times as high, ten times fewer
//! updates do. GenDICE's λ changes its path and not its solution, where the constraint holds; with λ = 10 the constraint
//! drowns the gradient of ζ, and the error is twice as large after as many updates.

use crate::ratio::kind::Training;
use crate::ratio::{Data, EstimatorChoice, NceForm, RatioConfig};

/// Settings of one estimator; learning rates go linearly to 0 over the updates.
#[derive(Clone, Debug)]
pub struct Preset {
    /// The settings that training has too.
    pub ratio: RatioConfig,
    /// Updates of every network.
    pub updates: usize,
}

impl Preset {
    /// For tabular problems: up to 2048 distinct transitions, usually all, in one batch.
    pub fn tabular(estimator: EstimatorChoice) -> Preset {
        Preset::new(estimator.training()[0], 0.99)
    }

    /// For linear-Gaussian problems: minibatches of samples, sampled actions.
    pub fn gaussian(estimator: EstimatorChoice) -> Preset {
        Preset::new(estimator.training()[1], 0.999)
    }

    fn new(training: Training, gendice_average: f64) -> Preset {
        Preset {
            ratio: RatioConfig {
                minibatch: training.minibatch,
                learning_rate: Some(training.learning_rate),
                zeta_learning_rate: Some(training.zeta_learning_rate),
                gendice_average,
                nce: NceForm::Densities,
                data: Data::Pair,
                ..RatioConfig::default()
            },
            updates: training.updates,
        }
    }
}
