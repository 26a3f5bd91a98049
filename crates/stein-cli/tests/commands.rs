//! What the commands print and write when all is well.

mod support;

use std::fs;
use std::path::Path;

use serde_json::Value;
use support::{keys, object, pendulum, run, snapshot, stein, succeed, train};

/// Keys that are part of the interface, of one policy and of the ensemble.
const POLICY: [&str; 4] = ["return_mean", "return_std", "final_distance", "success_rate"];
const ENSEMBLE: [&str; 8] = [
    "coverage",
    "pairwise_distance",
    "ways",
    "successful",
    "return_mean",
    "return_best",
    "policy_information",
    "state_information",
];

/// The keys of an evaluation are there, with numbers.
fn assert_report(report: &serde_json::Map<String, Value>, n: usize) {
    assert_eq!(report["env"], "maze");
    assert_eq!(report["method"], "ppo");
    assert_eq!(report["seed"], 5);
    let policies = report["policies"].as_array().unwrap();
    assert_eq!(policies.len(), n);
    for policy in policies {
        assert_eq!(keys(policy), [&POLICY[..], &["returns"]].concat());
        assert!(POLICY.iter().all(|key| policy[key].is_f64()), "{policy}");
        let returns: Vec<f64> = policy["returns"]
            .as_array()
            .unwrap()
            .iter()
            .filter_map(Value::as_f64)
            .collect();
        let mean = returns.iter().sum::<f64>() / returns.len() as f64;
        assert!(
            (mean - policy["return_mean"].as_f64().unwrap()).abs() < 1e-9,
            "{policy}"
        );
    }
    assert!(
        keys(&report["ensemble"]).starts_with(&ENSEMBLE),
        "{}",
        report["ensemble"]
    );
    assert!(ENSEMBLE.iter().all(|key| report["ensemble"][key].is_f64()));
}

#[test]
fn train_and_eval_print_one_json_object() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    let finished = succeed(train(&folder, &["--seed=5", "--json"]));
    let summary = object(&finished.stdout);
    assert_report(&summary, 3);
    assert_eq!(summary["iterations"], 12);
    assert_eq!(summary["env_steps"], 12 * 256 * 3);
    let written = fs::read_to_string(folder.join("summary.json")).unwrap();
    assert_eq!(written, finished.stdout, "summary.json is what was printed");

    let before = snapshot(&folder);
    let eval = |more: &[&str]| succeed(stein(&[&["eval", folder.to_str().unwrap(), "--json"], more].concat()));
    let finished = eval(&[]);
    assert_eq!(finished.stderr, "");
    let report = object(&finished.stdout);
    assert_report(&report, 3);
    assert_eq!(
        report.keys().collect::<Vec<_>>(),
        ["env", "method", "seed", "policies", "ensemble"]
    );
    assert_eq!(report["policies"], summary["policies"], "the summary is the evaluation");
    assert_eq!(eval(&[]).stdout, finished.stdout, "twice the same");
    assert_eq!(
        eval(&["--threads=1"]).stdout,
        finished.stdout,
        "on any number of threads"
    );
    assert_eq!(eval(&["--threads=3"]).stdout, finished.stdout);
    for command in ["eval", "plot", "video"] {
        let finished = run(stein(&[command, folder.to_str().unwrap(), "--threads=0"]));
        support::assert_refused(&finished, 2, &["--threads 0"]);
    }
    assert_ne!(eval(&["--episodes=2"]).stdout, finished.stdout);
    assert_ne!(eval(&["--seed=6"]).stdout, finished.stdout);
    assert_ne!(eval(&["--stochastic"]).stdout, finished.stdout);
    assert_eq!(eval(&["--stochastic"]).stdout, eval(&["--stochastic"]).stdout);
    assert!(snapshot(&folder) == before, "an evaluation changed the folder");
}

#[test]
fn train_and_eval_print_text_for_people() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    let finished = succeed(train(&folder, &["--seed=5"]));
    assert!(finished.stdout.starts_with("done: "), "{}", finished.stdout);
    let lines: Vec<&str> = finished.stderr.lines().collect();
    assert!(lines[0].starts_with("training 3 policies on maze by ppo (seed 5, 12 × 256 steps each) in "));
    assert_eq!(lines.len(), 14, "one line an iteration: {}", finished.stderr);
    assert!(lines[1].starts_with("iteration 1/12 ") && lines[12].starts_with("iteration 12/12 "));
    assert_eq!(lines[13], "evaluating 5 episodes of each policy");
    let text = succeed(stein(&["eval", folder.to_str().unwrap()])).stdout;
    for word in POLICY.iter().chain(&ENSEMBLE) {
        assert!(text.contains(word), "no {word} in: {text}");
    }
    for name in [
        "config.toml",
        "metrics.csv",
        "timings.csv",
        "summary.json",
        "checkpoints",
        "tensorboard",
    ] {
        assert!(folder.join(name).exists(), "{name}");
    }
}

#[test]
fn the_default_folder_is_named_after_the_run() {
    let place = tempfile::tempdir().unwrap();
    let train = |extra: &[&str]| {
        let mut command = stein(&["train", "maze", "--seed=4"]);
        command.args(support::SMALL).args(extra).current_dir(place.path());
        command
    };
    succeed(train(&[]));
    assert!(place.path().join("runs/maze-ppo-seed4/summary.json").exists());
    assert_eq!(run(train(&[])).code, Some(2));
    succeed(train(&["--resume"]));
}

#[test]
fn plot_writes_png_and_svg_files() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    succeed(train(&folder, &[]));
    let plot = |more: &[&str]| succeed(stein(&[&["plot", folder.to_str().unwrap()], more].concat())).stdout;
    let check = |text: &str, pictures: &Path, names: &[&str]| {
        let mut expected = Vec::new();
        for name in names {
            for ending in ["png", "svg"] {
                expected.push(pictures.join(format!("{name}.{ending}")));
            }
        }
        let printed: Vec<&Path> = text.lines().map(Path::new).collect();
        assert_eq!(printed, expected);
        for path in expected {
            let bytes = fs::read(&path).unwrap();
            if path.extension().is_some_and(|ending| ending == "png") {
                assert!(bytes.starts_with(b"\x89PNG\r\n\x1a\n"), "{path:?}");
            } else {
                let text = String::from_utf8(bytes).unwrap();
                assert!(text.contains("<svg") && text.trim_end().ends_with("</svg>"), "{path:?}");
            }
        }
    };
    const PICTURES: &[&str] = &["learning_curves", "maze_trajectories"];
    check(&plot(&[]), &folder.join("figures"), PICTURES);
    let elsewhere = place.path().join("pictures/of/it");
    check(
        &plot(&["--out", elsewhere.to_str().unwrap(), "--stochastic"]),
        &elsewhere,
        PICTURES,
    );

    let folder = place.path().join("with a kernel");
    succeed(train(&folder, &["--method=qd"]));
    let text = succeed(stein(&["plot", folder.to_str().unwrap()])).stdout;
    let names = ["learning_curves", "kernel", "kernel_mean", "maze_trajectories"];
    check(&text, &folder.join("figures"), &names);
}

#[test]
fn kernel_csv_has_every_pair_once_or_in_both_orders() {
    let place = tempfile::tempdir().unwrap();
    let table = |name: &str, extra: &[&str]| {
        let folder = place.path().join(name);
        succeed(train(&folder, extra));
        stein::run::metrics::Table::read(&folder.join("kernel.csv"))
    };
    assert!(table("ppo", &[]).is_err(), "ppo has no kernel");
    let kernels = [
        ("js", &["--method=qd", "--set=ratio.idle=1"][..]),
        ("rbf", &["--method=svpg"]),
    ];
    for (name, extra) in kernels {
        let table = table(name, extra).unwrap();
        assert_eq!(table.columns, ["iteration", "k_0_1", "k_0_2", "k_1_2"]);
        assert_eq!(table.rows.len(), 12);
        assert!(
            table
                .rows
                .iter()
                .all(|row| row[1..].iter().all(|k| (0.0..=1.0).contains(k)))
        );
    }
    // Where ω is 0, the kernel is measured in the last iteration alone (ratio.idle = 20).
    let idle = table("idle", &["--method=qd", "--set=qd.omega_off=0.8"]).unwrap();
    let idle = idle.column("k_0_1").unwrap();
    let measured: Vec<usize> = (1..=12).filter(|iteration| !idle[iteration - 1].is_nan()).collect();
    assert_eq!(measured, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12]);
    let table = table("kl", &["--method=qd", "--divergence=kl"]).unwrap();
    assert_eq!(
        table.columns,
        ["iteration", "k_0_1", "k_0_2", "k_1_0", "k_1_2", "k_2_0", "k_2_1"]
    );
}

#[test]
fn bench_prints_the_phases() {
    let mut command = stein(&["bench", "maze", "--json", "--threads=2", "--iterations=2"]);
    command.args(["--ensemble=3", "--steps=256"]);
    let finished = succeed(command);
    let report = object(&finished.stdout);
    for key in [
        "env",
        "ensemble",
        "estimator",
        "divergence",
        "threads",
        "env_steps_per_s",
        "peak_rss_mb",
    ] {
        assert!(report.contains_key(key), "{key}");
    }
    assert_eq!(
        (&report["env"], &report["ensemble"], &report["threads"]),
        (&"maze".into(), &3.into(), &2.into())
    );
    for key in ["env_steps_per_s", "ratio_gflops", "update_gflops", "sgemm_peak_gflops"] {
        assert!(report[key].is_number(), "{key}: {}", report[key]);
    }
    assert!(report["sgemm_peak_gflops"].as_f64() > Some(0.0));
    let phases = &report["phases_ms"];
    assert_eq!(keys(phases), ["rollout", "ratio", "advantages", "update", "total"]);
    let sum: f64 = keys(phases)[..4].iter().map(|key| phases[key].as_f64().unwrap()).sum();
    let total = phases["total"].as_f64().unwrap();
    assert!((sum - total).abs() <= 0.3 + 0.1 * total, "{phases}");
    let text = succeed(stein(&["bench", "--iterations=1", "--ensemble=2", "--steps=64"])).stdout;
    assert!(
        text.contains("phases_ms") && text.contains("sgemm_peak_gflops"),
        "{text}"
    );
}

#[test]
fn envs_lists_environments_and_their_settings() {
    let list = succeed(stein(&["envs"])).stdout;
    assert!(list.starts_with("maze "), "{list}");
    let maze = succeed(stein(&["envs", "maze"])).stdout;
    let (_, settings) = maze
        .split_once("\n\n")
        .and_then(|(_, rest)| rest.split_once("\n\n"))
        .unwrap();
    let settings: toml::Table = settings.parse().unwrap();
    assert_eq!(settings["horizon"].as_integer(), Some(100));
    let list = succeed(pendulum(&["envs"])).stdout;
    assert!(list.contains("\npendulum "), "{list}");
}

/// What `stein envs` prints is a file of settings, as is the config.toml of a run.
#[test]
fn a_config_file_repeats_a_run() {
    let place = tempfile::tempdir().unwrap();
    let (first, second) = (place.path().join("first"), place.path().join("second"));
    succeed(train(&first, &["--seed=9", "--set=env.horizon=50"]));
    let config = first.join("config.toml");
    let arguments = [
        "train",
        "--config",
        config.to_str().unwrap(),
        "--out",
        second.to_str().unwrap(),
    ];
    succeed(stein(&arguments));
    support::Results::of(&first).assert_same_in(&second, "from its own config.toml");
    assert_eq!(
        fs::read(&config).unwrap(),
        fs::read(second.join("config.toml")).unwrap()
    );
}

#[test]
fn version_and_help() {
    assert_eq!(
        succeed(stein(&["--version"])).stdout,
        format!("stein {}\n", env!("CARGO_PKG_VERSION"))
    );
    let help = succeed(stein(&["train", "--help"])).stdout;
    for option in ["--ensemble", "--resume", "--set", "--config", "--out"] {
        assert!(help.contains(option), "{option}");
    }
}

#[test]
fn the_maze_is_learned() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    let mut command = stein(&[
        "train",
        "maze",
        "--method=ppo",
        "--ensemble=2",
        "--iterations=60",
        "--steps=1024",
        "--json",
    ]);
    command
        .args(["--set=ppo.learning_rate=1e-3", "--set=ppo.minibatches=8", "--out"])
        .arg(&folder);
    let summary = object(&succeed(command).stdout);
    let metrics = stein::run::metrics::Table::read(&folder.join("metrics.csv")).unwrap();
    let returns = metrics.column("return_mean").unwrap();
    assert!(returns[0] < 30.0, "it begins at {}", returns[0]);
    assert!(returns[59] > 75.0, "it ends at {}", returns[59]);
    for policy in summary["policies"].as_array().unwrap() {
        assert!(policy["return_mean"].as_f64() > Some(75.0), "{policy}");
        assert!(policy["final_distance"].as_f64() < Some(0.1), "{policy}");
        assert_eq!(policy["success_rate"].as_f64(), Some(1.0), "{policy}");
    }
}

#[test]
fn every_estimator_trains_with_every_divergence() {
    let place = tempfile::tempdir().unwrap();
    for estimator in ["nce", "dualdice", "valuedice", "gendice"] {
        for divergence in ["js", "kls", "kl", "rkl", "hellinger", "triangular", "tv"] {
            let folder = place.path().join(format!("{estimator}-{divergence}"));
            let out = folder.to_str().unwrap();
            let sizes = [
                "--ensemble=3",
                "--steps=256",
                "--iterations=30",
                "--set=ppo.minibatches=4",
            ];
            let names = [
                &format!("--estimator={estimator}")[..],
                &format!("--divergence={divergence}"),
            ];
            let fixed = [
                "train",
                "maze",
                "--out",
                out,
                "--set=env.horizon=50",
                "--set=qd.omega_off=1.0",
            ];
            succeed(stein(&[&fixed[..], &sizes, &names].concat()));
            let text = std::fs::read_to_string(folder.join("metrics.csv")).unwrap();
            let mut lines = text.lines().map(|line| line.split(',').collect::<Vec<_>>());
            let header = lines.next().unwrap();
            let rows: Vec<_> = lines.collect();
            assert_eq!(rows.len(), 30);
            for name in [
                "return_mean",
                "divergence_mean",
                "ratio_loss",
                "gradient_norm",
                "value_loss",
            ] {
                let column = header.iter().position(|column| *column == name).unwrap();
                let number = |row: &Vec<&str>| row[column].parse::<f64>().is_ok_and(f64::is_finite);
                assert!(rows.iter().all(number), "{estimator} {divergence}: {name}");
            }
        }
    }
}

#[test]
fn shells_get_their_completions() {
    for (shell, word) in [
        ("bash", "_stein()"),
        ("zsh", "#compdef stein"),
        ("fish", "complete -c stein"),
    ] {
        let printed = succeed(stein(&["completions", shell])).stdout;
        assert!(
            printed.contains(word) && printed.contains("reproduce") && printed.contains("quiet"),
            "{shell}"
        );
    }
    let finished = run(stein(&["completions", "tcsh"]));
    assert_eq!(finished.code, Some(2), "{}", finished.stderr);
    assert!(
        finished.stderr.contains("bash") && finished.stderr.lines().count() == 1,
        "{}",
        finished.stderr
    );
}

#[test]
fn quiet_runs_say_nothing() {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    let finished = succeed(train(&folder, &["--quiet"]));
    assert_eq!((finished.stdout.as_str(), finished.stderr.as_str()), ("", ""));
    // What was asked for is printed all the same.
    let finished = succeed(train(&folder, &["--quiet", "--json", "--resume"]));
    assert!(
        finished.stdout.starts_with('{') && finished.stderr.is_empty(),
        "{}",
        finished.stderr
    );
    let finished = run(train(&folder, &["--quiet"]));
    support::assert_refused(&finished, 2, &["holds a run already"]);
}

#[test]
fn memory_is_foreseen_without_training() {
    let text = succeed(stein(&["bench", "maze", "--ensemble=1000", "--dry-run"])).stdout;
    for word in ["ratios of all pairs", "together", "GB", "free here", "ensemble, steps"] {
        assert!(text.contains(word), "no {word:?} in:\n{text}");
    }
    let json = support::object(&succeed(stein(&["bench", "maze", "--dry-run", "--json"])).stdout);
    let parts: f64 = json["parts"]
        .as_object()
        .unwrap()
        .values()
        .map(|part| part.as_f64().unwrap())
        .sum();
    assert!((parts - json["bytes"].as_f64().unwrap()).abs() < 1.0 && parts < 1e9);
}
