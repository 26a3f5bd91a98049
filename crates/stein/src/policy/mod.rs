//! Policies, their rollouts and their advantages.

pub mod advantage;
pub mod critic;
pub mod ensemble;
pub mod evaluate;
pub mod gaussian;
pub mod information;
pub mod ppo;
pub mod reward;
pub mod rollout;

pub use critic::{CriticConfig, Critics};
pub use ensemble::{Ensemble, PolicyConfig};
pub use ppo::{AnnealConfig, PpoConfig};
pub use reward::RewardScaling;
pub use rollout::{Rollout, Worker};
