//! Robots in MuJoCo as environments for `stein`: see `docs/robots.md`.
//!
//! One file a robot, each a table of settings and of the numbers that make it this robot. What all of them share is in
//! `runner` (the planar runners: observation, reward, termination) with its `measure` (what is measured of episodes), in
//! `stage` (pictures) and in [`simulation`] (MuJoCo itself, made safe for training). The arm, `sawyer`, is an environment of
//! its own.
#![warn(missing_docs)]

mod deceptive_cheetah;
mod half_cheetah;
mod hopper;
mod measure;
mod runner;
mod sawyer;
pub mod simulation;
mod stage;
#[cfg(test)]
mod tests;
mod walker2d;

use stein::env::Registry;

pub use deceptive_cheetah::DeceptiveCheetahConfig;
pub use half_cheetah::HalfCheetahConfig;
pub use hopper::HopperConfig;
pub use runner::RewardSource;
pub use sawyer::{Integrator, SawyerConfig};
pub use walker2d::Walker2dConfig;

/// Adds the robots to a registry.
pub fn register(registry: &mut Registry) {
    registry.register::<HopperConfig>("hopper", hopper::ABOUT);
    registry.register::<Walker2dConfig>("walker2d", walker2d::ABOUT);
    registry.register::<HalfCheetahConfig>("halfcheetah", half_cheetah::ABOUT);
    registry.register::<DeceptiveCheetahConfig>("deceptive-cheetah", deceptive_cheetah::ABOUT);
    registry.register::<SawyerConfig>("sawyer", sawyer::ABOUT);
}
