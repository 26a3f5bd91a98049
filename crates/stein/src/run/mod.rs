//! What every run needs, whatever its method: settings, folder, checkpoints, metrics, observers.

pub mod atomic;
pub mod checkpoint;
pub mod config;
pub mod folder;
pub mod metrics;
pub mod observer;
pub mod report;
pub mod session;
pub mod settings;
pub mod tensorboard;
