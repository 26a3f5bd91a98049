//! The code in the documents is code that compiles: each block stands, to the letter, in an example.

use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The blocks of Rust in a document.
fn rust_blocks(document: &str) -> Vec<&str> {
    let blocks = document.split("```rust\n").skip(1);
    blocks.filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn code_in_documents_is_that_of_the_examples() {
    for (document, example) in [
        ("README.md", "crates/stein/examples/train_maze.rs"),
        ("docs/environments.md", "crates/stein-cli/examples/line.rs"),
    ] {
        let (document_text, example_text) = (read(document), read(example));
        let blocks = rust_blocks(&document_text);
        assert!(!blocks.is_empty(), "{document} shows no code");
        for block in blocks {
            assert!(
                example_text.contains(block),
                "{document} shows code that is not in {example}:\n{block}"
            );
        }
    }
}
