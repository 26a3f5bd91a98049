//! Where the program looks for libmujoco: beside itself first, so that the two can be moved together, then where it was
//! linked from. With STEIN_PORTABLE set (`make dist`) only the former, so that no path of the building machine is left.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    commit();
    println!("cargo::rerun-if-env-changed=STEIN_PORTABLE");
    if std::env::var_os("CARGO_FEATURE_MUJOCO").is_none() {
        return;
    }
    println!("cargo::rustc-link-arg=-Wl,-rpath,$ORIGIN");
    let portable = std::env::var_os("STEIN_PORTABLE").is_some();
    // Told by the build script of stein-mujoco.
    if let (false, Ok(folder)) = (portable, std::env::var("DEP_STEIN_MUJOCO_FOLDER")) {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    }
}

/// Which commit the program is built from, where it is built from a clone: reports tell it.
fn commit() {
    let git = |arguments: &[&str]| {
        let output = std::process::Command::new("git").args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?;
        output
            .status
            .success()
            .then(|| text.trim().to_string())
            .filter(|text| !text.is_empty())
    };
    // What was unpacked somewhere within another clone is not of that one's commit.
    if git(&["ls-files", "--error-unmatch", "build.rs"]).is_none() {
        return;
    }
    // The file that changes with every commit and checkout.
    if let Some(log) = git(&["rev-parse", "--git-path", "logs/HEAD"]) {
        println!("cargo::rerun-if-changed={log}");
    }
    if let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) {
        println!("cargo::rustc-env=STEIN_COMMIT={commit}");
    }
}
