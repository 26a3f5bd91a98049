//! Ranges of settings: one sentence for a value out of range.

use crate::error::{Error, Result};

/// An integer between `least` and `largest`, inclusive.
pub fn whole(key: &str, value: usize, least: usize, largest: usize) -> Result<()> {
    within(key, &value, (least..=largest).contains(&value), &least, &largest)
}

/// A number between `least` and `largest`, inclusive; NaN is out of range.
pub fn real(key: &str, value: f64, least: f64, largest: f64) -> Result<()> {
    within(key, &value, value >= least && value <= largest, &least, &largest)
}

/// Widths of hidden layers.
pub fn layers(key: &str, hidden: &[usize]) -> Result<()> {
    whole(&format!("the number of layers in {key}"), hidden.len(), 0, 8)?;
    let width = format!("a width in {key}");
    hidden.iter().try_for_each(|&hidden| whole(&width, hidden, 1, 4096))
}

fn within<T: std::fmt::Display>(key: &str, value: &T, good: bool, least: &T, largest: &T) -> Result<()> {
    if good {
        return Ok(());
    }
    Err(Error::input(format!(
        "{key} = {value} is out of range: set it between {least} and {largest}"
    )))
}
