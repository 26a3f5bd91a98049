//! Reading of tables, for plots and reports.

use std::path::Path;

use super::{ITERATION, cell};
use crate::error::{Error, Result};
use crate::files::plain;

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
        let bytes = plain::read(path)?;
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
