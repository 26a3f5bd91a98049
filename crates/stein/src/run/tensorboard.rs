//! tensorboard
