//! Ensembles of policies that all earn high return and all behave differently.
//!
//! The tree of modules is the table of contents of "Harnessing Distribution Ratio Estimators for Learning Agents with
//! Quality and Diversity" (Gangwani, Peng, Zhou, CoRL 2020); `docs/layout.md` is a map of it.
//!
//! A [`Config`] says how to train, a [`Task`] makes the worlds ([`Env`]), a [`Trainer`] trains an [`Ensemble`] of policies on it:
//!
//! ```
//! use stein::env::maze::MazeConfig;
//! use stein::policy::evaluate::evaluate;
//! use stein::{Config, Task, Trainer};
//!
//! # fn main() -> stein::Result<()> {
//! let task = MazeConfig::default();
//! let config = Config {
//!     ensemble: 2,
//!     iterations: 2, // a few hundred solve the maze
//!     steps: 256,
//!     ..Config::default()
//! };
//! let mut trainer = Trainer::new(config, &task)?;
//! while trainer.iteration() < trainer.config.iterations {
//!     let record = trainer.iterate()?;
//!     println!("iteration {}: return {}", record.iteration, record.metrics[0]);
//! }
//! // Two episodes of every policy, with mean actions.
//! let episodes = evaluate(&trainer.ensemble, &task, 1, 2, false)?;
//! for (name, value) in task.measure_ensemble(&episodes) {
//!     println!("{name} {value:.3}");
//! }
//! # assert_eq!(episodes.len(), 2);
//! # Ok(())
//! # }
//! ```
//!
//! The feature `plot`, on by default, draws figures (`plot::draw`) and films (`video`); without it the crate depends on no
//! crate for pictures, and figures are data.
#![warn(missing_docs)]

pub mod check;
pub mod checkpoint;
pub mod choice;
pub mod config;
pub mod divergence;
pub mod env;
pub mod error;
pub mod files;
pub mod foresee;
pub mod kernel;
pub mod machine;
pub mod method;
pub mod metric;
pub mod nn;
pub mod parallel;
pub mod plot;
pub mod policy;
pub mod ratio;
pub mod rng;
pub mod run;
pub mod statistics;
pub mod suggest;
pub mod train;
pub mod truth;
pub mod update;
pub mod verify;
#[cfg(feature = "plot")]
pub mod video;

pub use config::Config;
pub use env::{Env, Registry, Task};
pub use error::{Advice, Error, Result};
pub use policy::Ensemble;
pub use train::Trainer;
