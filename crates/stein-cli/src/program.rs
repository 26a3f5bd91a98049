//! How the program speaks of itself: by the name it was started by, and by its own flags and commands.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::sync::OnceLock;

use stein::{Advice, Error};

/// The name, once it is known.
static NAME: OnceLock<String> = OnceLock::new();

/// The name of the program, for hints such as `stein train --resume`. A program with environments of its own has its own.
pub fn name() -> &'static str {
    NAME.get().map_or("stein", String::as_str)
}

/// Takes the name from the path that the program was started by, its first argument. The first name that is taken stays.
pub fn take_name(started_by: Option<OsString>) {
    if let Some(name) = started_by.as_deref().and_then(|path| file_name(Path::new(path))) {
        NAME.get_or_init(|| name);
    }
}

/// The last part of the path, without the ending that programs have on some systems.
fn file_name(path: &Path) -> Option<String> {
    let name = path.file_name()?.to_string_lossy().into_owned();
    let plain = name.strip_suffix(std::env::consts::EXE_SUFFIX).unwrap_or(&name);
    Some(plain.to_string())
}

/// An error as users of the program read it: what the library advises, as flags and commands.
pub fn sentence(error: &Error) -> String {
    match error {
        Error::Advised { error, advice } => format!("{} {}", sentence(error), words(advice)),
        Error::Io { source, .. } if matches!(source.kind(), ErrorKind::StorageFull | ErrorKind::QuotaExceeded) => {
            format!("{error} with --resume")
        }
        other => other.to_string(),
    }
}

fn words(advice: &Advice) -> String {
    let stein = name();
    match advice {
        Advice::Resume => "go on with --resume".into(),
        Advice::OtherFolder => "choose another folder with --out".into(),
        Advice::ResumeOrOtherFolder => "add --resume to go on with it, or choose another folder with --out".into(),
        Advice::RunFolder => "give the --out folder of a training run".into(),
        Advice::Environments => format!("`{stein} envs` lists them"),
        Advice::SettingsOf(name) => format!("`{stein} envs {name}` lists the settings of {name}"),
        Advice::Memory => format!("`{stein} bench --dry-run` shows what needs how much"),
        Advice::SmallerFilm => "choose a smaller --size, or one policy with --policy".into(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_the_last_part_of_the_path() {
        for (path, name) in [
            ("stein", Some("stein")),
            ("target/release/examples/pendulum", Some("pendulum")),
            ("/opt/stein-0.2", Some("stein-0.2")),
            ("", None),
            ("/", None),
        ] {
            assert_eq!(file_name(Path::new(path)).as_deref(), name, "{path}");
        }
    }

    #[test]
    fn advice_is_told_as_flags_and_commands() {
        let error = Error::input("x is not empty;").advise(Advice::OtherFolder);
        assert_eq!(sentence(&error), "x is not empty; choose another folder with --out");
        let error = Error::input("env.colour is wrong;").advise(Advice::SettingsOf("maze".into()));
        assert_eq!(
            sentence(&error),
            "env.colour is wrong; `stein envs maze` lists the settings of maze"
        );
        let full = Error::io("write", Path::new("x"), ErrorKind::StorageFull.into());
        assert!(
            sentence(&full).ends_with("then resume the run with --resume"),
            "{}",
            sentence(&full)
        );
        assert_eq!(sentence(&Error::failed("no")), "no");
    }
}
