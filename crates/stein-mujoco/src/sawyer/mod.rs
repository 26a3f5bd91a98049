//! Sawyer peg insertion (Section 5 of the paper): an arm of seven joints that should put a peg into a hole.
//!
//! ```text
//! state        qpos = q (7 joint angles), qvel = their velocities
//! observation  q, qvel, target
//! torque       τ_j = a_j·limit_j, constant over a step of 20 ms
//! reward       r = exp(-|p - target|), p the reference point of the peg after the step      0 if there is no task reward
//! terminated   never, but when the simulation blew up (then r = 0)
//! ```
//!
//! Arm: the public URDF of Rethink Robotics' Sawyer. Peg, hole, friction of the joints and timing: the peg task of Chen,
//! Murali and Gupta 2018, "Hardware Conditioned Policies for Multi-Robot Transfer Learning".

#[cfg(test)]
mod kinematics;
mod measure;
#[cfg(test)]
mod tests;

use mujoco_rs::prelude::{MjtIntegrator, MjtObjBase};
use rand::{RngExt, SeedableRng};
use serde::{Deserialize, Serialize};
use stein::env::{Env, Episode, Grid, Measure, SetState, Spec, Stage, Step, Task};
use stein::plot::Figure;
use stein::rng::Stream;
use stein::{Error, Result};

use crate::runner::{LONGEST, RewardSource};
use crate::simulation::{Outcome, Simulation};
use crate::stage::{RobotStage, View};

/// What `stein envs` says of it.
pub(crate) const ABOUT: &str = "an arm of seven joints that puts a peg into a hole (MuJoCo, Sawyer)";

/// The model in MuJoCo's XML, with gravity compensated.
const MODEL: &str = include_str!("../../models/sawyer.xml");

/// Joints of the arm.
const JOINTS: usize = 7;

/// The pose in which episodes begin: the gripper points down, the peg lies level above the table.
const NEUTRAL: [f64; JOINTS] = [0.0, -1.18, 0.0, 2.18, 0.0, 0.57, 3.3161];

/// Steps of the integrator per step of the environment.
const FRAMES: usize = 20;

/// Time of a step, in seconds: 50 Hz.
const STEP_TIME: f64 = 0.02;

/// Names of the signals. Torques are those of the step which led to the state, 0 in the first state.
const SIGNALS: [&str; 19] = [
    "joint0", "joint1", "joint2", "joint3", "joint4", "joint5", "joint6", "peg_x", "peg_y", "peg_z", "torque0",
    "torque1", "torque2", "torque3", "torque4", "torque5", "torque6", "distance", "unstable",
];

/// How the equations of motion are integrated, 1 ms a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum Integrator {
    /// Runge and Kutta's method of fourth order: four evaluations a step.
    Rk4,
    /// MuJoCo's semi-implicit method of first order: one evaluation a step.
    ImplicitFast,
}

/// Settings of Sawyer peg insertion.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SawyerConfig {
    /// `"task"`, or `"none"` for a reward of 0.
    pub reward: RewardSource,
    /// Whether the arm carries its own weight, beside the torques of the action.
    pub gravity_compensation: bool,
    /// `"rk4"`, or `"implicitfast"`, which is some four times as fast and less exact.
    pub integrator: Integrator,
    /// An episode succeeds if it ends with the reference point of the peg within so many metres of the target.
    pub success_distance: f64,
    /// Joint angles of the first state are off the neutral pose by at most this much, uniformly; velocities are 0.
    pub reset_noise: f64,
    /// Steps after which an episode is cut off.
    pub horizon: usize,
}

impl Default for SawyerConfig {
    fn default() -> Self {
        SawyerConfig {
            reward: RewardSource::Task,
            gravity_compensation: true,
            integrator: Integrator::Rk4,
            success_distance: 0.02,
            reset_noise: 0.02,
            horizon: 200,
        }
    }
}

impl SawyerConfig {
    /// The model of these settings.
    fn simulation(&self) -> Result<Simulation> {
        let mut simulation = if self.gravity_compensation {
            Simulation::new(MODEL)?
        } else {
            Simulation::new(&MODEL.replace("gravcomp=\"1\"", "gravcomp=\"0\""))?
        };
        let integrator = match self.integrator {
            Integrator::Rk4 => MjtIntegrator::mjINT_RK4,
            Integrator::ImplicitFast => MjtIntegrator::mjINT_IMPLICITFAST,
        };
        simulation.data_mut().model_opt_mut().integrator = integrator as i32;
        Ok(simulation)
    }
}

impl Task for SawyerConfig {
    fn validate(&self) -> Result<()> {
        for (key, value) in [
            ("success_distance", self.success_distance),
            ("reset_noise", self.reset_noise),
        ] {
            if !(0.0..=1.0).contains(&value) {
                return Err(Error::input(format!(
                    "env.{key} is {value}; choose a number from 0 to 1"
                )));
            }
        }
        if !(1..=LONGEST).contains(&self.horizon) {
            return Err(Error::input(format!(
                "env.horizon is {}; choose 1 to {LONGEST} steps",
                self.horizon
            )));
        }
        Ok(())
    }

    fn make(&self) -> Result<Box<dyn Env>> {
        Ok(Box::new(Sawyer::new(self.clone())?))
    }

    fn stage(&self, width: u32, height: u32) -> Result<Option<Box<dyn Stage>>> {
        // From the front, where the arm hides neither the hole nor the peg.
        let view = View {
            x: Some(0.5),
            height: 0.28,
            distance: 1.25,
            azimuth: 205.0,
            elevation: -28.0,
        };
        let stage = RobotStage::new(MODEL, STEP_TIME, view, width, height)?;
        Ok(Some(Box::new(stage)))
    }

    fn behaviour(&self) -> &'static [&'static str] {
        &SIGNALS[..JOINTS]
    }

    fn resolution(&self) -> f64 {
        0.2
    }

    fn grid(&self) -> Option<Grid> {
        Some(measure::grid())
    }

    fn measure(&self, episodes: &[Episode]) -> Vec<Measure> {
        measure::of_policy(episodes, self.success_distance)
    }

    fn measure_ensemble(&self, policies: &[Vec<Episode>]) -> Vec<Measure> {
        measure::of_ensemble(policies, self.success_distance)
    }

    fn figures(&self, policies: &[Vec<Episode>]) -> Vec<(String, Figure)> {
        measure::figures(policies, self.success_distance)
    }

    fn outcome(&self, episode: &Episode) -> Option<String> {
        measure::outcome(episode, self.success_distance)
    }
}

/// The arm as an environment.
struct Sawyer {
    spec: Spec,
    config: SawyerConfig,
    simulation: Simulation,
    /// MuJoCo's number of the reference point.
    reference: usize,
    target: [f64; 3],
    limits: [f64; JOINTS],
    torques: [f64; JOINTS],
    steps: usize,
    unstable: bool,
}

impl Sawyer {
    /// Makes the arm, after a check of its settings.
    fn new(config: SawyerConfig) -> Result<Self> {
        config.validate()?;
        let mut simulation = config.simulation()?;
        simulation.set_state(&NEUTRAL, &[0.0; JOINTS]);
        let site = |name: &str| {
            let found = simulation.model().name_to_id(MjtObjBase::mjOBJ_SITE, name);
            found.ok_or_else(|| Error::failed(format!("the model has no site {name}; give it one")))
        };
        let reference = site("reference")?;
        let target = simulation.data().site_xpos()[site("target")?];
        let gears = simulation.model().actuator_gear();
        Ok(Sawyer {
            spec: Spec {
                observation: 2 * JOINTS + target.len(),
                action_low: vec![-1.0; JOINTS],
                action_high: vec![1.0; JOINTS],
                horizon: config.horizon,
                can_terminate: false,
                signals: SIGNALS.to_vec(),
            },
            config,
            reference,
            target,
            limits: std::array::from_fn(|joint| gears[joint][0]),
            simulation,
            torques: [0.0; JOINTS],
            steps: 0,
            unstable: false,
        })
    }

    fn observe(&self, observation: &mut [f64]) {
        observation[..JOINTS].copy_from_slice(self.simulation.positions());
        observation[JOINTS..2 * JOINTS].copy_from_slice(self.simulation.velocities());
        observation[2 * JOINTS..].copy_from_slice(&self.target);
    }

    fn peg(&self) -> [f64; 3] {
        self.simulation.data().site_xpos()[self.reference]
    }

    fn distance(&self) -> f64 {
        let off = self.peg().into_iter().zip(self.target);
        off.map(|(peg, target)| (peg - target).powi(2)).sum::<f64>().sqrt()
    }
}

impl Env for Sawyer {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn reset(&mut self, seed: u64, observation: &mut [f64]) {
        let mut stream = Stream::seed_from_u64(seed);
        let noise = self.config.reset_noise;
        let positions = NEUTRAL.map(|angle| angle + noise * (2.0 * stream.random::<f64>() - 1.0));
        self.set_state(&positions, &[0.0; JOINTS], observation);
    }

    fn step(&mut self, action: &[f64], observation: &mut [f64]) -> Step {
        self.unstable = self.simulation.step(action, FRAMES) == Outcome::Unstable;
        self.steps += 1;
        if self.unstable {
            // MuJoCo's own first pose, all angles 0, is none of the task.
            self.simulation.set_state(&NEUTRAL, &[0.0; JOINTS]);
            self.torques = [0.0; JOINTS];
        } else {
            // A step leaves the places of a state that its integrator tried on the way.
            self.simulation.data_mut().kinematics();
            self.torques = std::array::from_fn(|joint| self.limits[joint] * action[joint]);
        }
        self.observe(observation);
        let paid = !self.unstable && self.config.reward == RewardSource::Task;
        Step {
            reward: if paid { (-self.distance()).exp() } else { 0.0 },
            terminated: self.unstable,
            truncated: self.steps >= self.spec.horizon,
        }
    }

    fn signals(&mut self, signals: &mut [f64]) {
        signals[..JOINTS].copy_from_slice(self.simulation.positions());
        signals[measure::PEG..measure::TORQUES].copy_from_slice(&self.peg());
        signals[measure::TORQUES..measure::DISTANCE].copy_from_slice(&self.torques);
        signals[measure::DISTANCE] = self.distance();
        signals[measure::UNSTABLE] = f64::from(u8::from(self.unstable));
    }

    fn pose(&self) -> &[f64] {
        self.simulation.positions()
    }

    fn unstable(&self) -> bool {
        self.unstable
    }

    fn settable(&mut self) -> Option<&mut dyn SetState> {
        Some(self)
    }
}

impl SetState for Sawyer {
    fn state_sizes(&self) -> (usize, usize) {
        (JOINTS, JOINTS)
    }

    fn set_state(&mut self, positions: &[f64], velocities: &[f64], observation: &mut [f64]) {
        self.simulation.set_state(positions, velocities);
        self.torques = [0.0; JOINTS];
        self.steps = 0;
        self.unstable = false;
        self.observe(observation);
    }
}
