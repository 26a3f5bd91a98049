//! A run may be killed or interrupted at any moment; resumed, it ends with the same bytes as one that was left alone.
#![cfg(unix)]

mod support;

use std::fs;
use std::io::BufRead;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::thread::sleep;
use std::time::{Duration, Instant, SystemTime};

use rand::{RngExt, SeedableRng};
use stein::rng::Stream;
use support::{Results, checkpoints, copy, rows, run, snapshot, stein, succeed, train};

/// Settings under which a run takes about a second, which leaves time to interrupt it.
const LONGER: &[&str] = &["--iterations=120", "--set=checkpoint.every=7"];

const SIGKILL: i32 = 9;

/// Ways of training; every one of them has state of its own that a resumed run must find again.
const PPO: &[&str] = &["--method=ppo"];
const SVPG: &[&str] = &["--method=svpg"];
const QD: &[&str] = &["--method=qd"];
const DIAYN: &[&str] = &["--method=diayn"];
const SI: &[&str] = &["--method=si"];
const NCE: &[&str] = &["--method=qd", "--set=qd.estimator=nce"];
const VALUEDICE: &[&str] = &["--method=qd", "--set=qd.estimator=valuedice"];
const GENDICE: &[&str] = &["--method=qd", "--set=qd.estimator=gendice"];

/// The command that goes on with a run, or begins it.
fn resume(folder: &Path, extra: &[&str]) -> Command {
    train(folder, &[LONGER, extra, &["--resume"]].concat())
}

fn kill(mut child: Child) -> ExitStatus {
    child.kill().unwrap();
    child.wait().unwrap()
}

/// Sends a signal by its name.
fn send(signal: &str, child: &Child) {
    let command = format!("kill -{signal} {}", child.id());
    assert!(Command::new("sh").args(["-c", &command]).status().unwrap().success());
}

/// No write that a kill cut short has been left.
fn assert_clean(folder: &Path) {
    let left = snapshot(folder)
        .into_keys()
        .find(|name| name.extension().is_some_and(|end| end == "tmp"));
    assert_eq!(left, None);
}

/// Kills ten times at random moments of a run, each time it is resumed.
fn survives_random_kills(extra: &[&str]) {
    let place = tempfile::tempdir().unwrap();
    let whole = place.path().join("whole");
    let begin = Instant::now();
    succeed(resume(&whole, extra));
    let duration = begin.elapsed();
    let expected = Results::of(&whole);

    let seed = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap()
        .as_secs();
    println!("random moments of seed {seed} in a run of {duration:?}");
    let mut random = Stream::seed_from_u64(seed);
    let (mut kills, mut runs) = (0, 0);
    while kills < 10 {
        runs += 1;
        let folder = place.path().join(format!("killed{runs}"));
        loop {
            // Some while the program starts, the others at any time of the work that is left.
            let share = if kills % 4 == 0 { 0.03 } else { 0.25 };
            let moment = duration.mul_f64(random.random_range(0.0..share));
            let child = support::start(resume(&folder, extra));
            sleep(moment);
            let status = kill(child);
            if status.signal() != Some(SIGKILL) {
                assert!(status.success(), "{status}");
                break;
            }
            kills += 1;
            println!(
                "killed after {moment:?}, {} rows, {} checkpoints",
                rows(&folder),
                checkpoints(&folder).len()
            );
            if kills == 10 {
                break;
            }
        }
        succeed(resume(&folder, extra));
        expected.assert_same_in(&folder, &format!("killed at moments of seed {seed}"));
        assert_clean(&folder);
    }
}

/// Kills as soon as there is a temporary file: while a file is being written.
fn survives_kills_while_writing(extra: &[&str]) {
    let place = tempfile::tempdir().unwrap();
    let whole = place.path().join("whole");
    succeed(resume(&whole, extra));
    let expected = Results::of(&whole);
    let folder = place.path().join("killed");
    let temporary = |below: &str| {
        let entries = fs::read_dir(folder.join(below)).into_iter().flatten().flatten();
        entries
            .into_iter()
            .any(|entry| entry.file_name().to_string_lossy().ends_with(".tmp"))
    };
    let mut left = 0;
    for below in ["", "checkpoints", "checkpoints", "checkpoints", "checkpoints"] {
        let mut child = support::start(resume(&folder, extra));
        while !temporary(below) && child.try_wait().unwrap().is_none() {}
        kill(child);
        left += usize::from(temporary(below));
    }
    println!("{left} of 5 kills left a part of a file");
    succeed(resume(&folder, extra));
    expected.assert_same_in(&folder, "killed while writing");
    assert_clean(&folder);
}

/// Ctrl-C: everything is saved, and the run goes on from exactly there.
fn survives_interrupts(extra: &[&str]) {
    let place = tempfile::tempdir().unwrap();
    let whole = place.path().join("whole");
    succeed(resume(&whole, extra));
    let expected = Results::of(&whole);
    let folder = place.path().join("interrupted");
    for (signal, least) in [("INT", 5), ("TERM", 30), ("INT", 60)] {
        let child = support::start(resume(&folder, extra));
        support::wait_until("the run has got somewhere", || rows(&folder) >= least);
        send(signal, &child);
        let output = child.wait_with_output().unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(130), "{stderr}");
        let done = rows(&folder);
        let last = format!(
            "stopped after iteration {done} of 120; everything is saved: go on with `stein train --resume --out {}`",
            folder.display()
        );
        assert_eq!(stderr.lines().last(), Some(&last[..]), "{stderr}");
        assert!(stderr.contains("\nstopping after this iteration"), "{stderr}");
        let newest = checkpoints(&folder).pop().unwrap();
        assert!(
            newest.ends_with(format!("iteration-{done:06}.safetensors")),
            "{newest:?}"
        );
    }
    succeed(resume(&folder, extra));
    expected.assert_same_in(&folder, "interrupted");
}

/// The states that a kill at an unlucky moment leaves, made by hand.
fn survives_unlucky_moments(extra: &[&str]) {
    let place = tempfile::tempdir().unwrap();
    let whole = place.path().join("whole");
    succeed(train(&whole, extra));
    let expected = Results::of(&whole);
    let part = b"half of a fi";
    let write = |path: &Path, bytes: &[u8]| {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, bytes).unwrap();
    };
    let drop_newest = |folder: &Path| fs::remove_file(checkpoints(folder).pop().unwrap()).unwrap();
    let cut = |folder: &Path, name: &str, bytes: usize| {
        let text = fs::read(folder.join(name)).unwrap();
        fs::write(folder.join(name), &text[..text.len() - bytes]).unwrap();
    };
    type Change<'a> = &'a dyn Fn(&Path);
    let moments: [(&str, bool, Change); 11] = [
        ("before the folder was made", false, &|_| ()),
        ("after the folder was made", false, &|folder| {
            fs::create_dir(folder).unwrap()
        }),
        ("after the lock was taken", false, &|folder| {
            write(&folder.join("lock"), b"")
        }),
        ("while the settings were written", false, &|folder| {
            write(&folder.join("lock"), b"");
            write(&folder.join("config.toml.7-0.stein.tmp"), part);
        }),
        ("after the settings were written", false, &|folder| {
            write(
                &folder.join("config.toml"),
                &fs::read(whole.join("config.toml")).unwrap(),
            );
        }),
        ("between the tables", true, &|folder| {
            fs::remove_dir_all(folder.join("checkpoints")).unwrap();
            fs::remove_dir_all(folder.join("tensorboard")).unwrap();
            fs::remove_file(folder.join("timings.csv")).unwrap();
        }),
        ("before the first checkpoint", true, &|folder| {
            fs::remove_dir_all(folder.join("checkpoints")).unwrap();
        }),
        ("between the row and its checkpoint", true, &drop_newest),
        ("while a row was written", true, &|folder| {
            drop_newest(folder);
            cut(folder, "metrics.csv", 9);
            cut(folder, "timings.csv", 100);
            if folder.join("kernel.csv").exists() {
                cut(folder, "kernel.csv", 7);
            }
        }),
        ("while a checkpoint was written", true, &|folder| {
            drop_newest(folder);
            write(
                &folder.join("checkpoints/iteration-000012.safetensors.7-3.stein.tmp"),
                part,
            );
            write(&folder.join("metrics.csv.7-1.stein.tmp"), part);
        }),
        ("before the summary", true, &|folder| {
            fs::remove_file(folder.join("summary.json")).unwrap();
            write(&folder.join("summary.json.7-4.stein.tmp"), part);
        }),
    ];
    for (index, (moment, begun, change)) in moments.into_iter().enumerate() {
        let folder = place.path().join(index.to_string());
        if begun {
            copy(&whole, &folder);
        }
        change(&folder);
        succeed(train(&folder, &[extra, &["--resume"]].concat()));
        expected.assert_same_in(&folder, moment);
        assert_clean(&folder);
        assert!(folder.join("summary.json").exists(), "{moment}");
    }
}

#[test]
fn random_kills() {
    survives_random_kills(PPO);
    survives_random_kills(QD);
}

#[test]
fn kills_while_writing() {
    survives_kills_while_writing(PPO);
}

#[test]
fn interrupts() {
    survives_interrupts(PPO);
}

#[test]
fn unlucky_moments() {
    for extra in [PPO, SVPG, DIAYN, SI, QD, NCE, VALUEDICE, GENDICE] {
        survives_unlucky_moments(extra);
    }
}

#[test]
fn a_finished_run_resumes_to_nothing_and_goes_on_when_asked_for_more() {
    let place = tempfile::tempdir().unwrap();
    let (more, less) = (place.path().join("more"), place.path().join("less"));
    // The learning rate falls over the run, so that of a longer one is another: here it does not fall.
    let constant = "--set=ppo.anneal.to=1";
    succeed(train(&more, &[constant]));
    succeed(train(&less, &[constant, "--iterations=7"]));

    let before = snapshot(&less);
    succeed(train(&less, &[constant, "--iterations=7", "--resume"]));
    // The folder alone names the run as well.
    let finished = succeed(stein(&["train", "--resume", "--out", less.to_str().unwrap()]));
    assert_eq!(finished.stderr, "");
    assert!(finished.stdout.starts_with("done: "), "{}", finished.stdout);
    assert!(snapshot(&less) == before, "resuming a finished run changed its folder");

    let finished = run(train(&less, &[constant, "--iterations=6", "--resume"]));
    support::assert_refused(&finished, 2, &["iterations = 6", "has done 7", less.to_str().unwrap()]);
    assert!(snapshot(&less) == before, "a refused resumption changed the folder");

    let finished = succeed(train(&less, &[constant, "--resume"]));
    assert!(
        finished.stderr.contains("resuming after iteration 7"),
        "{}",
        finished.stderr
    );
    Results::of(&more).assert_same_in(&less, "12 iterations in two parts");
    let settings = |folder: &Path| fs::read(folder.join("config.toml")).unwrap();
    assert!(settings(&more) == settings(&less), "config.toml differs");
}

#[test]
fn an_interrupt_during_the_evaluation_stops_at_once_and_loses_nothing() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    // Episodes so long that the evaluation would take a while.
    let extra = ["--set=env.horizon=1000000", "--iterations=2"];
    let mut child = support::start(train(&folder, &extra));
    let stderr = std::io::BufReader::new(child.stderr.take().unwrap());
    let mut lines = stderr.lines().map(Result::unwrap);
    assert!(lines.any(|line| line.starts_with("evaluating ")));
    sleep(Duration::from_millis(200));
    send("INT", &child);
    let said: Vec<String> = lines.collect();
    assert_eq!(child.wait().unwrap().code(), Some(130), "{said:?}");
    assert!(
        said.len() == 1 && said[0].contains("their training is saved: go on with `stein train --resume"),
        "{said:?}"
    );
    assert!(!folder.join("summary.json").exists());
    assert_eq!((rows(&folder), checkpoints(&folder).len()), (2, 1));
    assert_clean(&folder);
}

#[test]
fn a_second_interrupt_stops_at_once() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    // Iterations of many epochs, so that the second signal comes within one.
    let extra = ["--set=ppo.epochs=1000", "--steps=2048", "--set=checkpoint.every=1"];
    let child = support::start(train(&folder, &extra));
    support::wait_until("training has begun", || folder.join("tensorboard").exists());
    sleep(Duration::from_millis(100));
    send("INT", &child);
    sleep(Duration::from_millis(100));
    send("INT", &child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130));
    assert_eq!(rows(&folder), 0, "it went on to the end of the iteration");
}

/// SIGTERM (`timeout`, schedulers) within an iteration that takes long: the program ends within 2 s, and the run goes on to the
/// bits of one that was not cut.
#[test]
fn sigterm_does_not_wait_for_a_long_iteration() {
    let place = tempfile::tempdir().unwrap();
    let [folder, whole, trial] = ["run", "whole", "trial"].map(|name| place.path().join(name));
    let train = |folder: &Path, iterations: u32, epochs: u32| {
        let extra = ["--ensemble=2", "--steps=50000", "--set=checkpoint.every=1", "--resume"];
        let (iterations, epochs) = (
            format!("--iterations={iterations}"),
            format!("--set=ppo.epochs={epochs}"),
        );
        train(
            folder,
            &[&extra[..], &["--set=ppo.kl_limit=0", &iterations, &epochs]].concat(),
        )
    };
    // As many epochs as make an iteration take about four times the 2 s, however fast the machine is.
    let begin = Instant::now();
    succeed(train(&trial, 1, 20));
    let epochs = 20 * (8.0 / begin.elapsed().as_secs_f64()).ceil() as u32;
    let long = |folder: &Path| train(folder, 2, epochs);
    succeed(long(&whole));
    let expected = Results::of(&whole);
    let child = support::start(long(&folder));
    support::wait_until("the first iteration is saved", || !checkpoints(&folder).is_empty());
    // A signal between two iterations would end the run by itself: let the second one begin.
    sleep(Duration::from_millis(200));
    let begin = Instant::now();
    send("TERM", &child);
    let output = child.wait_with_output().unwrap();
    let (taken, stderr) = (begin.elapsed(), String::from_utf8(output.stderr).unwrap());
    println!("{taken:?}: {}", stderr.lines().last().unwrap_or_default());
    assert!(taken < Duration::from_secs(2), "{taken:?}: {stderr}");
    assert_eq!(output.status.code(), Some(130), "{stderr}");
    assert!(
        stderr.contains("stopped within an iteration") && stderr.contains("--resume"),
        "{stderr}"
    );
    assert_eq!(rows(&folder), 1);
    succeed(long(&folder));
    expected.assert_same_in(&folder, "after SIGTERM within an iteration");
}
