//! Figures as data: what a task or a run describes, and a page draws.

/// A picture, described by its data.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Figure {
    /// Paths over a map of walls.
    Map(Map),
    /// Curves over a common axis.
    Lines(Lines),
    /// Histograms, one row a policy.
    Ridges(Ridges),
    /// Square matrices in colours.
    Heatmap(Heatmap),
}

/// Paths over a map, seen from above or from the side: a unit is equally long on both axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// Heading.
    pub title: String,
    /// Labels of the horizontal and of the vertical axis.
    pub axes: [String; 2],
    /// What is drawn: [x least, y least, x largest, y largest].
    pub bounds: [f64; 4],
    /// Solid rectangles, each as in `bounds`.
    pub walls: Vec<[f64; 4]>,
    /// Where episodes begin.
    pub start: [f64; 2],
    /// The goal circle: x, y, radius.
    pub goal: [f64; 3],
    /// The ways that policies went.
    pub paths: Vec<Trail>,
    /// Texts at places of the map (names of ways, say).
    pub labels: Vec<([f64; 2], String)>,
}

/// The path of one episode over a [`Map`].
#[derive(Clone, Debug, PartialEq)]
pub struct Trail {
    /// Number of the policy.
    pub policy: usize,
    /// Its points.
    pub points: Vec<[f64; 2]>,
    /// Whether the episode failed: then the marker of its end is hollow. False where a task knows no success.
    pub failed: bool,
}

/// Curves over a common horizontal axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Lines {
    /// Heading.
    pub title: String,
    /// Label of the horizontal axis.
    pub x: String,
    /// Label of the vertical axis.
    pub y: String,
    /// The curves, first ones drawn first.
    pub curves: Vec<Curve>,
}

/// One curve of [`Lines`].
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// Its name in the legend; none for the many thin curves that share one entry.
    pub name: Option<String>,
    /// How it looks.
    pub style: CurveStyle,
    /// Its points.
    pub points: Vec<[f64; 2]>,
}

/// How a curve looks.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum CurveStyle {
    /// Thin, in the colour of this policy.
    Policy(usize),
    /// Filled and faint, in the colour of this number: an area, whose outline the points are.
    Band(usize),
    /// Filled and grey: the area between the worst and the best.
    Range,
    /// Thick and black: a mean.
    Mean,
    /// Wide and pale green, so that a line over it is seen: the best.
    Best,
    /// Thin, dashed and black: a level to hold curves against.
    Level,
}

/// Histograms over the same bars, one row a policy; the largest bar of each is nearly as high as its row.
#[derive(Clone, Debug, PartialEq)]
pub struct Ridges {
    /// Heading.
    pub title: String,
    /// Label of the horizontal axis.
    pub x: String,
    /// What the height of a bar is.
    pub height: String,
    /// Where the first bar begins.
    pub low: f64,
    /// Width of a bar.
    pub width: f64,
    /// Heights of the bars of each policy.
    pub rows: Vec<Vec<f64>>,
}

/// Square matrices of numbers from 0 to 1 beside each other, row 0 on top.
#[derive(Clone, Debug, PartialEq)]
pub struct Heatmap {
    /// Heading.
    pub title: String,
    /// What a column is.
    pub columns: String,
    /// What a row is.
    pub rows: String,
    /// What the colours show.
    pub scale: String,
    /// The matrices, from left to right.
    pub panels: Vec<Panel>,
}

/// One matrix of a [`Heatmap`].
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Its title.
    pub title: String,
    /// Its n·n values, row after row; a NaN is drawn grey.
    pub values: Vec<f64>,
}

impl Figure {
    /// Adds a text to the end of the heading.
    pub fn add_to_title(&mut self, text: &str) {
        let title = match self {
            Figure::Map(map) => &mut map.title,
            Figure::Lines(lines) => &mut lines.title,
            Figure::Ridges(ridges) => &mut ridges.title,
            Figure::Heatmap(heatmap) => &mut heatmap.title,
        };
        title.push_str(text);
    }
}
