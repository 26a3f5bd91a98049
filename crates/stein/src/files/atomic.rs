//! Atomic replacement of a file: a reader sees the old contents or the new ones, never a part.
//!
//! ```text
//! write NAME.PID-COUNT.stein.tmp → sync the file → rename to NAME → sync the folder
//! ```
//!
//! The rename is atomic because both names are in one folder, hence on one file system. The first sync comes before it
//! so that the new name never points at data that is not on disk yet; the second makes the rename durable.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Result};

/// Suffix of temporary names; only files with it are ours to remove.
const SUFFIX: &str = ".stein.tmp";

/// Replaces the file at `path` by `bytes`.
///
/// On failure the temporary file is removed and the old file unchanged, unless the last step fails, the sync of the
/// folder: then the new contents are already in place.
pub fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    write_with(path, |file| file.write_all(bytes))
}

/// Like [`write()`], but `fill` writes the contents piece by piece.
pub fn write_with(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<()> {
    let failed = |error| Error::io("write", path, error);
    let temporary = temporary_name(path).map_err(failed)?;
    let moved = fill_and_sync(&temporary, fill).and_then(|()| fs::rename(&temporary, path));
    if let Err(error) = moved {
        // The first error is the relevant one; a temporary file that cannot be removed is left to `clean`.
        let _ = fs::remove_file(&temporary);
        return Err(failed(error));
    }
    sync_folder(folder_of(path)).map_err(failed)
}

/// Removes temporary files left in `folder` by killed writes; a missing folder has none.
///
/// Call it only while nobody else writes to the folder: it cannot distinguish leftovers from writes in progress.
pub fn clean(folder: &Path) -> Result<()> {
    let entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(Error::io("read", folder, error)),
    };
    for entry in entries {
        let entry = entry.map_err(|error| Error::io("read", folder, error))?;
        if is_temporary(&entry.file_name()) {
            let path = entry.path();
            fs::remove_file(&path).map_err(|error| Error::io("remove", &path, error))?;
        }
    }
    Ok(())
}

/// Whether a file with this name is an unfinished write.
pub fn is_temporary(name: &OsStr) -> bool {
    name.to_string_lossy().ends_with(SUFFIX)
}

/// The folder that holds `path`.
fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// A name next to `path` that no other write of this process and no other process uses.
fn temporary_name(path: &Path) -> io::Result<PathBuf> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(io::ErrorKind::IsADirectory, "the path has no file name"));
    };
    let mut name = name.to_os_string();
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    name.push(format!(".{}-{count}{SUFFIX}", std::process::id()));
    Ok(path.with_file_name(name))
}

fn fill_and_sync(path: &Path, fill: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> io::Result<()> {
    // Never follow a link; a file left by a killed process with the same id is removed.
    let created = File::create_new(path).or_else(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => fs::remove_file(path).and_then(|()| File::create_new(path)),
        _ => Err(error),
    });
    let mut file = BufWriter::new(created?);
    fill(&mut file)?;
    file.into_inner().map_err(|error| error.into_error())?.sync_all()
}

/// Makes a rename in `folder` survive a loss of power.
fn sync_folder(folder: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(()); // Elsewhere a folder cannot be opened as a file.
    }
    match File::open(folder)?.sync_all() {
        // Some network file systems do not support this sync; nothing more can be done there.
        Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let name = |entry: io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(name).collect();
        names.sort();
        names
    }

    #[test]
    fn writes_and_replaces_and_leaves_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        write(&path, b"one").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        write(&path, b"").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
        assert_eq!(names(folder.path()), ["a.txt"]);
    }

    #[test]
    fn a_failed_write_keeps_the_old_file_and_removes_the_temporary() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.txt");
        write(&path, b"old").unwrap();
        let error = write_with(&path, |file| {
            file.write_all(b"half of the n")?;
            Err(io::Error::from(io::ErrorKind::StorageFull))
        })
        .unwrap_err();
        assert!(error.to_string().contains("a.txt:"), "{error}");
        assert!(error.to_string().contains("free some space"), "{error}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        assert_eq!(names(folder.path()), ["a.txt"]);
    }

    #[test]
    fn a_folder_in_the_way_stays_and_the_temporary_goes() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("taken");
        fs::create_dir(&path).unwrap();
        assert!(write(&path, b"new").is_err());
        assert_eq!(names(folder.path()), ["taken"]);
        assert!(path.is_dir());
    }

    #[test]
    fn an_unwritable_place_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("file");
        fs::write(&file, "").unwrap();
        let below = file.join("a.txt");
        let error = write(&below, b"new").unwrap_err();
        assert!(error.to_string().contains(&below.display().to_string()), "{error}");
        assert_eq!(error.exit_code(), 1);
        assert!(write(Path::new("/"), b"new").is_err());
        assert!(clean(&file).is_err());
    }

    #[test]
    fn clean_removes_our_temporaries_alone() {
        let folder = tempfile::tempdir().unwrap();
        let temporary = temporary_name(&folder.path().join("a.txt")).unwrap();
        assert!(temporary.to_str().unwrap().ends_with(".tmp"));
        for path in [
            &temporary,
            &folder.path().join("b.txt"),
            &folder.path().join("foreign.tmp"),
        ] {
            fs::write(path, "").unwrap();
        }
        clean(folder.path()).unwrap();
        assert_eq!(names(folder.path()), ["b.txt", "foreign.tmp"]);
        clean(&folder.path().join("absent")).unwrap();
    }
}
