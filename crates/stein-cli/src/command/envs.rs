//! `stein envs`: the environments, their settings and drawings.

use std::path::{Path, PathBuf};

use clap::Args;
use stein::env::{Registry, Task};
use stein::plot::draw;
use stein::{Error, Result};

use crate::{Ended, print, program};

/// Arguments of `stein envs`.
#[derive(Args)]
pub struct Arguments {
    /// Show the settings of this environment with their defaults
    name: Option<String>,
    /// Draw it instead, to STEM.png and STEM.svg
    #[arg(long, value_name = "STEM", requires = "name")]
    draw: Option<PathBuf>,
}

pub fn run(arguments: Arguments, registry: &Registry) -> Result<Ended> {
    let Some(name) = arguments.name else {
        let width = registry.list().map(|(name, _)| name.len()).max().unwrap_or(0).max(14);
        for (name, about) in registry.list() {
            print(&format!("{name:<width$} {about}\n"));
        }
        return Ok(Ended::Done);
    };
    let (task, settings) = registry.build(&name, toml::Table::new())?;
    if let Some(stem) = arguments.draw {
        draw_task(&name, task.as_ref(), &stem)?;
        return Ok(Ended::Done);
    }
    let env = task.make()?;
    let spec = env.spec();
    print(&format!(
        "{name}: {} observations, {} actions, {} steps at most, {}\nsignals: {}\nbehaviour: {}\n\nsettings, as for --set env.KEY=VALUE \
         or under [env] in a file:\n\n{}",
        spec.observation,
        spec.action(),
        spec.horizon,
        if spec.can_terminate {
            "can terminate early"
        } else {
            "never terminates early"
        },
        spec.signals.join(", "),
        match task.behaviour() {
            [] => "the whole observation".into(),
            names => format!("{} at a resolution of {}", names.join(", "), task.resolution()),
        },
        toml::to_string(&settings).unwrap_or_default()
    ));
    Ok(Ended::Done)
}

fn draw_task(name: &str, task: &dyn Task, stem: &Path) -> Result<()> {
    let figure = task.drawing().ok_or_else(|| {
        Error::input(format!(
            "{name} has no drawing; train it and draw what its policies do with `{} plot`",
            program::name()
        ))
    })?;
    for path in draw(&figure, stem)? {
        print(&format!("{}\n", path.display()));
    }
    Ok(())
}
