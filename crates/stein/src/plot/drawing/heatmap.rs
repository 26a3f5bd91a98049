//! Drawing of [`Heatmap`]: square matrices side by side, values from 0 (light) to 1 (dark), with one colour bar.

use plotters::prelude::DrawingBackend;

use super::page::{Anchor, Page, fit, heading};
use super::style::{INK, LABEL, LIGHT, MISSING, Pen, TEXT, TITLE, shade};
use crate::error::{Error, Result};
use crate::plot::Heatmap;

const MARGIN: f64 = 16.0;
const GAP: f64 = 8.0;
/// Side of a matrix in pixels.
const SIDE: f64 = 260.0;
/// Distance between two matrices.
const BETWEEN: f64 = 26.0;
/// Width of the colour bar, and of its numbers and label.
const BAR: [f64; 2] = [22.0, 76.0];
/// Position of the first matrix: below the title and its own title, right of label and numbers.
const CORNER: [f64; 2] = [MARGIN + LABEL + 34.0 + 2.0 * GAP, MARGIN + TITLE + TEXT + 4.0 * GAP];
/// Smallest side of a cell that shows its value.
const LEAST_CELL: f64 = 24.0;
/// Steps of the colour bar.
const STEPS: usize = 100;

/// Width and height in pixels.
pub(super) fn size(heatmap: &Heatmap) -> [u32; 2] {
    let panels = heatmap.panels.len().max(1) as f64;
    let width = CORNER[0] + panels * (SIDE + BETWEEN) + BAR[0] + BAR[1] + MARGIN;
    let height = CORNER[1] + SIDE + GAP + TEXT + GAP + LABEL + MARGIN;
    [width as u32, height as u32]
}

/// Draws the matrices on the page.
pub(super) fn draw<DB: DrawingBackend>(heatmap: &Heatmap, page: &Page<DB>) -> Result<()> {
    let [width, _] = page.size();
    let (title, letters) = heading(&heatmap.title, width - 2.0 * MARGIN)?;
    page.text(&title, [width / 2.0, MARGIN + TITLE / 2.0], letters, Anchor::Centre)?;
    let [left, top] = CORNER;
    let middle = [left - GAP - 34.0 - LABEL / 2.0, top + SIDE / 2.0];
    page.text(&fit(&heatmap.rows, LABEL, SIDE)?, middle, LABEL, Anchor::Upwards)?;
    for (index, panel) in heatmap.panels.iter().enumerate() {
        let size = (panel.values.len() as f64).sqrt() as usize;
        if size * size != panel.values.len() {
            return Err(Error::input(format!(
                "the panel '{}' has {} values, which is no square matrix; give n·n of them, row after row",
                panel.title,
                panel.values.len()
            )));
        }
        let left = left + index as f64 * (SIDE + BETWEEN);
        let centre = left + SIDE / 2.0;
        page.text(
            &fit(&panel.title, TEXT, SIDE)?,
            [centre, top - GAP - TEXT / 2.0],
            TEXT,
            Anchor::Centre,
        )?;
        let below = [centre, top + SIDE + GAP + TEXT + GAP + LABEL / 2.0];
        page.text(&fit(&heatmap.columns, LABEL, SIDE)?, below, LABEL, Anchor::Centre)?;
        draw_matrix(&panel.values, size, left, page)?;
        draw_numbers(size, left, index == 0, page)?;
    }
    draw_bar(heatmap, page)
}

fn draw_matrix<DB: DrawingBackend>(values: &[f64], size: usize, left: f64, page: &Page<DB>) -> Result<()> {
    let top = CORNER[1];
    let cell = SIDE / size.max(1) as f64;
    for (at, value) in values.iter().enumerate() {
        let [x, y] = [left + (at % size) as f64 * cell, top + (at / size) as f64 * cell];
        let colour = if value.is_nan() { MISSING } else { shade(*value) };
        page.rectangle([[x, y], [x + cell, y + cell]], colour)?;
        if cell >= LEAST_CELL && !value.is_nan() {
            let centre = [x + cell / 2.0, y + cell / 2.0];
            let ink = if *value > 0.5 { LIGHT } else { INK };
            page.coloured_text(&short(*value), centre, (0.45 * cell).min(TEXT), Anchor::Centre, ink)?;
        }
    }
    outline([left, top, left + SIDE, top + SIDE], page)
}

/// A value with two digits: .42, 1.
fn short(value: f64) -> String {
    let text = format!("{value:.2}");
    match text.as_str() {
        "1.00" => "1".into(),
        "0.00" | "-0.00" => "0".into(),
        text => text.trim_start_matches('0').into(),
    }
}

/// Column numbers, and row numbers next to the first matrix: all, or every second, fifth, … if there are many.
fn draw_numbers<DB: DrawingBackend>(size: usize, left: f64, rows: bool, page: &Page<DB>) -> Result<()> {
    let top = CORNER[1];
    let step = [1, 2, 5, 10, 20, 50, 100, 200]
        .into_iter()
        .find(|step| size <= 10 * step);
    for number in (0..size).step_by(step.unwrap_or(500)) {
        let middle = (number as f64 + 0.5) * SIDE / size as f64;
        let text = number.to_string();
        let below = [left + middle, top + SIDE + GAP + TEXT / 2.0];
        page.text(&text, below, TEXT, Anchor::Centre)?;
        if rows {
            page.text(&text, [left - GAP, top + middle], TEXT, Anchor::Right)?;
        }
    }
    Ok(())
}

fn draw_bar<DB: DrawingBackend>(heatmap: &Heatmap, page: &Page<DB>) -> Result<()> {
    let [first, top] = CORNER;
    let left = first + heatmap.panels.len().max(1) as f64 * (SIDE + BETWEEN);
    let [right, bottom] = [left + BAR[0], top + SIDE];
    let height = |value: f64| bottom - value * SIDE;
    for step in 0..STEPS {
        let [low, high] = [step, step + 1].map(|step| step as f64 / STEPS as f64);
        page.rectangle([[left, height(low)], [right, height(high)]], shade((low + high) / 2.0))?;
    }
    outline([left, top, right, bottom], page)?;
    for (value, text) in [(0.0, "0"), (0.25, "0.25"), (0.5, "0.5"), (0.75, "0.75"), (1.0, "1")] {
        page.line(
            &[[right, height(value)], [right + 5.0, height(value)]],
            Pen::solid(INK, 1.25),
        )?;
        page.text(text, [right + 1.5 * GAP, height(value)], TEXT, Anchor::Left)?;
    }
    let label = fit(&heatmap.scale, TEXT, BAR[0] + BAR[1])?;
    page.text(&label, [left, top - GAP - TEXT / 2.0], TEXT, Anchor::Left)
}

fn outline<DB: DrawingBackend>([left, top, right, bottom]: [f64; 4], page: &Page<DB>) -> Result<()> {
    let corners = [[left, top], [right, top], [right, bottom], [left, bottom], [left, top]];
    page.line(&corners, Pen::solid(INK, 1.25))
}
