//! `stein verify` through the real program: problems from files against a solver of its own, and what it refuses.

mod support;

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use support::{assert_refused, run, stein, succeed};

/// Two states; action 0 stays, action 1 moves on, from the second state back to the first.
fn problem(termination: bool) -> Value {
    json!({
        "gamma": 0.8,
        "initial": [0.9, 0.1],
        "transition": [[[1.0, 0.0], [0.0, 1.0]], [[0.0, 1.0], [1.0, 0.0]]],
        "policies": [[[0.7, 0.3], [0.4, 0.6]], [[0.4, 0.6], [0.6, 0.4]]],
        "reward": [[0.0, 1.0], [2.0, -1.0]],
        // Certain, so that nothing is left to chance, which ValueDICE would not bear.
        "termination": if termination { json!([[0.0, 0.0], [0.0, 1.0]]) } else { json!([[0.0, 0.0], [0.0, 0.0]]) },
    })
}

/// The occupancy over pairs, normalised, by following the distribution of states step by step.
fn occupancy(problem: &Value, policy: usize) -> [[f64; 2]; 2] {
    let number = |value: &Value| value.as_f64().unwrap();
    let (gamma, policy) = (number(&problem["gamma"]), &problem["policies"][policy]);
    let mut states = [0, 1].map(|s| number(&problem["initial"][s]));
    let (mut rho, mut power) = ([[0.0; 2]; 2], 1.0);
    for _ in 0..400 {
        let mut next = [0.0; 2];
        for s in 0..2 {
            for a in 0..2 {
                let pair = states[s] * number(&policy[s][a]);
                rho[s][a] += power * pair;
                let on = pair * (1.0 - number(&problem["termination"][s][a]));
                for (to, next) in next.iter_mut().enumerate() {
                    *next += on * number(&problem["transition"][s][a][to]);
                }
            }
        }
        (states, power) = (next, power * gamma);
    }
    let total: f64 = rho.iter().flatten().sum();
    rho.map(|row| row.map(|pair| pair / total))
}

fn write(folder: &Path, problem: &Value) -> String {
    let path = folder.join("problem.json");
    fs::write(&path, problem.to_string()).unwrap();
    path.to_str().unwrap().to_string()
}

#[test]
fn ratios_of_a_problem_from_a_file_agree_with_another_solver() {
    let folder = tempfile::tempdir().unwrap();
    for termination in [false, true] {
        let problem = problem(termination);
        let path = write(folder.path(), &problem);
        let finished = succeed(stein(&["verify", "--mdp", &path, "--seed", "3", "--json"]));
        let report: Value = serde_json::from_str(&finished.stdout).unwrap();
        let rho = [occupancy(&problem, 0), occupancy(&problem, 1)];
        for (key, a, b) in [("zeta_01", 0, 1), ("zeta_10", 1, 0)] {
            let mut squares = [0.0; 4];
            for s in 0..2 {
                for act in 0..2 {
                    let zeta = rho[a][s][act] / rho[b][s][act];
                    let exact = report["exact"][key][s][act].as_f64().unwrap();
                    assert!((exact - zeta).abs() < 1e-9, "{key}[{s}][{act}]: {exact} {zeta}");
                    for (sum, estimator) in squares.iter_mut().zip(["nce", "dualdice", "valuedice", "gendice"]) {
                        let estimate = report["estimated"][estimator][key][s][act].as_f64().unwrap();
                        *sum += rho[b][s][act] * (estimate - zeta).powi(2);
                    }
                }
            }
            for (sum, estimator) in squares.iter().zip(["nce", "dualdice", "valuedice", "gendice"]) {
                let rmse = sum.sqrt();
                assert!(rmse < 0.05, "{estimator} {key}, termination {termination}: {rmse}");
                let told = report["errors"][estimator][format!("rmse_{}", &key[5..])]
                    .as_f64()
                    .unwrap();
                assert!((told - rmse).abs() < 1e-6);
            }
        }
    }
}

#[test]
fn pairs_that_the_policy_below_never_takes_have_no_ratio() {
    let folder = tempfile::tempdir().unwrap();
    let mut problem = problem(false);
    problem["policies"][1][0] = json!([1.0, 0.0]);
    problem["initial"] = json!([1.0, 0.0]);
    let path = write(folder.path(), &problem);
    let arguments = ["verify", "--mdp", &path, "--samples", "2000", "--json"];
    let first = succeed(stein(&arguments));
    let report: Value = serde_json::from_str(&first.stdout).unwrap();
    // Policy 1 stays in state 0 for ever: ζ_01 is known there for action 0 alone.
    for ratios in [
        &report["exact"],
        &report["estimated"]["nce"],
        &report["estimated"]["gendice"],
    ] {
        assert!(ratios["zeta_01"][0][0].is_f64());
        assert_eq!([&ratios["zeta_01"][0][1], &ratios["zeta_01"][1][0]], [&Value::Null; 2]);
        assert!(
            ratios["zeta_10"]
                .as_array()
                .unwrap()
                .iter()
                .flat_map(|row| row.as_array().unwrap())
                .all(Value::is_f64)
        );
    }
    let mut again = stein(&arguments);
    again.args(["--threads", "1"]);
    assert_eq!(succeed(again).stdout, first.stdout);
    let table = succeed(stein(&["verify", "--mdp", &path, "--samples", "2000"]));
    assert!(table.stdout.contains("valuedice"), "{}", table.stdout);
}

#[test]
fn seeds_are_told_as_they_are_done() {
    let seeds = |first: &str, count: &str| {
        let system = ["verify", "--system=ring-20x3-deterministic", "--estimator=nce"];
        succeed(stein(&[&system, &["--seed", first, "--seeds", count][..]].concat()))
    };
    let (both, second) = (seeds("1", "2"), seeds("2", "1"));
    assert_eq!(both.stderr, "seed 1: 0 bounds missed\nseed 2: 0 bounds missed\n");
    assert_eq!(second.stderr, "");
    let rows = |text: &str| -> Vec<String> {
        text.lines()
            .filter(|line| line.contains("ζ_"))
            .map(str::to_owned)
            .collect()
    };
    assert_eq!((rows(&both.stdout).len(), rows(&second.stdout).len()), (4, 2));
    assert_eq!(rows(&both.stdout)[2..], rows(&second.stdout), "a seed is its own");
    let verdict = |text: &str| text.lines().last().unwrap().to_owned();
    assert_eq!(verdict(&both.stdout), "4 checked, all within bounds; 0 reported only");
    assert_eq!(verdict(&second.stdout), "2 checked, all within bounds; 0 reported only");
}

#[test]
fn bad_input_is_told_in_one_sentence() {
    let folder = tempfile::tempdir().unwrap();
    let mut wrong = problem(false);
    wrong["policies"][0][1] = json!([0.7, 0.7]);
    let path = write(folder.path(), &wrong);
    assert_refused(
        &run(stein(&["verify", "--mdp", &path, "--json"])),
        2,
        &["problem.json", "policies[0][1]"],
    );
    fs::write(&path, "{").unwrap();
    assert_refused(
        &run(stein(&["verify", "--mdp", &path])),
        2,
        &["problem.json", "not JSON"],
    );
    fs::write(&path, [0xff, 0xfe]).unwrap();
    assert_refused(&run(stein(&["verify", "--mdp", &path])), 2, &["problem.json"]);
    assert_refused(&run(stein(&["verify", "--mdp", "nowhere.json"])), 2, &["nowhere.json"]);
    let path = write(folder.path(), &problem(false));
    assert_refused(
        &run(stein(&["verify", "--mdp", &path, "--samples", "0"])),
        2,
        &["--samples 0"],
    );
    assert_refused(&run(stein(&["verify", "--seeds", "0"])), 2, &["--seeds 0"]);
    assert_refused(
        &run(stein(&["verify", "--system", "torus"])),
        2,
        &["torus", "linear-gaussian"],
    );
    assert_refused(&run(stein(&["verify", "--estimator", "bestdice"])), 2, &["bestdice"]);
    assert_refused(&run(stein(&["verify", "--threads", "0"])), 2, &["--threads 0"]);
}

#[test]
fn scores_of_random_systems_are_printed_as_a_table_and_as_json() {
    let arguments = ["verify", "--system", "terminating", "--estimator", "nce", "--seed", "2"];
    let table = succeed(stein(&arguments)).stdout;
    assert_eq!(
        table.lines().filter(|line| line.ends_with("  ok")).count(),
        2,
        "{table}"
    );
    let mut json = stein(&arguments);
    json.arg("--json");
    let report: Value = serde_json::from_str(&succeed(json).stdout).unwrap();
    assert_eq!(report["passed"], true);
    let scores = report["scores"].as_array().unwrap();
    assert_eq!([&scores[0]["direction"], &scores[1]["direction"]], ["01", "10"]);
    assert!(scores.iter().all(|score| score["rmse"].as_f64().unwrap() < 0.1));
}

#[test]
fn every_estimator_is_within_the_bounds_on_seed_1() {
    let finished = succeed(stein(&["verify", "--seed=1", "--json"]));
    let report: Value = serde_json::from_str(&finished.stdout).unwrap();
    assert_eq!(report["passed"], true);
    let scores = report["scores"].as_array().unwrap();
    // Four systems, four estimators, two directions; ValueDICE is checked on the deterministic ring only.
    assert_eq!(scores.len(), 32);
    let judged = scores.iter().filter(|score| score["judged"] == true).count();
    assert_eq!(judged, 26);
}

#[test]
fn ratios_are_followed_under_the_conditions_of_training() {
    let follow = |system: &str| -> Value {
        let system = format!("--system={system}");
        let finished = succeed(stein(&["verify", "--training", "--estimator=nce", &system, "--json"]));
        serde_json::from_str(&finished.stdout).unwrap()
    };
    let followed = &follow("ring")["followed"][0];
    let number = |key: &str| followed[key].as_f64().unwrap();
    assert!(number("exact") > 0.98 && number("classifier") > 0.9, "{followed}");
    assert!(number("js_error") < 0.1 * number("js"), "{followed}");
    let report = follow("linear-gaussian-20");
    assert_eq!(report["passed"], true);
    assert!(report["verdicts"][0]["pairs"].as_u64().unwrap() >= 30);
    let wrong = run(stein(&["verify", "--training", "--system=torus"]));
    assert_refused(&wrong, 2, &["torus", "walker2d"]);
    let wrong = run(stein(&["verify", "--training", "--set=ppo.clip=0.1"]));
    assert_refused(&wrong, 2, &["ppo.clip=0.1", "[ratio]"]);
    let wrong = run(stein(&["verify", "--training", "--set=ratio.minibatch=0"]));
    assert_refused(&wrong, 2, &["ratio.minibatch"]);
    let wrong = run(stein(&["verify", "--set=ratio.epochs=2"]));
    assert_refused(&wrong, 2, &["--training"]);
}
