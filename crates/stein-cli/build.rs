//! Where the program looks for libmujoco: beside itself first, so that the two can be moved together, then where it was
//! linked from. With STEIN_PORTABLE set (`make dist`) only the former, so that no path of the building machine is left.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed=MUJOCO_DYNAMIC_LINK_DIR");
    println!("cargo::rerun-if-env-changed=STEIN_PORTABLE");
    if std::env::var_os("CARGO_FEATURE_MUJOCO").is_none() {
        return;
    }
    println!("cargo::rustc-link-arg=-Wl,-rpath,$ORIGIN");
    let portable = std::env::var_os("STEIN_PORTABLE").is_some();
    if let (false, Ok(folder)) = (portable, std::env::var("MUJOCO_DYNAMIC_LINK_DIR")) {
        println!("cargo::rustc-link-arg=-Wl,-rpath,{folder}");
    }
}
