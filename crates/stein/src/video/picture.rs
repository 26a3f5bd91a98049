//! A picture in memory, with a few operations.

/// Rows from top to bottom, three bytes per pixel: red, green, blue.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    width: u32,
    pixels: Vec<u8>,
}

impl Picture {
    /// A white picture.
    pub fn white(width: u32, height: u32) -> Self {
        Picture::new(width, vec![255; 3 * width as usize * height as usize])
    }

    /// A picture from these pixels.
    pub(super) fn new(width: u32, pixels: Vec<u8>) -> Self {
        Picture { width, pixels }
    }

    /// Width in pixels.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Height in pixels.
    pub fn height(&self) -> u32 {
        (self.pixels.len() / (3 * self.width as usize)) as u32
    }

    /// The pixels.
    pub fn pixels(&self) -> &[u8] {
        &self.pixels
    }

    /// The pixels, for drawing.
    pub(super) fn pixels_mut(&mut self) -> &mut [u8] {
        &mut self.pixels
    }

    /// Copies another picture into this one, with its upper left corner at `left` and `top`. It must fit.
    pub(super) fn paste(&mut self, other: &Picture, left: u32, top: u32) {
        let (from, to) = (3 * other.width as usize, 3 * self.width as usize);
        let rows = self.pixels.chunks_exact_mut(to).skip(top as usize);
        for (row, new) in rows.zip(other.pixels.chunks_exact(from)) {
            row[3 * left as usize..][..from].copy_from_slice(new);
        }
    }

    /// Removes the colours and makes it pale.
    pub(super) fn fade(&mut self) {
        for pixel in self.pixels.chunks_exact_mut(3) {
            let grey = pixel.iter().map(|&value| u32::from(value)).sum::<u32>() / 3;
            pixel.fill((128 + grey / 2) as u8);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_picture_is_pasted_where_it_belongs() {
        let mut page = Picture::white(3, 3);
        page.paste(&Picture::new(2, (0..6).collect()), 1, 2);
        assert_eq!((page.width(), page.height()), (3, 3));
        assert_eq!(page.pixels()[..21], [255; 21]);
        assert_eq!(page.pixels()[21..], [0, 1, 2, 3, 4, 5]);
    }

    #[test]
    fn fading_leaves_light_and_dark_apart() {
        let mut picture = Picture::new(2, vec![250, 10, 10, 0, 0, 0]);
        picture.fade();
        assert_eq!(picture.pixels(), [173, 173, 173, 128, 128, 128]);
    }
}
