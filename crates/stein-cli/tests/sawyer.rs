//! Sawyer through the program: training, what is made of a run, a replay, and a killed run.
#![cfg(feature = "mujoco")]

mod support;

use std::fs;
use std::path::Path;

use serde_json::json;
use support::{Results, assert_refused, checkpoints, keys, object, run, start, stein, succeed, wait_until};

/// A run of seconds.
const SMALL: [&str; 4] = [
    "--ensemble=2",
    "--steps=80",
    "--set=env.horizon=40",
    "--set=ppo.minibatches=4",
];

#[test]
fn sawyer_trains_evaluates_plots_and_is_timed() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("run");
    let mut command = stein(&["train", "sawyer", "--iterations=2"]);
    command.args(SMALL).arg("--out").arg(&out).current_dir(place.path());
    succeed(command);

    let report = object(&succeed(stein(&["eval", out.to_str().unwrap(), "--json"])).stdout);
    assert_eq!(
        keys(&report["policies"][0])[2..],
        [
            "final_distance",
            "least_distance",
            "success",
            "torque_mean",
            "unstable",
            "returns"
        ]
    );
    assert_eq!(
        keys(&report["ensemble"]),
        [
            "success",
            "successful_policies",
            "joint_spread",
            "joint_spread_successful",
            "torque_spread_successful",
            "unstable",
            "return_mean",
            "return_best",
            "policy_information",
            "state_information",
            "grid_coverage",
            "qd_score"
        ]
    );
    let distance = report["policies"][0]["final_distance"].as_f64().unwrap();
    assert!((0.0..2.0).contains(&distance), "{distance}");

    succeed(stein(&["plot", out.to_str().unwrap(), "--episodes=2"]));
    for name in ["joint_angles", "peg_side", "peg_above"] {
        for ending in ["png", "svg"] {
            let file = out.join("figures").join(format!("{name}.{ending}"));
            assert!(fs::metadata(&file).unwrap().len() > 1000, "{}", file.display());
        }
    }

    let mut bench = stein(&["bench", "sawyer", "--json", "--iterations=1"]);
    bench.args(SMALL);
    let times = object(&succeed(bench).stdout);
    assert!(times["env"] == "sawyer" && times["env_steps_per_s"].as_f64().unwrap() > 10.0);
}

#[test]
fn sawyer_is_replayed() {
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("script.json");
    let neutral = [0.0, -1.18, 0.0, 2.18, 0.0, 0.57, 3.3161];
    let script = json!({ "qpos": neutral, "qvel": vec![0; 7], "actions": vec![[0.0; 7]; 5] });
    fs::write(&path, script.to_string()).unwrap();
    let replay = |extra: &[&str]| {
        let mut command = stein(&["replay", "sawyer", "--json", "--input"]);
        command.arg(&path).args(extra);
        command
    };
    let record = object(&succeed(replay(&[])).stdout);
    let observations = record["observations"].as_array().unwrap();
    assert_eq!((observations.len(), observations[0].as_array().unwrap().len()), (6, 17));
    assert_eq!(observations[0][1], -1.18);
    // Nothing pushes the arm, so it stays; without compensation it sinks.
    assert_eq!(record["rewards"][0], record["rewards"][4]);
    let heavy = object(&succeed(replay(&["--set=env.gravity_compensation=false"])).stdout);
    assert_ne!(heavy["rewards"][0], heavy["rewards"][4]);
    let refused = run(replay(&["--set=env.threshold=1"]));
    assert_refused(&refused, 2, &["env.threshold"]);
}

#[test]
fn a_killed_run_of_sawyer_goes_on_with_the_same_bits() {
    let place = tempfile::tempdir().unwrap();
    let train = |name: &str| {
        let mut command = stein(&["train", "sawyer", "--resume", "--iterations=8"]);
        // Episodes of 50 steps in rollouts of 80: checkpoints fall into the middle of them.
        command.args(["--ensemble=2", "--steps=80", "--set=ppo.minibatches=4"]);
        command.args(["--set=env.horizon=50", "--set=checkpoint.every=2", "--set=method=ppo"]);
        command.arg("--out").arg(place.path().join(name));
        command
    };
    succeed(train("whole"));
    let expected = Results::of(&place.path().join("whole"));
    let folder = place.path().join("killed");
    let mut child = start(train("killed"));
    wait_until("there is a checkpoint", || {
        !checkpoints(&folder).is_empty() || is_done(&folder)
    });
    child.kill().unwrap();
    child.wait().unwrap();
    succeed(train("killed"));
    expected.assert_same_in(&folder, "killed");
}

fn is_done(folder: &Path) -> bool {
    folder.join("summary.json").exists()
}
