//! Ensembles of policies that all earn high return and all behave differently.
//!
//! The tree of modules is the table of contents of "Harnessing Distribution Ratio Estimators for Learning Agents with
//! Quality and Diversity" (Gangwani, Peng, Zhou, CoRL 2020); `docs/layout.md` is a map of it.
#![warn(missing_docs)]

pub mod divergence;
pub mod env;
pub mod error;
pub mod kernel;
pub mod method;
pub mod nn;
pub mod plot;
pub mod policy;
pub mod ratio;
pub mod rng;
pub mod run;
pub mod statistics;
pub mod train;
pub mod truth;
pub mod update;
pub mod verify;
pub mod video;

pub use error::{Error, Result};
