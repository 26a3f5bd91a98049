//! Tables of numbers that grow by one row an iteration: `metrics.csv`, and `timings.csv` for the wall times.
//!
//! ```text
//! iteration,return.mean,loss
//! 1,-12.5,0.1
//! 2,-11.75,
//! ```
//!
//! A number is the shortest decimal that reads back to the same f64; an empty cell is a NaN. Rows are consecutive,
//! the first is 0 or 1. A run that was cut and resumed gives the same bytes as one that was not: [`MetricsFile::resume`]
//! keeps the bytes of the rows the checkpoint knows of and drops the later ones, which the resumed run writes again.

mod table;
#[cfg(test)]
mod tests;

pub use table::Table;

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use crate::error::{Advice, Error, Result};
use crate::files::{atomic, plain};

/// The name of the first column.
const ITERATION: &str = "iteration";

/// A table open for writing.
#[derive(Debug)]
pub struct MetricsFile {
    path: PathBuf,
    file: File,
    width: usize,
    last: Option<usize>,
}

impl MetricsFile {
    /// Begins a table with the column `iteration` and these ones. Refuses where the file exists.
    pub fn create<S: AsRef<str>>(path: &Path, columns: &[S]) -> Result<Self> {
        let header = header(path, columns)?;
        if fs::symlink_metadata(path).is_ok() {
            return Err(Error::input(format!(
                "{} exists and is not overwritten: a run is there;",
                path.display()
            ))
            .advise(Advice::ResumeOrOtherFolder));
        }
        // Atomic, so that a run killed at this moment leaves no table without its header.
        atomic::write(path, header.as_bytes())?;
        Self::open(path, columns.len(), None)
    }

    /// Goes on after `iteration`, the iterations done by the checkpoint: keeps the rows up to and including it, byte
    /// by byte, and drops later ones. Refuses other columns, and missing or damaged rows. Where no iteration is done a
    /// missing file is begun.
    pub fn resume<S: AsRef<str>>(path: &Path, columns: &[S], iteration: usize) -> Result<Self> {
        let header = header(path, columns)?;
        plain::check_single_file(path)?;
        let bytes = match fs::read(path) {
            Err(error) if error.kind() == ErrorKind::NotFound && iteration == 0 => return Self::create(path, columns),
            Err(error) if error.kind() == ErrorKind::NotFound => {
                return Err(Error::input(format!(
                    "{} is missing, though the run has done {iteration} iterations: restore the file from a copy, or \
                     start a new run in another folder",
                    path.display()
                )));
            }
            read => read.map_err(|error| Error::io("read", path, error))?,
        };
        if !bytes.starts_with(header.as_bytes()) {
            let same = header.bytes().zip(&bytes).take_while(|(ours, theirs)| ours == *theirs);
            let column = same.filter(|(byte, _)| *byte == b',').count();
            return Err(Error::input(format!(
                "{} has another column {} than `{}`, which these settings write there: restore the file from a copy, \
                 resume with the settings and the version of the run, or start a new run in another folder",
                path.display(),
                column + 1,
                header.trim_end().split(',').nth(column).unwrap_or_default(),
            )));
        }
        let (end, last) = kept(&bytes, header.len(), columns.len(), iteration).map_err(|(good, trouble)| {
            Error::input(format!(
                "{} cannot be resumed after iteration {iteration}: {trouble}; restore the file from a copy, or delete \
                 the checkpoints after iteration {good} and resume from the one before",
                path.display()
            ))
        })?;
        if end < bytes.len() {
            atomic::write(path, &bytes[..end])?;
        }
        Self::open(path, columns.len(), last)
    }

    fn open(path: &Path, width: usize, last: Option<usize>) -> Result<Self> {
        Ok(MetricsFile {
            path: path.to_path_buf(),
            file: plain::open(path, OpenOptions::new().append(true))?,
            width,
            last,
        })
    }

    /// Adds the row of the next iteration and hands it to the system at once: a killed process loses none.
    pub fn append(&mut self, iteration: usize, values: &[f64]) -> Result<()> {
        let expected = self.last.map_or(iteration <= 1, |last| iteration == last + 1);
        if !expected || values.len() != self.width {
            return Err(Error::failed(format!(
                "row {iteration} with {} values does not fit {}, whose last row is {:?} and which takes {}: append \
                 every iteration once, with one value a column",
                values.len(),
                self.path.display(),
                self.last,
                self.width
            )));
        }
        let row = self.file.write_all(row(iteration, values).as_bytes());
        row.map_err(|error| Error::io("write", &self.path, error))?;
        self.last = Some(iteration);
        Ok(())
    }

    /// Makes the rows so far survive a loss of power. To be called before a checkpoint that relies on them. Fails if the
    /// file is no longer under its name: the rows would be lost with it.
    pub fn sync(&self) -> Result<()> {
        if !plain::is_same(&self.path, &self.file) {
            return Err(Error::failed(format!(
                "{} was removed or replaced while the run wrote to it: restore the file from a copy and resume, or start a new run",
                self.path.display()
            )));
        }
        self.file
            .sync_data()
            .map_err(|error| Error::io("write", &self.path, error))
    }
}

/// The first line, with its end. Refuses names that a plain comma-separated line cannot carry.
fn header<S: AsRef<str>>(path: &Path, columns: &[S]) -> Result<String> {
    let mut names = vec![ITERATION];
    for name in columns.iter().map(AsRef::as_ref) {
        let plain = !name.is_empty() && !name.contains(|c: char| matches!(c, ',' | '"') || c.is_control());
        if !plain || names.contains(&name) {
            return Err(Error::input(format!(
                "{name:?} cannot be a column of {}: give it a name of its own, without commas, quotes and line breaks",
                path.display()
            )));
        }
        names.push(name);
    }
    Ok(names.join(",") + "\n")
}

/// One row, with its end.
fn row(iteration: usize, values: &[f64]) -> String {
    let mut row = iteration.to_string();
    for value in values {
        row.push(',');
        if !value.is_nan() {
            write!(row, "{value}").expect("writing to a String cannot fail");
        }
    }
    row.push('\n');
    row
}

/// The number in a cell.
fn cell(text: &str) -> Option<f64> {
    if text.is_empty() {
        Some(f64::NAN)
    } else {
        text.parse().ok()
    }
}

/// Where the row of `iteration` ends, and the number of the last row before that end; or up to which iteration the rows
/// are good, and what is wrong after it.
fn kept(
    bytes: &[u8],
    header: usize,
    width: usize,
    iteration: usize,
) -> std::result::Result<(usize, Option<usize>), (usize, String)> {
    let mut end = header;
    let mut last: Option<usize> = None;
    for line in bytes[header..].split_inclusive(|&byte| byte == b'\n') {
        let number = std::str::from_utf8(line).ok().and_then(|line| intact(line, width));
        let next = number.filter(|&number| last.map_or(number <= 1, |last| number == last + 1));
        match next {
            Some(number) if number <= iteration => {
                end += line.len();
                last = Some(number);
            }
            // Whatever stands after the last row to keep is dropped, and may well be torn.
            _ if last.unwrap_or(0) >= iteration => break,
            _ => {
                let good = last.unwrap_or(0);
                return Err((good, format!("the row after {good} is damaged")));
            }
        }
    }
    match last.unwrap_or(0) {
        good if good < iteration => Err((good, format!("the rows after {good} are missing"))),
        _ => Ok((end, last)),
    }
}

/// The number of a row that is exactly what [`row`] writes.
fn intact(line: &str, width: usize) -> Option<usize> {
    let mut cells = line.strip_suffix('\n')?.split(',');
    let iteration = cells.next()?.parse().ok()?;
    let values: Vec<f64> = cells.map(cell).collect::<Option<_>>()?;
    (values.len() == width && row(iteration, &values) == line).then_some(iteration)
}
