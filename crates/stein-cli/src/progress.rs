//! Progress: a bar with the time left on a terminal, one plain line an iteration otherwise.

use std::io::IsTerminal;
use std::path::Path;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use stein::Result;
use stein::run::config::Config;
use stein::run::observer::Observer;
use stein::train::{Record, Trainer};

/// Shows how far training is, on stderr.
pub struct Progress {
    bar: Option<ProgressBar>,
    iterations: usize,
    started: bool,
}

impl Progress {
    /// Says what is about to be trained and where it goes.
    pub fn new(config: &Config, folder: &Path) -> Self {
        let env = config.env.get("name").and_then(|name| name.as_str()).unwrap_or("?");
        eprintln!(
            "training {} policies on {env} by {} (seed {}, {} × {} steps each) in {}",
            config.ensemble,
            config.method,
            config.seed,
            config.iterations,
            config.steps,
            folder.display()
        );
        let bar = std::io::stderr().is_terminal().then(|| {
            let template = "{bar:30} {pos}/{len}  return {msg}  {elapsed} elapsed, {eta} left";
            let style = ProgressStyle::with_template(template).expect("the template is well-formed");
            ProgressBar::with_draw_target(Some(config.iterations as u64), ProgressDrawTarget::stderr())
                .with_style(style)
        });
        Progress {
            bar,
            iterations: config.iterations,
            started: false,
        }
    }
}

impl Observer for Progress {
    fn iteration(&mut self, _trainer: &Trainer, record: &Record) -> Result<()> {
        let [mean, best, worst] = [0, 1, 2].map(|index| record.metrics[index]);
        match &self.bar {
            Some(bar) => {
                if !self.started {
                    // A resumed run begins in the middle: the time left must not count the iterations done before.
                    bar.set_position(record.iteration as u64 - 1);
                    bar.reset_eta();
                    self.started = true;
                }
                bar.set_message(format!("{mean:.2} (best {best:.2}, worst {worst:.2})"));
                bar.set_position(record.iteration as u64);
            }
            None => eprintln!(
                "iteration {}/{}  return {mean:.3}  best {best:.3}  worst {worst:.3}  {:.2} s",
                record.iteration, self.iterations, record.timings.total
            ),
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
