//! One file a command.

pub mod bench;
pub mod compare;
pub mod completions;
pub mod envs;
pub mod eval;
pub mod plot;
pub mod replay;
pub mod report;
pub mod reproduce;
pub mod train;
pub mod verify;
pub mod video;
