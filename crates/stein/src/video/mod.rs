//! Videos of an ensemble: one episode per policy, side by side and in real time.
//!
//! [`record`] runs the episodes and keeps the visible part of their states; [`Film`] renders them on the task's
//! [`Stage`]; [`encode`] makes a GIF or an animated PNG. [`Film::strip`] shows a few frames in one picture.

mod encode;
mod palette;
mod picture;

pub use encode::{Format, encode, png};
pub use picture::Picture;

use crate::env::{Stage, Task};
use crate::error::{Advice, Error, Result};
use crate::plot::drawing::caption;
use crate::policy::ensemble::Ensemble;
use crate::policy::evaluate::Evaluator;

/// Frames in a film strip.
const MOMENTS: usize = 6;
/// White pixels between frames.
const GAP: u32 = 4;
/// How long the end of the last episode is shown, in seconds.
const AFTERGLOW: f64 = 1.0;
/// Longest times that can be shown, in seconds.
pub const SECONDS: std::ops::RangeInclusive<f64> = 0.01..=600.0;
/// Pictures per second: players slow a GIF down that has more than 50.
pub const RATES: std::ops::RangeInclusive<u32> = 1..=50;
/// Sides of one policy's picture in pixels.
pub const SIDES: std::ops::RangeInclusive<u32> = 32..=4096;
/// Longest side of a film in pixels.
const LARGEST: u32 = 16384;

/// Settings of a video.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilmConfig {
    /// Maximum duration, in seconds.
    pub seconds: f64,
    /// Frames per second.
    pub rate: u32,
    /// Width of one policy's frame in pixels.
    pub width: u32,
    /// Its height.
    pub height: u32,
}

impl Default for FilmConfig {
    fn default() -> Self {
        FilmConfig {
            seconds: 10.0,
            rate: 25,
            width: 240,
            height: 180,
        }
    }
}

impl FilmConfig {
    /// Refuses what cannot be filmed.
    pub fn validate(&self) -> Result<()> {
        if !SECONDS.contains(&self.seconds) {
            return Err(Error::input(format!(
                "seconds = {} is out of range: choose {} to {}",
                self.seconds,
                SECONDS.start(),
                SECONDS.end()
            )));
        }
        if !RATES.contains(&self.rate) {
            return Err(Error::input(format!(
                "rate = {} is out of range: choose {} to {} pictures per second",
                self.rate,
                RATES.start(),
                RATES.end()
            )));
        }
        if !SIDES.contains(&self.width) || !SIDES.contains(&self.height) {
            return Err(Error::input(format!(
                "a picture of {}x{} is out of range: choose sides of {} to {} pixels, as in 240x180",
                self.width,
                self.height,
                SIDES.start(),
                SIDES.end()
            )));
        }
        Ok(())
    }

    /// Height of a line of text.
    fn line(&self) -> u32 {
        (self.width / 11).clamp(12, 32)
    }
}

/// What a video shows of one policy.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Take {
    /// Number of the policy.
    pub policy: usize,
    /// Return of the whole episode.
    pub total: f64,
    /// The task's summary of the outcome.
    pub outcome: Option<String>,
    /// Whether the episode terminated.
    pub terminated: bool,
    /// The visible part of each of its T+1 states.
    pub poses: Vec<Vec<f64>>,
}

/// Runs the first evaluation episode of a policy, with mean actions.
pub fn record(ensemble: &Ensemble, policy: usize, task: &dyn Task, seed: u64) -> Result<Take> {
    let mut poses = Vec::new();
    let mut evaluator = Evaluator::new(ensemble, policy, task, seed)?;
    let episode = evaluator.episode(0, false, |env| poses.push(env.pose().to_vec()))?;
    Ok(Take {
        policy,
        total: episode.total(),
        outcome: task.outcome(&episode),
        terminated: episode.terminated,
        poses,
    })
}

impl Take {
    /// The caption of its frames; the short form omits the word "return".
    fn caption(&self, short: bool) -> String {
        let decimals = if self.total.abs() < 100.0 { 1 } else { 0 };
        let between = if short { ":" } else { ", return" };
        let outcome = self
            .outcome
            .as_ref()
            .map_or(String::new(), |words| format!(", {words}"));
        format!("policy {}{between} {:.decimals$}{outcome}", self.policy, self.total)
    }

    /// The caption of its last frame; `step` is the time per step.
    fn ending(&self, step: f64) -> String {
        let time = self.poses.len().saturating_sub(1) as f64 * step;
        match self.terminated {
            true => format!("ended at {time:.2} s"),
            false => format!("time limit at {time:.2} s"),
        }
    }
}

/// Takes on a stage: a video whose frames can be rendered one after the other.
pub struct Film {
    config: FilmConfig,
    stage: Box<dyn Stage>,
    rows: Vec<Row>,
    columns: usize,
    frames: usize,
    /// Frames until the longest episode has ended.
    lively: usize,
}

/// One take with everything that is rendered only once.
struct Row {
    take: Take,
    caption: Picture,
    /// Caption of its last frame.
    ending: Picture,
    /// The state rendered last and its frame.
    drawn: Option<(usize, Picture)>,
}

impl Film {
    /// A video of these takes, at least one. The stage must have been created for frames of the config's size.
    pub fn new(config: FilmConfig, stage: Box<dyn Stage>, takes: Vec<Take>) -> Result<Self> {
        config.validate()?;
        let step = stage.step_time();
        let longest = takes
            .iter()
            .map(|take| take.poses.len())
            .max()
            .unwrap_or(0)
            .saturating_sub(1);
        let longest = longest as f64 * step;
        let length = config.seconds.min(longest + AFTERGLOW);
        // The small constant prevents 0.3 s at 10 per second from being 4 frames.
        let frames = ((length * f64::from(config.rate) - 1e-6).ceil() as usize).max(1);
        let columns = (1..).find(|side| side * side >= takes.len()).unwrap_or(1);
        // The same form for all: with a word more in some captions, the numbers would look different in kind.
        let mut short = false;
        for take in &takes {
            short |= !caption::fits(&take.caption(false), config.width, config.line())?;
        }
        let rows: Vec<Row> = takes
            .into_iter()
            .map(|take| Row::new(take, &config, step, short))
            .collect::<Result<_>>()?;
        let film = Film {
            config,
            stage,
            rows,
            columns,
            frames,
            lively: frames.min((longest * f64::from(config.rate)).ceil() as usize + 1),
        };
        if film.size().iter().chain(&film.strip_size()).any(|&side| side > LARGEST) {
            return Err(Error::input(format!(
                "a film of {} policies with pictures of {}x{} is too large:",
                film.rows.len(),
                config.width,
                config.height
            ))
            .advise(Advice::SmallerFilm));
        }
        Ok(film)
    }

    /// Number of frames.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Frames per second.
    pub fn rate(&self) -> u32 {
        self.config.rate
    }

    /// Width and height of a frame: a grid of policies, as square as possible.
    pub fn size(&self) -> [u32; 2] {
        let (columns, rows) = (self.columns as u32, self.rows.len().div_ceil(self.columns) as u32);
        let [width, height] = self.cell();
        [columns * (width + GAP) - GAP, rows * (height + GAP) - GAP]
    }

    /// Width and height of one policy with its caption.
    fn cell(&self) -> [u32; 2] {
        [self.config.width, self.config.line() + self.config.height]
    }

    /// Renders frame number `frame`.
    pub fn draw(&mut self, frame: usize) -> Result<Picture> {
        let [width, height] = self.size();
        let mut page = Picture::white(width, height);
        let [width, height] = self.cell();
        for index in 0..self.rows.len() {
            let left = (index % self.columns) as u32 * (width + GAP);
            let top = (index / self.columns) as u32 * (height + GAP);
            page.paste(&self.rows[index].caption, left, top);
            page.paste(&self.tile(index, frame)?, left, top + self.config.line());
        }
        Ok(page)
    }

    /// Width and height of the film strip.
    fn strip_size(&self) -> [u32; 2] {
        let (moments, [width, height]) = (self.moments().len() as u32, self.cell());
        let row = height + GAP;
        [
            moments * (width + GAP) - GAP,
            self.config.line() + self.rows.len() as u32 * row,
        ]
    }

    /// Frame numbers of the film strip.
    fn moments(&self) -> Vec<usize> {
        let count = MOMENTS.min(self.lively);
        let last = self.lively - 1;
        (0..count).map(|moment| (moment * last) / (count - 1).max(1)).collect()
    }

    /// A film strip: one row per policy, time from left to right.
    pub fn strip(&mut self) -> Result<Picture> {
        let (moments, line) = (self.moments(), self.config.line());
        let [width, height] = self.strip_size();
        let mut page = Picture::white(width, height);
        let [width, height] = self.cell();
        for (column, &frame) in moments.iter().enumerate() {
            let left = column as u32 * (width + GAP);
            let time = format!("{:.2} s", frame as f64 / f64::from(self.config.rate));
            page.paste(&text(&time, None, width, line)?, left, 0);
            for index in 0..self.rows.len() {
                let top = line + index as u32 * (height + GAP);
                page.paste(&self.tile(index, frame)?, left, top + line);
                if column == 0 {
                    page.paste(&self.rows[index].caption, left, top);
                }
            }
        }
        Ok(page)
    }

    /// One policy at the time of frame `frame`. An episode that has ended shows its last state, faded if it terminated.
    fn tile(&mut self, index: usize, frame: usize) -> Result<Picture> {
        let row = &mut self.rows[index];
        let last = row.take.poses.len() - 1;
        let steps = frame as f64 / f64::from(self.config.rate) / self.stage.step_time();
        let state = (steps.round() as usize).min(last);
        let fresh = match row.drawn.take() {
            Some((drawn, picture)) if drawn == state => picture,
            _ => {
                let mut picture = Picture::white(self.config.width, self.config.height);
                self.stage.draw(&row.take.poses[state], picture.pixels_mut())?;
                picture
            }
        };
        let mut tile = fresh.clone();
        row.drawn = Some((state, fresh));
        if steps > last as f64 + 0.5 {
            if row.take.terminated {
                tile.fade();
            }
            let [left, top] = [tile.width() - row.ending.width(), tile.height() - row.ending.height()];
            tile.paste(&row.ending, left / 2, top);
        }
        Ok(tile)
    }
}

impl Row {
    fn new(take: Take, config: &FilmConfig, step: f64, short: bool) -> Result<Self> {
        let (ending, line) = (take.ending(step), config.line());
        Ok(Row {
            caption: text(&take.caption(short), Some(take.policy), config.width, line)?,
            ending: text(&ending, None, caption::width(&ending, line)?.min(config.width), line)?,
            take,
            drawn: None,
        })
    }
}

fn text(text: &str, policy: Option<usize>, width: u32, height: u32) -> Result<Picture> {
    Ok(Picture::new(width, caption::line(text, policy, width, height)?))
}

#[cfg(test)]
mod tests;
