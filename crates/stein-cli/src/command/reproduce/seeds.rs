//! Which seeds a case is trained on, as a file and as the command line say it.

use serde::Deserialize;
use stein::{Error, Result};

/// Seeds of one case, at most.
const MOST: usize = 1000;

/// `seeds = 5` is 1 to 5, `seeds = [101, 102]` these two.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub enum SeedsFile {
    Number(usize),
    List(Vec<u64>),
}

impl SeedsFile {
    /// The seeds themselves.
    pub fn seeds(self) -> Vec<u64> {
        match self {
            SeedsFile::Number(number) => (1..=number as u64).collect(),
            SeedsFile::List(seeds) => seeds,
        }
    }
}

/// Seeds as the command line has them. A number alone is how many: `3` is 1, 2, 3. With a comma or a hyphen it is a list of
/// seeds and of ranges with both ends: `101,102`, `101-105`, `1-3,7`; `101,` is the one seed 101.
pub fn read(text: &str) -> Result<Vec<u64>> {
    let wrong = |why: &str| {
        Error::input(format!(
            "--seeds {text} {why}: give a number of seeds as in 3, or seeds and ranges as in 101,102 or 101-105"
        ))
    };
    let number = |text: &str| {
        let plain = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = text
            .parse::<u64>()
            .ok()
            .filter(|&number| plain && number <= i64::MAX as u64);
        number.ok_or_else(|| wrong("cannot be read"))
    };
    if !text.contains([',', '-']) {
        let count = number(text)?;
        if !(1..=MOST as u64).contains(&count) {
            return Err(Error::input(format!(
                "--seeds {count} is out of range: choose 1 to {MOST}, or write {count}, with a comma for the one seed {count}"
            )));
        }
        return Ok((1..=count).collect());
    }
    let mut seeds = Vec::new();
    for part in text.strip_suffix(',').unwrap_or(text).split(',') {
        let (first, last) = match part.split_once('-') {
            Some((first, last)) => (number(first)?, number(last)?),
            None => (number(part)?, number(part)?),
        };
        if last < first {
            return Err(wrong("has a range that runs backwards"));
        }
        if last - first >= MOST as u64 || seeds.len() + (last - first) as usize >= MOST {
            return Err(wrong("names more than 1000 seeds"));
        }
        seeds.extend(first..=last);
    }
    let mut sorted = seeds.clone();
    sorted.sort_unstable();
    if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(wrong("names a seed twice"));
    }
    Ok(seeds)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seeds_are_a_number_or_a_list() {
        for (text, seeds) in [
            ("1", vec![1]),
            ("3", vec![1, 2, 3]),
            ("101,", vec![101]),
            ("101-101", vec![101]),
            ("101,103,102", vec![101, 103, 102]),
            ("101-103", vec![101, 102, 103]),
            ("1-3,7", vec![1, 2, 3, 7]),
            ("0,5", vec![0, 5]),
            ("9223372036854775807,", vec![i64::MAX as u64]),
        ] {
            assert_eq!(read(text).unwrap(), seeds, "{text}");
        }
        for (text, words) in [
            ("0", "out of range"),
            ("1001", "out of range"),
            ("", "cannot be read"),
            (",", "cannot be read"),
            ("a", "cannot be read"),
            ("-3", "cannot be read"),
            ("1,,2", "cannot be read"),
            ("1-2-3", "cannot be read"),
            ("+1,2", "cannot be read"),
            ("9223372036854775808,", "cannot be read"),
            ("5-3", "backwards"),
            ("1-2000", "more than 1000"),
            ("1-600,1001-1600", "more than 1000"),
            ("1-3,2", "twice"),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.contains(words), "{text}: {error}");
        }
    }
}
