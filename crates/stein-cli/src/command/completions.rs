//! `stein completions`: the script by which a shell completes commands and options.

use clap::Args;
use clap_complete::{Shell, generate};
use stein::Result;

use crate::{Ended, print};

/// Arguments of `stein completions`.
#[derive(Args)]
pub struct Arguments {
    /// The shell
    shell: Shell,
}

/// Where the scripts of a program of this name go.
pub fn help(name: &str) -> String {
    format!(
        "bash: {name} completions bash > ~/.local/share/bash-completion/completions/{name}\n\
        zsh:  {name} completions zsh > a folder of $fpath, as _{name}\n\
        fish: {name} completions fish > ~/.config/fish/completions/{name}.fish"
    )
}

pub fn run(arguments: Arguments, mut program: clap::Command) -> Result<Ended> {
    let name = program.get_name().to_string();
    let mut script = Vec::new();
    generate(arguments.shell, &mut program, name, &mut script);
    print(&String::from_utf8_lossy(&script));
    Ok(Ended::Done)
}
