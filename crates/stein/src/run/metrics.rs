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

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use super::atomic;
use crate::error::{Error, Result};

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
                "{} exists and is not overwritten: go on with --resume, or choose another folder",
                path.display()
            )));
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
        let file = OpenOptions::new().append(true).open(path);
        Ok(MetricsFile {
            path: path.to_path_buf(),
            file: file.map_err(|error| Error::io("open", path, error))?,
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

    /// Makes the rows so far last through a loss of power. To be called before a checkpoint that counts on them.
    pub fn sync(&self) -> Result<()> {
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

/// A table that was read, for plotting.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Names of the columns; the first is `iteration`.
    pub columns: Vec<String>,
    /// The rows, one number a column; NaN where the cell is empty.
    pub rows: Vec<Vec<f64>>,
}

impl Table {
    /// Reads a table, also one that a run is writing just now: a last line without its end is left out.
    pub fn read(path: &Path) -> Result<Table> {
        let bytes = fs::read(path).map_err(|error| Error::io("read", path, error))?;
        let damaged = |line: usize, what: &str| {
            Error::input(format!(
                "line {line} of {} {what}: restore the file from a copy, or resume the run to have its rows written \
                 again",
                path.display()
            ))
        };
        let whole = bytes.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
        let text = std::str::from_utf8(&bytes[..whole]).map_err(|error| {
            let before = &bytes[..error.valid_up_to()];
            damaged(1 + before.iter().filter(|&&byte| byte == b'\n').count(), "is not text")
        })?;
        let mut lines = text.lines();
        let columns: Vec<String> = lines
            .next()
            .unwrap_or_default()
            .split(',')
            .map(str::to_string)
            .collect();
        if columns[0] != ITERATION {
            return Err(damaged(1, "is not the header of a table of metrics"));
        }
        let mut rows = Vec::new();
        for (index, line) in lines.enumerate() {
            let row: Option<Vec<f64>> = line.split(',').map(cell).collect();
            let row = row.filter(|row| row.len() == columns.len());
            rows.push(row.ok_or_else(|| damaged(index + 2, "is not a row of numbers, one a column"))?);
        }
        Ok(Table { columns, rows })
    }

    /// The numbers of the column of this name.
    pub fn column(&self, name: &str) -> Option<Vec<f64>> {
        let index = self.columns.iter().position(|column| column == name)?;
        Some(self.rows.iter().map(|row| row[index]).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COLUMNS: [&str; 2] = ["return", "loss"];

    fn values(iteration: usize) -> [f64; 2] {
        let loss = if iteration == 3 {
            f64::NAN
        } else {
            1.0 / iteration as f64
        };
        [iteration as f64 - 3.0, loss]
    }

    fn append(file: &mut MetricsFile, iterations: std::ops::RangeInclusive<usize>) {
        for iteration in iterations {
            file.append(iteration, &values(iteration)).unwrap();
        }
    }

    /// A file with the rows 1 to 6.
    fn six() -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("metrics.csv");
        append(&mut MetricsFile::create(&path, &COLUMNS).unwrap(), 1..=6);
        (folder, path)
    }

    fn refusal(path: &Path, columns: &[&str], iteration: usize) -> String {
        let before = fs::read(path).unwrap();
        let error = MetricsFile::resume(path, columns, iteration).unwrap_err();
        assert_eq!(fs::read(path).unwrap(), before, "a refused file must stay as it was");
        assert_eq!(error.exit_code(), 2);
        error.to_string()
    }

    #[test]
    fn the_text_is_exact() {
        let (_folder, path) = six();
        let text = "iteration,return,loss\n1,-2,1\n2,-1,0.5\n3,0,\n4,1,0.25\n5,2,0.2\n6,3,0.16666666666666666\n";
        assert_eq!(fs::read_to_string(path).unwrap(), text);
    }

    #[test]
    fn numbers_read_back_to_the_same_bits() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("numbers.csv");
        let numbers = [
            0.1 + 0.2,
            -0.0,
            f64::MAX,
            f64::MIN_POSITIVE,
            5e-324,
            f64::NEG_INFINITY,
            f64::INFINITY,
            1e21,
        ];
        let columns: Vec<String> = (0..numbers.len()).map(|i| format!("c{i}")).collect();
        MetricsFile::create(&path, &columns)
            .unwrap()
            .append(0, &numbers)
            .unwrap();
        let before = fs::read(&path).unwrap();
        MetricsFile::resume(&path, &columns, 0).unwrap();
        assert_eq!(fs::read(&path).unwrap(), before);
        let bits = |numbers: &[f64]| numbers.iter().map(|n| n.to_bits()).collect::<Vec<_>>();
        assert_eq!(bits(&Table::read(&path).unwrap().rows[0][1..]), bits(&numbers));
    }

    #[test]
    fn a_run_cut_anywhere_and_resumed_gives_the_same_bytes() {
        let (_folder, path) = six();
        let whole = fs::read(&path).unwrap();
        let end_of_three = whole.windows(6).position(|w| w == b"\n4,1,0").unwrap() + 1;
        for cut in end_of_three..=whole.len() {
            fs::write(&path, &whole[..cut]).unwrap();
            let mut file = MetricsFile::resume(&path, &COLUMNS, 3).unwrap();
            assert_eq!(fs::read(&path).unwrap(), &whole[..end_of_three]);
            append(&mut file, 4..=6);
            assert_eq!(fs::read(&path).unwrap(), whole, "cut at {cut}");
        }
        for cut in 0..end_of_three {
            fs::write(&path, &whole[..cut]).unwrap();
            refusal(&path, &COLUMNS, 3);
        }
    }

    #[test]
    fn a_run_without_a_checkpoint_resumes_from_nothing() {
        let (_folder, path) = six();
        let whole = fs::read(&path).unwrap();
        append(&mut MetricsFile::resume(&path, &COLUMNS, 0).unwrap(), 1..=6);
        assert_eq!(fs::read(&path).unwrap(), whole);
        fs::remove_file(&path).unwrap();
        append(&mut MetricsFile::resume(&path, &COLUMNS, 0).unwrap(), 1..=6);
        assert_eq!(fs::read(&path).unwrap(), whole);
        fs::remove_file(&path).unwrap();
        let error = MetricsFile::resume(&path, &COLUMNS, 1).unwrap_err();
        assert!(error.to_string().contains("metrics.csv is missing"), "{error}");
        assert_eq!(error.exit_code(), 2);
    }

    #[test]
    fn other_columns_and_damaged_rows_are_refused() {
        let (_folder, path) = six();
        assert!(refusal(&path, &["return", "gain"], 3).contains("another column 3 than `gain`"));
        assert!(refusal(&path, &["return"], 3).contains("another column 2 than `return`"));
        assert!(refusal(&path, &COLUMNS, 7).contains("the rows after 6 are missing"));
        let text = fs::read_to_string(&path).unwrap();
        for (from, to) in [
            ("2,-1,0.5\n", ""),
            ("2,-1,0.5\n", "2,-1,0.5\n2,-1,0.5\n"),
            ("2,-1", "2,-1,0"),
            ("0.5", "0.5x"),
            ("0.5", "0.50"),
            ("2,-1,0.5", "2,-1"),
            ("2,-1,0.5\n", "\n"),
        ] {
            fs::write(&path, text.replacen(from, to, 1)).unwrap();
            let sentence = refusal(&path, &COLUMNS, 5);
            assert!(
                sentence.contains("metrics.csv") && sentence.contains("is damaged"),
                "{sentence}"
            );
        }
    }

    #[test]
    fn create_never_overwrites_and_append_takes_each_iteration_once() {
        let (_folder, path) = six();
        let before = fs::read(&path).unwrap();
        let error = MetricsFile::create(&path, &COLUMNS).unwrap_err();
        assert!(error.to_string().contains("--resume"), "{error}");
        let mut file = MetricsFile::resume(&path, &COLUMNS, 6).unwrap();
        file.sync().unwrap();
        for (iteration, values) in [(6, &[0.0; 2][..]), (8, &[0.0; 2]), (7, &[0.0])] {
            assert!(file.append(iteration, values).is_err());
        }
        assert_eq!(fs::read(&path).unwrap(), before);
    }

    #[test]
    fn column_names_must_fit_a_plain_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("m.csv");
        for columns in [["a", "a"], ["a,b", "c"], ["", "c"], ["iteration", "c"], ["a\n", "c"]] {
            assert!(MetricsFile::create(&path, &columns).is_err());
        }
        assert!(!path.exists());
    }

    #[test]
    fn a_table_gives_its_columns_and_leaves_a_torn_line_out() {
        let (_folder, path) = six();
        let text = fs::read_to_string(&path).unwrap();
        fs::write(&path, &text[..text.len() - 3]).unwrap();
        let table = Table::read(&path).unwrap();
        assert_eq!(table.columns, ["iteration", "return", "loss"]);
        assert_eq!(table.column("iteration").unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0]);
        assert!(table.column("loss").unwrap()[2].is_nan());
        assert_eq!(table.column("absent"), None);
        fs::write(&path, text.replacen("0.5", "half", 1)).unwrap();
        let error = Table::read(&path).unwrap_err().to_string();
        assert!(
            error.starts_with("line 3 of") && error.contains("metrics.csv"),
            "{error}"
        );
        for foreign in [&b""[..], b"a,b\n1,2\n", b"iteration\n\xff\n"] {
            fs::write(&path, foreign).unwrap();
            assert_eq!(Table::read(&path).unwrap_err().exit_code(), 2);
        }
    }
}
