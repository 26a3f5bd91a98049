//! atomic
