//! `stein reproduce`: all cases of an experiment, their table, and going on where it was left.

mod support;

use std::fs;
use std::path::Path;

use support::{Finished, assert_refused, object, run, snapshot, stein, succeed};

const LABELS: [&str; 11] = [
    "ppo",
    "nce-js",
    "nce-kls",
    "dualdice-js",
    "dualdice-kls",
    "valuedice-js",
    "valuedice-kls",
    "gendice-js",
    "gendice-kls",
    "diayn",
    "si",
];
const COLUMNS: [&str; 11] = [
    "coverage",
    "pairwise_distance",
    "ways",
    "successful",
    "return_mean",
    "return_best",
    "policy_information",
    "state_information",
    "grid_coverage",
    "qd_score",
    "wall_seconds",
];

fn arguments<'a>(out: &'a Path, extra: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["reproduce", "maze", "--scale=smoke", "--out", out.to_str().unwrap()];
    arguments.extend(extra);
    arguments
}

fn reproduce(out: &Path, extra: &[&str]) -> Finished {
    succeed(stein(&arguments(out, extra)))
}

#[test]
fn the_smoke_scale_trains_all_cases_and_makes_their_table() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("all");
    let finished = reproduce(&out, &[]);
    assert_eq!(fs::read_to_string(out.join("table.md")).unwrap(), finished.stdout);
    let text = &finished.stdout;
    for words in [
        "scale smoke",
        "seeds 1 to 2",
        "95 % t-interval",
        "2 episodes per policy",
        "| Independent PPO |",
    ] {
        assert!(text.contains(words), "no {words} in: {text}");
    }
    assert!(!text.contains("so far"), "{text}");
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('|')).collect();
    assert_eq!(rows[0], format!("| case | {} |", COLUMNS.join(" | ")));
    let (means, every) = rows.split_at(2 + LABELS.len());
    assert!(
        means[2..].iter().all(|row| row.matches(" ± ").count() == COLUMNS.len()),
        "{text}"
    );
    assert_eq!(every[0], format!("| case | seed | {} |", COLUMNS.join(" | ")));
    assert_eq!(every.len(), 2 + 2 * LABELS.len());
    assert!(every[3].starts_with("| Independent PPO | 2 | "), "{text}");

    let json = object(&fs::read_to_string(out.join("table.json")).unwrap());
    assert_eq!((&json["scale"], &json["seeds"]), (&"smoke".into(), &vec![1, 2].into()));
    let cases = json["cases"].as_array().unwrap();
    for (case, label) in cases.iter().zip(LABELS) {
        assert_eq!(case["label"], label);
        for name in COLUMNS {
            let measure = &case["measures"][name];
            let seeds: Vec<f64> = measure["seeds"]
                .as_array()
                .unwrap()
                .iter()
                .map(|x| x.as_f64().unwrap())
                .collect();
            let mean = measure["mean"].as_f64().unwrap();
            assert!(
                seeds.len() == 2 && (mean - (seeds[0] + seeds[1]) / 2.0).abs() < 1e-9,
                "{measure}"
            );
            let half = 12.706 * (seeds[0] - seeds[1]).abs() / 2.0;
            assert!(
                (measure["interval"][1].as_f64().unwrap() - mean - half).abs() < 1e-6,
                "{measure}"
            );
        }
        for seed in [1, 2] {
            let folder = out.join(label).join(format!("seed{seed}"));
            assert_eq!(support::rows(&folder), 4, "{folder:?}");
            assert!(folder.join("summary.json").exists(), "{folder:?}");
        }
        for ending in ["png", "svg"] {
            assert!(
                out.join(format!("figures/{label}_maze_trajectories.{ending}")).exists(),
                "{label}"
            );
        }
    }
    // What the table says of a case is what an evaluation of its runs says.
    let folder = out.join("nce-js/seed2");
    let report = object(&succeed(stein(&["eval", folder.to_str().unwrap(), "--json", "--episodes=2"])).stdout);
    assert_eq!(
        report["ensemble"]["coverage"],
        cases[1]["measures"]["coverage"]["seeds"][1]
    );

    let before = snapshot(&out);
    let again = reproduce(&out, &[]);
    assert_eq!(again.stderr, "", "finished runs are not trained again");
    assert_eq!(again.stdout, finished.stdout);
    assert!(snapshot(&out) == before, "a second time changed the folder");
}

#[test]
fn seeds_may_be_listed_and_runs_go_side_by_side() {
    let place = tempfile::tempdir().unwrap();
    let one = |jobs: &'static str| {
        let out = place.path().join(jobs);
        let finished = reproduce(&out, &["--seeds=101-102,7", "--only", "ppo", "nce-js", "--jobs", jobs]);
        assert!(
            finished.stdout.contains("Mean over seeds 101 to 102, 7 ±"),
            "{}",
            finished.stdout
        );
        let mut table = object(&fs::read_to_string(out.join("table.json")).unwrap());
        for case in table["cases"].as_array_mut().unwrap() {
            assert_eq!(case["seeds"], serde_json::json!([101, 102, 7]));
            case["measures"].as_object_mut().unwrap().remove("wall_seconds");
        }
        (
            table,
            fs::read(out.join("nce-js/seed7/metrics.csv")).unwrap(),
            finished.stderr,
        )
    };
    let (alone, beside) = (one("1"), one("3"));
    assert_eq!(alone.0, beside.0);
    assert!(alone.1 == beside.1, "runs side by side have other bits");
    assert!(beside.2.contains("ppo seed 102: iteration 4/4"), "{}", beside.2);
    assert!(place.path().join("3/figures/ppo_maze_trajectories.png").exists());
    // Finished runs are not repeated, one seed is taken out of them.
    let out = place.path().join("3");
    let again = reproduce(&out, &["--seeds=102,", "--only", "ppo", "--jobs=2"]);
    assert_eq!(again.stderr, "");
    assert!(again.stdout.contains("Seed 102 alone"), "{}", again.stdout);
}

#[test]
fn one_case_on_one_seed_goes_on_where_it_was_left() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("one");
    let one = ["--seeds=1", "--only", "nce-kls"];
    let finished = reproduce(&out, &one);
    assert!(
        finished.stdout.contains("Seed 1 alone") && !finished.stdout.contains('±'),
        "{}",
        finished.stdout
    );
    assert!(!out.join("ppo").exists());
    let table = fs::read(out.join("table.json")).unwrap();

    // Without its checkpoints, summary and record the run is begun anew, with the same results.
    let run = out.join("nce-kls/seed1");
    fs::remove_file(out.join("nce-kls/seed1.json")).unwrap();
    fs::remove_dir_all(run.join("checkpoints")).unwrap();
    fs::remove_file(run.join("summary.json")).unwrap();
    fs::remove_file(out.join("table.json")).unwrap();
    let again = reproduce(&out, &one);
    assert!(again.stderr.contains("training 3 policies"), "{}", again.stderr);
    let coverage =
        |bytes: &[u8]| object(std::str::from_utf8(bytes).unwrap())["cases"][0]["measures"]["coverage"].clone();
    assert_eq!(coverage(&fs::read(out.join("table.json")).unwrap()), coverage(&table));
}

#[test]
fn what_cannot_be_done_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("runs");
    let refuse = |extra: &[&str], words: &[&str]| {
        let finished = run(stein(&arguments(&out, extra)));
        assert_refused(&finished, 2, words);
    };
    refuse(&["--only", "nce-js", "nce"], &["no case \"nce\"", "gendice-kls"]);
    refuse(&["--seeds=0"], &["--seeds 0", "1 to 1000"]);
    refuse(&["--seeds=5-1"], &["--seeds 5-1", "backwards"]);
    refuse(&["--seeds=1,1"], &["--seeds 1,1", "twice"]);
    refuse(&["--jobs=0"], &["--jobs 0", "1 to 1024"]);
    refuse(&["--threads=0"], &["--threads 0"]);
    assert_refused(
        &run(stein(&["reproduce", "chess"])),
        2,
        &["no experiment \"chess\"", "maze", "my.toml"],
    );
    let out_name = out.to_str().unwrap();
    let tiny = run(stein(&["reproduce", "maze", "--scale=tiny", "--out", out_name]));
    assert_refused(&tiny, 2, &["no scale \"tiny\"", "paper", "smoke"]);
    assert!(!out.exists(), "a refused command made a folder");

    // A folder with runs of another size.
    reproduce(&out, &["--seeds=1", "--only", "ppo"]);
    let before = fs::read(out.join("table.md")).unwrap();
    let paper = run(stein(&[
        "reproduce",
        "maze",
        "--only",
        "ppo",
        "--seeds=1",
        "--out",
        out_name,
    ]));
    assert_refused(&paper, 2, &["ppo/seed1", "the experiment asks for", "--out"]);
    assert_eq!(fs::read(out.join("table.md")).unwrap(), before);

    // A run that an earlier version began is not one of this version's table, though it is finished.
    let settings = out.join("ppo/seed1/config.toml");
    let text = fs::read_to_string(&settings).unwrap();
    fs::write(&settings, text.replacen(env!("CARGO_PKG_VERSION"), "0.1.0", 1)).unwrap();
    refuse(
        &["--seeds=1", "--only", "ppo", "--jobs=2"],
        &["ppo/seed1", "was begun by stein 0.1.0", "start a new run"],
    );
}

#[test]
fn an_experiment_of_ones_own_has_a_grid() {
    let place = tempfile::tempdir().unwrap();
    let text = "
        question = 'which rate is best.'
        [settings]
        env.name = 'maze'
        [scale.paper]
        seeds = [4]
        episodes = 2
        settings = { ensemble = 2, iterations = 2, steps = 128, ppo.minibatches = 4, env.horizon = 50 }
        [[case]]
        label = 'ppo'
        settings = { method = 'ppo' }
        grid = { ppo.learning_rate = [1e-4, 3e-4] }
    ";
    let attempt = |text: &str, name: &str| {
        fs::write(place.path().join(name), text).unwrap();
        let mut command = stein(&["reproduce", name]);
        command.current_dir(place.path());
        command
    };
    let finished = succeed(attempt(text, "mine.toml"));
    assert!(
        finished.stderr.contains("run 2 of 2"),
        "which run it is: {}",
        finished.stderr
    );
    let out = place.path().join("runs/reproduce-mine");
    assert_eq!(fs::read_to_string(out.join("table.md")).unwrap(), finished.stdout);
    for words in ["| ppo, learning_rate = 0.0001 |", "| ppo, learning_rate = 0.0003 |"] {
        assert!(finished.stdout.contains(words), "no {words} in {}", finished.stdout);
    }
    let settings = fs::read_to_string(out.join("ppo-learning_rate=0.0001/seed4/config.toml")).unwrap();
    assert!(settings.contains("learning_rate = 0.0001"), "{settings}");
    for file in ["report.html", "mine.csv", "table.csv", "runs.csv", "figures/seeds.png"] {
        assert!(out.join(file).exists(), "no {file}");
    }
    let report = fs::read_to_string(out.join("report.html")).unwrap();
    assert!(report.contains("which rate is best."));

    // Mistakes in the file.
    for (wrong, words) in [
        (text.replace("label", "labl"), &["mine.toml", "case[0]", "labl"][..]),
        (
            text.replace("ppo.learning_rate = [1e-4, 3e-4]", "ppo.learning_rates = [1]"),
            &["learning_rates"],
        ),
        (
            text.replace("seeds = [4]", "seeds = 'four'"),
            &["mine.toml", "scale.paper.seeds"],
        ),
        ("[settings".into(), &["mine.toml", "not valid TOML", "line 1"]),
    ] {
        assert_refused(&run(attempt(&wrong, "mine.toml")), 2, words);
    }
    assert_refused(&run(attempt(text, "table.toml")), 2, &["table.csv", "another name"]);
    assert_refused(
        &run(stein(&["reproduce", "nowhere.toml"])),
        2,
        &["nowhere.toml", "check the path"],
    );
}

/// Records stand for runs: a folder of them is a table, and goes on where runs are missing.
#[test]
fn an_experiment_is_put_together_from_records() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("whole");
    let two = ["--seeds=1-2", "--only", "ppo", "nce-js"];
    let whole = reproduce(&out, &two);
    let elsewhere = place.path().join("records");
    let nothing = run(stein(&arguments(&elsewhere, &["--finished"])));
    assert_refused(&nothing, 2, &["no run in", "is finished yet", "--finished"]);
    let copy = |record: &str| {
        fs::create_dir_all(elsewhere.join(record).parent().unwrap()).unwrap();
        fs::copy(out.join(record), elsewhere.join(record)).unwrap();
    };
    copy("ppo/seed1.json");
    copy("nce-js/seed2.json");
    copy("nce-js/seed1.json");
    let mut finished = two.to_vec();
    finished.push("--finished");
    let part = reproduce(&elsewhere, &finished);
    assert!(
        part.stdout.contains("**3 of 4 runs so far; missing: ppo (2).**"),
        "{}",
        part.stdout
    );
    let report = fs::read_to_string(elsewhere.join("report.html")).unwrap();
    assert!(report.contains("these runs are missing: ppo [2]"));
    assert!(!elsewhere.join("ppo/seed2").exists(), "something was trained");

    // What is missing is trained, and nothing else.
    let again = reproduce(&elsewhere, &two);
    assert!(elsewhere.join("ppo/seed2").exists() && !elsewhere.join("ppo/seed1").exists());
    let without_times = |text: &str| -> Vec<String> {
        let rows = text.lines().filter(|line| line.starts_with("| "));
        rows.map(|row| row.trim_end_matches(" |").rsplit_once(" | ").unwrap().0.to_string())
            .collect()
    };
    assert_eq!(without_times(&again.stdout), without_times(&whole.stdout));

    // A record of other settings is no record of this run; nor is a damaged one.
    let path = elsewhere.join("nce-js/seed2.json");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replacen("omega_start = 1.0", "omega_start = 0.5", 1)).unwrap();
    let refused = run(stein(&arguments(&elsewhere, &two)));
    assert_refused(
        &refused,
        2,
        &["nce-js/seed2.json", "qd.omega_start = 0.5", "asks for 1.0"],
    );
    fs::write(&path, &text[..100]).unwrap();
    assert_refused(
        &run(stein(&arguments(&elsewhere, &two))),
        2,
        &["seed2.json is no record", "delete it"],
    );
}

/// Independent PPO has no part in diversity: its runs need not be made again where only the settings of diversity changed.
#[test]
fn a_run_is_taken_whose_settings_differ_only_where_they_have_no_part() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("runs");
    let train = |label: &str, method: &str, seed: &str, set: &str| {
        let folder = out.join(label).join(format!("seed{seed}"));
        let mut arguments = vec![
            "train",
            "maze",
            "--method",
            method,
            "--seed",
            seed,
            "--ensemble=3",
            "--iterations=4",
        ];
        arguments.extend([
            "--steps=256",
            "--set=ppo.minibatches=4",
            "--set=env.horizon=50",
            "--set",
            set,
        ]);
        arguments.extend(["--out", folder.to_str().unwrap()]);
        succeed(stein(&arguments));
        fs::read(folder.join("metrics.csv")).unwrap()
    };
    let before = train("ppo", "ppo", "1", "qd.omega_start=0.123");
    reproduce(&out, &["--seeds=1", "--only", "ppo"]);
    assert_eq!(fs::read(out.join("ppo/seed1/metrics.csv")).unwrap(), before);

    train("nce-js", "qd", "1", "qd.omega_start=0.123");
    let finished = run(stein(&arguments(&out, &["--seeds=1", "--only", "nce-js"])));
    assert_refused(&finished, 2, &["qd.omega_start = 0.123", "the experiment asks for"]);
}

#[cfg(feature = "mujoco")]
#[test]
fn the_robots_are_trained_and_their_curves_drawn() {
    let place = tempfile::tempdir().unwrap();
    let out = place.path().join("robots");
    let arguments = [
        "reproduce",
        "locomotion",
        "--scale=smoke",
        "--out",
        out.to_str().unwrap(),
    ];
    let text = succeed(stein(&arguments)).stdout;
    for words in [
        "| Hopper |",
        "| Walker2d |",
        "| HalfCheetah (paper) |",
        "velocity_variance",
        "velocity_between",
        "velocity_between_sampled",
        "with sampled actions",
    ] {
        assert!(text.contains(words), "no {words} in: {text}");
    }
    // A picture of curves for each task: their returns have no axis in common.
    let curves = fs::read_to_string(out.join("figures/learning_curves_hopper.svg")).unwrap();
    for words in ["Hopper (paper)", "steps of each policy", "locomotion: hopper"] {
        assert!(curves.contains(words), "no {words}");
    }
    assert!(!curves.contains("Walker2d"));
    let velocities = fs::read_to_string(out.join("figures/walker2d-paper_velocities.svg")).unwrap();
    assert!(velocities.contains("(Walker2d (paper), seed 1)"), "{velocities}");
}
