//! Image files: GIF, animated PNG, PNG.
//!
//! A GIF has 256 colours and opens everywhere. Ours has one palette for the whole video, that of its film strip, so
//! that colours do not flicker. The last of the 256 means "as in the previous frame", which makes still parts small. An
//! animated PNG has all colours and is several times larger; browsers play it.

use std::borrow::Cow;
use std::io::Write;

use super::palette::{COLOURS, Palette};
use super::{Film, Picture};
use crate::error::{Advice, Error, Result};

/// The file format of a video.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Format {
    /// GIF.
    Gif,
    /// Animated PNG.
    Apng,
}

/// Renders the video into a file of this format and returns it with the film strip; `progress` is called after each
/// frame.
pub fn encode(film: &mut Film, format: Format, progress: impl FnMut()) -> Result<(Vec<u8>, Picture)> {
    let strip = film.strip()?;
    let film = match format {
        Format::Gif => gif(film, &strip, progress)?,
        Format::Apng => apng(film, progress)?,
    };
    Ok((film, strip))
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::failed(format!("cannot encode a film: {error};")).advise(Advice::SmallerFilm)
}

fn gif(film: &mut Film, strip: &Picture, mut progress: impl FnMut()) -> Result<Vec<u8>> {
    let [width, height] = film.size().map(|side| side as u16);
    let mut palette = Palette::of(strip);
    let mut encoder = gif::Encoder::new(Vec::new(), width, height, &palette.bytes()).map_err(failed)?;
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

/// How long a frame is shown, in hundredths of a second, rounded so that the total duration is right.
fn delay(frame: usize, rate: u32) -> u16 {
    let until = |frame: usize| (frame as f64 * 100.0 / f64::from(rate)).round() as usize;
    (until(frame + 1) - until(frame)) as u16
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
