//! The command line of `stein`, as a library: a program with environments of its own gets all of it by
//! [`main_with`] and its registry (see `examples/pendulum.rs`). It speaks of itself by its own name.
#![warn(missing_docs)]

mod command;
mod options;
mod program;
mod progress;

use std::ffi::OsString;
use std::sync::atomic::{AtomicBool, Ordering};

use clap::error::ErrorKind;
use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};
use stein::env::Registry;

use command::completions;

/// Train ensembles of policies that all earn high return and all behave differently.
#[derive(Parser)]
#[command(version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train an ensemble; the run folder holds settings, metrics, checkpoints and a summary.
    Train(command::train::Arguments),
    /// Run episodes of a trained ensemble and print returns and the task's measures.
    Eval(command::eval::Arguments),
    /// Draw learning curves and the task's own figures of a run, as PNG and SVG.
    Plot(command::plot::Arguments),
    /// Film the policies of a run side by side, as GIF or animated PNG, with a film strip.
    Video(command::video::Arguments),
    /// Put several runs side by side: one table, one figure.
    Compare(command::compare::Arguments),
    /// Make one HTML file about a run, several runs, or an experiment.
    Report(command::report::Arguments),
    /// Train all cases of an experiment on several seeds and make a table of them.
    Reproduce(command::reproduce::Arguments),
    /// Time the phases of an iteration.
    Bench(command::bench::Arguments),
    /// Hold the ratio estimators against systems with exact answers.
    Verify(command::verify::Arguments),
    /// Step a robot from a given state under given actions, to compare it with another simulator.
    Replay(command::replay::Arguments),
    /// List the environments, or the settings of one.
    Envs(command::envs::Arguments),
    /// Print what a shell needs to complete the commands and options of this program.
    Completions(completions::Arguments),
}

/// What a command ended with, besides an error.
#[derive(PartialEq, Eq)]
enum Ended {
    Done,
    Interrupted,
}

/// The environments of the program: those of the library, and the robots where the feature `mujoco` is on.
pub fn registry() -> Registry {
    #[allow(unused_mut)]
    let mut registry = Registry::default();
    #[cfg(feature = "mujoco")]
    stein_mujoco::register(&mut registry);
    registry
}

/// Runs the program with these environments and exits: 0 done, 1 failed, 2 bad input, 130 interrupted (state saved).
pub fn main_with(registry: Registry) -> ! {
    program::take_name(std::env::args_os().next());
    let arguments = arguments(std::env::args_os()).unwrap_or_else(|error| refuse(&error));
    let result = match arguments.command {
        Command::Train(arguments) => command::train::run(arguments, &registry),
        Command::Eval(arguments) => command::eval::run(arguments, &registry),
        Command::Plot(arguments) => command::plot::run(arguments, &registry),
        Command::Video(arguments) => command::video::run(arguments, &registry),
        Command::Compare(arguments) => command::compare::run(arguments, &registry),
        Command::Report(arguments) => command::report::run(arguments, &registry),
        Command::Reproduce(arguments) => command::reproduce::run(arguments, &registry),
        Command::Bench(arguments) => command::bench::run(arguments, &registry),
        Command::Verify(arguments) => command::verify::run(arguments, &registry),
        Command::Replay(arguments) => command::replay::run(arguments, &registry),
        Command::Envs(arguments) => command::envs::run(arguments, &registry),
        Command::Completions(arguments) => completions::run(arguments, commands()),
    };
    let code = match result {
        Ok(Ended::Done) => 0,
        Ok(Ended::Interrupted) => 130,
        Err(error) => {
            tell(&format!("error: {}", program::sentence(&error)));
            error.exit_code()
        }
    };
    std::process::exit(code)
}

/// The command line, under the name of the program.
fn commands() -> clap::Command {
    let name = program::name();
    let command = Arguments::command().name(name).bin_name(name);
    let command = command.mut_subcommand("completions", |command| command.after_help(completions::help(name)));
    match name {
        "stein" => command,
        // The version is that of the library, not that of a program which is built on it.
        _ => command.version(concat!("(stein ", env!("CARGO_PKG_VERSION"), ")")),
    }
}

/// Reads the command line. A negative number is a value of the option before it, right or wrong, and no option itself.
fn arguments<T>(words: impl IntoIterator<Item = T>) -> clap::error::Result<Arguments>
where
    T: Into<OsString> + Clone,
{
    let command = commands().mut_subcommands(|command| {
        command.mut_args(|argument| {
            let takes_values = argument.get_action().takes_values();
            argument.allow_negative_numbers(takes_values)
        })
    });
    Arguments::from_arg_matches(&command.try_get_matches_from(words)?)
}

/// Says in one sentence what is wrong with the command line, and exits. Help and version are no mistakes.
fn refuse(error: &clap::Error) -> ! {
    if !error.use_stderr() || error.kind() == ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand {
        error.exit();
    }
    let help = std::env::args().nth(1).filter(|name| {
        let command = commands();
        command.find_subcommand(name).is_some()
    });
    let stein = program::name();
    let help = help.map_or(format!("{stein} --help"), |name| format!("{stein} {name} --help"));
    tell(&sentence(&error.render().to_string(), &help));
    std::process::exit(2)
}

/// What is wrong with a number, in Rust's words and in plain ones.
const WORDS: [(&str, &str); 4] = [
    (
        "invalid digit found in string",
        "it has to be a whole number, 0 or more",
    ),
    (
        "cannot parse integer from empty string",
        "it has to be a whole number, 0 or more",
    ),
    ("number too large to fit in target type", "it is too large"),
    ("invalid float literal", "it has to be a number"),
];

/// One sentence out of clap's several lines: the complaint, a name that was probably meant, and where to look.
fn sentence(message: &str, help: &str) -> String {
    let lines = message.lines().map(str::trim).filter(|line| !line.is_empty());
    let lines = lines.take_while(|line| !line.starts_with("Usage:") && !line.starts_with("For more information"));
    // "-- -1" is no help to one who forgot what an option takes.
    let (tips, words): (Vec<&str>, Vec<&str>) = lines.partition(|line| line.starts_with("tip:"));
    let tips = tips.iter().map(|tip| tip.trim_start_matches("tip:").trim());
    let tip: String = tips
        .filter(|tip| tip.contains("similar"))
        .map(|tip| format!("; {tip}"))
        .collect();
    let words = WORDS
        .iter()
        .fold(words.join(" "), |words, (of_rust, plain)| words.replace(of_rust, plain));
    format!("{words}{tip}; see `{help}`")
}

/// Prints text on stdout; a reader that has gone away (`stein … | head`) is no error.
fn print(text: &str) {
    use std::io::Write;
    let _ = std::io::stdout().write_all(text.as_bytes());
}

/// Prints a line on stderr; a reader that has gone away does not end a training run.
fn tell(line: &str) {
    use std::io::Write;
    // A progress bar makes room; it is drawn anew below.
    let clear = if BAR.load(Ordering::Relaxed) { "\r\x1b[2K" } else { "" };
    let _ = std::io::stderr().write_all(format!("{clear}{line}\n").as_bytes());
}

/// Whether the line of the cursor is that of a progress bar.
static BAR: AtomicBool = AtomicBool::new(false);

/// Whether only what went wrong is told.
static QUIET: AtomicBool = AtomicBool::new(false);

fn be_quiet(quiet: bool) {
    QUIET.store(quiet, Ordering::Relaxed);
}

fn is_quiet() -> bool {
    QUIET.load(Ordering::Relaxed)
}

/// Prints a line about how it goes on stderr, unless nobody wants to know.
fn say(line: &str) {
    if !is_quiet() {
        tell(line);
    }
}

fn print_unless_quiet(text: &str) {
    if !is_quiet() {
        print(text);
    }
}

/// Prints one JSON object on stdout.
fn print_json(value: &serde_json::Value) {
    print(&format!("{value:#}\n"));
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The sentence for these arguments.
    fn refused(arguments: &[&str]) -> String {
        let error = super::arguments([&["stein"], arguments].concat()).err().unwrap();
        sentence(&error.render().to_string(), "stein --help")
    }

    #[test]
    fn mistakes_on_the_command_line_get_one_sentence() {
        for (arguments, expected) in [
            (
                &["replay", "hopper"][..],
                "error: the following required arguments were not provided: --input <FILE>; see `stein --help`",
            ),
            (
                &["eval", "run", "--episods", "3"],
                "error: unexpected argument '--episods' found; a similar argument exists: '--episodes'; see `stein --help`",
            ),
            (
                &["eval", "run", "--episodes", "-3"],
                "error: invalid value '-3' for '--episodes <N>': it has to be a whole number, 0 or more; see `stein --help`",
            ),
            (
                &["trian"],
                "error: unrecognized subcommand 'trian'; a similar subcommand exists: 'train'; see `stein --help`",
            ),
        ] {
            assert_eq!(refused(arguments), expected);
        }
    }
}
