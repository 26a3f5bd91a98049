//! The error type of the library: one sentence that names the cause and the fix.

use std::fmt;
use std::path::{Path, PathBuf};

/// What went wrong, by who can fix it. [`Error::exit_code`] gives the program's exit code.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A setting or a file of the user's is wrong. The sentence says which one and what to do.
    #[error("{0}")]
    Input(String),
    /// Reading or writing failed.
    #[error("cannot {action} {}: {source}; {cure}", path.display())]
    Io {
        /// "read", "write", "create", …
        action: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// What to do about it.
        cure: &'static str,
        /// The operating system's message.
        source: std::io::Error,
    },
    /// The computation itself failed (an environment returned NaN, a loss is not finite, …).
    #[error("{0}")]
    Failed(String),
    /// One of the others, whose sentence goes on with something to do that a program may have a flag or a command for.
    #[error("{error} {advice}")]
    Advised {
        /// What went wrong.
        error: Box<Error>,
        /// What to do. A program that has its own words for it says them instead.
        advice: Advice,
    },
}

/// Something to do about an error. Shown, it is in the words of the library.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// Resume the run.
    Resume,
    /// Put a run somewhere else.
    OtherFolder,
    /// Go on with the run that is there, or put this one somewhere else.
    ResumeOrOtherFolder,
    /// Name a folder that a run was trained into.
    RunFolder,
    /// See which environments there are.
    Environments,
    /// See which settings this environment has.
    SettingsOf(String),
    /// See what needs how much memory.
    Memory,
    /// Make less of a film.
    SmallerFilm,
}

impl fmt::Display for Advice {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Advice::Resume => "resume the run",
            Advice::OtherFolder => "choose another folder",
            Advice::ResumeOrOtherFolder => "resume it, or choose another folder",
            Advice::RunFolder => "give the folder of a training run",
            Advice::Environments => "`Registry::list` lists them",
            Advice::SettingsOf(name) => return write!(formatter, "`Registry::build` returns the settings of {name}"),
            Advice::Memory => "`foresee` tells what needs how much",
            Advice::SmallerFilm => "choose smaller pictures, or fewer policies",
        })
    }
}

/// Shorthand for results of this library.
pub type Result<T> = std::result::Result<T, Error>;

/// Sentences quote user input, which may contain line breaks and other control characters.
fn one_line(sentence: String) -> String {
    if sentence.contains(char::is_control) {
        sentence.replace(char::is_control, " ")
    } else {
        sentence
    }
}

impl Error {
    /// Bad input, with this sentence.
    pub fn input(sentence: impl Into<String>) -> Self {
        Error::Input(one_line(sentence.into()))
    }

    /// A failed computation, with this sentence.
    pub fn failed(sentence: impl Into<String>) -> Self {
        Error::Failed(one_line(sentence.into()))
    }

    /// A failed read or write of `path`.
    pub fn io(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        use std::io::ErrorKind;
        let cure = match source.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                "choose a place you may write to, or change its permissions"
            }
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free some space, then resume the run",
            ErrorKind::NotFound => "check the path",
            ErrorKind::NotADirectory | ErrorKind::IsADirectory | ErrorKind::AlreadyExists => {
                "move what is in the way, or choose another path"
            }
            _ => "check the disk and the path, then try again",
        };
        Error::Io {
            action,
            path: path.to_path_buf(),
            cure,
            source,
        }
    }

    /// Ends the sentence of this error with advice, after a blank: let the sentence itself end in a semicolon, or in "or".
    pub fn advise(self, advice: Advice) -> Self {
        Error::Advised {
            error: Box::new(self),
            advice,
        }
    }

    /// Bad input, told together with where it came from: "my.toml: …". Other errors stay as they are.
    pub fn within(self, source: &str) -> Self {
        match self {
            Error::Input(sentence) => Error::input(format!("{source}: {sentence}")),
            Error::Advised { error, advice } => error.within(source).advise(advice),
            other => other,
        }
    }

    /// The program's exit code: 2 for bad input, 1 for everything else.
    pub fn exit_code(&self) -> i32 {
        match self {
            Error::Input(_) => 2,
            Error::Io { .. } | Error::Failed(_) => 1,
            Error::Advised { error, .. } => error.exit_code(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn advice_ends_the_sentence_and_keeps_the_kind() {
        let error = Error::input("runs/a is not empty;").advise(Advice::OtherFolder);
        assert_eq!(error.to_string(), "runs/a is not empty; choose another folder");
        assert_eq!(error.exit_code(), 2);
        let error = error.within("my.toml");
        assert_eq!(error.to_string(), "my.toml: runs/a is not empty; choose another folder");
        let error = Error::failed("it is gone: put it back and").advise(Advice::Resume);
        assert_eq!(
            (error.exit_code(), &error.to_string()[..]),
            (1, "it is gone: put it back and resume the run")
        );
        assert_eq!(Error::failed("no").within("my.toml").to_string(), "no");
    }
}
