//! An environment that breaks: exit code 1, a sentence that says which policy, when, and what is still good.

mod support;

use std::fs;
use std::path::Path;
use std::process::Command;

use support::{SMALL, assert_refused, checkpoints, pendulum, rows, run, snapshot, succeed};

/// `train pendulum` whose observations are NaN from this step of an episode on; an episode has 200.
fn train_pendulum(folder: &Path, nan_after: usize) -> Command {
    let mut command = pendulum(&["train", "pendulum", "--steps=64"]);
    command.args(SMALL).arg(format!("--set=env.nan_after={nan_after}"));
    command.arg("--out").arg(folder);
    command
}

#[test]
fn before_the_first_checkpoint() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    let finished = run(train_pendulum(&folder, 30));
    println!("{}", finished.stderr.trim_end());
    let words = [
        "iteration 1: policy 0: after step 30 of its episode 1",
        "NaN",
        "there is no checkpoint yet",
    ];
    assert_refused(&finished, 1, &words);
    let finished = run(pendulum(&["eval", folder.to_str().unwrap()]));
    assert_refused(&finished, 2, &["has no checkpoint yet", folder.to_str().unwrap()]);
}

#[test]
fn after_a_checkpoint() {
    let place = tempfile::tempdir().unwrap();
    let (folder, sound) = (place.path().join("run"), place.path().join("sound"));
    // 64 steps an iteration: step 160 is in the third one, and the checkpoint is of the second.
    let good = folder.join("checkpoints/iteration-000002.safetensors");
    let told = format!("the last good checkpoint is {} (iteration 2)", good.display());
    let words = [
        "iteration 3: policy 0: after step 160 of its episode 1",
        "observation[0] = NaN",
        &told,
    ];
    let finished = run(train_pendulum(&folder, 160));
    println!("{}", finished.stderr.trim_end());
    assert_refused(&finished, 1, &words);
    assert_eq!(checkpoints(&folder), [good]);
    assert_eq!(rows(&folder), 2);

    // Up to there it is what a sound environment gives.
    succeed(train_pendulum(&sound, 0));
    let text = |folder: &Path| fs::read_to_string(folder.join("metrics.csv")).unwrap();
    assert!(
        text(&sound).starts_with(&text(&folder)),
        "the rows before the failure differ"
    );

    // Resumed, it breaks in the same place, and the folder stays as it is but for a further file of events.
    let files = || {
        let mut files = snapshot(&folder);
        files.retain(|name, _| !name.starts_with("tensorboard"));
        files
    };
    let before = files();
    let finished = run({
        let mut command = train_pendulum(&folder, 160);
        command.arg("--resume");
        command
    });
    assert_refused(&finished, 1, &words);
    assert!(files() == before, "the folder was changed");

    // Its policies are read; it is the environment that breaks again.
    let finished = run(pendulum(&["eval", folder.to_str().unwrap()]));
    assert_refused(
        &finished,
        1,
        &[
            "policy 0: after step 160 of evaluation episode 1",
            "observation[0] = NaN",
        ],
    );
    assert!(files() == before, "the folder was changed");
}

#[test]
fn at_the_end_of_training_the_run_is_kept() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    // Two iterations end before step 130, but the episodes of the summary do not.
    let mut command = train_pendulum(&folder, 130);
    command.arg("--iterations=2");
    let finished = run(command);
    println!("{}", finished.stderr.trim_end());
    assert_refused(
        &finished,
        1,
        &[
            "policy 0: after step 130 of evaluation episode 1",
            "observation[0] = NaN",
        ],
    );
    assert_eq!(checkpoints(&folder).len(), 1);
    assert_eq!(rows(&folder), 2);
}

#[test]
fn a_run_of_an_environment_that_a_program_does_not_know() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    succeed(train_pendulum(&folder, 0));
    let before = snapshot(&folder);
    let name = folder.to_str().unwrap();
    succeed(pendulum(&["eval", name]));
    for arguments in [
        &["eval", name][..],
        &["plot", name],
        &["train", "--resume", "--out", name],
    ] {
        let finished = run(support::stein(arguments));
        assert_refused(&finished, 2, &["no environment \"pendulum\"", "maze"]);
    }
    assert!(snapshot(&folder) == before, "the folder was changed");
}

#[test]
fn its_settings_are_checked_like_those_of_the_others() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    for (setting, words) in [
        ("--set=env.horizon=0", &["env.horizon is 0", "choose"][..]),
        ("--set=env.torque=nan", &["env.torque is NaN", "choose"]),
        (
            "--set=env.colour=1",
            &["env.colour", "unknown field", "pendulum envs pendulum"],
        ),
    ] {
        let mut command = train_pendulum(&folder, 0);
        command.arg(setting);
        assert_refused(&run(command), 2, words);
        assert!(!folder.exists());
    }
}
