//! How far several runs are, and how long the others will take.

use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Counts runs as they end.
pub struct Pace {
    runs: usize,
    began: Instant,
    /// Runs that have ended, and those of them that were there already.
    ended: Mutex<(usize, usize)>,
}

/// A run that ended sooner was there already: it says nothing about how long others take.
const AT_ONCE: Duration = Duration::from_secs(3);

impl Pace {
    /// So many runs.
    pub fn new(runs: usize) -> Self {
        Pace {
            runs,
            began: Instant::now(),
            ended: Mutex::new((0, 0)),
        }
    }

    /// A run has ended.
    pub fn ended(&self) {
        let mut ended = self.ended.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        ended.0 += 1;
        if self.began.elapsed() < AT_ONCE {
            ended.1 += 1;
        }
    }

    /// Which run this is, counted from 0, and how long they will take together, as far as that is known.
    pub fn heading(&self, number: usize) -> String {
        let (ended, at_once) = *self.ended.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let left = left(self.began.elapsed(), self.runs - ended, ended - at_once);
        let left = left.map_or(String::new(), |left| format!(", about {} left", in_words(left)));
        match self.runs {
            1 => String::new(),
            _ => format!("run {} of {}{left}: ", number + 1, self.runs),
        }
    }
}

/// How long the runs that have not ended will take, where `trained` ones took `elapsed`.
fn left(elapsed: Duration, runs: usize, trained: usize) -> Option<Duration> {
    (trained > 0).then(|| elapsed.mul_f64(runs as f64 / trained as f64))
}

/// A duration for people.
fn in_words(time: Duration) -> String {
    match time.as_secs() {
        0..90 => format!("{} s", time.as_secs()),
        90..5400 => format!("{} min", (time.as_secs() + 30) / 60),
        seconds => format!("{:.1} h", seconds as f64 / 3600.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_time_left_is_that_of_the_runs_so_far() {
        assert_eq!(left(Duration::from_secs(60), 4, 0), None);
        assert_eq!(left(Duration::from_secs(60), 4, 2), Some(Duration::from_secs(120)));
        for (seconds, words) in [(5, "5 s"), (89, "89 s"), (600, "10 min"), (5400, "1.5 h")] {
            assert_eq!(in_words(Duration::from_secs(seconds)), words);
        }
        let pace = Pace::new(3);
        assert_eq!(pace.heading(0), "run 1 of 3: ");
        pace.ended();
        assert_eq!(
            pace.heading(1),
            "run 2 of 3: ",
            "a run that was there already says nothing"
        );
        assert_eq!(Pace::new(1).heading(0), "");
    }
}
