//! Wrong settings and arguments: exit code 2, one sentence that names the setting and what to do, and no folder made.

mod support;

use std::fs;
use std::path::Path;

use support::{assert_refused, run, stein};

/// `stein train` with these arguments is refused in a sentence with these words, and leaves no run folder.
#[track_caller]
fn refused(place: &Path, arguments: &[&str], words: &[&str]) {
    let out = place.join("run");
    let mut command = stein(&["train"]);
    command.args(arguments).arg("--out").arg(&out);
    let finished = run(command);
    println!("{arguments:?}\n  {}", finished.stderr.trim_end());
    assert_refused(&finished, 2, words);
    assert!(!out.exists(), "{arguments:?} left a folder");
}

#[test]
fn wrong_settings_are_named() {
    let place = tempfile::tempdir().unwrap();
    for (pair, words) in [
        (
            "ppo.klip=1",
            &["the command line", "ppo.klip", "unknown field", "`clip`"][..],
        ),
        ("clip=0.1", &["clip", "did you mean ppo.clip?"]),
        ("ppo.klip=1", &["did you mean ppo.clip?"]),
        ("qd.learning_rate=1", &["did you mean ppo.learning_rate?"]),
        ("env.horizn=3", &["env.horizn", "did you mean horizon?"]),
        ("ppos.clip=1", &["ppos", "unknown field", "`ppo`"]),
        ("ppo.clip=wide", &["ppo.clip", "string \"wide\"", "expected a number"]),
        ("ppo.clip=", &["ppo.clip", "expected a number"]),
        ("ppo.clip=nan", &["ppo.clip = NaN", "set it between"]),
        ("ppo.clip=inf", &["ppo.clip = inf", "set it between"]),
        ("ppo.clip=-0.1", &["ppo.clip = -0.1", "set it between"]),
        ("ppo.clip.x=1", &["ppo.clip", "table", "expected a number"]),
        ("ppo=1", &["ppo", "integer `1`", "expected a table of settings"]),
        ("ppo.learning_rate=nan", &["ppo.learning_rate = NaN"]),
        ("ppo.gamma=1", &["ppo.gamma = 1", "set it between"]),
        ("ppo.minibatches=0", &["ppo.minibatches = 0", "between 1 and 2048"]),
        (
            "ppo.minibatches=2049",
            &["ppo.minibatches = 2049", "between 1 and 2048"],
        ),
        ("ppo.reward_scaling=max", &["ppo.reward_scaling", "`none` or `return`"]),
        ("ppo.anneal.to=2", &["ppo.anneal.to", "2"]),
        (
            "ppo.anneal=fast",
            &["ppo.anneal", "a table, as in { from = 0.5, to = 0.2 }"],
        ),
        ("ppo.anneal.until=1", &["ppo.anneal", "until"]),
        ("ensemble=0", &["ensemble = 0", "between 1 and 1000"]),
        ("ensemble=-1", &["ensemble", "`-1`", "a whole number, 0 or more"]),
        ("ensemble=1.5", &["ensemble", "`1.5`", "a whole number, 0 or more"]),
        ("ensemble=999999999", &["ensemble = 999999999", "between 1 and 1000"]),
        ("ensemble=99999999999999999999999", &["ensemble", "a whole number"]),
        ("steps=1", &["steps = 1", "between 2 and 1000000"]),
        ("steps=9223372036854775807", &["steps = 9223372036854775807"]),
        ("iterations=0", &["iterations = 0"]),
        ("seed=-1", &["seed", "a whole number, 0 or more"]),
        ("policy.hidden=64", &["policy.hidden", "a list"]),
        ("policy.hidden=[0]", &["policy.hidden", "0 is out of range"]),
        ("policy.hidden=[-1]", &["policy.hidden[0]", "a whole number"]),
        (
            "critic.hidden=[64, 1000000000]",
            &["critic.hidden", "between 1 and 4096"],
        ),
        ("policy.initial_log_std=nan", &["policy.initial_log_std = NaN"]),
        ("checkpoint.every=0", &["checkpoint.every = 0"]),
        ("checkpoint.keep=0", &["checkpoint.keep = 0"]),
        ("method=alchemy", &["no method \"alchemy\"", "ppo"]),
        ("method=3", &["method", "integer `3`", "a string"]),
        ("env=3", &["env must be a table"]),
        ("env.name=moon", &["the environment moon, not maze"]),
        ("env.colour=red", &["env.colour", "unknown field", "stein envs maze"]),
        ("env.horizon=0", &["env.horizon is 0", "choose 1 to"]),
        ("env.horizon=-5", &["env.horizon", "a whole number", "stein envs maze"]),
        (
            "env.horizon=999999999999",
            &["env.horizon is 999999999999", "choose 1 to"],
        ),
        ("env.cell=nan", &["env.cell is NaN"]),
        ("env.dt=0", &["env.dt is 0"]),
        ("env.force=-1", &["env.force is -1"]),
        ("env.start=[nan, 0]", &["env.start is [NaN, 0]"]),
        ("env.start=[9, 0]", &["env.start is [9.0, 0.0]", "move it inwards"]),
        ("env.walls=[[0, 0, 0, 0]]", &["env.walls[0]", "no area"]),
        ("env.walls=[[0, 0, 1]]", &["env.walls[0]", "length 3"]),
        ("env.walls=[[0, 0", &["env.walls", "a list"]),
    ] {
        refused(place.path(), &["maze", "--set", pair], words);
    }
}

#[test]
fn malformed_pairs_are_quoted() {
    let place = tempfile::tempdir().unwrap();
    for pair in ["ppo.clip", "=1", "a..b=1", ".=1", ""] {
        refused(
            place.path(),
            &["maze", "--set", pair],
            &["--set", pair, "key=value", "ppo.clip=0.1"],
        );
    }
}

#[test]
fn wrong_files_of_settings_are_named() {
    let place = tempfile::tempdir().unwrap();
    let files: &[(&str, &[u8], &[&str])] = &[
        ("unknown.toml", b"[ppo]\nklip = 1\n", &["ppo.klip", "unknown field"]),
        ("type.toml", b"ensemble = \"many\"\n", &["ensemble", "string \"many\""]),
        (
            "syntax.toml",
            b"seed = 1\n\nsteps == 3\n",
            &["not valid TOML", "line 3"],
        ),
        ("open.toml", b"[policy]\nhidden = [64,\n", &["not valid TOML", "line 2"]),
        ("twice.toml", b"seed = 1\nseed = 2\n", &["not valid TOML", "line 2"]),
        (
            "garbage.toml",
            &[0x7f, 0x45, 0x4c, 0x46, 0, 0xff, 0xfe, 0x80],
            &["not a text file"],
        ),
        ("zeros.toml", &[0; 64], &["not valid TOML", "line 1"]),
        ("table.toml", b"env = 3\n", &["env must be a table"]),
        (
            "one.toml",
            b"ensemble = 1\n[env]\nname = \"maze\"\n",
            &["ensemble = 1 has no pairs"],
        ),
        (
            "method.toml",
            b"method = \"ppoo\"\n",
            &["no method \"ppoo\"", "did you mean ppo?"],
        ),
        (
            "large.toml",
            b"ensemble = 1000\n[env]\nname = \"maze\"\n",
            &["of memory", "lower ensemble"],
        ),
        (
            "other.toml",
            b"[env]\nname = \"moon\"\n",
            &["is for the environment moon, not maze"],
        ),
    ];
    for (name, bytes, words) in files {
        let path = place.path().join(name);
        fs::write(&path, bytes).unwrap();
        let path = path.to_str().unwrap();
        refused(
            place.path(),
            &["maze", "--config", path],
            &[words, &[path][..]].concat(),
        );
    }
    // Out of range.
    let path = place.path().join("range.toml");
    fs::write(&path, "[ppo]\nclip = nan\n").unwrap();
    refused(
        place.path(),
        &["maze", "--config", path.to_str().unwrap()],
        &["range.toml: ppo.clip = NaN"],
    );
    // A file and pairs over it: either may be the one that is wrong.
    fs::write(&path, "seed = 3\n").unwrap();
    let arguments = ["maze", "--config", path.to_str().unwrap(), "--set", "ppo.klip=1"];
    refused(place.path(), &arguments, &["range.toml with --set", "ppo.klip"]);
    refused(
        place.path(),
        &["--config", path.to_str().unwrap()],
        &["range.toml", "env.name is missing", "stein envs"],
    );
    let missing = place.path().join("missing.toml");
    let missing = missing.to_str().unwrap();
    refused(
        place.path(),
        &["maze", "--config", missing],
        &["there is no settings file", missing],
    );
}

#[test]
fn wrong_arguments_are_named() {
    let place = tempfile::tempdir().unwrap();
    refused(place.path(), &[], &["which environment?", "stein envs"]);
    refused(place.path(), &["moon"], &["no environment \"moon\"", "maze"]);
    refused(
        place.path(),
        &["hoper"],
        &["no environment \"hoper\"", "did you mean hopper?"],
    );
    refused(place.path(), &["Hopper-v5"], &["did you mean hopper?"]);
    refused(
        place.path(),
        &["--resume"],
        &["there is no run in", "to go on with", "check the path"],
    );
    for flag in ["--estimator=nce", "--divergence=js"] {
        let words = ["has no effect on the method ppo", "leave it out"];
        refused(place.path(), &["maze", "--method=ppo", flag], &words);
    }
    refused(
        place.path(),
        &["maze", "--ensemble=1000"],
        &["of memory", "are free here", "lower ensemble"],
    );
    refused(
        place.path(),
        &["maze", "--method=alchemy"],
        &["no method \"alchemy\"", "ppo"],
    );
    refused(
        place.path(),
        &["maze", "--threads=0"],
        &["--threads 0", "choose 1 to 4096"],
    );
    refused(place.path(), &["maze", "--threads=99999999"], &["--threads 99999999"]);
    refused(
        place.path(),
        &["maze", "--seed=9223372036854775808"],
        &["'9223372036854775808' for '--seed", "0 to 2^63 - 1"],
    );
    refused(place.path(), &["maze", "--ensemble=0"], &["ensemble = 0"]);
    for flag in ["--ensemble", "--iterations", "--steps"] {
        refused(place.path(), &["maze", flag, "-3"], &[flag, "'-3'", "1 or more"]);
    }
    refused(
        place.path(),
        &["maze", "--steps=18446744073709551615"],
        &["steps = 9223372036854775807"],
    );
    for iterations in ["0", "18446744073709551615"] {
        let argument = format!("--iterations={iterations}");
        refused(place.path(), &["maze", &argument], &["iterations = "]);
        let finished = run(stein(&["bench", "maze", &argument]));
        assert_refused(&finished, 2, &["--iterations", iterations]);
    }
    assert_refused(&run(stein(&["envs", "moon"])), 2, &["no environment \"moon\"", "maze"]);
    // What clap says of its own accord: usage beside it, and the same exit code.
    for arguments in [
        &["train", "maze", "--enssemble", "3"][..],
        &["train", "maze", "--steps=-3"],
        &["fly"],
        &[],
    ] {
        let finished = run(stein(arguments));
        assert_eq!(finished.code, Some(2), "{arguments:?}: {}", finished.stderr);
        assert!(finished.stderr.contains("--help"), "{}", finished.stderr);
    }
}
