//! `stein envs`: the environments and their settings.

use clap::Args;
use stein::Result;
use stein::env::Registry;

use crate::{Ended, print};

/// Arguments of `stein envs`.
#[derive(Args)]
pub struct Arguments {
    /// Show the settings of this environment with their defaults
    name: Option<String>,
}

pub fn run(arguments: Arguments, registry: &Registry) -> Result<Ended> {
    let Some(name) = arguments.name else {
        for (name, about) in registry.list() {
            print(&format!("{name:<14} {about}\n"));
        }
        return Ok(Ended::Done);
    };
    let (task, settings) = registry.build(&name, toml::Table::new())?;
    let env = task.make()?;
    let spec = env.spec();
    print(&format!(
        "{name}: {} observations, {} actions, {} steps at most, {}\nsignals: {}\n\nsettings, as for --set env.KEY=VALUE \
         or under [env] in a file:\n\n{}",
        spec.observation,
        spec.action(),
        spec.horizon,
        if spec.can_terminate {
            "can end early"
        } else {
            "never ends early"
        },
        spec.signals.join(", "),
        toml::to_string(&settings).unwrap_or_default()
    ));
    Ok(Ended::Done)
}
