//! Files of pictures: GIF, animated PNG, PNG.
//!
//! A GIF has 256 colours and opens everywhere. Ours has one palette for the whole film, so that colours do not flicker:
//! a neural gas fitted to its film strip (Dekker 1994, "Kohonen neural networks for optimal colour quantization"). The
//! last of the 256 means "as in the picture before", which makes what stands still small. An animated PNG has all
//! colours and is several times larger; browsers play it.

use std::borrow::Cow;
use std::io::Write;

use color_quant::NeuQuant;

use super::{Film, Picture};
use crate::error::{Error, Result};

/// Colours of the palette, and the number that stands for no change.
const COLOURS: usize = 255;
/// Bits of a colour channel that the palette is looked up by.
const BITS: u32 = 6;

/// The kind of file a film becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// GIF.
    Gif,
    /// Animated PNG.
    Apng,
}

/// Draws the film into a file of this kind and returns it with the film strip; `progress` is called after each picture.
pub fn encode(film: &mut Film, format: Format, progress: impl FnMut()) -> Result<(Vec<u8>, Picture)> {
    let strip = film.strip()?;
    let film = match format {
        Format::Gif => gif(film, &strip, progress)?,
        Format::Apng => apng(film, progress)?,
    };
    Ok((film, strip))
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::failed(format!("cannot encode a film: {error}; try a smaller --size"))
}

fn gif(film: &mut Film, strip: &Picture, mut progress: impl FnMut()) -> Result<Vec<u8>> {
    let [width, height] = film.size().map(|side| side as u16);
    let mut palette = Palette::of(strip);
    let mut encoder = gif::Encoder::new(Vec::new(), width, height, &palette.colours).map_err(failed)?;
    encoder.set_repeat(gif::Repeat::Infinite).map_err(failed)?;
    let mut before: Vec<u8> = Vec::new();
    for frame in 0..film.frames() {
        let indices = palette.indices(film.draw(frame)?.pixels());
        let changes = match before.is_empty() {
            true => indices.clone(),
            false => (indices.iter().zip(&before))
                .map(|(&new, &old)| if new == old { COLOURS as u8 } else { new })
                .collect(),
        };
        let picture = gif::Frame {
            width,
            height,
            delay: delay(frame, film.rate()),
            dispose: gif::DisposalMethod::Keep,
            transparent: Some(COLOURS as u8),
            buffer: Cow::Owned(changes),
            ..gif::Frame::default()
        };
        encoder.write_frame(&picture).map_err(failed)?;
        before = indices;
        progress();
    }
    encoder.into_inner().map_err(failed)
}

/// How long a picture stays, in hundredths of a second: rounded so that the film as a whole keeps its time.
fn delay(frame: usize, rate: u32) -> u16 {
    let until = |frame: usize| (frame as f64 * 100.0 / f64::from(rate)).round() as usize;
    (until(frame + 1) - until(frame)) as u16
}

/// 255 colours and the way to the nearest one.
struct Palette {
    network: NeuQuant,
    /// Three bytes a colour; the last one is never seen.
    colours: Vec<u8>,
    /// The nearest colour by the upper bits of the channels, where it has been looked for already.
    nearest: Vec<Option<u8>>,
}

impl Palette {
    fn of(picture: &Picture) -> Self {
        let pixels = picture.pixels().chunks_exact(3);
        let opaque: Vec<u8> = pixels.flat_map(|pixel| [pixel[0], pixel[1], pixel[2], 255]).collect();
        let network = NeuQuant::new(10, COLOURS, &opaque);
        let mut colours = network.color_map_rgb();
        colours.resize(3 * (COLOURS + 1), 0);
        Palette {
            network,
            colours,
            nearest: vec![None; 1 << (3 * BITS)],
        }
    }

    fn indices(&mut self, pixels: &[u8]) -> Vec<u8> {
        let find = |pixel: &[u8]| {
            let coarse = |value: u8| usize::from(value >> (8 - BITS));
            let place = pixel.iter().fold(0, |place, &value| place << BITS | coarse(value));
            *self.nearest[place]
                .get_or_insert_with(|| self.network.index_of(&[pixel[0], pixel[1], pixel[2], 255]) as u8)
        };
        pixels.chunks_exact(3).map(find).collect()
    }
}

fn apng(film: &mut Film, mut progress: impl FnMut()) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let [width, height] = film.size();
    let mut encoder = encoder(&mut bytes, width, height);
    encoder.set_animated(film.frames() as u32, 0).map_err(failed)?;
    encoder.set_frame_delay(1, film.rate() as u16).map_err(failed)?;
    let mut writer = encoder.write_header().map_err(failed)?;
    for frame in 0..film.frames() {
        writer.write_image_data(film.draw(frame)?.pixels()).map_err(failed)?;
        progress();
    }
    writer.finish().map_err(failed)?;
    Ok(bytes)
}

/// A picture as a PNG file.
pub fn png(picture: &Picture) -> Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut writer = encoder(&mut bytes, picture.width(), picture.height())
        .write_header()
        .map_err(failed)?;
    writer.write_image_data(picture.pixels()).map_err(failed)?;
    writer.finish().map_err(failed)?;
    Ok(bytes)
}

fn encoder<W: Write>(sink: W, width: u32, height: u32) -> png::Encoder<'static, W> {
    let mut encoder = png::Encoder::new(sink, width, height);
    encoder.set_color(png::ColorType::Rgb);
    encoder.set_depth(png::BitDepth::Eight);
    encoder.set_adaptive_filter(png::AdaptiveFilterType::Adaptive);
    encoder
}
