//! Regular files of a run. A run folder may have been unpacked from anywhere: what is written in it must not be a link
//! to another place, nor a pipe that would block the program.
//!
//! Links are detected from their own metadata before anything is opened; O_NOFOLLOW and O_NONBLOCK cover changes
//! between the check and the open.

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{ErrorKind, Read};
use std::path::Path;

use crate::error::{Advice, Error, Result};

/// Rejects what is at `path`, if anything, unless it is a regular file. A hard link is allowed: this is for files that
/// are replaced by a rename, which leaves the other name its contents.
pub fn check_file(path: &Path) -> Result<()> {
    match look(path)? {
        Some(about) if !about.is_file() => Err(refusal(path, kind(&about), "a plain file")),
        _ => Ok(()),
    }
}

/// Rejects what is at `path`, if anything, unless it is a regular file with this one name: for files that are written
/// in place.
pub fn check_single_file(path: &Path) -> Result<()> {
    check_file(path)?;
    match look(path)? {
        Some(about) if names(&about) > 1 => Err(two_names(path)),
        _ => Ok(()),
    }
}

/// Rejects what is at `path`, if anything, unless it is a folder.
pub fn check_folder(path: &Path) -> Result<()> {
    match look(path)? {
        Some(about) if !about.is_dir() => Err(refusal(path, kind(&about), "a folder")),
        _ => Ok(()),
    }
}

/// Opens a regular file to be written in place, with these `options`; it is not truncated.
pub fn open(path: &Path, options: &mut OpenOptions) -> Result<File> {
    check_single_file(path)?;
    let failed = |error| Error::io("open", path, error);
    let file = guarded(options).open(path).map_err(failed)?;
    let about = file.metadata().map_err(failed)?;
    if !about.is_file() {
        return Err(refusal(path, kind(&about), "a plain file"));
    }
    if names(&about) > 1 {
        return Err(two_names(path));
    }
    Ok(file)
}

/// Reads a file, which may be a link, without blocking on a pipe.
pub fn read(path: &Path) -> Result<Vec<u8>> {
    let failed = |error| Error::io("read", path, error);
    let about = fs::metadata(path).map_err(failed)?;
    if !about.is_file() {
        return Err(refusal(path, kind(&about), "a plain file"));
    }
    fs::read(path).map_err(failed)
}

/// Reads a file of at most `most` bytes that is no link, no pipe and no device; none where there is none such. For files that are
/// shown to others: a link could lead to something private.
pub fn read_own(path: &Path, most: u64) -> Option<Vec<u8>> {
    let about = fs::symlink_metadata(path).ok()?;
    if !about.is_file() || about.len() > most {
        return None;
    }
    let file = guarded(OpenOptions::new().read(true)).open(path).ok()?;
    let mut bytes = Vec::new();
    file.take(most).read_to_end(&mut bytes).ok()?;
    Some(bytes)
}

/// Whether `path` is this open file or folder: while it is open, no other one can have its inode number.
pub fn is_same(path: &Path, held: &File) -> bool {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        let number = |about: Metadata| (about.dev(), about.ino());
        let found = fs::metadata(path).map(number);
        found.is_ok_and(|found| held.metadata().is_ok_and(|about| number(about) == found))
    }
    #[cfg(not(unix))]
    {
        let _ = held;
        path.exists()
    }
}

/// What is at `path` itself, even if it is a link; none if there is nothing.
fn look(path: &Path) -> Result<Option<Metadata>> {
    match fs::symlink_metadata(path) {
        Ok(about) => Ok(Some(about)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(Error::io("read", path, error)),
    }
}

fn guarded(options: &mut OpenOptions) -> &mut OpenOptions {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt;
        options.custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK)
    }
    #[cfg(not(unix))]
    options
}

fn names(about: &Metadata) -> u64 {
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt;
        about.nlink()
    }
    #[cfg(not(unix))]
    {
        let _ = about;
        1
    }
}

fn kind(about: &Metadata) -> &'static str {
    if about.is_symlink() {
        "a symbolic link"
    } else if about.is_dir() {
        "a folder"
    } else if about.is_file() {
        "a file"
    } else {
        "a pipe, a socket or a device"
    }
}

fn refusal(path: &Path, found: &str, wanted: &str) -> Error {
    Error::input(format!(
        "{} is {found} where a run has {wanted}: nothing was written; put the run's own back, or",
        path.display()
    ))
    .advise(Advice::OtherFolder)
}

fn two_names(path: &Path) -> Error {
    Error::input(format!(
        "{} is a hard link, and writing to it would change the file under its other name too: nothing was written; copy the \
         folder (cp -r) and go on in the copy, or",
        path.display()
    ))
    .advise(Advice::OtherFolder)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn only_plain_files_and_folders_pass() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().join(name);
        fs::write(at("file"), "precious").unwrap();
        fs::create_dir(at("folder")).unwrap();
        symlink(at("file"), at("link")).unwrap();
        symlink(at("nothing"), at("dangling")).unwrap();
        symlink(at("folder"), at("link to folder")).unwrap();
        assert!(
            std::process::Command::new("mkfifo")
                .arg(at("pipe"))
                .status()
                .unwrap()
                .success()
        );
        let single = ["file", "absent"];
        for name in ["file", "absent", "folder", "link", "dangling", "link to folder", "pipe"] {
            let path = at(name);
            assert_eq!(check_file(&path).is_ok(), single.contains(&name), "{name}");
            assert_eq!(check_single_file(&path).is_ok(), single.contains(&name), "{name}");
            assert_eq!(
                check_folder(&path).is_ok(),
                ["folder", "absent"].contains(&name),
                "{name}"
            );
            let opened = open(&path, OpenOptions::new().append(true));
            assert_eq!(opened.is_ok(), name == "file", "{name}");
            assert_eq!(read(&path).is_ok(), ["file", "link"].contains(&name), "{name}");
        }
        let error = check_file(&at("link")).unwrap_err();
        assert!(
            error
                .to_string()
                .contains("is a symbolic link where a run has a plain file"),
            "{error}"
        );
        fs::hard_link(at("file"), at("other")).unwrap();
        assert!(check_file(&at("file")).is_ok());
        let error = check_single_file(&at("file")).unwrap_err().to_string();
        assert!(error.contains("hard link") && error.contains("cp -r"), "{error}");
        assert!(open(&at("other"), OpenOptions::new().append(true)).is_err());
        assert_eq!(fs::read(at("file")).unwrap(), b"precious");
        assert!(!at("nothing").exists());
    }

    #[test]
    fn a_link_that_is_put_there_after_the_look_is_not_followed() {
        let place = tempfile::tempdir().unwrap();
        let (target, link) = (place.path().join("target"), place.path().join("link"));
        symlink(&target, &link).unwrap();
        assert!(
            guarded(OpenOptions::new().write(true).create(true))
                .open(&link)
                .is_err()
        );
        assert!(!target.exists());
    }

    #[test]
    fn what_is_held_is_told_from_what_takes_its_place() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("folder");
        fs::create_dir(&folder).unwrap();
        let held = File::open(&folder).unwrap();
        assert!(is_same(&folder, &held));
        let link = place.path().join("link");
        symlink(&folder, &link).unwrap();
        assert!(is_same(&link, &held));
        fs::remove_dir(&folder).unwrap();
        assert!(!is_same(&folder, &held));
        fs::create_dir(&folder).unwrap();
        assert!(!is_same(&folder, &held));
    }
}
