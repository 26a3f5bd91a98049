//! The robots repeat what Gymnasium recorded (`record.py`): same state, same actions, same observations and rewards.

use std::fs;
use std::path::Path;

use serde::Deserialize;
use stein::env::Registry;

/// How far a number may be from the recorded one. On the machine of the recording it is 0; another one may round a sine
/// differently, which grows to at most 1e-10 in the 200 steps of these episodes.
const TOLERANCE: f64 = 1e-9;

#[derive(Deserialize)]
struct Recorded {
    qpos: Vec<f64>,
    qvel: Vec<f64>,
    actions: Vec<Vec<f64>>,
    observations: Vec<Vec<f64>>,
    rewards: Vec<f64>,
    terminated: Vec<bool>,
}

fn repeats_the_recording(robot: &str) {
    let mut registry = Registry::empty();
    stein_mujoco::register(&mut registry);
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/{robot}.json"));
    let episodes: Vec<Recorded> = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    assert_eq!(episodes.len(), 3);
    let (task, _) = registry.build(robot, Default::default()).unwrap();
    let mut env = task.make().unwrap();
    for (number, episode) in episodes.iter().enumerate() {
        let mut observation = vec![0.0; env.spec().observation];
        env.settable()
            .unwrap()
            .set_state(&episode.qpos, &episode.qvel, &mut observation);
        let close = |ours: &[f64], theirs: &[f64], step: usize| {
            assert_eq!(ours.len(), theirs.len());
            for (ours, theirs) in ours.iter().zip(theirs) {
                let error = (ours - theirs).abs();
                assert!(
                    error <= TOLERANCE,
                    "{robot}, episode {number}, step {step}: {ours} is not {theirs}"
                );
            }
        };
        close(&observation, &episode.observations[0], 0);
        assert_eq!(episode.actions.len(), 200);
        for (t, action) in episode.actions.iter().enumerate() {
            let step = env.step(action, &mut observation);
            close(&observation, &episode.observations[t + 1], t + 1);
            close(&[step.reward], &[episode.rewards[t]], t + 1);
            assert_eq!(step.terminated, episode.terminated[t], "{robot}, {number}, step {t}");
        }
    }
}

#[test]
fn hopper_repeats_the_recording() {
    repeats_the_recording("hopper");
}

#[test]
fn walker2d_repeats_the_recording() {
    repeats_the_recording("walker2d");
}

#[test]
fn halfcheetah_repeats_the_recording() {
    repeats_the_recording("halfcheetah");
}
