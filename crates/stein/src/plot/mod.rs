//! Pictures: plain data ([`Figure`]) that a task or a run describes, drawn as PNG and SVG by `draw`.
//!
//! The data is always there; what draws it comes with the feature `plot`. To add a kind of figure, write its data type and its
//! variant of [`Figure`] in `figure.rs`, and its file in `drawing/` with a function `draw(&Kind, &Page<DB>)`: axes, heading and
//! legend come from `frame`, strokes and texts from `page`.

#[cfg(feature = "plot")]
pub(crate) mod drawing;
mod figure;

#[cfg(feature = "plot")]
pub use drawing::{draw, png};
pub use figure::{Curve, CurveStyle, Figure, Heatmap, Lines, Map, Panel, Ridges, Trail};
