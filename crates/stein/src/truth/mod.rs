//! Systems whose stationary state-action distributions are known exactly, to check ratio estimators against.
//!
//! [`tabular`] solves a linear system, [`linear_gaussian`] sums known Gaussians; both draw data by geometric restarts.
//! [`ring`] and [`mod@pair`] make random problems whose ratios an estimator can be expected to learn; [`json`] reads a
//! problem of the user's own.
//!
//! # Geometric restarts
//!
//! An episode begins in a state of μ0, and after each step goes on with probability γ, so that step t is reached with
//! probability γ^t: the visited pairs are samples of the discounted occupancy without any weights. The coin that
//! stops an episode is not a termination: the transition before it is an ordinary one, and its next state is a proper
//! sample.

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

/// What a stream of [`Purpose::Truth`] is for: its second coordinate. Part of the results of a seed: only add.
#[derive(Clone, Copy)]
enum Use {
    /// Making a random problem.
    Problem = 0,
    /// Drawing transitions.
    Data = 1,
    /// Monte-Carlo integration.
    Integral = 2,
}

fn stream(seed: u64, purpose: Use, number: usize) -> Stream {
    crate::rng::stream(seed, Purpose::Truth, purpose as usize, number)
}
