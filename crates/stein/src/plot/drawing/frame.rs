//! What surrounds the data: title, axes with ticks, and a legend on the right.

use plotters::prelude::DrawingBackend;

use super::page::{Anchor, Page, Point, fit, heading, text_width};
use super::style::{GOAL, GRID, INK, LABEL, Pen, START, TEXT, TITLE, WALL};
use crate::error::Result;

const MARGIN: f64 = 16.0;
const SAMPLE: f64 = 30.0;
const ROW: f64 = 27.0;
const TICK: f64 = 6.0;
const GAP: f64 = 8.0;

/// A numbered axis.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    pub(super) label: String,
    pub(super) low: f64,
    pub(super) high: f64,
    /// Only integers have ticks: the axis counts something.
    pub(super) whole: bool,
}

impl Axis {
    /// An axis over these values with a margin of 5 % at both ends. Non-finite values are ignored.
    pub(super) fn around(label: &str, values: impl Iterator<Item = f64>) -> Self {
        let (mut low, mut high) = values
            .filter(|value| drawable(*value))
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| {
                (low.min(value), high.max(value))
            });
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        // A constant gets room for ticks on both sides, even if it is so large that adding 1 has no effect.
        let least = low.abs().max(high.abs()).max(1e-300) * 1e-9;
        let margin = match high - low {
            span if span > least => 0.05 * span,
            _ if low == 0.0 => 1.0,
            _ => 0.1 * low.abs(),
        };
        Axis {
            label: label.to_owned(),
            low: low - margin,
            high: high + margin,
            whole: false,
        }
    }

    /// The distance between ticks: the smallest round one that gives at most about `most` ticks.
    fn step(&self, most: usize) -> f64 {
        let raw = (self.high - self.low) / most.max(1) as f64;
        if self.whole && raw <= 1.0 {
            return 1.0;
        }
        let power = 10f64.powi(raw.log10().floor() as i32);
        [1.0, 2.0, 5.0]
            .map(|digit| digit * power)
            .into_iter()
            .find(|step| *step >= raw * (1.0 - 1e-9))
            .unwrap_or(10.0 * power)
    }

    /// Values and labels of the ticks.
    fn ticks(&self, most: usize) -> Vec<(f64, String)> {
        let step = self.step(most);
        let largest = self.low.abs().max(self.high.abs());
        let first = (self.low / step - 1e-9).ceil();
        let last = (self.high / step + 1e-9).floor();
        let count = (last - first).clamp(0.0, 100.0) as usize;
        (0..=count)
            .map(|index| (first + index as f64) * step)
            .map(|value| (value, number(value, step, largest)))
            .collect()
    }

    /// The position of a value between `from` (the low end) and `to`.
    fn place(&self, value: f64, from: f64, to: f64) -> f64 {
        from + (value - self.low) / (self.high - self.low) * (to - from)
    }
}

/// Whether a value can be drawn: finite, and not so large that a range of such values overflows.
pub(super) fn drawable(value: f64) -> bool {
    value.abs() < 1e300
}

/// A short tick label: `20k`, `1.5M`, `0.25`. Ticks are `step` apart and none is larger than `largest`.
fn number(value: f64, step: f64, largest: f64) -> String {
    let (unit, suffix) = match largest {
        1e4..1e6 => (1e3, "k"),
        1e6..1e9 => (1e6, "M"),
        1e9..1e12 => (1e9, "G"),
        _ => (1.0, ""),
    };
    // Units must shorten: 123456 and 123457 are better than 123.456k and 123.457k.
    let (unit, suffix) = if step < 0.0099 * unit {
        (1.0, "")
    } else {
        (unit, suffix)
    };
    if value.abs() < step / 2.0 {
        return "0".to_owned();
    }
    // Enough decimals to distinguish neighbouring ticks; trailing zeros are useless on an axis.
    let trim = |text: String| match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => text,
    };
    if !(1e-3..1e12).contains(&largest) {
        let decimals = (value.abs().log10().floor() - step.log10().floor()).clamp(0.0, 12.0) as usize;
        let text = format!("{value:.decimals$e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        return format!("{}e{exponent}", trim(digits.to_owned()));
    }
    let decimals = (-(step / unit).log10().floor()).clamp(0.0, 15.0) as usize;
    format!("{}{suffix}", trim(format!("{:.decimals$}", value / unit)))
}

/// Width of the widest text.
fn widest(ticks: &[(f64, String)]) -> Result<f64> {
    let mut widest: f64 = 0.0;
    for (_, text) in ticks {
        widest = widest.max(text_width(text, TEXT)?);
    }
    Ok(widest)
}

/// A row of the legend.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    pub(super) sample: Sample,
    pub(super) text: String,
}

/// The symbol before the text of a legend row.
#[derive(Clone, Copy, Debug)]
pub(super) enum Sample {
    /// A line, with the end marker of a policy if it has one.
    Line(Pen, Option<usize>),
    /// The dot of a curve with a single point.
    Dot(Pen),
    /// The hollow marker of a failed episode.
    Hollow,
    /// The disc of the start.
    Start,
    /// The disc of the goal.
    Goal,
    /// Text only.
    Nothing,
}

/// Everything around the data.
pub(super) struct Frame {
    pub(super) title: String,
    pub(super) x: Axis,
    pub(super) y: Axis,
    /// One unit is equally long on both axes.
    pub(super) equal: bool,
    pub(super) legend: Vec<Entry>,
}

/// The part of the page that shows data.
pub(super) struct Window {
    x: Axis,
    y: Axis,
    /// Left, top, right, bottom in pixels.
    pub(super) edges: [f64; 4],
}

impl Window {
    /// The position of a data point on the page.
    pub(super) fn place(&self, point: [f64; 2]) -> Point {
        let [left, top, right, bottom] = self.edges;
        [self.x.place(point[0], left, right), self.y.place(point[1], bottom, top)]
    }

    /// Pixels per unit of the horizontal axis.
    pub(super) fn zoom(&self) -> f64 {
        (self.edges[2] - self.edges[0]) / (self.x.high - self.x.low)
    }
}

impl Frame {
    /// Draws title, axes and legend, and returns the window for the data.
    pub(super) fn draw<DB: DrawingBackend>(self, page: &Page<DB>) -> Result<Window> {
        let [width, height] = page.size();
        let legend_width = self.legend_width(0.3 * width)?;
        let top = MARGIN + TITLE + 2.0 * GAP;
        let bottom = height - MARGIN - LABEL - TEXT - GAP - TICK - GAP;
        let left = MARGIN + LABEL + GAP + widest(&self.y_ticks(bottom - top))? + GAP + TICK;
        let right = width - MARGIN - legend_width;
        let edges = if self.equal {
            self.equal_edges([left, top, right, bottom])
        } else {
            [left, top, right, bottom]
        };
        let y_ticks = self.y_ticks(edges[3] - edges[1]);
        let window = Window {
            x: self.x.clone(),
            y: self.y.clone(),
            edges,
        };

        let centre = (edges[0] + edges[2]) / 2.0;
        let (title, letters) = heading(&self.title, width - 2.0 * MARGIN)?;
        // Centred over the window if it fits, otherwise over the page.
        let half = text_width(&title, letters)? / 2.0;
        let middle = centre.clamp(MARGIN + half, (width - MARGIN - half).max(MARGIN + half));
        page.text(&title, [middle, MARGIN + TITLE / 2.0], letters, Anchor::Centre)?;

        self.draw_axes(page, &window, &y_ticks)?;
        self.draw_legend(page, edges, legend_width)?;
        Ok(window)
    }

    /// The largest window within `edges` with equal units, centred.
    fn equal_edges(&self, [left, top, right, bottom]: [f64; 4]) -> [f64; 4] {
        let [wide, high] = [self.x.high - self.x.low, self.y.high - self.y.low];
        let zoom = ((right - left) / wide).min((bottom - top) / high);
        let [spare_x, spare_y] = [(right - left - zoom * wide) / 2.0, (bottom - top - zoom * high) / 2.0];
        [left + spare_x, top + spare_y, right - spare_x, bottom - spare_y]
    }

    fn draw_axes<DB: DrawingBackend>(&self, page: &Page<DB>, window: &Window, y_ticks: &[(f64, String)]) -> Result<()> {
        let [left, top, right, bottom] = window.edges;
        let grid = Pen::solid(GRID, 1.0);
        let axis = Pen::solid(INK, 1.25);
        for (value, text) in self.x_ticks(right - left)? {
            let x = self.x.place(value, left, right);
            page.line(&[[x, top], [x, bottom]], grid)?;
            page.line(&[[x, bottom], [x, bottom + TICK]], axis)?;
            page.text(&text, [x, bottom + TICK + GAP + TEXT / 2.0], TEXT, Anchor::Centre)?;
        }
        for (value, text) in y_ticks {
            let y = self.y.place(*value, bottom, top);
            page.line(&[[left, y], [right, y]], grid)?;
            page.line(&[[left - TICK, y], [left, y]], axis)?;
            page.text(text, [left - TICK - GAP, y], TEXT, Anchor::Right)?;
        }
        page.line(&[[left, top], [left, bottom], [right, bottom]], axis)?;
        let label = fit(&self.x.label, LABEL, right - left)?;
        let y = bottom + TICK + GAP + TEXT + GAP + LABEL / 2.0;
        page.text(&label, [(left + right) / 2.0, y], LABEL, Anchor::Centre)?;
        let label = fit(&self.y.label, LABEL, bottom - top)?;
        let x = left - TICK - GAP - widest(y_ticks)? - GAP - LABEL / 2.0;
        page.text(&label, [x, (top + bottom) / 2.0], LABEL, Anchor::Upwards)
    }

    fn y_ticks(&self, height: f64) -> Vec<(f64, String)> {
        // Integers often name rows, each of which should have a tick.
        let distance = if self.y.whole { 1.4 } else { 2.5 };
        self.y.ticks((height / (distance * TEXT)) as usize)
    }

    /// As many ticks of the horizontal axis as fit.
    fn x_ticks(&self, width: f64) -> Result<Vec<(f64, String)>> {
        let mut most = 10;
        loop {
            let ticks = self.x.ticks(most);
            let mut needed = 0.0;
            for (_, text) in &ticks {
                needed += text_width(text, TEXT)? + 1.5 * TEXT;
            }
            if needed <= width || most == 1 {
                return Ok(ticks);
            }
            most -= 1;
        }
    }

    /// Width of the legend with the gap before it; 0 without a legend.
    fn legend_width(&self, most: f64) -> Result<f64> {
        let mut widest: f64 = 0.0;
        for entry in &self.legend {
            widest = widest.max(text_width(&entry.text, TEXT)?);
        }
        Ok(if self.legend.is_empty() {
            GAP
        } else {
            (widest + SAMPLE + 4.0 * GAP).min(most)
        })
    }

    fn draw_legend<DB: DrawingBackend>(&self, page: &Page<DB>, edges: [f64; 4], width: f64) -> Result<()> {
        let [_, top, right, bottom] = edges;
        let rows = ((bottom - top) / ROW).max(2.0) as usize;
        let mut entries = self.legend.clone();
        if entries.len() > rows {
            // The last one, a mean for example, explains what the others do not.
            let (hidden, last) = (entries.len() - (rows - 1), entries.pop());
            entries.truncate(rows.saturating_sub(2));
            entries.push(Entry {
                sample: Sample::Nothing,
                text: format!("{hidden} more"),
            });
            entries.extend(last);
        }
        let x = right + 2.0 * GAP;
        for (row, entry) in entries.iter().enumerate() {
            let y = top + (row as f64 + 0.5) * ROW;
            let centre = [x + SAMPLE / 2.0, y];
            match entry.sample {
                Sample::Line(pen, policy) => {
                    page.line(&[[x, y], [x + SAMPLE, y]], pen)?;
                    if let Some(policy) = policy {
                        page.marker(centre, 5.5, policy, false)?;
                    }
                }
                Sample::Dot(pen) => page.dot(centre, pen)?,
                Sample::Hollow => page.ring(centre, 4.5, Pen::solid(INK, 1.8))?,
                Sample::Start => page.disc(centre, 8.0, START, WALL)?,
                Sample::Goal => page.disc(centre, 8.0, GOAL, WALL)?,
                Sample::Nothing => {}
            }
            let text = fit(&entry.text, TEXT, width - SAMPLE - 3.0 * GAP)?;
            page.text(&text, [x + SAMPLE + GAP, y], TEXT, Anchor::Left)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ticks of an axis with room for five.
    fn ticks(low: f64, high: f64, whole: bool) -> Vec<(f64, String)> {
        let axis = Axis {
            label: String::new(),
            low,
            high,
            whole,
        };
        axis.ticks(5)
    }

    fn texts(low: f64, high: f64) -> Vec<String> {
        ticks(low, high, false).into_iter().map(|(_, text)| text).collect()
    }

    #[test]
    fn ticks_are_round_and_short() {
        assert_eq!(texts(0.0, 100_000.0), ["0", "20k", "40k", "60k", "80k", "100k"]);
        assert_eq!(texts(0.0, 2_500_000.0), ["0", "0.5M", "1M", "1.5M", "2M", "2.5M"]);
        assert_eq!(
            texts(123_456.0, 123_458.0),
            ["123456", "123456.5", "123457", "123457.5", "123458"]
        );
        assert_eq!(texts(-2.0, 2.0), ["-2", "-1", "0", "1", "2"]);
        assert_eq!(texts(0.0, 1.0), ["0", "0.2", "0.4", "0.6", "0.8", "1"]);
        assert_eq!(
            texts(100.0, 100.05),
            ["100", "100.01", "100.02", "100.03", "100.04", "100.05"]
        );
        assert_eq!(texts(-120.0, -20.0), ["-120", "-100", "-80", "-60", "-40", "-20"]);
        assert_eq!(texts(0.0, 5e-6), ["0", "1e-6", "2e-6", "3e-6", "4e-6", "5e-6"]);
        assert_eq!(texts(0.0, 2.5e15), ["0", "5e14", "1e15", "1.5e15", "2e15", "2.5e15"]);
    }

    #[test]
    fn an_axis_that_counts_has_whole_ticks() {
        let values =
            |low: f64, high: f64| -> Vec<f64> { ticks(low, high, true).into_iter().map(|(value, _)| value).collect() };
        assert_eq!(values(-0.1, 1.1), [0.0, 1.0]);
        assert_eq!(values(-0.1, 5.0), [0.0, 2.0, 4.0]);
        assert_eq!(values(-0.1, 4.5), [0.0, 1.0, 2.0, 3.0, 4.0]);
    }

    #[test]
    fn an_axis_has_five_percent_at_both_ends() {
        let axis = Axis::around("", [f64::NAN, 0.0, 10.0, f64::INFINITY].into_iter());
        assert_eq!((axis.low, axis.high), (-0.5, 10.5));
    }

    #[test]
    fn constants_extremes_and_nothing_give_an_axis_with_ticks() {
        for values in [
            vec![],
            vec![0.0],
            vec![-3.0, -3.0],
            vec![1e17, 1e17],
            vec![f64::MAX],
            vec![-9e299, 9e299],
        ] {
            let axis = Axis::around("", values.iter().copied());
            assert!(
                axis.low < axis.high && (axis.high - axis.low).is_finite(),
                "{values:?}: {axis:?}"
            );
            let ticks = axis.ticks(6);
            assert!((2..=8).contains(&ticks.len()), "{values:?}: {ticks:?}");
            let mut distinct: Vec<_> = ticks.iter().map(|(_, text)| text).collect();
            distinct.dedup();
            assert_eq!(distinct.len(), ticks.len(), "{values:?}: {ticks:?}");
        }
    }
}
