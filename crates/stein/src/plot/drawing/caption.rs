//! One line of text as pixels, for pictures that are not drawn here.

use super::bitmap;
use super::page::{Anchor, fit, text_width};
use crate::error::Result;

/// Height of the letters, as a fraction of the line height.
const LETTERS: f64 = 0.62;

/// Width of a policy's marker with its margin, as a fraction of the line height.
const MARKER: f64 = 1.2;

/// The text on `width` by `height` white pixels, cut if too long: rows from the top, three bytes per pixel. It starts
/// on the left after the marker of `policy`, or is centred if there is none.
pub(crate) fn line(text: &str, policy: Option<usize>, width: u32, height: u32) -> Result<Vec<u8>> {
    bitmap::pixels([width, height], |page| {
        let [width, height] = page.size();
        let (letters, middle) = (LETTERS * height, height / 2.0);
        match policy {
            Some(policy) => {
                page.marker([middle, middle], 0.25 * height, policy, false)?;
                let text = fit(text, letters, width - MARKER * height)?;
                page.text(&text, [height, middle], letters, Anchor::Left)?;
            }
            None => page.text(
                &fit(text, letters, width)?,
                [width / 2.0, middle],
                letters,
                Anchor::Centre,
            )?,
        }
        page.finish()
    })
}

/// Whether the text fits into such a line after the marker of a policy.
pub(crate) fn fits(text: &str, width: u32, height: u32) -> Result<bool> {
    let height = f64::from(height);
    Ok(text_width(text, LETTERS * height)? <= f64::from(width) - MARKER * height)
}

/// Width of a line of this height that fits the text with a small margin.
pub(crate) fn width(text: &str, height: u32) -> Result<u32> {
    let height = f64::from(height);
    Ok((text_width(text, LETTERS * height)? + 0.8 * height).ceil() as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Non-white pixels between two columns.
    fn ink(pixels: &[u8], width: usize, columns: std::ops::Range<usize>) -> usize {
        let rows = pixels.chunks_exact(3 * width);
        rows.flat_map(|row| row.chunks_exact(3).skip(columns.start).take(columns.len()))
            .filter(|pixel| pixel.iter().any(|&value| value < 200))
            .count()
    }

    #[test]
    fn a_line_has_its_marker_its_text_and_nothing_else() {
        let pixels = line("policy 3", Some(3), 200, 20).unwrap();
        assert_eq!(pixels.len(), 3 * 200 * 20);
        assert!(ink(&pixels, 200, 2..18) > 20);
        assert!(ink(&pixels, 200, 20..100) > 40);
        assert_eq!(ink(&pixels, 200, 120..200), 0);
        assert_ne!(pixels, line("policy 4", Some(3), 200, 20).unwrap());
        let middle = line("0.4 s", None, 200, 20).unwrap();
        assert!(ink(&middle, 200, 70..130) > 20 && ink(&middle, 200, 0..70) == 0 && ink(&middle, 200, 130..200) == 0);
    }

    #[test]
    fn a_line_of_its_own_width_is_not_cut() {
        let width = width("ended at 1.2 s", 20).unwrap();
        let pixels = line("ended at 1.2 s", None, width, 20).unwrap();
        let wide = line("ended at 1.2 s", None, width + 100, 20).unwrap();
        assert_eq!(
            ink(&pixels, width as usize, 0..width as usize),
            ink(&wide, width as usize + 100, 0..width as usize + 100)
        );
        // Without any room it is cut, not rejected.
        assert!(line("ended at 1.2 s", Some(0), 24, 20).is_ok());
    }
}
