//! The robots against Gymnasium itself: compiled models, and whole episodes through `stein replay`. It needs Python and, the first time,
//! network; where it has not, it says so and passes. `make test-long` runs it.
#![cfg(feature = "mujoco")]

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use support::{object, stein, succeed};

const PACKAGES: [&str; 2] = ["gymnasium[mujoco]==1.4.0", "mujoco==3.17.0"];

/// Both sides run on this machine with the same library, so they should agree to the last bit.
const TOLERANCE: f64 = 1e-9;

/// Runs a command in the target folder, since MuJoCo leaves a log where Python uses it; why it failed, if it did.
fn attempt(command: &mut Command) -> Result<(), String> {
    let output = command
        .current_dir(env!("CARGO_TARGET_TMPDIR"))
        .output()
        .map_err(|error| format!("{command:?}: {error}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    let last = stderr.lines().last().unwrap_or_default();
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{command:?}: {last}")),
    }
}

/// A Python with Gymnasium, in the target folder; it stays there.
fn python(target: &Path) -> Result<PathBuf, String> {
    let folder = target.join("gymnasium-venv");
    let python = folder.join("bin/python");
    if attempt(Command::new(&python).args(["-c", "import gymnasium, mujoco"])).is_err() {
        attempt(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder))?;
        attempt(
            Command::new(&python)
                .args(["-m", "pip", "install", "--quiet"])
                .args(PACKAGES),
        )?;
    }
    Ok(python)
}

/// The numbers of a list, or of a list of lists, one after another.
fn flat(value: &Value) -> Vec<f64> {
    match value.as_array() {
        Some(values) => values.iter().flat_map(flat).collect(),
        None => vec![value.as_f64().unwrap()],
    }
}

#[test]
#[ignore = "installs Gymnasium; make test-long runs it"]
fn models_and_whole_episodes_agree_with_gymnasium() {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let python = match python(target) {
        Ok(python) => python,
        Err(reason) => return println!("skipped, since Gymnasium cannot be installed: {reason}"),
    };
    let scripts = Path::new(env!("CARGO_MANIFEST_DIR")).join("../stein-mujoco/tests");
    attempt(Command::new(&python).arg(scripts.join("compare_models.py"))).unwrap();
    let recorded = target.join("gymnasium");
    let mut record = Command::new(python);
    record
        .arg(scripts.join("record.py"))
        .args(["--steps=1000", "--episodes=6", "--out"])
        .arg(&recorded);
    attempt(&mut record).unwrap();
    for robot in ["hopper", "walker2d", "halfcheetah"] {
        let text = fs::read_to_string(recorded.join(format!("{robot}.json"))).unwrap();
        let episodes: Vec<Value> = serde_json::from_str(&text).unwrap();
        assert_eq!(episodes.len(), 6);
        for (number, theirs) in episodes.iter().enumerate() {
            let input = recorded.join("script.json");
            let script = json!({ "qpos": theirs["qpos"], "qvel": theirs["qvel"], "actions": theirs["actions"] });
            fs::write(&input, script.to_string()).unwrap();
            let mut command = stein(&["replay", robot, "--json", "--input"]);
            command.arg(&input);
            let ours = object(&succeed(command).stdout);
            assert_eq!(ours["terminated"], theirs["terminated"], "{robot}, episode {number}");
            let mut worst: f64 = 0.0;
            for key in ["observations", "rewards"] {
                let (ours, theirs) = (flat(&ours[key]), flat(&theirs[key]));
                assert_eq!(ours.len(), theirs.len());
                let error = |(a, b): (&f64, &f64)| (a - b).abs();
                worst = ours.iter().zip(&theirs).map(error).fold(worst, f64::max);
            }
            println!("{robot}, episode {number}, 1000 steps: largest difference {worst:e}");
            assert!(worst <= TOLERANCE);
        }
    }
}
