//! How long and how fast the estimators are trained when they are verified.

use crate::ratio::RatioConfig;

/// Settings of one estimator; learning rates go linearly to 0 over the updates.
#[derive(Clone, Debug)]
pub struct Preset {
    /// The settings that training has too.
    pub ratio: RatioConfig,
    /// Updates of every network.
    pub updates: usize,
}

impl Preset {
    /// For tabular problems: all distinct transitions in one batch.
    pub fn tabular(estimator: &str) -> Preset {
        let (updates, rate, zeta_rate) = match estimator {
            "nce" => (2000, 5e-4, 5e-4),
            "dualdice" => (5000, 1e-3, 1e-3),
            "valuedice" => (4000, 1e-3, 1e-3),
            _ => (8000, 2e-3, 2e-4),
        };
        Preset {
            ratio: RatioConfig {
                minibatch: 2048,
                learning_rate: Some(rate),
                zeta_learning_rate: Some(zeta_rate),
                gendice_average: 0.99,
                ..RatioConfig::default()
            },
            updates,
        }
    }

    /// For linear-Gaussian problems: minibatches of samples, sampled actions.
    pub fn gaussian(estimator: &str) -> Preset {
        let (updates, rate, zeta_rate, actions) = match estimator {
            "nce" => (2000, 5e-4, 5e-4, 1),
            "dualdice" => (4000, 1e-3, 1e-3, 4),
            "valuedice" => (4000, 5e-4, 5e-4, 4),
            _ => (4000, 1e-3, 1e-4, 4),
        };
        Preset {
            ratio: RatioConfig {
                minibatch: 512,
                learning_rate: Some(rate),
                zeta_learning_rate: Some(zeta_rate),
                next_actions: Some(actions),
                gendice_average: 0.999,
                ..RatioConfig::default()
            },
            updates,
        }
    }
}
