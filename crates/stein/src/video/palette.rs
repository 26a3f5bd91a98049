//! A palette of 255 colours for a picture, by splitting boxes of colours.
//!
//! All colours start in one box. The box with the largest side · pixels^¼ is split in the middle of that side until
//! there are 255; each gives the mean of its pixels. The root keeps the few pixels of a marker or a letter in their own
//! colour and still gives most of the palette to sky and ground. Cf. Heckbert 1982, "Color image quantization for frame
//! buffer display", who splits at the median.

use super::Picture;

/// Number of colours. As an index it is unused.
pub(super) const COLOURS: usize = 255;

/// Bits per channel that distinguish colours.
const BITS: u32 = 6;

/// Colours with the same upper bits in all channels.
#[derive(Clone, Copy, Default)]
struct Cell {
    corner: [u8; 3],
    pixels: u64,
    sums: [u64; 3],
}

/// The palette and a lookup of its nearest colours.
pub(super) struct Palette {
    colours: Vec<[u8; 3]>,
    /// The nearest colour of a cell, if it has been looked up already.
    nearest: Vec<Option<u8>>,
}

impl Palette {
    /// The palette of a picture.
    pub fn of(picture: &Picture) -> Self {
        let mut cells = vec![Cell::default(); 1 << (3 * BITS)];
        for pixel in picture.pixels().chunks_exact(3) {
            let cell = &mut cells[place(pixel)];
            cell.corner = [pixel[0], pixel[1], pixel[2]].map(coarse);
            cell.pixels += 1;
            for (sum, &value) in cell.sums.iter_mut().zip(pixel) {
                *sum += u64::from(value);
            }
        }
        cells.retain(|cell| cell.pixels > 0);
        let mut boxes = vec![cells];
        while boxes.len() < COLOURS {
            let largest = (0..boxes.len()).max_by(|&a, &b| priority(&boxes[a]).total_cmp(&priority(&boxes[b])));
            let Some(index) = largest.filter(|&index| longest_side(&boxes[index]).1 > 0) else {
                break;
            };
            let halves = cut(boxes.swap_remove(index));
            boxes.extend(halves);
        }
        Palette {
            colours: boxes.iter().map(|cells| mean(cells)).collect(),
            nearest: vec![None; 1 << (3 * BITS)],
        }
    }

    /// The colours, three bytes each, padded to 256.
    pub fn bytes(&self) -> Vec<u8> {
        let mut bytes = self.colours.concat();
        bytes.resize(3 * (COLOURS + 1), 0);
        bytes
    }

    /// The index of the nearest colour of each pixel.
    pub fn indices(&mut self, pixels: &[u8]) -> Vec<u8> {
        let find = |pixel: &[u8]| {
            let distance = |colour: &[u8; 3]| -> u32 {
                let channels = colour.iter().zip(pixel);
                channels.map(|(a, b)| u32::from(a.abs_diff(*b)).pow(2)).sum()
            };
            *self.nearest[place(pixel)].get_or_insert_with(|| {
                let nearest = (0..self.colours.len()).min_by_key(|&index| distance(&self.colours[index]));
                nearest.unwrap_or(0) as u8
            })
        };
        pixels.chunks_exact(3).map(find).collect()
    }
}

fn coarse(value: u8) -> u8 {
    value >> (8 - BITS)
}

/// Index of the cell of a pixel.
fn place(pixel: &[u8]) -> usize {
    pixel
        .iter()
        .fold(0, |place, &value| place << BITS | usize::from(coarse(value)))
}

/// The channel in which the cells are farthest apart, by how much, and its minimum.
fn longest_side(cells: &[Cell]) -> (usize, u8, u8) {
    let side = |channel: usize| {
        let values = || cells.iter().map(|cell| cell.corner[channel]);
        let (low, high) = (values().min().unwrap_or(0), values().max().unwrap_or(0));
        (channel, high - low, low)
    };
    [side(2), side(0), side(1)]
        .into_iter()
        .max_by_key(|side| side.1)
        .unwrap_or((0, 0, 0))
}

fn priority(cells: &[Cell]) -> f64 {
    let pixels: u64 = cells.iter().map(|cell| cell.pixels).sum();
    f64::from(longest_side(cells).1) * (pixels as f64).powf(0.25)
}

/// The cells below the middle of the longest side, and the others; neither is empty if the side has a length.
fn cut(cells: Vec<Cell>) -> [Vec<Cell>; 2] {
    let (channel, length, low) = longest_side(&cells);
    let (lower, upper) = cells
        .into_iter()
        .partition(|cell| cell.corner[channel] <= low + (length - 1) / 2);
    [lower, upper]
}

fn mean(cells: &[Cell]) -> [u8; 3] {
    let pixels: u64 = cells.iter().map(|cell| cell.pixels).sum();
    [0, 1, 2].map(|channel| {
        let sum: u64 = cells.iter().map(|cell| cell.sums[channel]).sum();
        ((sum + pixels / 2) / pixels.max(1)) as u8
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_colours_stay_as_they_are() {
        let pixels = [[255, 255, 255], [0, 114, 178], [230, 159, 0], [0, 114, 178]];
        let mut palette = Palette::of(&Picture::new(2, pixels.concat()));
        assert_eq!(palette.colours.len(), 3);
        assert_eq!(palette.bytes().len(), 768);
        let indices = palette.indices(&pixels.concat());
        for (index, pixel) in indices.into_iter().zip(pixels) {
            assert_eq!(palette.colours[usize::from(index)], pixel);
        }
    }

    #[test]
    fn a_rare_colour_is_not_lost_among_many() {
        // A wide range of blues and greens, and ten pixels of red.
        let field = (0..100_000u32).map(|i| [20, (i % 251) as u8, (i / 400) as u8]);
        let pixels: Vec<u8> = field.chain([[250, 10, 10]; 10]).flatten().collect();
        let mut palette = Palette::of(&Picture::new(10, pixels.clone()));
        assert_eq!(palette.colours.len(), COLOURS);
        let indices = palette.indices(&pixels);
        let off = |(index, pixel): (&u8, &[u8])| {
            let colour = palette.colours[usize::from(*index)];
            colour.iter().zip(pixel).map(|(a, b)| a.abs_diff(*b)).max()
        };
        let worst = indices.iter().zip(pixels.chunks_exact(3)).filter_map(off).max();
        assert!(worst < Some(24), "{worst:?}");
        assert_eq!(palette.colours[usize::from(indices[100_005])], [250, 10, 10]);
    }
}
