//! Rendering of robots with MuJoCo's renderer, headless through EGL.
//!
//! The stage has its own model, so nothing here affects physics. The camera follows a runner along x but not
//! vertically, and is fixed for the arm; it looks slightly down. The ground is infinite.
//!
//! EGL is loaded when a stage is created, not at program start: machines without it can do everything else.

use mujoco_rs::prelude::{MjData, MjModel, MjSpec, MjvCamera};
use mujoco_rs::renderer::{MjRenderer, RendererError};
use stein::env::Stage;
use stein::{Error, Result};

use crate::simulation;

/// Name of the plane that robots stand on.
const GROUND: &str = "ground";

/// What the camera looks at and from what distance.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// The x coordinate of the centre of the picture, in metres; none: follows the robot (the first number of its
    /// pose).
    pub x: Option<f64>,
    /// Height of the centre of the picture.
    pub height: f64,
    /// Distance of the camera.
    pub distance: f64,
    /// Viewing direction in degrees: 90 is along y, from the right side of a runner.
    pub azimuth: f64,
    /// Its elevation in degrees; negative looks down.
    pub elevation: f64,
}

impl View {
    /// From the side, following the robot.
    pub const fn following(height: f64, distance: f64) -> View {
        View {
            x: None,
            height,
            distance,
            azimuth: 90.0,
            elevation: -12.0,
        }
    }
}

/// A robot in front of the camera.
pub(crate) struct RobotStage {
    data: MjData<Box<MjModel>>,
    renderer: MjRenderer,
    view: View,
    step_time: f64,
}

impl RobotStage {
    /// A stage for a MuJoCo XML model; `step_time` is the time per step of the world.
    pub fn new(xml: &str, step_time: f64, view: View, width: u32, height: u32) -> Result<Self> {
        simulation::prepare()?;
        let model = dressed(xml, width, height)
            .map_err(|error| Error::failed(format!("the model cannot be compiled: {error}")))?;
        let renderer =
            MjRenderer::new(&model, width as usize, height as usize, 0).map_err(|error| cannot_draw(&error))?;
        let data = MjData::try_new(Box::new(model))
            .map_err(|error| Error::failed(format!("the model cannot be compiled: {error}")))?;
        Ok(RobotStage {
            data,
            renderer,
            view,
            step_time,
        })
    }
}

impl Stage for RobotStage {
    fn step_time(&self) -> f64 {
        self.step_time
    }

    fn draw(&mut self, pose: &[f64], pixels: &mut [u8]) -> Result<()> {
        self.data.qpos_mut().copy_from_slice(pose);
        self.data.forward();
        self.renderer.set_camera(MjvCamera {
            lookat: [self.view.x.unwrap_or(pose[0]), 0.0, self.view.height],
            distance: self.view.distance,
            azimuth: self.view.azimuth,
            elevation: self.view.elevation,
            ..MjvCamera::default()
        });
        // Twice, because infinite ground is placed around the previous camera position.
        for _ in 0..2 {
            let synced = self.renderer.sync_data(&mut self.data);
            synced.map_err(|error| cannot_draw(&error))?;
        }
        self.renderer.render().map_err(|error| cannot_draw(&error))?;
        if let Some(rgb) = self.renderer.rgb_flat() {
            pixels.copy_from_slice(rgb);
        }
        Ok(())
    }
}

/// The model for pictures of this size, with infinite ground and antialiasing.
fn dressed(xml: &str, width: u32, height: u32) -> std::result::Result<MjModel, mujoco_rs::error::MjEditError> {
    let mut spec = MjSpec::from_xml_string(xml)?;
    if let Some(ground) = spec.geom_mut(GROUND) {
        // A plane of size 0 is drawn up to the horizon.
        *ground.size_mut() = [0.0, 0.0, 1.0];
    }
    let mut model = spec.compile()?;
    let vis = model.vis_mut();
    vis.global.offwidth = width as i32;
    vis.global.offheight = height as i32;
    vis.quality.offsamples = 4;
    vis.quality.shadowsize = 1024;
    // With a shadow area as small as the robot, the ground shows shadow artefacts.
    vis.map.shadowclip = 4.0;
    Ok(model)
}

/// The error for a renderer that does not work.
fn cannot_draw(error: &RendererError) -> Error {
    let cause = match error {
        RendererError::GlutinError(error) => error.to_string(),
        error => error.to_string(),
    };
    Error::failed(format!(
        "robots cannot be drawn on this machine: {}; install EGL with a driver (on Debian and Ubuntu the packages libegl1 \
         and libgl1-mesa-dri), everything else works without it",
        cause.trim_end_matches('.')
    ))
}

#[cfg(test)]
mod tests {
    use crate::HopperConfig;

    const SIZE: (u32, u32) = (64, 48);

    /// Hopper at this position. None if there is no EGL, with a message.
    fn picture(x: f64, z: f64) -> Option<Vec<u8>> {
        let rules = HopperConfig::default().rules();
        let mut stage = match rules.stage(SIZE.0, SIZE.1) {
            Ok(stage) => stage.unwrap(),
            Err(error) => {
                println!("skipped: {error}");
                return None;
            }
        };
        let mut pixels = vec![0; (3 * SIZE.0 * SIZE.1) as usize];
        stage.draw(&[x, z, 0.0, 0.0, 0.0, 0.0], &mut pixels).unwrap();
        Some(pixels)
    }

    /// Fraction of differing pixels.
    fn difference(first: &[u8], second: &[u8]) -> f64 {
        let pairs = first.chunks_exact(3).zip(second.chunks_exact(3));
        let different = pairs.filter(|(a, b)| a.iter().zip(*b).any(|(a, b)| a.abs_diff(*b) > 12));
        different.count() as f64 / f64::from(SIZE.0 * SIZE.1)
    }

    #[test]
    fn the_camera_goes_along_and_the_ground_has_no_end() {
        let Some(begin) = picture(0.0, 1.25) else { return };
        let colours: std::collections::BTreeSet<&[u8]> = begin.chunks_exact(3).collect();
        assert!(colours.len() > 50, "a picture of {} colours", colours.len());
        // Tiles are one metre wide: a fraction shifts them, one metre swaps light and dark, two give the same view.
        assert!(difference(&begin, &picture(0.25, 1.25).unwrap()) > 0.1);
        assert!(difference(&begin, &picture(1.0, 1.25).unwrap()) > 0.3);
        for x in [2.0, -4.0, 1000.0] {
            let there = difference(&begin, &picture(x, 1.25).unwrap());
            assert!(there < 0.03, "at {x}: {there}");
        }
        // The camera does not follow a jump upwards.
        let leap = difference(&begin, &picture(0.0, 1.6).unwrap());
        assert!(leap > 0.01 && leap < 0.3, "{leap}");
    }
}
