//! Policies, their rollouts and their advantages.

pub mod advantage;
pub mod critic;
pub mod ensemble;
pub mod evaluate;
pub mod gaussian;
pub mod information;
pub mod reward;
pub mod rollout;

pub use critic::Critics;
pub use ensemble::Ensemble;
pub use rollout::{Rollout, Worker};
