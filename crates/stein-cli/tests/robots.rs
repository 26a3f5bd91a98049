//! The robots through the program: replays, what is refused of them, training, and a killed run.
#![cfg(feature = "mujoco")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use support::{Results, assert_refused, checkpoints, keys, object, run, start, stein, succeed, wait_until};

const ROBOTS: [&str; 4] = ["hopper", "walker2d", "halfcheetah", "deceptive-cheetah"];

/// A script of so many steps for Hopper.
fn script(steps: usize) -> Value {
    json!({ "qpos": [0, 1.25, 0, 0, 0, 0], "qvel": vec![0; 6], "actions": vec![[0.5, -0.25, 1.0]; steps] })
}

fn write(place: &Path, text: &str) -> PathBuf {
    let path = place.join("script.json");
    fs::write(&path, text).unwrap();
    path
}

fn replay(env: &str, script: &Path, extra: &[&str]) -> Command {
    let mut command = stein(&["replay", env, "--input"]);
    command.arg(script).args(extra);
    command
}

#[test]
fn a_replay_has_one_observation_more_than_steps_and_goes_on_after_a_fall() {
    let place = tempfile::tempdir().unwrap();
    let path = write(place.path(), &script(100).to_string());
    let finished = succeed(replay("hopper", &path, &["--json"]));
    assert_eq!(finished.stderr, "");
    let record = object(&finished.stdout);
    assert_eq!(
        record.keys().collect::<Vec<_>>(),
        ["observations", "rewards", "terminated"]
    );
    let observations = record["observations"].as_array().unwrap();
    assert_eq!(observations.len(), 101);
    assert_eq!(
        observations[0],
        json!([1.25, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    );
    let terminated = record["terminated"].as_array().unwrap();
    let fall = terminated.iter().position(|fallen| fallen == true).unwrap();
    assert!(fall < 99 && terminated.len() == 100 && record["rewards"].as_array().unwrap().len() == 100);
    assert_ne!(observations[fall + 1], observations[fall + 2]);

    let text = succeed(replay("hopper", &path, &[])).stdout;
    assert!(
        text.contains("steps              100") && text.contains(&format!("in step {}", fall + 1)),
        "{text}"
    );
    // Settings reach it.
    let silent = succeed(replay("hopper", &path, &["--json", "--set", "env.reward=none"]));
    assert!(
        object(&silent.stdout)["rewards"]
            .as_array()
            .unwrap()
            .iter()
            .all(|r| r == 0.0)
    );
    let patient = succeed(replay(
        "hopper",
        &path,
        &["--json", "--set=env.terminate_when_unhealthy=false"],
    ));
    assert_eq!(object(&patient.stdout)["observations"], record["observations"]);
    assert!(
        object(&patient.stdout)["terminated"]
            .as_array()
            .unwrap()
            .iter()
            .all(|t| t == false)
    );
    let watched = object(&succeed(replay("hopper", &path, &["--json", "--signals"])).stdout);
    assert_eq!(
        watched["observations"], record["observations"],
        "to look changes nothing"
    );
    let names = ["com_x", "pace", "pitch", "unstable", "velocity", "x", "z"];
    assert_eq!(support::keys(&watched["signals"]), names);
    let of = |name: &str, state: usize| watched["signals"][name][state].as_f64().unwrap();
    for (state, seen) in record["observations"].as_array().unwrap().iter().enumerate() {
        assert_eq!(
            (of("z", state), of("unstable", state)),
            (seen[0].as_f64().unwrap(), 0.0)
        );
    }
    // No steps are a replay too.
    let path = write(place.path(), &script(0).to_string());
    assert_eq!(
        object(&succeed(replay("hopper", &path, &["--json"])).stdout)["rewards"],
        json!([])
    );
    succeed(replay("hopper", &path, &[]));
}

#[test]
fn a_simulation_that_blows_up_is_no_noise() {
    let place = tempfile::tempdir().unwrap();
    let mut wild = script(3);
    wild["qvel"] = json!([0, 1e12, 0, 0, 0, 0]);
    let path = write(place.path(), &wild.to_string());
    let mut command = replay("hopper", &path, &["--json"]);
    command.current_dir(place.path());
    let finished = succeed(command);
    assert_eq!(finished.stderr, "");
    let record = object(&finished.stdout);
    assert_eq!(record["terminated"], json!([true, false, false]));
    assert_eq!(record["rewards"][0], 0.0);
    let files: Vec<_> = fs::read_dir(place.path()).unwrap().collect();
    assert_eq!(files.len(), 1, "MuJoCo left a file: {files:?}");
}

#[test]
fn wrong_scripts_are_refused() {
    let place = tempfile::tempdir().unwrap();
    let changed = |pointer: &str, value: Value| {
        let mut script = script(3);
        *script.pointer_mut(pointer).unwrap() = value;
        script.to_string()
    };
    let without = |key: &str| {
        let mut script = script(3);
        script.as_object_mut().unwrap().remove(key);
        script.to_string()
    };
    let cases: [(String, &[&str]); 19] = [
        (String::new(), &["cannot be read as JSON", "EOF"]),
        ("{\"qpos\": [0, 1".into(), &["cannot be read as JSON"]),
        (script(3).to_string() + "}", &["cannot be read as JSON", "trailing"]),
        (script(3).to_string().replace("1.25", "NaN"), &["JSON has no NaN"]),
        (script(3).to_string().replace("1.25", "1e999"), &["out of range"]),
        ("[1, 2]".into(), &["no JSON object", "qpos [nq]"]),
        ("[[0,1,0,0,0,0], [0,0,0,0,0,0], []]".into(), &["no JSON object"]),
        ("7".into(), &["no JSON object", "qpos [nq]"]),
        ("null".into(), &["no JSON object"]),
        (without("qvel"), &["missing field `qvel`", "actions [T][nu]"]),
        (without("actions"), &["missing field `actions`"]),
        (changed("/qpos/1", json!("high")), &["qpos[1]", "string"]),
        (
            changed("/actions/2", json!(0.5)),
            &["actions[2]", "expected a sequence"],
        ),
        (
            changed("/qpos", json!([0, 1])),
            &["qpos has 2 numbers", "write 6, as hopper has"],
        ),
        (changed("/qvel", json!(vec![0; 7])), &["qvel has 7 numbers", "write 6"]),
        (
            changed("/actions/1", json!([0, 0])),
            &["actions[1] has 2 numbers", "write 3"],
        ),
        (
            changed("/actions/2/1", json!(1.0001)),
            &["actions[2][1] is 1.0001", "from -1 to 1"],
        ),
        (
            changed("/actions/0/0", json!(-7)),
            &["actions[0][0] is -7", "from -1 to 1"],
        ),
        (changed("/actions/0/0", json!(null)), &["actions[0][0]", "null"]),
    ];
    for (text, words) in cases {
        let path = write(place.path(), &text);
        for extra in [&["--json"][..], &[]] {
            let finished = run(replay("hopper", &path, extra));
            assert_refused(&finished, 2, &[words, &["script.json", ";"]].concat());
        }
    }
    // The mark that some editors put before everything else does no harm.
    let marked = write(place.path(), &format!("\u{feff}{}", script(3)));
    succeed(replay("hopper", &marked, &["--json"]));
    let good = write(place.path(), &script(3).to_string());
    let refused = |command: Command, words: &[&str]| assert_refused(&run(command), 2, words);
    refused(replay("maze", &good, &[]), &["maze cannot be replayed", "stein envs"]);
    refused(replay("moon", &good, &[]), &["no environment \"moon\"", "hopper"]);
    refused(replay("walker2d", &good, &[]), &["qpos has 6 numbers", "write 9"]);
    refused(
        replay("hopper", &good, &["--set=env.colour=1"]),
        &["env.colour", "stein envs hopper"],
    );
    refused(replay("hopper", place.path(), &[]), &["cannot be read"]);
    refused(
        replay("hopper", &place.path().join("gone.json"), &[]),
        &["gone.json", "cannot be read"],
    );
    fs::write(&good, b"\xff\xfe").unwrap();
    refused(replay("hopper", &good, &[]), &["cannot be read"]);
}

#[test]
fn every_robot_trains_evaluates_and_is_timed() {
    let place = tempfile::tempdir().unwrap();
    for robot in ROBOTS {
        let out = place.path().join(robot);
        let small = [
            "--ensemble=2",
            "--steps=128",
            "--iterations=1",
            "--set=env.horizon=40",
            "--set=ppo.minibatches=4",
        ];
        let mut command = stein(&["train", robot]);
        command.args(small).arg("--out").arg(&out).current_dir(place.path());
        succeed(command);
        let report = object(&succeed(stein(&["eval", out.to_str().unwrap(), "--json"])).stdout);
        assert_eq!(
            keys(&report["ensemble"]),
            [
                "velocity_variance",
                "velocity_between",
                "velocity_mean",
                "episode_length",
                "unstable",
                "return_mean",
                "return_best",
                "policy_information",
                "state_information",
                "grid_coverage",
                "qd_score"
            ]
        );
        assert_eq!(
            keys(&report["policies"][0])[2..],
            [
                "velocity_mean",
                "velocity_std",
                "final_x",
                "episode_length",
                "unstable",
                "returns"
            ]
        );
        let mut bench = stein(&["bench", robot, "--json"]);
        bench.args(small);
        let times = object(&succeed(bench).stdout);
        assert!(times["env"] == *robot && times["env_steps_per_s"].as_f64().unwrap() > 100.0);
    }
}

#[test]
fn a_killed_run_of_a_robot_goes_on_with_the_same_bits() {
    let place = tempfile::tempdir().unwrap();
    let train = |name: &str| {
        let mut command = stein(&[
            "train",
            "hopper",
            "--resume",
            "--ensemble=3",
            "--steps=256",
            "--iterations=30",
        ]);
        command.args([
            "--set=ppo.minibatches=4",
            "--set=checkpoint.every=3",
            "--set=method=ppo",
        ]);
        command.arg("--out").arg(place.path().join(name));
        command
    };
    succeed(train("whole"));
    let expected = Results::of(&place.path().join("whole"));
    let folder = place.path().join("killed");
    // Twice, each time after some more checkpoints: in the middle of episodes.
    for count in [1, 2] {
        let mut child = start(train("killed"));
        wait_until("there are checkpoints", || {
            checkpoints(&folder).len() > count || child_is_done(&folder)
        });
        child.kill().unwrap();
        child.wait().unwrap();
    }
    succeed(train("killed"));
    expected.assert_same_in(&folder, "killed twice");
}

fn child_is_done(folder: &Path) -> bool {
    folder.join("summary.json").exists()
}

#[test]
fn quality_and_diversity_run_with_every_estimator_on_every_robot() {
    let place = tempfile::tempdir().unwrap();
    for robot in ["hopper", "walker2d", "halfcheetah", "deceptive-cheetah", "sawyer"] {
        for estimator in ["nce", "dualdice", "valuedice", "gendice"] {
            let folder = place.path().join(format!("{robot}-{estimator}"));
            let sizes = [
                "--ensemble=3",
                "--steps=64",
                "--iterations=2",
                "--set=ppo.minibatches=2",
            ];
            let fixed = ["train", robot, "--method=qd", "--set=env.horizon=40", "--out"];
            let choice = [folder.to_str().unwrap(), "--estimator", estimator];
            succeed(stein(&[&fixed[..], &choice, &sizes].concat()));
            let table = stein::run::metrics::Table::read(&folder.join("metrics.csv")).unwrap();
            for name in ["divergence_mean", "ratio_loss", "value_loss", "unstable"] {
                let values = table.column(name).unwrap();
                assert!(values.iter().all(|x| x.is_finite()), "{robot} {estimator} {name}");
            }
        }
    }
}
