//! Starting the real program and looking at what it leaves behind.
#![allow(
    dead_code,
    reason = "each file of tests is a program of its own and uses a part of this"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

/// Settings under which a run takes a fraction of a second; options that come later win.
pub const SMALL: &[&str] = &[
    "--set=method=ppo",
    "--set=ensemble=3",
    "--set=steps=256",
    "--set=iterations=12",
    "--set=ppo.minibatches=4",
    "--set=checkpoint.every=2",
];

/// How a program ended and what it said.
#[derive(Debug)]
pub struct Finished {
    /// The exit code; none where a signal ended it.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
}

/// The program `stein` with these arguments.
pub fn stein(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_stein"));
    command.args(arguments);
    command
}

/// The example `pendulum` with these arguments.
pub fn pendulum(arguments: &[&str]) -> Command {
    let tests = std::env::current_exe().unwrap();
    let program = tests.ancestors().nth(2).unwrap().join("examples/pendulum");
    assert!(
        program.exists(),
        "{program:?} is missing: cargo test builds it, but not with --test; try cargo build --examples"
    );
    let mut command = Command::new(program);
    command.args(arguments);
    command
}

/// `stein train maze` with small settings, then `extra`, in `folder`.
pub fn train(folder: &Path, extra: &[&str]) -> Command {
    let mut command = stein(&["train", "maze"]);
    command.args(SMALL).args(extra).arg("--out").arg(folder);
    command
}

/// Runs a program to its end.
pub fn run(mut command: Command) -> Finished {
    let output = command.stdin(Stdio::null()).output().unwrap();
    Finished {
        code: output.status.code(),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

/// Runs a program that must end well.
pub fn succeed(command: Command) -> Finished {
    let finished = run(command);
    assert_eq!(finished.code, Some(0), "{}", finished.stderr);
    finished
}

/// Starts a program without waiting for it; what it says on stderr is kept in a pipe.
pub fn start(mut command: Command) -> Child {
    command
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until `ready`, for a minute at most.
pub fn wait_until(what: &str, ready: impl Fn() -> bool) {
    let begin = Instant::now();
    while !ready() {
        assert!(begin.elapsed() < Duration::from_secs(60), "waited in vain until {what}");
        sleep(Duration::from_millis(1));
    }
}

/// A program refused to go on: with this exit code, without a panic, and in one line after those of the progress that
/// holds all these words.
#[track_caller]
pub fn assert_refused(finished: &Finished, code: i32, words: &[&str]) {
    let stderr = &finished.stderr;
    assert_eq!(finished.code, Some(code), "{stderr}");
    let progress = |line: &&str| {
        ["training ", "iteration ", "evaluating "]
            .iter()
            .any(|word| line.starts_with(word))
    };
    let lines: Vec<&str> = stderr.lines().filter(|line| !progress(line)).collect();
    assert!(lines.len() == 1 && lines[0].starts_with("error: "), "{stderr}");
    assert_eq!(stderr.lines().last(), Some(lines[0]), "{stderr}");
    assert!(!stderr.contains("panicked"), "{stderr}");
    for word in words {
        assert!(lines[0].contains(word), "no {word:?} in: {}", lines[0]);
    }
    assert!(lines[0].len() < 600, "a long sentence: {}", lines[0]);
    assert_eq!(finished.stdout, "");
}

/// Every file below `folder` with its bytes, and every folder with none.
pub fn snapshot(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut found = BTreeMap::new();
    let mut open = vec![folder.to_path_buf()];
    while let Some(place) = open.pop() {
        for entry in fs::read_dir(place).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(folder).unwrap().to_path_buf();
            if path.is_dir() {
                found.insert(name, None);
                open.push(path);
            } else {
                found.insert(name, Some(fs::read(path).unwrap()));
            }
        }
    }
    found
}

/// Copies a folder with all that is in it.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for (name, bytes) in snapshot(from) {
        match bytes {
            None => fs::create_dir_all(to.join(name)).unwrap(),
            Some(bytes) => {
                fs::create_dir_all(to.join(&name).parent().unwrap()).unwrap();
                fs::write(to.join(name), bytes).unwrap();
            }
        }
    }
}

/// The checkpoints of a run, oldest first.
pub fn checkpoints(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder.join("checkpoints")) else {
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "safetensors"));
    paths.sort();
    paths
}

/// Rows of metrics.csv; none where it does not exist yet.
pub fn rows(folder: &Path) -> usize {
    fs::read_to_string(folder.join("metrics.csv")).map_or(0, |text| text.lines().count().saturating_sub(1))
}

/// What must be the same after equal runs, to the last bit.
#[derive(PartialEq)]
pub struct Results {
    metrics: Vec<u8>,
    /// Of methods with a kernel.
    kernel: Option<Vec<u8>>,
    checkpoint: (String, Vec<u8>),
    evaluation: String,
}

impl Results {
    /// The results of a finished run.
    pub fn of(folder: &Path) -> Self {
        let newest = checkpoints(folder).pop().unwrap();
        let name = newest.file_name().unwrap().to_str().unwrap().to_string();
        Results {
            metrics: fs::read(folder.join("metrics.csv")).unwrap(),
            kernel: fs::read(folder.join("kernel.csv")).ok(),
            checkpoint: (name, fs::read(newest).unwrap()),
            evaluation: succeed(stein(&["eval", folder.to_str().unwrap(), "--json"])).stdout,
        }
    }

    /// Compares with the results in `folder`.
    #[track_caller]
    pub fn assert_same_in(&self, folder: &Path, what: &str) {
        let other = Results::of(folder);
        assert!(self.metrics == other.metrics, "metrics.csv differs: {what}");
        assert!(self.kernel == other.kernel, "kernel.csv differs: {what}");
        assert_eq!(self.checkpoint.0, other.checkpoint.0, "{what}");
        assert!(
            self.checkpoint == other.checkpoint,
            "the last checkpoint differs: {what}"
        );
        assert_eq!(self.evaluation, other.evaluation, "{what}");
    }
}

/// The text as one JSON object.
#[track_caller]
pub fn object(text: &str) -> serde_json::Map<String, Value> {
    match serde_json::from_str(text) {
        Ok(Value::Object(object)) => object,
        other => panic!("not one JSON object ({other:?}): {text}"),
    }
}

/// The keys of a JSON object, in their order.
#[track_caller]
pub fn keys(value: &Value) -> Vec<&str> {
    value.as_object().unwrap().keys().map(String::as_str).collect()
}
