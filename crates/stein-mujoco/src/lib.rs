//! Robots in MuJoCo as environments for `stein`: see `docs/robots.md`.
//!
//! One file a robot, each a table of settings and of the numbers that make it this robot. What all of them share is in
//! `runner` (the planar runners: observation, reward, termination), `measure` (what is measured of episodes),
//! `stage` (pictures) and [`simulation`] (MuJoCo itself, made safe for training).
#![warn(missing_docs)]

mod deceptive_cheetah;
mod half_cheetah;
mod hopper;
mod measure;
mod runner;
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
pub use walker2d::Walker2dConfig;

/// Adds the robots to a registry.
pub fn register(registry: &mut Registry) {
    registry.register::<HopperConfig>("hopper", hopper::ABOUT);
    registry.register::<Walker2dConfig>("walker2d", walker2d::ABOUT);
    registry.register::<HalfCheetahConfig>("halfcheetah", half_cheetah::ABOUT);
    registry.register::<DeceptiveCheetahConfig>("deceptive-cheetah", deceptive_cheetah::ABOUT);
}
