//! What every run needs, whatever its method: settings, folder, checkpoints, metrics, observers.

pub mod figures;
pub mod folder;
pub mod load;
pub mod metrics;
pub mod observer;
pub mod report;
pub mod session;
pub mod settings;
pub mod tensorboard;
