//! The same seed gives the same bytes: on any number of threads, and every time.

mod support;

use support::{Results, succeed, train};

/// Trains with small settings and `extra` ones, on several numbers of threads and with another seed.
fn is_deterministic(extra: &[&str]) {
    let place = tempfile::tempdir().unwrap();
    let results = |name: &str, more: &[&str]| {
        let folder = place.path().join(name);
        succeed(train(&folder, &[extra, more].concat()));
        folder
    };
    let first = Results::of(&results("one", &["--seed=7", "--threads=1"]));
    for threads in ["--threads=1", "--threads=2", "--threads=3"] {
        let folder = results(&format!("again{threads}"), &["--seed=7", threads]);
        first.assert_same_in(&folder, &format!("{extra:?} {threads}"));
    }
    let other = Results::of(&results("other", &["--seed=8", "--threads=1"]));
    assert!(first != other, "another seed gave the same results");
}

#[test]
fn independent_policies() {
    is_deterministic(&["--method=ppo"]);
}

#[test]
fn scaled_rewards_and_annealed_learning_rates() {
    is_deterministic(&[
        "--set=ppo.reward_scaling=return",
        "--set=ppo.anneal={ from = 0.0, to = 0.0 }",
    ]);
}

#[test]
fn quality_and_diversity_by_every_estimator() {
    for estimator in ["nce", "dualdice", "valuedice", "gendice"] {
        is_deterministic(&["--method=qd", &format!("--set=qd.estimator={estimator}")]);
    }
}

#[test]
fn skills_and_self_imitation() {
    is_deterministic(&["--method=diayn"]);
    is_deterministic(&["--method=si"]);
}

#[test]
fn stein_variational_policy_gradient() {
    is_deterministic(&["--method=svpg"]);
}
