//! Films of an ensemble: one episode of each policy, side by side and in real time.
//!
//! [`record`] runs the episodes and keeps what can be seen of their states; [`Film`] draws them on the task's
//! [`Stage`]; [`encode`] makes a GIF or an animated PNG of it. [`Film::strip`] shows a few moments in one picture.

mod encode;
mod palette;
mod picture;

pub use encode::{Format, encode, png};
pub use picture::Picture;

use crate::env::{Stage, Task};
use crate::error::{Error, Result};
use crate::plot::caption;
use crate::policy::ensemble::Ensemble;
use crate::policy::evaluate::Performer;

/// Moments of a film strip.
const MOMENTS: usize = 6;
/// White pixels between pictures.
const GAP: u32 = 4;
/// How long the end of the last episode stays to be seen, in seconds.
const AFTERGLOW: f64 = 1.0;
/// Sides of one policy's picture in pixels.
const SIDES: std::ops::RangeInclusive<u32> = 32..=4096;
/// Longest side of a film in pixels.
const LARGEST: u32 = 16384;

/// How a film is made.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct FilmConfig {
    /// Longest time shown, in seconds.
    pub seconds: f64,
    /// Pictures per second.
    pub rate: u32,
    /// Width of the picture of one policy in pixels.
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
    /// Refuses what cannot be filmed. The sentences name the flags of `stein video`.
    pub fn validate(&self) -> Result<()> {
        if !(0.01..=600.0).contains(&self.seconds) {
            return Err(Error::input(format!(
                "--seconds {} is out of range: choose 0.01 to 600",
                self.seconds
            )));
        }
        // Players slow a GIF down that has more than 50.
        if !(1..=50).contains(&self.rate) {
            return Err(Error::input(format!(
                "--fps {} is out of range: choose 1 to 50 pictures per second",
                self.rate
            )));
        }
        if !SIDES.contains(&self.width) || !SIDES.contains(&self.height) {
            return Err(Error::input(format!(
                "--size {}x{} is out of range: choose sides of {} to {} pixels, as in 240x180",
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

/// What a film shows of one policy.
#[derive(Clone, Debug, PartialEq)]
pub struct Take {
    /// Number of the policy.
    pub policy: usize,
    /// Return of the whole episode.
    pub total: f64,
    /// What came of it in the task's words.
    pub outcome: Option<String>,
    /// Whether the episode ended by itself.
    pub terminated: bool,
    /// What can be seen of each of its T+1 states.
    pub poses: Vec<Vec<f64>>,
}

/// Runs the first evaluation episode of a policy by its mean actions.
pub fn record(ensemble: &Ensemble, policy: usize, task: &dyn Task, seed: u64) -> Result<Take> {
    let mut poses = Vec::new();
    let mut performer = Performer::new(ensemble, policy, task, seed)?;
    let episode = performer.episode(0, false, |env| poses.push(env.pose().to_vec()))?;
    Ok(Take {
        policy,
        total: episode.total(),
        outcome: task.outcome(&episode),
        terminated: episode.terminated,
        poses,
    })
}

impl Take {
    /// What stands over its pictures; the short form leaves out the word for the return.
    fn caption(&self, short: bool) -> String {
        let decimals = if self.total.abs() < 100.0 { 1 } else { 0 };
        let between = if short { ":" } else { ", return" };
        let outcome = self
            .outcome
            .as_ref()
            .map_or(String::new(), |words| format!(", {words}"));
        format!("policy {}{between} {:.decimals$}{outcome}", self.policy, self.total)
    }

    /// What stands over its last picture; `step` is the time of a step.
    fn ending(&self, step: f64) -> String {
        let time = self.poses.len().saturating_sub(1) as f64 * step;
        match self.terminated {
            true => format!("ended at {time:.2} s"),
            false => format!("time limit at {time:.2} s"),
        }
    }
}

/// Takes on a stage: a film whose pictures can be drawn one after the other.
pub struct Film {
    config: FilmConfig,
    stage: Box<dyn Stage>,
    rows: Vec<Row>,
    columns: usize,
    frames: usize,
    /// Pictures until the longest episode has ended.
    lively: usize,
}

/// One take with what is drawn once only.
struct Row {
    take: Take,
    caption: Picture,
    /// Said over its last picture.
    ending: Picture,
    /// The state drawn last and its picture.
    drawn: Option<(usize, Picture)>,
}

impl Film {
    /// A film of these takes, of which there is at least one. The stage must be one for pictures of the config's size.
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
        // The small number keeps 0.3 s at 10 per second from being 4 pictures.
        let frames = ((length * f64::from(config.rate) - 1e-6).ceil() as usize).max(1);
        let columns = (1..).find(|side| side * side >= takes.len()).unwrap_or(1);
        // One form for all: a film in which some captions have a word more looks as if the numbers were others.
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
                "a film of {} policies at --size {}x{} is too large: choose a smaller --size, or one policy with --policy",
                film.rows.len(),
                config.width,
                config.height
            )));
        }
        Ok(film)
    }

    /// Number of pictures.
    pub fn frames(&self) -> usize {
        self.frames
    }

    /// Pictures per second.
    pub fn rate(&self) -> u32 {
        self.config.rate
    }

    /// Width and height of a picture: a grid of policies, as square as it can be.
    pub fn size(&self) -> [u32; 2] {
        let (columns, rows) = (self.columns as u32, self.rows.len().div_ceil(self.columns) as u32);
        let [width, height] = self.cell();
        [columns * (width + GAP) - GAP, rows * (height + GAP) - GAP]
    }

    /// Width and height of one policy with its caption.
    fn cell(&self) -> [u32; 2] {
        [self.config.width, self.config.line() + self.config.height]
    }

    /// Draws picture number `frame`.
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

    /// Numbers of the pictures that the film strip shows.
    fn moments(&self) -> Vec<usize> {
        let count = MOMENTS.min(self.lively);
        let last = self.lively - 1;
        (0..count).map(|moment| (moment * last) / (count - 1).max(1)).collect()
    }

    /// A film strip: one row a policy, moments from left to right.
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

    /// One policy at the time of picture number `frame`. An episode that has ended shows its last state, faded where it
    /// ended by itself.
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
