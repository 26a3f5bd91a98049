//! A page to draw on, measured in pixels, over any backend of `plotters`.
//!
//! Backends take integers, so the page is drawn [`SCALE`] times too large to place points at fractions of a pixel; the
//! writers of PNG and SVG scale it back.

use plotters::coord::Shift;
use plotters::element::{Circle, PathElement, Polygon, Rectangle, Text};
use plotters::prelude::{DrawingArea, DrawingBackend, IntoDrawingArea};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontTransform, RGBColor, ShapeStyle, TextStyle, WHITE};

use std::f64::consts::{FRAC_PI_2, TAU};

use super::style::{self, INK, Pen, TITLE};
use crate::error::{Error, Result};

/// Units of the backend per pixel.
pub(super) const SCALE: u32 = 4;

/// A point of the page: pixels from the left, pixels from the top.
pub(super) type Point = [f64; 2];

/// Where a text is relative to its point. Letters are centred on the point across the reading direction.
#[derive(Clone, Copy, Debug)]
pub(super) enum Anchor {
    /// Starts at the point.
    Left,
    /// Ends at the point.
    Right,
    /// Centred on the point.
    Centre,
    /// Centred on the point, read upwards.
    Upwards,
}

/// The page.
pub(super) struct Page<DB: DrawingBackend> {
    area: DrawingArea<DB, Shift>,
    text_drop: f64,
}

impl<DB: DrawingBackend> Page<DB> {
    /// A white page on this backend. Backends disagree about the middle of a text: each gives the fraction of the text
    /// height by which text must be moved down.
    pub(super) fn new(backend: DB, text_drop: f64) -> Result<Self> {
        let area = backend.into_drawing_area();
        area.fill(&WHITE).map_err(failed)?;
        Ok(Page { area, text_drop })
    }

    /// Finishes the drawing.
    pub(super) fn finish(self) -> Result<()> {
        self.area.present().map_err(failed)
    }

    /// Width and height.
    pub(super) fn size(&self) -> [f64; 2] {
        let (width, height) = self.area.dim_in_pixel();
        [f64::from(width / SCALE), f64::from(height / SCALE)]
    }

    /// A line through these points, all of which must be finite.
    pub(super) fn line(&self, points: &[Point], pen: Pen) -> Result<()> {
        match pen.dash.pattern() {
            None => self.stroke(points, pen),
            Some(pattern) => dashes(points, pattern)
                .iter()
                .try_for_each(|dash| self.stroke(dash, pen)),
        }
    }

    /// A continuous line. Thick ones have round joints; in thin ones they would be invisible, in transparent ones they
    /// would show as dots.
    fn stroke(&self, points: &[Point], pen: Pen) -> Result<()> {
        let style = ShapeStyle::from(pen.colour).stroke_width(units(pen.width) as u32);
        let pieces = gentle(points);
        for (index, piece) in pieces.iter().enumerate() {
            let path: Vec<_> = piece.iter().map(place).collect();
            self.area.draw(&PathElement::new(path, style)).map_err(failed)?;
            if index > 0 && pen.width > 2.0 && pen.colour.alpha() == 1.0 {
                let joint = Circle::new(place(&piece[0]), units(pen.width / 2.0), pen.colour.filled());
                self.area.draw(&joint).map_err(failed)?;
            }
        }
        Ok(())
    }

    /// A filled rectangle between two corners.
    pub(super) fn rectangle(&self, corners: [Point; 2], colour: impl Color) -> Result<()> {
        let [[left, top], [right, bottom]] = corners;
        let corners = [
            place(&[left.min(right), top.min(bottom)]),
            place(&[left.max(right), top.max(bottom)]),
        ];
        self.area
            .draw(&Rectangle::new(corners, colour.filled()))
            .map_err(failed)
    }

    /// A filled polygon without an outline.
    pub(super) fn area(&self, corners: &[Point], colour: impl Color) -> Result<()> {
        let corners: Vec<_> = corners.iter().map(place).collect();
        self.area.draw(&Polygon::new(corners, colour.filled())).map_err(failed)
    }

    /// A filled disc with an outline.
    pub(super) fn disc(&self, centre: Point, radius: f64, fill: impl Color, outline: impl Color) -> Result<()> {
        for (radius, colour) in [(radius, outline.to_rgba()), (radius - 1.5, fill.to_rgba())] {
            self.area
                .draw(&Circle::new(place(&centre), units(radius), colour.filled()))
                .map_err(failed)?;
        }
        Ok(())
    }

    /// A single point of a curve drawn with this pen.
    pub(super) fn dot(&self, centre: Point, pen: Pen) -> Result<()> {
        self.disc(centre, 1.2 * pen.width + 2.0, pen.colour, pen.colour)
    }

    /// The outline of a circle.
    pub(super) fn ring(&self, centre: Point, radius: f64, pen: Pen) -> Result<()> {
        let angles = (0..=72).map(|part| TAU * f64::from(part) / 72.0);
        let points: Vec<Point> = angles
            .map(|angle| [centre[0] + radius * angle.cos(), centre[1] + radius * angle.sin()])
            .collect();
        self.line(&points, pen)
    }

    /// The end marker of a policy: filled or hollow, with a white rim as contrast.
    pub(super) fn marker(&self, centre: Point, radius: f64, policy: usize, hollow: bool) -> Result<()> {
        let shape = style::marker(policy);
        let inner = if hollow { 0.6 * radius } else { 0.0 };
        for (radius, colour) in [(radius + 1.2, WHITE), (radius, style::colour(policy)), (inner, WHITE)] {
            let corner = |[x, y]: &Point| [centre[0] + radius * x, centre[1] + radius * y];
            if radius > 0.0 {
                self.area(&shape.iter().map(corner).collect::<Vec<_>>(), colour)?;
            }
        }
        Ok(())
    }

    /// A text of this height in dark ink.
    pub(super) fn text(&self, text: &str, point: Point, height: f64, anchor: Anchor) -> Result<()> {
        self.coloured_text(text, point, height, anchor, INK)
    }

    /// The same in another colour.
    pub(super) fn coloured_text(
        &self,
        text: &str,
        point: Point,
        height: f64,
        anchor: Anchor,
        colour: RGBColor,
    ) -> Result<()> {
        let drop = self.text_drop * height;
        let (horizontal, transform, shift) = match anchor {
            Anchor::Left => (HPos::Left, FontTransform::None, [0.0, drop]),
            Anchor::Right => (HPos::Right, FontTransform::None, [0.0, drop]),
            Anchor::Centre => (HPos::Center, FontTransform::None, [0.0, drop]),
            Anchor::Upwards => (HPos::Center, FontTransform::Rotate270, [drop, 0.0]),
        };
        let point = [point[0] + shift[0], point[1] + shift[1]];
        let font = style::font(height * f64::from(SCALE))?.transform(transform);
        let style = TextStyle::from(font)
            .color(&colour)
            .pos(Pos::new(horizontal, VPos::Center));
        self.area
            .draw(&Text::new(text.to_owned(), place(&point), style))
            .map_err(failed)
    }
}

/// Width of a text of this height.
pub(super) fn text_width(text: &str, height: f64) -> Result<f64> {
    let (width, _) = style::font(height * f64::from(SCALE))?
        .box_size(text)
        .map_err(|error| Error::failed(format!("cannot measure the text '{text}' of a figure: {error}")))?;
    Ok(f64::from(width) / f64::from(SCALE))
}

/// The text on one line, without control characters, cut with an ellipsis if it is wider than `width`.
pub(super) fn fit(text: &str, height: f64, width: f64) -> Result<String> {
    let mut fitted: String = text
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect();
    if text_width(&fitted, height)? > width {
        while !fitted.is_empty() && text_width(&format!("{fitted}…"), height)? > width {
            fitted.pop();
        }
        fitted.truncate(fitted.trim_end().len());
        fitted.push('…');
    }
    Ok(fitted)
}

/// A title on one line and the height of its letters: smaller if it is wider than `width`, cut if that is not enough.
pub(super) fn heading(text: &str, width: f64) -> Result<(String, f64)> {
    let share = 0.99 * width / text_width(text, TITLE)?.max(1.0);
    let letters = TITLE * share.clamp(0.7, 1.0);
    Ok((fit(text, letters, width)?, letters))
}

fn units(length: f64) -> i32 {
    (length * f64::from(SCALE)).round() as i32
}

fn place(point: &Point) -> (i32, i32) {
    (units(point[0]), units(point[1]))
}

fn failed(error: impl std::fmt::Display) -> Error {
    Error::failed(format!("cannot draw a figure: {error}"))
}

/// Cuts a line where it has turned by more than a right angle, and drops points that make no visible difference.
///
/// Backends draw pointed joints, which stick out far beyond the data at sharp turns of a noisy curve. And the bitmap
/// backend leaves holes where a line crosses itself, which a line that has turned by less than two right angles cannot.
fn gentle(points: &[Point]) -> Vec<Vec<Point>> {
    const CLOSE: f64 = 0.5;
    let Some((&first, rest)) = points.split_first() else {
        return Vec::new();
    };
    let mut pieces = Vec::new();
    let mut piece = vec![first];
    let mut turned = 0.0;
    let mut heading = None;
    for (index, &point) in rest.iter().enumerate() {
        let from = piece[piece.len() - 1];
        let step = [point[0] - from[0], point[1] - from[1]];
        let length = (step[0] * step[0] + step[1] * step[1]).sqrt();
        if length == 0.0 || (length < CLOSE && index + 1 < rest.len()) {
            continue;
        }
        let next = step[1].atan2(step[0]);
        if let Some(heading) = heading {
            let turn = f64::abs(next - heading);
            turned += turn.min(TAU - turn);
        }
        if turned > FRAC_PI_2 {
            pieces.push(std::mem::replace(&mut piece, vec![from]));
            turned = 0.0;
        }
        piece.push(point);
        heading = Some(next);
    }
    if piece.len() > 1 {
        pieces.push(piece);
    }
    pieces
}

/// Cuts a line into strokes of the first length with gaps of the second.
fn dashes(points: &[Point], pattern: [f64; 2]) -> Vec<Vec<Point>> {
    let mut strokes = Vec::new();
    let mut stroke = points.first().map(|&point| vec![point]).unwrap_or_default();
    let mut part = 0;
    let mut left = pattern[part];
    for pair in points.windows(2) {
        let [from, to] = [pair[0], pair[1]];
        let length = ((to[0] - from[0]).powi(2) + (to[1] - from[1]).powi(2)).sqrt();
        let mut done = 0.0;
        while length - done > left {
            done += left;
            let share = done / length;
            let point = [from[0] + share * (to[0] - from[0]), from[1] + share * (to[1] - from[1])];
            if part == 0 {
                stroke.push(point);
                strokes.push(std::mem::take(&mut stroke));
            } else {
                stroke = vec![point];
            }
            part = 1 - part;
            left = pattern[part];
        }
        left -= length - done;
        if part == 0 {
            stroke.push(to);
        }
    }
    if stroke.len() > 1 {
        strokes.push(stroke);
    }
    strokes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_alternate_along_the_line_and_round_its_corners() {
        let strokes = dashes(&[[0.0, 0.0], [5.0, 0.0], [5.0, 6.0]], [4.0, 2.0]);
        assert_eq!(strokes, [vec![[0.0, 0.0], [4.0, 0.0]], vec![[5.0, 1.0], [5.0, 5.0]]]);
        let bent = dashes(&[[0.0, 0.0], [3.0, 0.0], [3.0, 3.0]], [4.0, 2.0]);
        assert_eq!(bent, [vec![[0.0, 0.0], [3.0, 0.0], [3.0, 1.0]]]);
        assert!(dashes(&[], [4.0, 2.0]).is_empty());
        assert!(dashes(&[[1.0, 1.0]], [4.0, 2.0]).is_empty());
    }

    #[test]
    fn lines_are_cut_at_sharp_turns_only() {
        let bend = [[0.0, 0.0], [10.0, 0.0], [20.0, 5.0], [25.0, 15.0]];
        assert_eq!(gentle(&bend), [bend.to_vec()]);
        let zigzag = [[0.0, 0.0], [10.0, 50.0], [20.0, 0.0]];
        assert_eq!(gentle(&zigzag), [zigzag[..2].to_vec(), zigzag[1..].to_vec()]);
        let circle: Vec<_> = (0..=36)
            .map(|i| f64::from(i) * TAU / 36.0)
            .map(|t| [9.0 * t.cos(), 9.0 * t.sin()])
            .collect();
        assert_eq!(gentle(&circle).len(), 4);
    }

    #[test]
    fn points_on_the_same_spot_are_left_out_but_the_ends_stay() {
        let points = [[0.0, 0.0], [0.1, 0.0], [5.0, 0.0], [5.0, 0.0], [5.1, 0.0]];
        assert_eq!(gentle(&points), [vec![[0.0, 0.0], [5.0, 0.0], [5.1, 0.0]]]);
        assert!(gentle(&[[1.0, 1.0], [1.0, 1.0]]).is_empty());
        assert!(gentle(&[]).is_empty());
    }

    #[test]
    fn headings_shrink_before_they_are_cut() {
        let text = "Velocities of all policies";
        let width = text_width(text, TITLE).unwrap();
        assert_eq!(heading(text, 2.0 * width).unwrap(), (text.into(), TITLE));
        let (whole, letters) = heading(text, 0.8 * width).unwrap();
        assert!(whole == text && letters < TITLE && text_width(&whole, letters).unwrap() <= 0.8 * width);
        let (cut, letters) = heading(text, 0.5 * width).unwrap();
        assert!(cut.ends_with('…') && letters == 0.7 * TITLE, "{cut} {letters}");
    }

    #[test]
    fn long_texts_are_cut_to_the_width() {
        assert_eq!(fit("short\ntext", 20.0, 500.0).unwrap(), "short text");
        let cut = fit("a very long text that cannot fit", 20.0, 100.0).unwrap();
        assert!(cut.ends_with('…') && cut.starts_with("a very"), "{cut}");
        assert!(text_width(&cut, 20.0).unwrap() <= 100.0);
    }
}
