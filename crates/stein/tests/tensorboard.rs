//! The real TensorBoard reads our event files, and forgets what a resumed run writes again.
//!
//! Needs a Python with the package `tensorboard`: the one that `STEIN_TEST_PYTHON` names, else `python3`. Without that
//! variable the test is skipped where the package is missing.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};
use stein::run::tensorboard::EventWriter;

/// Prints {tag: [[step, value], …]} of the folder given.
const READER: &str = "
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
events = EventAccumulator(sys.argv[1], size_guidance={'scalars': 0})
events.Reload()
scalars = {tag: [[e.step, e.value] for e in events.Scalars(tag)] for tag in events.Tags()['scalars']}
print(json.dumps(scalars))
";

/// Prints {tag: text} of the folder given.
const TEXTS: &str = "
import json, sys
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tensorboard.util import tensor_util
events = EventAccumulator(sys.argv[1])
events.Reload()
tags = events.PluginTagToContent('text')
texts = {tag: tensor_util.make_ndarray(events.Tensors(tag)[0].tensor_proto)[0].decode() for tag in tags}
print(json.dumps(texts))
";

/// A Python that has TensorBoard.
fn python() -> Option<String> {
    let given = std::env::var("STEIN_TEST_PYTHON").ok();
    let python = given.clone().unwrap_or_else(|| "python3".into());
    let works = Command::new(&python)
        .args(["-c", "import tensorboard"])
        .output()
        .is_ok_and(|o| o.status.success());
    assert!(
        works || given.is_none(),
        "{python} of STEIN_TEST_PYTHON cannot import tensorboard"
    );
    works.then_some(python)
}

fn scalars(python: &str, folder: &Path) -> Value {
    ask(python, READER, folder)
}

fn ask(python: &str, program: &str, folder: &Path) -> Value {
    let output = Command::new(python).args(["-c", program]).arg(folder).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn tensorboard_reads_a_run_that_was_cut_and_resumed() {
    let Some(python) = python() else {
        eprintln!("skipped: python3 has no package tensorboard; name one that has in STEIN_TEST_PYTHON");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let mut writer = EventWriter::create(folder.path()).unwrap();
    for step in 1..=5 {
        writer
            .scalars(
                step,
                &[("return/mean", step as f64), ("loss", 0.5), ("absent", f64::NAN)],
            )
            .unwrap();
    }
    writer.flush().unwrap();
    writer.text(0, "settings", "    seed = 1\n    clip = 0.2\n").unwrap();
    writer.flush().unwrap();
    assert_eq!(
        ask(&python, TEXTS, folder.path()),
        json!({"settings": "    seed = 1\n    clip = 0.2\n"})
    );
    let rows = |values: &[f64]| -> Vec<Value> { values.iter().zip(1..).map(|(v, step)| json!([step, v])).collect() };
    let loss = rows(&[0.5; 5]);
    let expected = json!({"return/mean": rows(&[1.0, 2.0, 3.0, 4.0, 5.0]), "loss": loss});
    assert_eq!(scalars(&python, folder.path()), expected);

    // Killed in the middle of a record; the last checkpoint has three iterations.
    let mut torn = fs::read(writer.path()).unwrap();
    torn.truncate(torn.len() - 7);
    fs::write(writer.path(), torn).unwrap();
    let mut writer = EventWriter::resume(folder.path(), 4).unwrap();
    writer.scalars(4, &[("return/mean", 40.0), ("loss", 0.25)]).unwrap();
    writer.flush().unwrap();
    let loss = rows(&[0.5, 0.5, 0.5, 0.25]);
    let expected = json!({"return/mean": rows(&[1.0, 2.0, 3.0, 40.0]), "loss": loss});
    assert_eq!(scalars(&python, folder.path()), expected);
}
