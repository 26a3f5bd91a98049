//! What every run needs: settings, checkpoints, metrics, observers.

pub mod atomic;
pub mod checkpoint;
pub mod metrics;
pub mod tensorboard;
