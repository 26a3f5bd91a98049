//! The ratio estimators held against systems whose ratios are known exactly: what `stein verify` prints.
//!
//! ```text
//! system (truth/)  →  data of both policies by geometric restarts  →  estimator (ratio/), trained by a preset
//!                  →  log ζ_01 and log ζ_10, D_01, by training's own ratio step (ratio/ratios.rs)  →  scores and bounds
//! ```
//!
//! Bounds, for each estimator, system and direction: on rings the ρ_b-weighted root mean square error of ζ_ab is at most
//! 0.10 and the error of D_JS at most 0.002 + 5 %; on linear-Gaussian systems the rank correlation of log ζ is at least
//! 0.95 and the error of D_JS at most 0.03. ValueDICE is judged where transitions are deterministic, and only reported on
//! stochastic systems: its sample objective is biased there. `docs/verify.md` has the table and the reasons.

pub mod drifting;
pub mod gaussian;
pub mod preset;
pub mod robots;
pub mod score;
pub mod tabular;
pub mod telling;
pub mod training;

pub use preset::Preset;
pub use score::Score;

use crate::error::Result;
use crate::parallel;
use crate::ratio::{self, Estimator, EstimatorChoice, Policies, Ratios, Round, Transitions};
use crate::truth::Ring;

/// Transitions drawn of each policy.
pub const SAMPLES: usize = 200_000;

/// The two ordered pairs: ζ_01 and ζ_10.
pub const DIRECTIONS: [(usize, usize); 2] = [(0, 1), (1, 0)];

/// One ratio step of an estimator of two policies on their data, its learning rates going to 0.
pub fn learn(
    estimator: &mut dyn Estimator,
    policies: &dyn Policies,
    data: &[Transitions; 2],
    updates: usize,
    seed: u64,
) -> Ratios {
    let round = Round {
        policies,
        data,
        seed,
        round: 0,
        updates,
        rate: (1.0, 0.0),
    };
    ratio::step(estimator, &round, &data.each_ref()).1
}

/// A kind of random system; a seed makes one of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum System {
    /// A ring of states.
    Ring(Ring),
    /// A linear-Gaussian system.
    Gaussian,
}

impl System {
    /// What `stein verify` looks at: rings of 20 states and 3 actions with γ = .9, and a linear-Gaussian system. `full`
    /// adds rings of 16 states and 4 actions with γ = .95.
    pub fn all(full: bool) -> Vec<System> {
        let sizes: &[_] = if full {
            &[(20, 3, 0.9), (16, 4, 0.95)]
        } else {
            &[(20, 3, 0.9)]
        };
        let mut systems = Vec::new();
        for &(states, actions, gamma) in sizes {
            for (termination, deterministic) in [(false, true), (false, false), (true, false)] {
                systems.push(System::Ring(Ring {
                    states,
                    actions,
                    gamma,
                    termination,
                    deterministic,
                }));
            }
        }
        systems.push(System::Gaussian);
        systems
    }

    /// Its name in reports.
    pub fn name(&self) -> String {
        match self {
            System::Gaussian => "linear-gaussian".into(),
            System::Ring(ring) => format!(
                "ring-{}x{}-{}{}",
                ring.states,
                ring.actions,
                if ring.deterministic {
                    "deterministic"
                } else {
                    "stochastic"
                },
                if ring.termination { "-terminating" } else { "" }
            ),
        }
    }

    /// Draws the system of a seed, lets an estimator learn both ratios and scores them.
    pub fn verify(&self, estimator: EstimatorChoice, seed: u64) -> Result<[Score; 2]> {
        match self {
            System::Ring(ring) => tabular::verify(&self.name(), ring, estimator, &Preset::tabular(estimator), seed),
            System::Gaussian => gaussian::verify(&self.name(), estimator, &Preset::gaussian(estimator), seed),
        }
    }
}

/// Verifies these estimators on these systems for each of these seeds; the scores are the same for any number of threads.
pub fn verify(systems: &[System], estimators: &[EstimatorChoice], seeds: &[u64]) -> Result<Vec<Score>> {
    let mut cases = Vec::new();
    for &seed in seeds {
        for system in systems {
            cases.extend(estimators.iter().map(|estimator| (system, *estimator, seed)));
        }
    }
    let scores = parallel::map(cases, |_, (system, estimator, seed)| system.verify(estimator, seed));
    let scores: Result<Vec<_>> = scores.into_iter().collect();
    Ok(scores?.into_iter().flatten().collect())
}
