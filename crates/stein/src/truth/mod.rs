//! Systems with exactly known stationary state-action distributions, to test ratio estimators on.
//!
//! [`tabular`] solves a linear system, [`linear_gaussian`] sums known Gaussians; both draw data by geometric restarts.
//! [`ring`] and [`mod@pair`] generate random problems whose ratios an estimator can be expected to learn; [`json`]
//! reads a problem from a file.
//!
//! # Geometric restarts
//!
//! An episode starts in a state from μ0 and continues after each step with probability γ, so step t is reached with
//! probability γ^t: the visited pairs are unweighted samples of the discounted occupancy. Stopping this way is not a
//! termination: the transition before it is an ordinary one with a valid next state.

pub mod dense;
pub mod json;
pub mod linear_gaussian;
pub mod pair;
pub mod ring;
pub mod tabular;
pub mod tabular_data;

pub use json::TabularProblem;
pub use linear_gaussian::{LinearGaussian, LinearGaussianPolicy};
pub use pair::{GaussianPair, pair};
pub use ring::Ring;
pub use tabular::{Occupancy, TabularMdp, TabularPolicy};
pub use tabular_data::TabularData;

use crate::rng::{Purpose, Stream};

/// What a stream of [`Purpose::Truth`] is for: its second coordinate. It determines the results of a seed: only add.
#[derive(Clone, Copy)]
enum Use {
    /// Generating a random problem.
    Problem = 0,
    /// Drawing transitions.
    Data = 1,
    /// Monte-Carlo integration.
    Integral = 2,
}

fn stream(seed: u64, purpose: Use, number: usize) -> Stream {
    crate::rng::stream(seed, Purpose::Truth, purpose as usize, number)
}
