//! Pictures of a robot: MuJoCo's renderer without a window, through EGL.
//!
//! The stage has a model of its own, so nothing here touches physics. Its camera follows the robot along x but not up and
//! down, from the side and a little from above; its ground has no end.
//!
//! EGL is looked for when a stage is made, not when the program starts: machines without it do everything else.

use mujoco_rs::prelude::{MjData, MjModel, MjSpec, MjvCamera};
use mujoco_rs::renderer::{MjRenderer, RendererError};
use stein::env::Stage;
use stein::{Error, Result};

use crate::simulation;

/// Name of the plane that robots stand on.
const GROUND: &str = "ground";

/// What the camera looks at and from how far.
#[derive(Clone, Copy, Debug)]
pub(crate) struct View {
    /// Height of the middle of the picture, in metres.
    pub height: f64,
    /// Distance of the camera, in metres.
    pub distance: f64,
}

/// A robot before the camera.
pub(crate) struct RobotStage {
    data: MjData<Box<MjModel>>,
    renderer: MjRenderer,
    view: View,
    step_time: f64,
}

impl RobotStage {
    /// A stage for a model in MuJoCo's XML, of which `frames` steps of the integrator are one step of the world.
    pub fn new(xml: &str, frames: usize, view: View, width: u32, height: u32) -> Result<Self> {
        simulation::prepare()?;
        let model = dressed(xml, width, height)
            .map_err(|error| Error::failed(format!("the model cannot be compiled: {error}")))?;
        let step_time = model.opt().timestep * frames as f64;
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
        let mut camera = MjvCamera::default();
        camera.lookat = [pose[0], 0.0, self.view.height];
        camera.distance = self.view.distance;
        camera.azimuth = 90.0;
        camera.elevation = -12.0;
        self.renderer.set_camera(camera);
        self.renderer
            .sync_data(&mut self.data)
            .map_err(|error| cannot_draw(&error))?;
        self.renderer.render().map_err(|error| cannot_draw(&error))?;
        if let Some(rgb) = self.renderer.rgb_flat() {
            pixels.copy_from_slice(rgb);
        }
        Ok(())
    }
}

/// The model for pictures of this size: the ground goes on for ever, and the picture is drawn with soft edges.
fn dressed(xml: &str, width: u32, height: u32) -> std::result::Result<MjModel, mujoco_rs::error::MjEditError> {
    let mut spec = MjSpec::from_xml_string(xml)?;
    if let Some(ground) = spec.geom_mut(GROUND) {
        // A plane of size 0 is one that is drawn up to the horizon.
        *ground.size_mut() = [0.0, 0.0, 1.0];
    }
    let mut model = spec.compile()?;
    let vis = model.vis_mut();
    vis.global.offwidth = width as i32;
    vis.global.offheight = height as i32;
    vis.quality.offsamples = 4;
    vis.quality.shadowsize = 2048;
    Ok(model)
}

/// The sentence about a renderer that does not work.
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
