//! Pictures: plain data ([`Figure`]) that a task or a run describes, drawn as PNG and SVG.

/// A picture, described by its data.
#[derive(Clone, Debug, PartialEq)]
pub enum Figure {
    /// Paths over a map of walls.
    Map(Map),
    /// Curves over a common axis.
    Lines(Lines),
}

/// Paths over a map seen from above.
#[derive(Clone, Debug, PartialEq)]
pub struct Map {
    /// Heading.
    pub title: String,
    /// What is drawn: [x least, y least, x largest, y largest].
    pub bounds: [f64; 4],
    /// Solid rectangles, each as in `bounds`.
    pub walls: Vec<[f64; 4]>,
    /// Where episodes begin.
    pub start: [f64; 2],
    /// The goal circle: x, y, radius.
    pub goal: [f64; 3],
    /// Paths with the number of the policy that went them.
    pub paths: Vec<(usize, Vec<[f64; 2]>)>,
    /// Texts at places of the map (names of ways, say).
    pub labels: Vec<([f64; 2], String)>,
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
pub enum CurveStyle {
    /// Thin, in the colour of this policy.
    Policy(usize),
    /// Thick and black: a mean.
    Mean,
    /// Thick, dashed or in a strong colour: the best.
    Best,
}
