//! Where libmujoco is: in vendor/mujoco/lib, where `make mujoco` puts it, or in the folder that MUJOCO_DYNAMIC_LINK_DIR names.

use std::path::{Path, PathBuf};

const LIBRARY: &str = "libmujoco.so.3.17.0";

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=MUJOCO_DYNAMIC_LINK_DIR");
    let folder = library_folder();
    println!("cargo::rerun-if-changed={}", folder.join(LIBRARY).display());
    if !folder.join(LIBRARY).exists() && !folder.join("libmujoco.so").exists() {
        println!(
            "cargo::error=MuJoCo is not there yet: run `make mujoco`, which puts it into vendor/mujoco (or `make build`, which does \
             both), or build without the robots by `cargo build --release -p stein-cli --no-default-features`"
        );
        return;
    }
    println!("cargo::rustc-link-search=native={}", folder.display());
    // Tests and benchmarks of this crate find it there; the program's own build script sees to the program.
    println!("cargo::rustc-link-arg=-Wl,-rpath,{}", folder.display());
    // For the build scripts of crates that depend on this one.
    println!("cargo::metadata=folder={}", folder.display());
}

/// The folder of the library. That of the linker's script (.cargo/config.toml) stands for the one beside the workspace.
fn library_folder() -> PathBuf {
    let manifest = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let workspace = Path::new(&manifest).join("../..");
    let workspace = workspace.canonicalize().unwrap_or(workspace);
    let named = std::env::var_os("MUJOCO_DYNAMIC_LINK_DIR").map(PathBuf::from);
    let script = workspace.join("tools/link");
    match named {
        Some(folder) if folder.canonicalize().ok() != script.canonicalize().ok() => folder,
        _ => workspace.join("vendor/mujoco/lib"),
    }
}
