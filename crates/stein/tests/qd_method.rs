//! The method `qd`: the weights it gives to task and diversity, what it records, and when its ratios rest.

#[allow(dead_code)]
mod scene;

use scene::{N, STEPS, config, ensemble, scene, task};
use stein::env::behaviour::{Behaviour, Column, Entry};
use stein::method::{Method, Qd, QdConfig, Weighting};
use stein::policy::{Rollout, Worker};
use stein::train::{Record, Trainer};

#[test]
fn the_method_guides_every_policy_away_from_every_other() {
    let scene = scene();
    let mut qd = Qd::new(&scene.config, &scene.spec).unwrap();
    let ensemble = ensemble(&scene.config, &scene.spec);
    let guidance = qd.guide(&ensemble, &scene.rollouts, 0).unwrap();
    assert_eq!(guidance.rewards.len(), N);
    assert!(
        guidance
            .rewards
            .iter()
            .all(|r| r.len() == STEPS && r.iter().all(|x| x.is_finite()))
    );
    assert!(guidance.streams.iter().all(|&w| w > 0.0), "{:?}", guidance.streams);
    let kernel = qd.kernel().unwrap();
    assert!((0..N).all(|i| kernel[i * N + i] == 1.0));
}

#[test]
fn with_a_quota_the_best_policy_follows_the_task_alone() {
    let mut scene = scene();
    scene.config.qd.weighting = Weighting::Constrained;
    let mut qd = Qd::new(&scene.config, &scene.spec).unwrap();
    let ensemble = ensemble(&scene.config, &scene.spec);
    let streams = qd.guide(&ensemble, &scene.rollouts, 0).unwrap().streams;
    // Episodes have ended: the best of them follows the task alone, the others are driven apart.
    assert_eq!(streams.iter().filter(|&&w| w == 0.0).count(), 1, "{streams:?}");
    assert!(streams.iter().all(|&w| w >= 0.0), "{streams:?}");
}

#[test]
fn on_a_ladder_the_first_policy_is_that_of_independent_ppo_bit_for_bit() {
    let task = task();
    let run = |method: &str, ladder: f64| {
        let mut config = config();
        (config.method, config.iterations, config.qd.ladder) =
            (stein::method::MethodChoice::named(method).unwrap(), 3, ladder);
        let mut trainer = Trainer::new(config, task.as_ref()).unwrap();
        (0..3).for_each(|_| drop(trainer.iterate().unwrap()));
        let parameters = |i: usize| trainer.ensemble.network(i).values().to_vec();
        (0..N).map(parameters).collect::<Vec<_>>()
    };
    let (alone, ladder, level) = (run("ppo", 0.0), run("qd", 1.0), run("qd", 0.0));
    assert_eq!(ladder[0], alone[0], "policy 0 follows the task alone");
    assert_ne!(ladder[1], alone[1]);
    assert_ne!(level[0], alone[0]);
}

#[test]
fn omega_goes_from_its_start_to_its_end_stays_and_is_off_at_last() {
    let mut qd = QdConfig::default();
    (qd.omega_start, qd.omega_end, qd.omega_until, qd.omega_off) = (1.0, 0.5, 0.5, 0.8);
    let omega: Vec<f64> = (0..10).map(|iteration| qd.omega(iteration, 10)).collect();
    assert_eq!(omega, [1.0, 0.9, 0.8, 0.7, 0.6, 0.5, 0.5, 0.5, 0.0, 0.0]);
    qd.omega_off = 1.0;
    assert_eq!(qd.omega(9, 10), 0.5);
    qd.omega_off = 0.0;
    assert_eq!(qd.omega(0, 10), 0.0);
}

#[test]
fn rungs_have_the_mean_omega() {
    let mut qd = config().qd;
    let of = |qd: &QdConfig| (0..5).map(|i| qd.rung(0.4, i, 5)).collect::<Vec<_>>();
    assert_eq!(of(&qd), [0.4; 5]);
    qd.ladder = 1.0;
    assert_eq!(of(&qd), [0.0, 0.2, 0.4, 0.6000000000000001, 0.8]);
    // Steeper: the mean over evenly spaced policies tends to ω, and the last has (1 + ladder)·ω.
    qd.ladder = 2.0;
    let rungs: Vec<f64> = (0..1001).map(|i| qd.rung(0.4, i, 1001)).collect();
    assert!((rungs.iter().sum::<f64>() / 1001.0 - 0.4).abs() < 1e-3);
    assert!((rungs[0], rungs[1000]) == (0.0, 0.4 * 3.0) && rungs.is_sorted());
    // Where ω is a share, nobody's is above 1.
    let mut config = config();
    (config.qd.weighting, config.qd.omega_start, config.qd.ladder) = (Weighting::Normalised, 0.8, 1.0);
    assert!(config.validate().unwrap_err().to_string().contains("qd.omega_start"));
    config.qd.ladder = 0.2;
    config.validate().unwrap();
}

#[test]
fn where_the_task_says_nothing_diversity_has_all_the_weight() {
    let mut scene = scene();
    for rollout in &mut scene.rollouts[1..] {
        rollout.silent = true;
    }
    let ensemble = ensemble(&scene.config, &scene.spec);
    for omega in [0.0, 0.2] {
        let mut config = scene.config.clone();
        (config.qd.omega_start, config.qd.omega_end) = (omega, omega);
        let guidance = Qd::new(&config, &scene.spec)
            .unwrap()
            .guide(&ensemble, &scene.rollouts, 0)
            .unwrap();
        assert!(guidance.task[0] > 0.0, "policy 0 has a task");
        for i in 1..N {
            assert!((0..N).all(|j| guidance.task[i * N + j] == 0.0), "{:?}", guidance.task);
            assert_eq!(guidance.streams[i], 2.0, "1/T of JS");
            assert!(guidance.rewards[i].iter().any(|&r| r != 0.0));
        }
    }
}

#[test]
fn rollouts_record_what_behaviour_is_made_of() {
    let task = task();
    let (columns, config) = ([Column::Signal(4), Column::Observation(0)], config());
    let spec = task.make().unwrap().spec().clone();
    let (ensemble, mut rollout) = (ensemble(&config, &spec), Rollout::default());
    let mut worker = Worker::new(task.as_ref(), 1, 0).unwrap().recording(&columns);
    worker
        .collect(ensemble.actor(0), &ensemble.normalizers[0], 0, STEPS, &mut rollout)
        .unwrap();
    assert_eq!(rollout.behaviour.len(), 2 * STEPS);
    for (row, observation) in rollout.behaviour.chunks(2).zip(rollout.observations.chunks(4)) {
        assert_eq!(row[1], observation[0]);
        // The signal is the distance from the goal, whose place the rewards of the same steps give away.
        assert!(row[0] > 0.0 && row[0].is_finite());
    }
    let rewards = rollout
        .rewards
        .iter()
        .zip(rollout.behaviour.chunks(2).skip(1))
        .zip(&rollout.ended);
    for ((reward, after), _) in rewards.filter(|(_, ended)| !**ended) {
        assert!(
            (reward.ln() + after[0]).abs() < 1e-4,
            "reward e^-distance of the state after the step"
        );
    }
}

#[test]
fn metrics_tell_how_loud_diversity_is_and_how_far_apart_policies_are() {
    let task = task();
    let mut config = config();
    config.qd.behaviour = Some(Behaviour::Of(vec![Entry::Observation(0), Entry::Observation(1)]));
    (config.iterations, config.qd.omega_until, config.qd.omega_end) = (4, 0.5, 0.0);
    let mut trainer = Trainer::new(config, task.as_ref()).unwrap();
    let names = trainer.metric_names();
    let place = |name: &str| names.iter().position(|known| known == name).unwrap();
    for iteration in 0..4 {
        let record = trainer.iterate().unwrap();
        let size = record.metrics[place("diversity_size")];
        // ω falls to 0 after half of the iterations.
        assert_eq!(size > 0.0, iteration < 2, "iteration {iteration}: {size}");
        let n = trainer.rollouts().len() as f64;
        let mean = |entry: usize| -> Vec<f64> {
            let of = |rollout: &Rollout| {
                let rows = rollout.behaviour.chunks(2);
                rows.map(|row| f64::from(row[entry])).sum::<f64>() / rollout.rewards.len() as f64
            };
            trainer.rollouts().iter().map(of).collect()
        };
        let variance = |means: Vec<f64>| {
            let square = means.iter().map(|x| x * x).sum::<f64>() / n;
            square - (means.iter().sum::<f64>() / n).powi(2)
        };
        let expected = variance(mean(0)) + variance(mean(1));
        let told = record.metrics[place("behaviour_between")];
        assert!(
            (told - expected).abs() < 1e-9 * (1.0 + expected) && told > 0.0,
            "{told} {expected}"
        );
    }
}

#[test]
fn ratios_that_steer_nothing_are_left_alone_without_changing_a_bit() {
    let task = task();
    let run = |idle: usize| {
        let mut config = config();
        (config.iterations, config.ratio.idle) = (6, idle);
        (config.qd.omega_until, config.qd.omega_end) = (0.3, 0.0);
        let mut trainer = Trainer::new(config, task.as_ref()).unwrap();
        let records: Vec<Record> = (0..6).map(|_| trainer.iterate().unwrap()).collect();
        let place = trainer.metric_names().iter().position(|name| name == "divergence_mean");
        let measured: Vec<bool> = records.iter().map(|r| !r.metrics[place.unwrap()].is_nan()).collect();
        (trainer.ensemble.policies.parameters().to_vec(), measured)
    };
    let (always, sometimes) = (run(1), run(3));
    assert_eq!(always.0, sometimes.0);
    assert_eq!(always.1, [true; 6]);
    // ω is 0 from the third iteration on; the fourth is the third's multiple, the sixth the last.
    assert_eq!(sometimes.1, [true, true, false, true, false, true]);
}
