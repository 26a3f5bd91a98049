//! Stacked networks.
