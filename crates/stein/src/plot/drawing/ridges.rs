//! Drawing of [`Ridges`]: histograms above each other, one row per policy, each on the line of its number.

use plotters::prelude::DrawingBackend;
use plotters::style::Color;

use super::frame::{Axis, Frame, drawable};
use super::page::{Page, Point};
use super::style::{LINES_SIZE, Pen, colour};
use crate::error::Result;
use crate::plot::Ridges;

/// Height of the largest bar of a row, in rows.
const LARGEST: f64 = 0.9;
/// Minimum height of a row in pixels, and of the space above and below all rows.
const ROW: [u32; 2] = [38, 160];
/// Maximum number of rows that increase the height of the page.
const MOST: usize = 100;

/// Width and height in pixels: many policies need more height.
pub(super) fn size(ridges: &Ridges) -> [u32; 2] {
    let rows = ridges.rows.len().min(MOST) as u32;
    [LINES_SIZE[0], LINES_SIZE[1].max(ROW[0] * rows + ROW[1])]
}

/// Draws the rows on the page.
pub(super) fn draw<DB: DrawingBackend>(ridges: &Ridges, page: &Page<DB>) -> Result<()> {
    let bars = ridges.rows.iter().map(Vec::len).max().unwrap_or(0);
    let ends = [ridges.low, ridges.low + bars as f64 * ridges.width];
    let frame = Frame {
        title: ridges.title.clone(),
        x: Axis::around(&ridges.x, ends.into_iter()),
        y: Axis {
            label: format!("policy ({}, scaled by row)", ridges.height),
            low: -0.15,
            // Just below the line of a policy that does not exist.
            high: ridges.rows.len().max(1) as f64 - 0.05,
            whole: true,
        },
        equal: false,
        legend: Vec::new(),
    };
    let window = frame.draw(page)?;
    for (policy, row) in ridges.rows.iter().enumerate() {
        // Each row has its own scale: one policy that stands still would flatten all others.
        let heights = row.iter().copied().filter(|height| drawable(*height));
        let unit = LARGEST / heights.fold(f64::MIN_POSITIVE, f64::max);
        for outline in outlines(row) {
            let place = |[bar, height]: Point| {
                let x = ridges.low + bar * ridges.width;
                drawable(x).then(|| window.place([x, policy as f64 + unit * height]))
            };
            if let Some(points) = outline.into_iter().map(place).collect::<Option<Vec<_>>>() {
                page.area(&points, colour(policy).mix(0.35))?;
                page.line(&points, Pen::solid(colour(policy), 1.8))?;
            }
        }
    }
    Ok(())
}

/// The outline of each run of non-zero bars, from the baseline and back to it: bar indices and heights.
fn outlines(row: &[f64]) -> Vec<Vec<[f64; 2]>> {
    let shown = |height: &f64| *height > 0.0 && drawable(*height);
    let mut outlines: Vec<Vec<[f64; 2]>> = Vec::new();
    for (index, &height) in row.iter().enumerate().filter(|(_, height)| shown(height)) {
        let [left, right] = [index as f64, index as f64 + 1.0];
        match outlines.last_mut() {
            // Continues where the previous bar ended.
            Some(outline) if outline.last() == Some(&[left, 0.0]) => outline.truncate(outline.len() - 1),
            _ => outlines.push(vec![[left, 0.0]]),
        }
        if let Some(outline) = outlines.last_mut() {
            outline.extend([[left, height], [right, height], [right, 0.0]]);
        }
    }
    outlines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outlines_begin_and_end_at_the_baseline_where_something_is() {
        let runs = outlines(&[0.0, 2.0, 1.0, 0.0, f64::NAN, 3.0]);
        let first = [[1.0, 0.0], [1.0, 2.0], [2.0, 2.0], [2.0, 1.0], [3.0, 1.0], [3.0, 0.0]];
        let second = [[5.0, 0.0], [5.0, 3.0], [6.0, 3.0], [6.0, 0.0]];
        assert_eq!(runs, [first.to_vec(), second.to_vec()]);
        assert!(outlines(&[0.0; 5]).is_empty() && outlines(&[]).is_empty());
    }
}
