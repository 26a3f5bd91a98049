//! Files: regular files only, replaced atomically.

pub mod atomic;
pub mod plain;
