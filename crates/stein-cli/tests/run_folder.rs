//! Places a run cannot go to: nothing there is touched, and the sentence says what is in the way.

mod support;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use support::{Results, assert_refused, rows, run, snapshot, stein, succeed, train};

#[test]
fn a_run_is_never_overwritten() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    succeed(train(&folder, &[]));
    let before = snapshot(&folder);
    for extra in [&[][..], &["--seed=2"], &["--iterations=20"]] {
        let finished = run(train(&folder, extra));
        assert_refused(
            &finished,
            2,
            &["holds a run already", "--resume", "--out", folder.to_str().unwrap()],
        );
    }
    assert!(snapshot(&folder) == before, "the folder was changed");
}

#[test]
fn a_folder_with_other_files_is_left_alone() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("thesis");
    fs::create_dir_all(folder.join("chapters")).unwrap();
    fs::write(folder.join("chapters/one.txt"), "It was a dark and stormy night").unwrap();
    let before = snapshot(&folder);
    for extra in [&[][..], &["--resume"]] {
        let finished = run(train(&folder, extra));
        assert_refused(
            &finished,
            2,
            &["is not empty", "chapters", "--out", folder.to_str().unwrap()],
        );
        assert!(snapshot(&folder) == before, "the folder was changed");
    }
    for command in ["eval", "plot"] {
        let finished = run(stein(&[command, folder.to_str().unwrap()]));
        assert_refused(
            &finished,
            2,
            &["is not a run folder", "config.toml", folder.to_str().unwrap()],
        );
    }
    assert!(snapshot(&folder) == before, "the folder was changed");
}

#[test]
fn a_file_in_the_way_is_named() {
    let place = tempfile::tempdir().unwrap();
    let file = place.path().join("file");
    fs::write(&file, "important").unwrap();
    for out in [file.clone(), file.join("run"), file.join("deep/run")] {
        for extra in [&[][..], &["--resume"]] {
            let finished = run(train(&out, extra));
            assert_refused(
                &finished,
                1,
                &["cannot create the folder", out.to_str().unwrap(), "choose another path"],
            );
        }
        let finished = run(stein(&["eval", out.to_str().unwrap()]));
        assert_refused(&finished, 2, &["is not a run folder", out.to_str().unwrap()]);
    }
    assert_eq!(fs::read(&file).unwrap(), b"important");
    assert_eq!(snapshot(place.path()).len(), 1);
}

#[test]
fn a_run_without_a_checkpoint_has_curves_but_no_policies_to_evaluate() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    succeed(train(&folder, &[]));
    fs::remove_dir_all(folder.join("checkpoints")).unwrap();
    let before = snapshot(&folder);
    let name = folder.to_str().unwrap();
    let words = ["has no checkpoint yet", "checkpoint.every = 2", name];
    assert_refused(&run(stein(&["eval", name])), 2, &words);
    assert!(snapshot(&folder) == before, "the folder was changed");
    // Curves need no policies.
    let drawn = succeed(stein(&["plot", name]));
    assert!(
        drawn.stderr.contains("note: ") && drawn.stderr.contains("has no checkpoint yet"),
        "{}",
        drawn.stderr
    );
    assert!(drawn.stdout.contains("learning_curves.png"), "{}", drawn.stdout);
    assert!(!drawn.stdout.contains("maze_"), "{}", drawn.stdout);
    // Where nothing has been written down there is nothing to draw.
    fs::remove_dir_all(folder.join("figures")).unwrap();
    fs::remove_file(folder.join("metrics.csv")).unwrap();
    assert_refused(&run(stein(&["plot", name])), 2, &words);
}

#[test]
fn two_processes_cannot_train_in_one_folder() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    let long = ["--iterations=100000"];
    let mut first = support::start(train(&folder, &long));
    support::wait_until("the first has a checkpoint", || rows(&folder) > 2);
    let name = folder.to_str().unwrap();
    let second = run(train(&folder, &["--iterations=100000", "--resume"]));
    let third = run(train(&folder, &long));
    let looking = run(stein(&["eval", name]));
    let still_running = first.try_wait().unwrap().is_none();
    first.kill().unwrap();
    first.wait().unwrap();
    assert!(still_running, "the first process did not survive the others");
    assert_refused(&second, 2, &["another process is training in", name, "wait for it"]);
    assert_refused(&third, 2, &["holds a run already", name]);
    assert_eq!(looking.code, Some(0), "{}", looking.stderr);
}

/// The tables and the progress of a run do not need anybody who reads what it prints.
#[test]
fn a_reader_that_goes_away_does_not_end_the_run() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    let mut child = train(&folder, &[])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop((child.stdout.take(), child.stderr.take()));
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(rows(&folder), 12);
}

/// Runs a script with `$DISK`, an empty file system of a megabyte that only the script sees, and `$STEIN`. None where
/// the system does not let us mount one.
fn on_a_small_disk(place: &Path, script: &str) -> Option<String> {
    let disk = place.join("disk");
    fs::create_dir_all(&disk).unwrap();
    let unshare = |script: &str| {
        Command::new("unshare")
            .args(["--user", "--map-root-user", "--mount", "sh", "-c", script])
            .env("DISK", &disk)
            .env("STEIN", env!("CARGO_BIN_EXE_stein"))
            .current_dir(place)
            .output()
    };
    let mount = "mount -t tmpfs -o size=1m tmpfs \"$DISK\"";
    if !unshare(mount).is_ok_and(|output| output.status.success()) {
        println!("skipped: this system does not let the test mount a small disk");
        return None;
    }
    let output = unshare(&format!("{mount} || exit 99\n{script}")).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    Some(String::from_utf8(output.stdout).unwrap())
}

/// Runs into a full disk with so many KiB left, then makes room and resumes.
fn survives_full_disks(extra: &[&str], free: &[usize]) {
    let place = tempfile::tempdir().unwrap();
    let whole = place.path().join("whole");
    succeed(train(&whole, extra));
    let expected = Results::of(&whole);
    for free in free {
        let kept = place.path().join(format!("kept{free}"));
        let script = format!(
            "train=\"$STEIN train maze {} --out $DISK/run\"\n\
             head -c $(((1024 - {free}) * 1024)) /dev/zero > $DISK/filler\n\
             $train > stdout 2> stderr; echo $?\n\
             ls $DISK/run/*.tmp $DISK/run/checkpoints/*.tmp 2> /dev/null\n\
             rm $DISK/filler; mount -o remount,size=16m $DISK\n\
             $train --resume > /dev/null 2> again || cat again\n\
             cp -r $DISK/run {}",
            [support::SMALL, extra].concat().join(" "),
            kept.display()
        );
        let Some(stdout) = on_a_small_disk(place.path(), &script) else {
            return;
        };
        let stderr = fs::read_to_string(place.path().join("stderr")).unwrap();
        println!("{free} KiB: {}", stderr.lines().last().unwrap_or_default());
        assert_eq!(stdout, "1\n", "{free} KiB: {stderr}");
        let finished = support::Finished {
            code: Some(1),
            stdout: fs::read_to_string(place.path().join("stdout")).unwrap(),
            stderr,
        };
        let run = place.path().join("disk/run");
        assert_refused(
            &finished,
            1,
            &["cannot ", run.to_str().unwrap(), "free some space", "--resume"],
        );
        expected.assert_same_in(&kept, &format!("after a full disk with {free} KiB"));
    }
}

/// The run needs 1,400 KiB: it fails at its settings, its tables, its events, its first checkpoint, or a later one.
#[test]
fn a_full_disk_ends_the_run_and_space_lets_it_go_on() {
    survives_full_disks(&[], &[0, 4, 8, 12, 16, 200, 400, 1000]);
}

/// No checkpoint before the last iteration: it is the tables that grow until the disk is full.
#[test]
fn a_disk_that_fills_up_within_a_row() {
    survives_full_disks(&["--set=iterations=60", "--set=checkpoint.every=60"], &[16, 20, 24]);
}
