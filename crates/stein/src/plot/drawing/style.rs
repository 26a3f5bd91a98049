//! Style: sizes, the font, and the colour, stroke and marker of each policy.
//!
//! Policy i has colour i mod 10. Its stroke is solid for the first ten policies, dashed for the next ten, dotted for
//! the ten after that, and so on in turn; its marker changes with every policy and once more with every ten. The first
//! thirty policies all look different.
//!
//! Six of the ten colours are from Okabe and Ito (2008) and Tol (2021). All ten were chosen together so that any two
//! are at least 19 CIELAB units apart for full colour vision and all three kinds of colour blindness; none is close to
//! black (the mean) or too light for a white page.

use plotters::style::{Color, FontDesc, FontFamily, FontStyle, RGBAColor, RGBColor, register_font};
use std::sync::OnceLock;

use crate::error::{Error, Result};

/// Width and height of a square map in pixels.
pub(super) const MAP_SIZE: [u32; 2] = [900, 760];
/// Width and height of a figure of curves in pixels.
pub(super) const LINES_SIZE: [u32; 2] = [1000, 620];

/// Letter height of titles in pixels.
pub(super) const TITLE: f64 = 26.0;
/// Letter height of axis labels.
pub(super) const LABEL: f64 = 22.0;
/// Letter height of ticks, legends and maps.
pub(super) const TEXT: f64 = 20.0;

/// Text and axes.
pub(super) const INK: RGBColor = RGBColor(38, 38, 38);
/// Text on dark background.
pub(super) const LIGHT: RGBColor = RGBColor(255, 255, 255);
/// Lines of the grid.
pub(super) const GRID: RGBColor = RGBColor(230, 230, 230);
/// Walls of a map.
pub(super) const WALL: RGBColor = RGBColor(77, 77, 77);
/// The disc where episodes start.
pub(super) const START: RGBColor = RGBColor(92, 184, 70);
/// The disc of the goal.
pub(super) const GOAL: RGBColor = RGBColor(200, 200, 200);

const MEAN: RGBColor = RGBColor(0, 0, 0);
const BEST: RGBColor = RGBColor(0, 135, 60);

const PALETTE: [RGBColor; 10] = [
    RGBColor(0, 114, 178),   // blue
    RGBColor(230, 159, 0),   // orange
    RGBColor(68, 170, 153),  // teal
    RGBColor(204, 51, 17),   // red
    RGBColor(51, 34, 136),   // indigo
    RGBColor(179, 157, 219), // lavender
    RGBColor(136, 34, 85),   // wine
    RGBColor(184, 149, 106), // tan
    RGBColor(123, 63, 242),  // violet
    RGBColor(92, 51, 23),    // dark brown
];

/// A cell of a matrix without a value.
pub(super) const MISSING: RGBColor = RGBColor(190, 190, 190);

/// Shades of blue from light to dark in equal steps (ColorBrewer's Blues, Harrower and Brewer 2003): their lightness
/// order is the same for every kind of colour vision and in greyscale print.
const SHADES: [RGBColor; 9] = [
    RGBColor(247, 251, 255),
    RGBColor(222, 235, 247),
    RGBColor(198, 219, 239),
    RGBColor(158, 202, 225),
    RGBColor(107, 174, 214),
    RGBColor(66, 146, 198),
    RGBColor(33, 113, 181),
    RGBColor(8, 81, 156),
    RGBColor(8, 48, 107),
];

/// The shade of a value from 0 (light) to 1 (dark), interpolated between the nine; values outside have that of the
/// nearest end.
pub(super) fn shade(value: f64) -> RGBColor {
    let at = value.clamp(0.0, 1.0) * (SHADES.len() - 1) as f64;
    let low = (at as usize).min(SHADES.len() - 2);
    let share = at - low as f64;
    let [from, to] = [SHADES[low], SHADES[low + 1]];
    let mix = |from: u8, to: u8| (f64::from(from) + share * (f64::from(to) - f64::from(from))).round() as u8;
    RGBColor(mix(from.0, to.0), mix(from.1, to.1), mix(from.2, to.2))
}

/// Dash pattern of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Dash {
    Solid,
    Dashed,
    Dotted,
}

impl Dash {
    /// Lengths of dash and gap in pixels; none for a solid line.
    pub(super) fn pattern(self) -> Option<[f64; 2]> {
        match self {
            Dash::Solid => None,
            Dash::Dashed => Some([11.0, 6.0]),
            Dash::Dotted => Some([3.0, 5.0]),
        }
    }
}

/// The pen of a line.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Pen {
    pub(super) colour: RGBAColor,
    /// Width in pixels.
    pub(super) width: f64,
    pub(super) dash: Dash,
}

impl Pen {
    /// A solid pen.
    pub(super) fn solid(colour: impl Color, width: f64) -> Self {
        Pen {
            colour: colour.to_rgba(),
            width,
            dash: Dash::Solid,
        }
    }

    /// Thin, in the colour of this policy.
    pub(super) fn policy(policy: usize, opacity: f64) -> Self {
        let dash = [Dash::Solid, Dash::Dashed, Dash::Dotted][policy / PALETTE.len() % 3];
        Pen {
            colour: colour(policy).mix(opacity),
            width: 1.8,
            dash,
        }
    }

    /// Grey, for areas; the width is that of its sample in a legend.
    pub(super) fn range() -> Self {
        Pen::solid(MEAN.mix(0.08), 12.0)
    }

    /// Thick and black.
    pub(super) fn mean() -> Self {
        Pen::solid(MEAN, 3.6)
    }

    /// Wide and pale green.
    pub(super) fn best() -> Self {
        Pen::solid(BEST.mix(0.35), 8.0)
    }

    /// Thin, dashed and black.
    pub(super) fn level() -> Self {
        Pen {
            dash: Dash::Dashed,
            ..Pen::solid(MEAN, 1.8)
        }
    }
}

/// The colour of a policy.
pub(super) fn colour(policy: usize) -> RGBColor {
    PALETTE[policy % PALETTE.len()]
}

/// Corners of the end marker of a policy around (0, 0), at about distance 1, y downwards.
pub(super) fn marker(policy: usize) -> Vec<[f64; 2]> {
    let polygon = |corners: usize, first_turn: f64, radius: f64| {
        (0..corners)
            .map(|corner| {
                let angle = std::f64::consts::TAU * (first_turn + corner as f64 / corners as f64);
                [radius * angle.cos(), radius * angle.sin()]
            })
            .collect()
    };
    // Radii differ so that all look equally large.
    match (policy % 5 + policy / PALETTE.len()) % 5 {
        0 => polygon(24, 0.0, 0.95),
        1 => polygon(4, 0.125, 1.15),
        2 => polygon(3, 0.75, 1.3),
        3 => polygon(4, 0.0, 1.25),
        _ => polygon(3, 0.25, 1.3),
    }
}

/// The font at this height in pixels of the drawing surface. Registers it on first use.
pub(super) fn font(height: f64) -> Result<FontDesc<'static>> {
    // The name is also what the SVG requests from its viewer, so it ends with a family that every viewer has.
    const FAMILY: &str = "DejaVu Sans, sans-serif";
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    if !REGISTERED.get_or_init(|| register_font(FAMILY, FontStyle::Normal, dejavu::sans::regular()).is_ok()) {
        return Err(Error::failed(
            "the built-in font DejaVu Sans cannot be read; build the program again",
        ));
    }
    Ok(FontDesc::new(FontFamily::Name(FAMILY), height, FontStyle::Normal))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Machado, Oliveira and Fernandes 2009, severity 1, on linear RGB: full vision, then protan-, deuter-, tritanopia.
    const VISIONS: [[[f64; 3]; 3]; 4] = [
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]],
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ],
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ],
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ],
    ];

    fn linear(RGBColor(red, green, blue): RGBColor) -> [f64; 3] {
        [red, green, blue].map(|channel| {
            let value = f64::from(channel) / 255.0;
            if value <= 0.04045 {
                value / 12.92
            } else {
                ((value + 0.055) / 1.055).powf(2.4)
            }
        })
    }

    fn apply(matrix: [[f64; 3]; 3], colour: [f64; 3]) -> [f64; 3] {
        matrix.map(|row| (row[0] * colour[0] + row[1] * colour[1] + row[2] * colour[2]).clamp(0.0, 1.0))
    }

    fn lab(rgb: [f64; 3]) -> [f64; 3] {
        let xyz = apply(
            [
                [0.4339, 0.3763, 0.1899],
                [0.2126, 0.7152, 0.0722],
                [0.0177, 0.1095, 0.8728],
            ],
            rgb,
        );
        let [x, y, z] = xyz.map(|t| {
            if t > 0.008856 {
                t.cbrt()
            } else {
                7.787 * t + 16.0 / 116.0
            }
        });
        [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
    }

    #[test]
    fn colours_stay_apart_for_colour_blind_people() {
        for vision in VISIONS {
            let seen: Vec<_> = PALETTE
                .iter()
                .chain([&MEAN])
                .map(|&colour| lab(apply(vision, linear(colour))))
                .collect();
            for (first, a) in seen.iter().enumerate() {
                for (second, b) in seen.iter().enumerate().skip(first + 1) {
                    let distance = a.iter().zip(b).map(|(a, b)| (a - b) * (a - b)).sum::<f64>().sqrt();
                    assert!(distance > 19.0, "colours {first} and {second}: {distance}");
                }
            }
        }
    }

    #[test]
    fn shades_darken_evenly_for_every_vision() {
        assert_eq!([shade(-1.0), shade(0.0)], [SHADES[0]; 2]);
        assert_eq!([shade(1.0), shade(2.0)], [SHADES[8]; 2]);
        assert_eq!(shade(0.5), SHADES[4]);
        for vision in VISIONS {
            let lightness = |value: f64| lab(apply(vision, linear(shade(value))))[0];
            let steps: Vec<f64> = (0..=20).map(|step| lightness(f64::from(step) / 20.0)).collect();
            for pair in steps.windows(2) {
                assert!(pair[0] - pair[1] > 1.0, "{steps:?}");
            }
        }
    }

    #[test]
    fn colours_can_be_seen_on_white() {
        for colour in PALETTE.iter().chain([&BEST, &START]) {
            let [red, green, blue] = linear(*colour);
            let contrast = 1.05 / (0.2126 * red + 0.7152 * green + 0.0722 * blue + 0.05);
            assert!(contrast > 2.0, "{colour:?}: {contrast}");
        }
    }

    #[test]
    fn the_first_thirty_policies_look_different() {
        for a in 0..30 {
            for b in 0..a {
                assert_ne!(Pen::policy(a, 1.0), Pen::policy(b, 1.0), "policies {a} and {b}");
            }
            assert_ne!(marker(a), marker(a + 10), "policies {a} and {}", a + 10);
        }
    }
}
