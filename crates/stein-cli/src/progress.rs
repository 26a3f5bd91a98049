//! Progress: a bar with the time left on a terminal, one plain line an iteration otherwise; of runs side by side one line a
//! tenth of each.

use std::io::IsTerminal;
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stein::Result;
use stein::run::observer::Observer;
use stein::train::{Record, Trainer};

use crate::tell;

/// What a run is called where it is one of several.
#[derive(Clone, Debug, Default)]
pub struct Label {
    /// Its name, where others go on beside it.
    pub name: Option<String>,
    /// Which of how many it is, and how long they take; empty where it is alone.
    pub heading: String,
}

/// Shows how far training is, on stderr.
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

impl Observer for Progress<'_> {
    /// Says what is about to be trained and where it goes.
    fn begin(&mut self, trainer: &Trainer) -> Result<()> {
        let config = &trainer.config;
        let env = config.env.get("name").and_then(|name| name.as_str()).unwrap_or("?");
        let from = match trainer.iteration() {
            0 => String::new(),
            done => format!(", going on after iteration {done}"),
        };
        tell(&format!(
            "{}training {} policies on {env} by {} (seed {}, {} × {} steps each) in {}{from}",
            self.label.heading,
            config.ensemble,
            config.method,
            config.seed,
            config.iterations,
            config.steps,
            self.folder.display()
        ));
        let alone = self.label.name.is_none() && std::io::stderr().is_terminal();
        self.bar = alone.then(|| {
            let template = "{bar:30} {pos}/{len}  return {msg}  {elapsed} elapsed, {eta} left";
            let style = ProgressStyle::with_template(template).expect("the template is well-formed");
            let bar = ProgressBar::with_draw_target(Some(config.iterations as u64), ProgressDrawTarget::stderr());
            // A resumed run begins in the middle: the time left must not count the iterations done before.
            bar.set_position(trainer.iteration() as u64);
            bar.reset_eta();
            bar.with_style(style)
        });
        Ok(())
    }

    fn iteration(&mut self, trainer: &Trainer, record: &Record) -> Result<()> {
        // Where no episode has ended there is no return to show.
        let [mean, best, worst] = [0, 1, 2].map(|index| match record.metrics[index] {
            value if value.is_nan() => "-".to_string(),
            value => format!("{value:.3}"),
        });
        let (iteration, iterations) = (record.iteration, trainer.config.iterations);
        match (&self.bar, &self.label.name) {
            (Some(bar), _) => {
                bar.set_message(format!("{mean} (best {best}, worst {worst})"));
                bar.set_position(record.iteration as u64);
            }
            (None, Some(name)) => {
                if iteration % iterations.div_ceil(10) == 0 || iteration == iterations {
                    tell(&format!(
                        "{name}: iteration {iteration}/{iterations}  return {mean}  best {best}  worst {worst}"
                    ));
                }
            }
            (None, None) => tell(&format!(
                "iteration {iteration}/{iterations}  return {mean}  best {best}  worst {worst}  {:.2} s",
                record.timings.total
            )),
        }
        Ok(())
    }

    fn finish(&mut self, _trainer: &Trainer) -> Result<()> {
        if let Some(bar) = &self.bar {
            bar.abandon();
        }
        Ok(())
    }
}
