//! Progress: a bar with the remaining time on a terminal, otherwise one line per iteration; for parallel runs one line
//! per tenth of each.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::atomic::Ordering;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stein::Result;
use stein::run::observer::Observer;
use stein::train::{Record, Trainer};

use crate::{BAR, is_quiet, say, tell};

/// The label of one of several runs.
#[derive(Clone, Debug, Default)]
pub struct Label {
    /// Its name, if others run in parallel.
    pub name: Option<String>,
    /// Its number, the total, and the remaining time; empty for a single run.
    pub heading: String,
}

/// Shows the progress of training on stderr.
pub struct Progress<'a> {
    folder: &'a Path,
    label: Label,
    bar: Option<ProgressBar>,
}

impl<'a> Progress<'a> {
    /// Progress of the run in `folder`.
    pub fn new(folder: &'a Path, label: Label) -> Self {
        Progress {
            folder,
            label,
            bar: None,
        }
    }
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).expect("the template is well-formed")
}

/// A short return: decimals only if there are few digits before the point.
fn short(value: f64) -> String {
    match value {
        value if value.is_nan() => "-".into(),
        value if value.abs() >= 1000.0 => format!("{value:.0}"),
        value if value.abs() >= 10.0 => format!("{value:.1}"),
        value => format!("{value:.3}"),
    }
}

impl Observer for Progress<'_> {
    /// Prints what is going to be trained, and where.
    fn begin(&mut self, trainer: &Trainer) -> Result<()> {
        let config = &trainer.config;
        let env = config.env.get("name").and_then(|name| name.as_str()).unwrap_or("?");
        let from = match trainer.iteration() {
            0 => String::new(),
            done => format!(", resuming after iteration {done}"),
        };
        say(&format!(
            "{}training {} policies on {env} by {} (seed {}, {} × {} steps each) in {}{from}",
            self.label.heading,
            config.ensemble,
            config.method,
            config.seed,
            config.iterations,
            config.steps,
            self.folder.display()
        ));
        let alone = self.label.name.is_none() && std::io::stderr().is_terminal() && !is_quiet();
        self.bar = alone.then(|| {
            let style = style("{wide_bar} {pos}/{len}  return {msg}  {eta} left");
            let bar = ProgressBar::with_draw_target(Some(config.iterations as u64), ProgressDrawTarget::stderr());
            // A resumed run starts in the middle: the remaining time must not count the iterations done before.
            bar.set_position(trainer.iteration() as u64);
            bar.reset_eta();
            bar.with_style(style)
        });
        BAR.store(alone, Ordering::Relaxed);
        Ok(())
    }

    fn iteration(&mut self, trainer: &Trainer, record: &Record) -> Result<()> {
        // If no episode has ended, there is no return to show.
        let [mean, best, worst] = [0, 1, 2].map(|index| match record.metrics[index] {
            value if self.bar.is_some() => short(value),
            value if value.is_nan() => "-".to_string(),
            value => format!("{value:.3}"),
        });
        let (iteration, iterations) = (record.iteration, trainer.config.iterations);
        match (&self.bar, &self.label.name) {
            (Some(bar), _) => {
                bar.set_message(format!("{mean} ({worst} to {best})"));
                bar.set_position(record.iteration as u64);
            }
            (None, Some(name)) => {
                if iteration % iterations.div_ceil(10) == 0 || iteration == iterations {
                    say(&format!(
                        "{name}: iteration {iteration}/{iterations}  return {mean}  best {best}  worst {worst}"
                    ));
                }
            }
            (None, None) => say(&format!(
                "iteration {iteration}/{iterations}  return {mean}  best {best}  worst {worst}  {:.2} s",
                record.timings.total
            )),
        }
        Ok(())
    }

    fn finish(&mut self, _trainer: &Trainer) -> Result<()> {
        if let Some(bar) = &self.bar {
            // The remaining time is no longer relevant, and is not 0 for an interrupted run.
            bar.set_style(style("{wide_bar} {pos}/{len}  return {msg}  {elapsed}"));
            bar.abandon();
            BAR.store(false, Ordering::Relaxed);
            // The bar leaves the cursor at its end.
            tell("");
        }
        Ok(())
    }
}
