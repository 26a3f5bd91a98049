//! A run that an earlier version began: its policies can be looked at, its training is refused with a sentence.
//! `data/run-0.1.0` is such a run, of two small policies in the maze, without what is not needed here.

mod support;

use std::fs;
use std::path::{Path, PathBuf};

use support::{assert_refused, copy, object, run, snapshot, stein, succeed, train};

/// A copy of the old run.
fn old_run() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/run-0.1.0");
    copy(&data, &folder);
    (place, folder)
}

/// Replaces a text of the run's settings.
fn edit(folder: &Path, old: &str, new: &str) {
    let path = folder.join("config.toml");
    let text = fs::read_to_string(&path).unwrap();
    assert!(text.contains(old), "no {old} in {text}");
    fs::write(path, text.replacen(old, new, 1)).unwrap();
}

#[test]
fn its_policies_are_evaluated_and_drawn() {
    let (_place, folder) = old_run();
    // Settings that this version does not know are no trouble.
    edit(&folder, "[qd]\n", "[qd]\nforgotten = 1\n");
    let name = folder.to_str().unwrap();
    let report = object(&succeed(stein(&["eval", name, "--json"])).stdout);
    assert_eq!((&report["env"], &report["seed"]), (&"maze".into(), &3.into()));
    assert_eq!(report["policies"].as_array().unwrap().len(), 2);
    // What the version that trained it said of the same episodes.
    let found = report["policies"][1]["return_mean"].as_f64().unwrap();
    assert!((found - RETURN).abs() < 1e-9, "{found}");
    let text = succeed(stein(&["eval", name])).stdout;
    assert!(text.contains("maze by qd after 2 iterations"), "{text}");
    succeed(stein(&["plot", name]));
    assert!(folder.join("figures/maze_trajectories.png").exists());
}

/// Mean return of policy 1 over 5 episodes, by version 0.1.0.
const RETURN: f64 = 2.8492526955912254;

#[test]
fn its_training_is_refused() {
    let (_place, folder) = old_run();
    let refuse = |words: &[&str]| {
        let before = snapshot(&folder);
        for extra in [&["--resume"][..], &["--resume", "--iterations=9"]] {
            let mut command = stein(&["train", "--out", folder.to_str().unwrap()]);
            command.args(extra);
            let finished = run(command);
            assert_refused(&finished, 2, words);
            assert!(snapshot(&folder) == before, "the folder was changed");
        }
    };
    refuse(&[
        "was begun by stein 0.1.0",
        concat!("not that of ", env!("CARGO_PKG_VERSION")),
        "finish it with that version, or start a new run",
    ]);
    edit(&folder, "\"0.1.0\"", "\"99.0.0\"");
    refuse(&["was begun by stein 99.0.0"]);
}

#[test]
fn a_later_patch_goes_on_and_an_old_checkpoint_does_not() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    succeed(train(&folder, &[]));
    let version = env!("CARGO_PKG_VERSION");
    let patched = format!("{}.99", version.rsplit_once('.').unwrap().0);
    edit(&folder, version, &patched);
    succeed(train(&folder, &["--resume"]));
    // In the midst of a run of this version lies a checkpoint of another one.
    let (_old_place, old) = old_run();
    fs::remove_dir_all(folder.join("checkpoints")).unwrap();
    copy(&old.join("checkpoints"), &folder.join("checkpoints"));
    let finished = run(train(&folder, &["--resume"]));
    assert_refused(&finished, 2, &["was begun by stein 0.1.0"]);
}
