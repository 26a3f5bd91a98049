//! SVG: the page is drawn `SCALE` times too large, as for PNG, and scaled by the view box.

use plotters::prelude::SVGBackend;

use super::page::{Page, SCALE};
use crate::error::Result;
use crate::plot::Figure;

/// The SVG backend centres text on half the x-height; capitals and digits are a little taller.
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
