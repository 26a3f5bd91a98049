//! SVG: the page is drawn `SCALE` times too large, as for PNG, and shown at its size through the view box.

use plotters::prelude::SVGBackend;

use super::Figure;
use super::page::{Page, SCALE};
use crate::error::Result;

/// The SVG backend centres texts on half the height of an x; capitals and digits are a little higher.
const TEXT_DROP: f64 = 0.06;

/// The figure as an SVG file.
pub(super) fn svg(figure: &Figure) -> Result<String> {
    let [width, height] = figure.size();
    let drawn = (SCALE * width, SCALE * height);
    let mut text = String::new();
    figure.draw_on(Page::new(SVGBackend::with_string(&mut text, drawn), TEXT_DROP)?)?;
    let [drawn, shown] =
        [drawn, (width, height)].map(|(width, height)| format!("width=\"{width}\" height=\"{height}\""));
    Ok(text.replacen(&drawn, &shown, 1))
}
