//! MuJoCo for training: a model with its state, whose steps depend only on that state and the control.
//!
//! A simulation can blow up. MuJoCo then prints a warning, writes it to a file in the working folder and resets the
//! model to its initial pose in the middle of a step. Here nothing is printed or written; [`Simulation::step`] reports
//! it, and the state is valid again.

use std::sync::Once;

use mujoco_rs::prelude::{MjData, MjLogMessage, MjModel, MjtLogLevel, set_log_handler};
use stein::{Error, Result};

/// The MuJoCo version of this crate.
pub const VERSION: &str = "3.17.0";

/// Largest velocity of a valid state, in m/s or rad/s. MuJoCo itself gives up only at 1e10.
const FASTEST: f64 = 1e4;

/// The result of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// Normal.
    Stable,
    /// The simulation blew up; the model is back in its initial pose.
    Unstable,
}

/// A model and its state.
pub struct Simulation {
    data: MjData<Box<MjModel>>,
}

impl Simulation {
    /// Compiles a MuJoCo XML model.
    pub fn new(xml: &str) -> Result<Self> {
        prepare()?;
        let broken = |error: &dyn std::fmt::Display| Error::failed(format!("the model cannot be compiled: {error}"));
        let model = MjModel::from_xml_string(xml).map_err(|error| broken(&error))?;
        let data = MjData::try_new(Box::new(model)).map_err(|error| broken(&error))?;
        Ok(Simulation { data })
    }

    /// Sets the state and clears everything else: time, contacts, the solver's warm start.
    pub fn set_state(&mut self, positions: &[f64], velocities: &[f64]) {
        self.data.reset();
        self.data.qpos_mut().copy_from_slice(positions);
        self.data.qvel_mut().copy_from_slice(velocities);
        self.data.forward();
    }

    /// Takes `frames` integrator steps with a constant control.
    pub fn step(&mut self, control: &[f64], frames: usize) -> Outcome {
        self.data.ctrl_mut().copy_from_slice(control);
        for _ in 0..frames {
            self.data.step();
        }
        if self.is_sane() {
            return Outcome::Stable;
        }
        self.data.reset();
        self.data.forward();
        Outcome::Unstable
    }

    /// Whether MuJoCo has issued no warning since the state was set, and the state is physically plausible.
    fn is_sane(&self) -> bool {
        let quiet = self.data.warning().iter().all(|warning| warning.number == 0);
        let finite = self.positions().iter().all(|position| position.is_finite());
        // Written so that NaN is not valid.
        quiet && finite && self.velocities().iter().all(|velocity| velocity.abs() < FASTEST)
    }

    /// The positions: MuJoCo's qpos.
    pub fn positions(&self) -> &[f64] {
        self.data.qpos()
    }

    /// The velocities: MuJoCo's qvel.
    pub fn velocities(&self) -> &[f64] {
        self.data.qvel()
    }

    /// The centre of mass of everything in the current state. Calling it does not affect later steps.
    pub fn centre_of_mass(&mut self) -> [f64; 3] {
        // A step leaves the positions of an intermediate state of the integrator.
        self.data.kinematics();
        self.data.com_pos();
        self.data.subtree_com()[0]
    }

    /// Time of one integrator step, in seconds.
    pub fn timestep(&self) -> f64 {
        self.data.model_opt().timestep
    }

    /// The compiled model.
    pub fn model(&self) -> &MjModel {
        self.data.model()
    }

    /// MuJoCo's data of the current state.
    pub fn data(&self) -> &MjData<Box<MjModel>> {
        &self.data
    }

    /// The same, mutable. Do not change the warning counters: they show whether the simulation is stable.
    pub fn data_mut(&mut self) -> &mut MjData<Box<MjModel>> {
        &mut self.data
    }
}

/// Must come before any use of MuJoCo: rejects a library of another version, and keeps MuJoCo from printing and from
/// writing files.
pub(crate) fn prepare() -> Result<()> {
    let found = mujoco_rs::mujoco_version();
    if found != VERSION {
        return Err(Error::failed(format!(
            "the library libmujoco that was found is of version {found}, but {VERSION} is needed; put \
             libmujoco.so.{VERSION} beside the program"
        )));
    }
    static SILENCED: Once = Once::new();
    // SAFETY: no thread uses MuJoCo before or during this, since every use starts here and waits for the first caller.
    SILENCED.call_once(|| unsafe { set_log_handler(log) });
    Ok(())
}

/// Warnings are counted in the state of their simulation, which is where we look for them. After an error MuJoCo ends
/// the process (out of memory, for example), so the message must be printed here.
fn log(message: &MjLogMessage) {
    if message.level() == MjtLogLevel::mjLOG_ERROR {
        eprintln!("error: MuJoCo cannot continue: {}", message.subject());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PENDULUM: &str = "<mujoco><worldbody><body><joint axis='0 1 0'/><geom size='.1' pos='0 0 -1'/></body>\
                            </worldbody><actuator><motor joint='hinge' gear='1'/></actuator></mujoco>";

    fn pendulum() -> Simulation {
        Simulation::new(&PENDULUM.replace("<joint ", "<joint name='hinge' ")).unwrap()
    }

    #[test]
    fn a_broken_model_is_refused_with_its_reason() {
        let error = Simulation::new("<mujoco><worldbody><body/></nowhere>").err().unwrap();
        assert!(
            error.to_string().starts_with("the model cannot be compiled: "),
            "{error}"
        );
    }

    #[test]
    fn nothing_of_an_earlier_episode_is_left() {
        let (mut fresh, mut used) = (pendulum(), pendulum());
        used.set_state(&[1.0], &[3.0]);
        for _ in 0..100 {
            used.step(&[0.7], 3);
        }
        for simulation in [&mut fresh, &mut used] {
            simulation.set_state(&[0.2], &[-1.0]);
            for _ in 0..100 {
                assert_eq!(simulation.step(&[-0.1], 2), Outcome::Stable);
            }
        }
        assert_eq!(fresh.positions(), used.positions());
        assert_eq!(fresh.velocities(), used.velocities());
        assert_eq!(fresh.data().time(), used.data().time());
    }

    #[test]
    fn a_blown_up_state_is_told_and_mended_without_a_trace() {
        let mut simulation = pendulum();
        for (position, velocity, control) in [
            (0.0, 1e12, 0.0),
            (0.0, 2e4, 0.0),
            (f64::NAN, 0.0, 0.0),
            (0.0, f64::INFINITY, 0.0),
            (0.0, 0.0, f64::NAN),
            (0.0, 0.0, 1e13),
        ] {
            simulation.set_state(&[position], &[velocity]);
            assert_eq!(
                simulation.step(&[control], 2),
                Outcome::Unstable,
                "{position} {velocity} {control}"
            );
            assert_eq!(
                (simulation.positions(), simulation.velocities()),
                (&[0.0][..], &[0.0][..])
            );
            // It continues from there as if nothing had happened.
            assert_eq!(simulation.step(&[0.5], 2), Outcome::Stable);
        }
        assert!(!std::path::Path::new("MUJOCO_LOG.TXT").exists());
    }
}
