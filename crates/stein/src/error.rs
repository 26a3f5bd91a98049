//! The one error type of the library: a sentence that names the cause and the cure.

use std::path::{Path, PathBuf};

/// What went wrong, sorted by who can mend it. [`Error::exit_code`] turns it into the program's exit code.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A setting, flag or file of the user's is wrong. The sentence says which one and what to do.
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
        /// The system's own words.
        source: std::io::Error,
    },
    /// The computation itself broke (an environment returned NaN, a loss is not finite, …).
    #[error("{0}")]
    Failed(String),
}

/// Shorthand for results of this library.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Bad input, with its sentence.
    pub fn input(sentence: impl Into<String>) -> Self {
        Error::Input(sentence.into())
    }

    /// A failed computation, with its sentence.
    pub fn failed(sentence: impl Into<String>) -> Self {
        Error::Failed(sentence.into())
    }

    /// A failed read or write of `path`.
    pub fn io(action: &'static str, path: &Path, source: std::io::Error) -> Self {
        use std::io::ErrorKind;
        let cure = match source.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                "choose a place you may write to, or change its permissions"
            }
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "free some space, then go on with --resume",
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

    /// The program's exit code: 2 for bad input, 1 for everything else.
    pub fn exit_code(&self) -> i32 {
        match self {
            Error::Input(_) => 2,
            Error::Io { .. } | Error::Failed(_) => 1,
        }
    }
}
