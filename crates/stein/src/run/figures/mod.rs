//! Figures of runs and of experiments, as data: learning curves, kernels, signals, seeds. `plot` draws them.

pub mod kernel;
pub mod learning;
pub mod seeds;
pub mod signals;
