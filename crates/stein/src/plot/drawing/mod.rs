//! Drawing of figures: one file a kind, over a page that is the same for PNG and SVG.

mod bitmap;
pub(crate) mod caption;
mod frame;
mod heatmap;
mod lines;
mod map;
mod page;
mod ridges;
mod style;
#[cfg(test)]
mod tests;
mod vector;

use plotters::prelude::DrawingBackend;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::Figure;
use crate::error::Result;
use crate::files::atomic;
use page::Page;

/// Draws a figure into `stem.png` and `stem.svg` and returns these two paths. Each file appears whole or not at all.
pub fn draw(figure: &Figure, stem: &Path) -> Result<Vec<PathBuf>> {
    let files = [
        ("png", bitmap::png(figure)?),
        ("svg", vector::svg(figure)?.into_bytes()),
    ];
    files
        .into_iter()
        .map(|(extension, bytes)| {
            let path = with_ending(stem, extension);
            atomic::write(&path, &bytes)?;
            Ok(path)
        })
        .collect()
}

/// A figure as the bytes of a PNG file.
pub fn png(figure: &Figure) -> Result<Vec<u8>> {
    bitmap::png(figure)
}

impl Figure {
    /// Width and height in pixels.
    fn size(&self) -> [u32; 2] {
        match self {
            Figure::Map(map) => map::size(map),
            Figure::Lines(_) => style::LINES_SIZE,
            Figure::Ridges(ridges) => ridges::size(ridges),
            Figure::Heatmap(heatmap) => heatmap::size(heatmap),
        }
    }

    fn draw_on<DB: DrawingBackend>(&self, page: Page<DB>) -> Result<()> {
        match self {
            Figure::Map(map) => map::draw(map, &page)?,
            Figure::Lines(lines) => lines::draw(lines, &page)?,
            Figure::Ridges(ridges) => ridges::draw(ridges, &page)?,
            Figure::Heatmap(heatmap) => heatmap::draw(heatmap, &page)?,
        }
        page.finish()
    }
}

/// `stem.extension`, keeping dots that are part of the stem.
fn with_ending(stem: &Path, extension: &str) -> PathBuf {
    let mut path = OsString::from(stem);
    path.push(".");
    path.push(extension);
    path.into()
}
