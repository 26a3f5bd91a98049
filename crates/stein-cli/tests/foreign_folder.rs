//! Run folders that somebody else has made or changed: links that lead out of them, pipes, and folders that are replaced while
//! a run trains into them.
#![cfg(unix)]

mod support;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use support::{Finished, Results, assert_refused, checkpoints, copy, rows, snapshot, start, stein, succeed, train};

/// Runs a program that must not wait for anything.
#[track_caller]
fn run_within(seconds: u64, command: Command) -> Finished {
    let mut child = start(command);
    let begin = Instant::now();
    while child.try_wait().unwrap().is_none() {
        if begin.elapsed() > Duration::from_secs(seconds) {
            child.kill().unwrap();
            panic!("it did not end within {seconds} s");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    let output = child.wait_with_output().unwrap();
    Finished {
        code: output.status.code(),
        stdout: String::new(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

fn pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

/// Everything that a run has in its folder.
const FILES: [&str; 7] = [
    "lock",
    "config.toml",
    "metrics.csv",
    "timings.csv",
    "kernel.csv",
    "summary.json",
    "checkpoints/iteration-000004.safetensors",
];
const FOLDERS: [&str; 2] = ["checkpoints", "tensorboard"];
const METHOD: [&str; 4] = [
    "--set=method=qd",
    "--set=iterations=4",
    "--set=ratio.warmup_updates=4",
    "--set=ensemble=2",
];

#[test]
fn a_run_folder_does_not_reach_outside_itself() {
    let place = tempfile::tempdir().unwrap();
    let (whole, folder) = (place.path().join("whole"), place.path().join("run"));
    let outside = place.path().join("outside");
    succeed(train(&whole, &METHOD));
    let mut cases: Vec<(&str, &str)> = Vec::new();
    for name in FILES {
        cases.extend(["link", "dangling link", "pipe", "folder"].map(|what| (name, what)));
    }
    cases.extend(["lock", "metrics.csv", "timings.csv", "kernel.csv"].map(|name| (name, "hard link")));
    for name in FOLDERS {
        cases.extend(["link to folder", "dangling link", "file", "pipe"].map(|what| (name, what)));
    }
    for (name, what) in cases {
        for place in [&folder, &outside] {
            let _ = fs::remove_dir_all(place);
        }
        copy(&whole, &folder);
        copy(&whole, &outside);
        fs::write(outside.join("precious.txt"), "precious").unwrap();
        let (path, original) = (folder.join(name), outside.join(name));
        if path.is_dir() {
            fs::remove_dir_all(&path).unwrap();
        } else {
            fs::remove_file(&path).unwrap();
        }
        match what {
            "link" | "link to folder" => symlink(&original, &path).unwrap(),
            "dangling link" => symlink(outside.join("not there"), &path).unwrap(),
            "hard link" => fs::hard_link(&original, &path).unwrap(),
            "folder" => fs::create_dir(&path).unwrap(),
            "file" => fs::write(&path, "").unwrap(),
            _ => pipe(&path),
        }
        let before = snapshot(&outside);
        let names =
            |folder: &Path| -> Vec<_> { fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name()).collect() };
        let inside = names(&folder).len();
        // Both with the settings repeated and without: the folder alone says what it holds.
        let mut bare = stein(&["train", "--resume", "--iterations=6", "--out"]);
        bare.arg(&folder);
        for command in [bare, train(&folder, &[&METHOD[..], &["--resume"]].concat())] {
            let finished = run_within(20, command);
            let odd = name == "config.toml" && what != "link";
            let words = if odd { vec![] } else { vec![path.to_str().unwrap()] };
            assert!(
                [Some(1), Some(2)].contains(&finished.code),
                "{name}, {what}: {finished:?}"
            );
            assert_refused(&finished, finished.code.unwrap(), &words);
            if !odd {
                assert_eq!(finished.code, Some(2), "{name}, {what}");
            }
        }
        // Looking at a run may follow links but waits for no pipe.
        for command in ["eval", "plot"] {
            let out = outside.join("pictures");
            let mut looking = stein(&[command, "--episodes=1", folder.to_str().unwrap()]);
            if command == "plot" {
                looking.arg("--out").arg(&out);
            }
            let finished = run_within(60, looking);
            assert!(
                [Some(0), Some(1), Some(2)].contains(&finished.code),
                "{name}, {what}: {finished:?}"
            );
            assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
            let _ = fs::remove_dir_all(out);
        }
        assert!(
            snapshot(&outside) == before,
            "{name} as a {what}: something outside was changed"
        );
        assert_eq!(names(&folder).len(), inside, "{name} as a {what}");
    }
}

#[test]
fn a_new_run_does_not_go_through_a_link_either() {
    let place = tempfile::tempdir().unwrap();
    let (folder, precious) = (place.path().join("run"), place.path().join("precious.txt"));
    fs::write(&precious, "precious").unwrap();
    for what in ["link", "hard link", "pipe"] {
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir(&folder).unwrap();
        let lock = folder.join("lock");
        match what {
            "link" => symlink(&precious, &lock).unwrap(),
            "hard link" => fs::hard_link(&precious, &lock).unwrap(),
            _ => pipe(&lock),
        }
        let finished = run_within(20, train(&folder, &[]));
        assert_refused(&finished, 2, &[lock.to_str().unwrap(), "nothing was written"]);
        assert_eq!(fs::read(&precious).unwrap(), b"precious");
    }
    // Figures that lead elsewhere are not drawn there.
    let run = place.path().join("whole");
    succeed(train(&run, &[]));
    let elsewhere = place.path().join("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    symlink(&elsewhere, run.join("figures")).unwrap();
    for command in ["plot", "video"] {
        let finished = run_within(60, stein(&[command, run.to_str().unwrap()]));
        assert_refused(&finished, 2, &["figures", "symbolic link"]);
    }
    assert!(snapshot(&elsewhere).is_empty());
}

#[test]
fn the_folder_of_a_run_may_itself_be_a_link() {
    let place = tempfile::tempdir().unwrap();
    let (real, link) = (place.path().join("real"), place.path().join("link"));
    fs::create_dir(&real).unwrap();
    symlink(&real, &link).unwrap();
    succeed(train(&link, &[]));
    succeed(train(&link, &["--resume", "--iterations=14"]));
    assert_eq!(rows(&real), 14);
}

/// Starts a long run, takes its folder away while it trains, and lets another run of the same name take its place.
#[test]
fn a_folder_that_is_replaced_is_not_written_to() {
    let place = tempfile::tempdir().unwrap();
    let (folder, whole) = (place.path().join("run"), place.path().join("whole"));
    let other = ["--seed=2", "--iterations=30"];
    succeed(train(&whole, &other));
    let expected = Results::of(&whole);
    // All of the folder, or what is in it: then it is the lock that tells.
    for emptied in [false, true] {
        let first = start(train(&folder, &["--iterations=100000", "--set=checkpoint.every=2"]));
        support::wait_until("it has a checkpoint", || !checkpoints(&folder).is_empty());
        if emptied {
            // It may write a file meanwhile.
            while fs::remove_dir_all(&folder).is_err() {}
            fs::create_dir_all(&folder).unwrap();
        } else {
            fs::rename(&folder, place.path().join("away")).unwrap();
        }
        succeed(train(&folder, &other));
        let output = first.wait_with_output().unwrap();
        let finished = Finished {
            code: output.status.code(),
            stdout: String::new(),
            stderr: String::from_utf8(output.stderr).unwrap(),
        };
        assert_refused(
            &finished,
            1,
            &[
                "was removed or replaced",
                folder.to_str().unwrap(),
                "another folder",
                "--resume",
            ],
        );
        expected.assert_same_in(&folder, "beside a run whose folder it was");
        // What was moved away is whole and goes on.
        let away = place.path().join("away");
        if !emptied {
            let last = rows(&away) + 2;
            succeed(train(&away, &["--resume", &format!("--iterations={last}")]));
            fs::remove_dir_all(&away).unwrap();
        }
        fs::remove_dir_all(&folder).unwrap();
    }
}

/// A config.toml of another run in the folder of this one.
#[test]
fn settings_that_are_replaced_end_the_run() {
    let place = tempfile::tempdir().unwrap();
    let (folder, other) = (place.path().join("run"), place.path().join("other"));
    succeed(train(&other, &["--seed=2"]));
    let first = start(train(&folder, &["--iterations=100000"]));
    support::wait_until("it has a checkpoint", || !checkpoints(&folder).is_empty());
    fs::copy(other.join("config.toml"), folder.join("config.toml")).unwrap();
    let output = first.wait_with_output().unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{stderr}");
    assert!(stderr.contains("was removed or replaced"), "{stderr}");
}

/// A report is made to be handed on: nothing gets into it from outside the folder.
#[test]
fn a_report_shows_no_file_that_a_link_leads_to() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    succeed(train(&folder, &METHOD));
    let secret = place.path().join("secret.txt");
    fs::write(&secret, "GIF89a of something private").unwrap();
    fs::create_dir_all(folder.join("figures")).unwrap();
    let film = folder.join("figures/video.gif");
    let report = || {
        let finished = run_within(60, stein(&["report", folder.to_str().unwrap(), "--episodes=2"]));
        assert_eq!(finished.code, Some(0), "{}", finished.stderr);
        fs::read_to_string(folder.join("report.html")).unwrap()
    };
    symlink(&secret, &film).unwrap();
    assert!(!report().contains("film of all policies"));
    fs::remove_file(&film).unwrap();
    pipe(&film);
    assert!(!report().contains("film of all policies"));
    fs::remove_file(&film).unwrap();
    fs::copy(&secret, &film).unwrap();
    assert!(report().contains("film of all policies"));
}

#[test]
fn an_experiment_does_not_write_through_links() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("experiment");
    let arguments = [
        "reproduce",
        "maze",
        "--scale=smoke",
        "--seeds=1",
        "--only=ppo",
        "--out",
        out.to_str().unwrap(),
    ];
    succeed(stein(&arguments));
    for name in ["figures", "ppo"] {
        let elsewhere = place.path().join("elsewhere");
        fs::rename(out.join(name), &elsewhere).unwrap();
        symlink(&elsewhere, out.join(name)).unwrap();
        let before = snapshot(&elsewhere);
        assert_refused(&run_within(60, stein(&arguments)), 2, &[name, "symbolic link"]);
        assert!(snapshot(&elsewhere) == before, "{name} was written to");
        fs::remove_file(out.join(name)).unwrap();
        fs::rename(&elsewhere, out.join(name)).unwrap();
    }
}
