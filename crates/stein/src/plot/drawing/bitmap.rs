//! PNG: the page is drawn [`SCALE`] times too large, and each pixel is the mean of the pixels it covers, which smooths
//! lines, letters and edges.

use plotters::prelude::BitMapBackend;

use super::page::{Page, SCALE};
use crate::error::{Error, Result};
use crate::plot::Figure;

/// Bytes per pixel: red, green, blue.
const CHANNELS: usize = 3;

/// The bitmap backend places text too high by this fraction of its height.
const TEXT_DROP: f64 = 0.18;

/// The figure as a PNG file.
pub(super) fn png(figure: &Figure) -> Result<Vec<u8>> {
    let [width, height] = figure.size();
    let pixels = pixels([width, height], |page| figure.draw_on(page))?;
    encode(&pixels, width, height).map_err(|error| Error::failed(format!("cannot encode a figure as PNG: {error}")))
}

/// Draws with `draw` on a white page of this size: rows from the top, three bytes per pixel.
pub(super) fn pixels(
    [width, height]: [u32; 2],
    draw: impl FnOnce(Page<BitMapBackend>) -> Result<()>,
) -> Result<Vec<u8>> {
    let mut large = vec![255; (SCALE * width * SCALE * height) as usize * CHANNELS];
    let backend = BitMapBackend::with_buffer(&mut large, (SCALE * width, SCALE * height));
    draw(Page::new(backend, TEXT_DROP)?)?;
    Ok(shrink(&large, width as usize))
}

/// The mean of each square of `SCALE` by `SCALE` pixels; `width` is that of the result.
fn shrink(large: &[u8], width: usize) -> Vec<u8> {
    let scale = SCALE as usize;
    let stride = width * scale * CHANNELS;
    let mut small = Vec::with_capacity(large.len() / (scale * scale));
    let mut sums = vec![0u32; width * CHANNELS];
    for rows in large.chunks_exact(stride * scale) {
        sums.fill(SCALE * SCALE / 2);
        for row in rows.chunks_exact(stride) {
            for (sum, square) in sums.chunks_exact_mut(CHANNELS).zip(row.chunks_exact(scale * CHANNELS)) {
                for pixel in square.chunks_exact(CHANNELS) {
                    sum.iter_mut()
                        .zip(pixel)
                        .for_each(|(sum, value)| *sum += u32::from(*value));
                }
            }
        }
        small.extend(sums.iter().map(|sum| (sum / (SCALE * SCALE)) as u8));
    }
    small
}

fn encode(pixels: &[u8], width: u32, height: u32) -> std::result::Result<Vec<u8>, png::EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = png::Encoder::new(&mut bytes, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    // Figures are mostly uniform areas: unfiltered rows repeat, and the slow compressor finds that.
    encoder.set_compression(png::Compression::Best);
    encoder.set_filter(png::FilterType::NoFilter);
    let mut writer = encoder.write_header()?;
    writer.write_image_data(pixels)?;
    writer.finish()?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shrinking_takes_the_mean_of_each_square() {
        let scale = SCALE as usize;
        let mut large = vec![200; 2 * scale * scale * CHANNELS];
        // The upper half of the right one of two squares is black.
        for row in 0..scale / 2 {
            let begin = (row * 2 * scale + scale) * CHANNELS;
            large[begin..begin + scale * CHANNELS].fill(0);
        }
        assert_eq!(shrink(&large, 2), [200, 200, 200, 100, 100, 100]);
    }
}
