//! Drawing of [`Lines`]: learning curves.

use plotters::prelude::DrawingBackend;

use super::frame::{Axis, Entry, Frame, Sample, Window, drawable};
use super::page::{Page, Point};
use super::style::Pen;
use crate::error::Result;
use crate::plot::{Curve, CurveStyle, Lines};

/// Draws the curves on the page.
pub(super) fn draw<DB: DrawingBackend>(lines: &Lines, page: &Page<DB>) -> Result<()> {
    let pieces: Vec<_> = lines.curves.iter().map(|curve| unbroken(&curve.points)).collect();
    let values = |axis: usize| {
        pieces
            .iter()
            .flatten()
            .flat_map(|piece| piece.iter())
            .map(move |point| point[axis])
    };
    let frame = Frame {
        title: lines.title.clone(),
        x: Axis::around(&lines.x, values(0)),
        y: Axis {
            whole: values(1).all(|value| value.fract() == 0.0),
            ..Axis::around(&lines.y, values(1))
        },
        equal: false,
        legend: lines.curves.iter().filter_map(entry).collect(),
    };
    let window = frame.draw(page)?;
    for (curve, pieces) in lines.curves.iter().zip(&pieces) {
        for piece in pieces {
            if let CurveStyle::Band(_) | CurveStyle::Range = curve.style {
                let outline: Vec<Point> = piece.iter().map(|point| window.place(*point)).collect();
                page.area(&outline, pen(curve.style).colour)?;
            } else {
                draw_piece(piece, pen(curve.style), &window, page)?;
            }
        }
    }
    Ok(())
}

fn pen(style: CurveStyle) -> Pen {
    match style {
        CurveStyle::Policy(policy) => Pen::policy(policy, 0.85),
        CurveStyle::Band(number) => Pen::policy(number, 0.15),
        CurveStyle::Range => Pen::range(),
        CurveStyle::Mean => Pen::mean(),
        CurveStyle::Best => Pen::best(),
        CurveStyle::Level => Pen::level(),
    }
}

fn entry(curve: &Curve) -> Option<Entry> {
    let text = curve.name.clone()?;
    let pen = pen(curve.style);
    let sample = if curve.points.len() == 1 {
        Sample::Dot(pen)
    } else {
        Sample::Line(pen, None)
    };
    Some(Entry { sample, text })
}

/// The runs of points between points that cannot be drawn.
fn unbroken(points: &[[f64; 2]]) -> Vec<&[[f64; 2]]> {
    let broken = |point: &[f64; 2]| !point.iter().all(|value| drawable(*value));
    points.split(broken).filter(|piece| !piece.is_empty()).collect()
}

/// A run of one point is drawn as a dot, because a line would be invisible.
fn draw_piece<DB: DrawingBackend>(piece: &[[f64; 2]], pen: Pen, window: &Window, page: &Page<DB>) -> Result<()> {
    let points: Vec<Point> = piece.iter().map(|point| window.place(*point)).collect();
    match points[..] {
        [point] => page.dot(point, pen),
        _ => page.line(&points, pen),
    }
}
