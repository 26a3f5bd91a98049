//! The crates as others get them: packages that are complete, a library that need not draw, a template that builds elsewhere.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

mod support;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .canonicalize()
        .unwrap()
}

/// What `cargo` prints with these arguments.
fn cargo(folder: &Path, arguments: &[&str]) -> String {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.args(arguments).current_dir(folder);
    // What this workspace sets in .cargo/config.toml others do not have.
    command.env_remove("MUJOCO_DYNAMIC_LINK_DIR");
    support::succeed(command).stdout
}

/// The files that sources of a crate include, as paths within the crate.
fn included(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for (name, bytes) in support::snapshot(&folder.join("src")) {
        let text = String::from_utf8(bytes.unwrap_or_default()).unwrap();
        for part in text.split("include_str!(\"").skip(1) {
            let path = Path::new("src").join(name.parent().unwrap());
            found.push(plain(&path.join(part.split('"').next().unwrap())));
        }
    }
    found
}

/// A path without `..`; it must not lead out of the folder.
fn plain(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => assert!(plain.pop(), "{path:?} leads out of its crate"),
            part => plain.push(part),
        }
    }
    plain
}

#[test]
fn packages_are_complete() {
    let mut includes = 0;
    for name in ["stein", "stein-mujoco", "stein-cli"] {
        let list = cargo(
            &root(),
            &[
                "package",
                "-p",
                name,
                "--list",
                "--allow-dirty",
                "--offline",
                "--locked",
            ],
        );
        let files: BTreeSet<&Path> = list.lines().map(Path::new).collect();
        let folder = root().join("crates").join(name);
        let sources = support::snapshot(&folder.join("src")).into_iter();
        let sources = sources.filter_map(|(path, bytes)| bytes.map(|_| Path::new("src").join(path)));
        let others = ["LICENSE-MIT", "LICENSE-APACHE", "README.md", "Cargo.toml"].map(PathBuf::from);
        let included = included(&folder);
        includes += included.len();
        for file in sources.chain(included).chain(others) {
            assert!(files.contains(file.as_path()), "{name}: {file:?} is not in the package");
        }
    }
    // Experiments, the looks of reports, models.
    assert!(includes >= 14, "{includes}");
}

#[test]
fn without_plots_the_library_needs_no_crate_for_pictures() {
    let tree = |features: &[&str]| {
        let fixed = [
            "tree",
            "-p",
            "stein",
            "-e",
            "normal",
            "--prefix",
            "none",
            "--offline",
            "--locked",
        ];
        cargo(&root(), &[&fixed, features].concat())
    };
    let pictures = ["plotters", "dejavu", "gif", "png", "image", "ab_glyph", "flate2"];
    let of = |tree: &str| -> Vec<&str> {
        let has = |name: &&str| tree.lines().any(|line| line.starts_with(&format!("{name} ")));
        pictures.iter().copied().filter(has).collect()
    };
    assert!(of(&tree(&[])).contains(&"plotters"));
    assert_eq!(of(&tree(&["--no-default-features"])), [""; 0]);
}

/// As docs/environments.md tells a newcomer to do it.
#[test]
fn the_template_builds_outside_the_checkout() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("my-environment");
    fs::create_dir_all(folder.join("src")).unwrap();
    let template = root().join("examples/own-environment");
    fs::copy(template.join("src/main.rs"), folder.join("src/main.rs")).unwrap();
    let manifest = fs::read_to_string(template.join("Cargo.toml")).unwrap();
    let crates = root().join("crates");
    let moved = manifest.replace("../../crates", crates.to_str().unwrap());
    assert_ne!(moved, manifest);
    fs::write(folder.join("Cargo.toml"), moved).unwrap();
    // The versions that are at hand; as much as possible of what the workspace has built already.
    fs::copy(root().join("Cargo.lock"), folder.join("Cargo.lock")).unwrap();
    let tests = std::env::current_exe().unwrap();
    let target = tests.ancestors().nth(3).unwrap().to_str().unwrap().to_string();
    let debug = "profile.dev.debug=\"line-tables-only\"";
    cargo(
        &folder,
        &[
            "check",
            "--offline",
            "--quiet",
            "--config",
            debug,
            "--target-dir",
            &target,
        ],
    );
}
