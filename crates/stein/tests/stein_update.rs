//! The Stein update: what it is without neighbours, where it pushes, and that it does not care how policies are numbered.

use stein::divergence::{self, Divergence, LOG_CLAMP, Shift};
use stein::env::behaviour::{Behaviour, Column, Entry};
use stein::env::{Registry, Spec, Task};
use stein::kernel::divergence_kernel;
use stein::method::{Guidance, Method, Qd, QdConfig, Weighting};
use stein::policy::critic::Judgement;
use stein::policy::{Ensemble, Rollout, Worker};
use stein::ratio::{self, GaussianPolicies, Memory, RatioConfig, Round, bridge};
use stein::rng::{Purpose, stream};
use stein::run::config::{Config, PpoConfig};
use stein::train::{Record, Trainer};
use stein::truth::{Ring, TabularMdp};
use stein::update::Updater;

use rand::RngExt;

const N: usize = 3;
const STEPS: usize = 128;

struct Scene {
    config: Config,
    spec: Spec,
    rollouts: Vec<Rollout>,
    judgement: Judgement,
    orders: Vec<Vec<u32>>,
}

fn task() -> Box<dyn Task> {
    Registry::default().build("maze", Default::default()).unwrap().0
}

fn config() -> Config {
    let mut config = Config {
        ensemble: N,
        steps: STEPS,
        ..Config::default()
    };
    config.ppo.minibatches = 4;
    config.ppo.epochs = 2;
    config.ppo.learning_rate = 1e-3;
    config.qd.ladder = 0.0;
    config
}

fn ensemble(config: &Config, spec: &Spec) -> Ensemble {
    Ensemble::new(N, spec, &config.policy, &config.ppo, config.seed)
}

/// Rollouts of N policies on the maze, with random advantages of the task and of diversity.
fn scene() -> Scene {
    let (task, config) = (task(), config());
    let spec = task.make().unwrap().spec().clone();
    let ensemble = ensemble(&config, &spec);
    let mut rollouts = vec![Rollout::default(); N];
    for (i, rollout) in rollouts.iter_mut().enumerate() {
        let mut worker = Worker::new(task.as_ref(), 1, i).unwrap();
        let (policies, normalizer) = (&ensemble.policies, &ensemble.normalizers[i]);
        worker
            .collect(&policies.shape, policies.member(i), normalizer, 0, STEPS, rollout)
            .unwrap();
    }
    let mut random = stream(5, Purpose::Truth, 0, 0);
    let advantages = (0..2 * N)
        .map(|_| (0..STEPS).map(|_| random.random_range(-1.0..1.0)).collect())
        .collect();
    let judgement = Judgement {
        advantages,
        ..Judgement::default()
    };
    let orders = (0..N as u32)
        .map(|i| (0..2 * STEPS as u32).map(|k| (k * 37 + i) % STEPS as u32).collect())
        .collect();
    Scene {
        config,
        spec,
        rollouts,
        judgement,
        orders,
    }
}

fn updated(scene: &Scene, judgement: &Judgement, guidance: &Guidance) -> Vec<f32> {
    let mut ensemble = ensemble(&scene.config, &scene.spec);
    let shape = ensemble.policies.shape.clone();
    let mut updater = Updater::new(N, &shape, STEPS, &scene.config.ppo);
    updater.update(
        &mut ensemble,
        &scene.rollouts,
        judgement,
        guidance,
        &scene.orders,
        &scene.config.ppo,
        1e-3,
    );
    ensemble.policies.parameters
}

fn identity() -> Vec<f64> {
    (0..N * N).map(|at| if at / N == at % N { 1.0 } else { 0.0 }).collect()
}

#[test]
fn without_neighbours_and_diversity_it_is_independent_ppo_bit_for_bit() {
    let scene = scene();
    let first = updated(&scene, &scene_task_only(&scene), &Guidance::independent(N));
    for share in [false, true] {
        let mut config = scene.config.clone();
        config.qd.share = share;
        let qd = Qd::new(&config, &scene.spec).unwrap();
        let (task, streams) = qd.weights(&identity(), 0.0, &[false; N]);
        let guidance = Guidance {
            task,
            streams,
            ..Guidance::independent(N)
        };
        let stein = updated(&scene, &scene.judgement, &guidance);
        assert!(
            first.iter().zip(&stein).all(|(a, b)| a.to_bits() == b.to_bits()),
            "share = {share}"
        );
    }
    // And the same update with neighbours is another one.
    let qd = Qd::new(&scene.config, &scene.spec).unwrap();
    let (task, streams) = qd.weights(&[1.0; N * N], 0.5, &[false; N]);
    let other = updated(
        &scene,
        &scene.judgement,
        &Guidance {
            task,
            streams,
            ..Guidance::independent(N)
        },
    );
    assert!(first.iter().zip(&other).any(|(a, b)| (a - b).abs() > 1e-4));
}

/// The task's advantages alone, as a method without streams has them.
fn scene_task_only(scene: &Scene) -> Judgement {
    let advantages = (0..N).map(|i| scene.judgement.advantages[2 * i].clone()).collect();
    Judgement {
        advantages,
        ..Judgement::default()
    }
}

#[test]
fn shared_gradients_are_mixed_by_the_kernel() {
    // One minibatch of plain gradient: the Adam step depends on the sign of each coordinate alone, so compare a mix of
    // equal weights with that of exchanged policies, which must move all policies by the same gradient.
    let mut scene = scene();
    scene.config.ppo.gradient_clip = 1e9;
    let mut config = scene.config.clone();
    config.qd.share = true;
    let qd = Qd::new(&config, &scene.spec).unwrap();
    let (task, streams) = qd.weights(&[1.0; N * N], 0.0, &[false; N]);
    assert!(task.iter().all(|&w| (w - 1.0 / N as f32).abs() < 1e-7) && streams.iter().all(|&w| w == 0.0));
    let before = ensemble(&scene.config, &scene.spec).policies.parameters;
    let after = updated(
        &scene,
        &scene.judgement,
        &Guidance {
            task,
            streams,
            ..Guidance::independent(N)
        },
    );
    let size = before.len() / N;
    for at in 0..size {
        let moved: Vec<f32> = (0..N).map(|i| after[i * size + at] - before[i * size + at]).collect();
        assert!(moved.iter().all(|m| (m - moved[0]).abs() < 1e-5), "{at}: {moved:?}");
    }
}

#[test]
fn renumbering_the_policies_renumbers_the_result() {
    let scene = scene();
    let mut config = scene.config.clone();
    config.qd.share = true;
    let qd = Qd::new(&config, &scene.spec).unwrap();
    let kernel = [1.0, 0.7, 0.2, 0.7, 1.0, 0.4, 0.2, 0.4, 1.0];
    let run = |order: [usize; N]| {
        let mut turned = vec![0.0; N * N];
        for i in 0..N {
            for j in 0..N {
                turned[i * N + j] = kernel[order[i] * N + order[j]];
            }
        }
        let (task, streams) = qd.weights(&turned, 0.3, &[false; N]);
        let advantages = order
            .iter()
            .flat_map(|&i| scene.judgement.advantages[2 * i..][..2].to_vec())
            .collect();
        let mut ensemble = ensemble(&scene.config, &scene.spec);
        let original = ensemble.policies.clone();
        for (i, &from) in order.iter().enumerate() {
            ensemble.policies.member_mut(i).copy_from_slice(original.member(from));
        }
        let shape = ensemble.policies.shape.clone();
        let rollouts: Vec<Rollout> = order.iter().map(|&i| scene.rollouts[i].clone()).collect();
        let orders: Vec<Vec<u32>> = order.iter().map(|&i| scene.orders[i].clone()).collect();
        let guidance = Guidance {
            task,
            streams,
            ..Guidance::independent(N)
        };
        let judgement = Judgement {
            advantages,
            ..Judgement::default()
        };
        let mut updater = Updater::new(N, &shape, STEPS, &scene.config.ppo);
        updater.update(
            &mut ensemble,
            &rollouts,
            &judgement,
            &guidance,
            &orders,
            &scene.config.ppo,
            1e-3,
        );
        let mut result = vec![Vec::new(); N];
        for (i, &from) in order.iter().enumerate() {
            result[from] = ensemble.policies.member(i).to_vec();
        }
        result
    };
    let (plain, turned) = (run([0, 1, 2]), run([2, 0, 1]));
    for (plain, turned) in plain.iter().flatten().zip(turned.iter().flatten()) {
        assert!((plain - turned).abs() < 2e-4, "{plain} {turned}");
    }
}

#[test]
fn a_policy_that_has_moved_too_far_stops_and_the_others_go_on() {
    let mut scene = scene();
    // Policy 0 has nothing to learn and stays where it is.
    scene.judgement.advantages[0].fill(0.0);
    let judgement = scene_task_only(&scene);
    let run = |limit: f64| {
        let mut ensemble = ensemble(&scene.config, &scene.spec);
        let shape = ensemble.policies.shape.clone();
        let ppo = PpoConfig {
            kl_limit: limit,
            ..scene.config.ppo.clone()
        };
        let mut updater = Updater::new(N, &shape, STEPS, &ppo);
        let guidance = Guidance::independent(N);
        let before = ensemble.policies.parameters.clone();
        let reports = updater.update(
            &mut ensemble,
            &scene.rollouts,
            &judgement,
            &guidance,
            &scene.orders,
            &ppo,
            0.01,
        );
        let size = shape.parameters();
        let moved = |i: usize| {
            let (before, after) = (&before[i * size..][..size], ensemble.policies.member(i));
            before
                .iter()
                .zip(after)
                .map(|(a, b)| f64::from((a - b).abs()))
                .sum::<f64>()
        };
        (0..N).map(|i| (reports[i], moved(i))).collect::<Vec<_>>()
    };
    let (free, held) = (run(0.0), run(1e-3));
    assert!(free.iter().all(|(report, _)| report.steps_taken == 1.0));
    assert_eq!((held[0].0.steps_taken, held[0].1), (1.0, 0.0));
    for i in 1..N {
        let ((free, far), (held, near)) = (free[i], held[i]);
        assert!(free.approximate_kl > 2e-3, "{free:?}");
        // The first step is always taken: only a step can have moved a policy.
        assert!(held.steps_taken > 0.0 && held.steps_taken < 1.0, "{held:?}");
        assert!(
            held.approximate_kl < free.approximate_kl && near < far,
            "{held:?} {free:?}"
        );
        assert!(held.gradient_norm.is_finite());
    }
    // A limit that no policy reaches changes nothing.
    assert_eq!(run(1e9), free);
}

// ---- where it pushes: tabular softmax policies with exact ratios ----

fn softmax(mdp: &TabularMdp, theta: &[f64]) -> Vec<f64> {
    let mut policy = Vec::new();
    for row in theta.chunks_exact(mdp.actions) {
        let total: f64 = row.iter().map(|x| x.exp()).sum();
        policy.extend(row.iter().map(|x| x.exp() / total));
    }
    policy
}

/// ∇_θ of (1-γ)·E[Σ γ^t r] for a softmax policy, by the policy-gradient theorem with exact Q.
fn policy_gradient(mdp: &TabularMdp, theta: &[f64], reward: &[f64]) -> Vec<f64> {
    let (policy, pairs, a) = (softmax(mdp, theta), mdp.states * mdp.actions, mdp.actions);
    let mut q = vec![0.0; pairs];
    for _ in 0..2000 {
        let v: Vec<f64> = (0..mdp.states)
            .map(|s| (0..a).map(|k| policy[s * a + k] * q[s * a + k]).sum())
            .collect();
        for pair in 0..pairs {
            let next: f64 = mdp.next(pair).iter().zip(&v).map(|(p, v)| p * v).sum();
            q[pair] = reward[pair] + mdp.gamma * (1.0 - mdp.termination[pair]) * next;
        }
    }
    let occupancy = mdp.occupancy(&policy);
    let mut gradient = vec![0.0; pairs];
    for s in 0..mdp.states {
        let v: f64 = (0..a).map(|k| policy[s * a + k] * q[s * a + k]).sum();
        for k in 0..a {
            gradient[s * a + k] = occupancy.mass * occupancy.rho[s * a + k] * (q[s * a + k] - v);
        }
    }
    gradient
}

fn exact_divergence(mdp: &TabularMdp, divergence: &dyn Divergence, i: &[f64], j: &[f64]) -> f64 {
    let (rho_i, rho_j) = (mdp.occupancy(i).rho, mdp.occupancy(j).rho);
    rho_i.iter().zip(&rho_j).map(|(p, q)| p * divergence.f(q / p)).sum()
}

#[test]
fn an_own_gradient_step_raises_the_divergence_and_equal_policies_feel_nothing() {
    let ring = Ring {
        states: 12,
        actions: 3,
        gamma: 0.9,
        termination: false,
        deterministic: false,
    };
    let mdp = ring.problem(3).unwrap().mdp;
    let pairs = mdp.states * mdp.actions;
    let mut random = stream(9, Purpose::Truth, 1, 0);
    let theta_i: Vec<f64> = (0..pairs).map(|_| random.random_range(-0.5..0.5)).collect();
    let theta_j: Vec<f64> = theta_i.iter().map(|x| x + random.random_range(-0.05..0.05)).collect();
    let (i, j) = (softmax(&mdp, &theta_i), softmax(&mdp, &theta_j));
    for name in divergence::NAMES {
        let divergence = divergence::by_name(name).unwrap();
        let reward = |other: &[f64]| -> Vec<f64> {
            let zeta = mdp.zeta(other, &i);
            let logs: Vec<f32> = zeta.iter().map(|z| z.ln() as f32).collect();
            let rewards = divergence::rewards(
                divergence.as_ref(),
                Shift::None,
                LOG_CLAMP,
                &logs,
                &vec![1.0; logs.len()],
            );
            rewards.into_iter().map(f64::from).collect()
        };
        let gradient = policy_gradient(&mdp, &theta_i, &reward(&j));
        let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        let moved: Vec<f64> = theta_i
            .iter()
            .zip(&gradient)
            .map(|(x, g)| x + 1e-3 * g / norm)
            .collect();
        let before = exact_divergence(&mdp, divergence.as_ref(), &i, &j);
        let after = exact_divergence(&mdp, divergence.as_ref(), &softmax(&mdp, &moved), &j);
        assert!(after > before, "{name}: {before} → {after}");

        let still = policy_gradient(&mdp, &theta_i, &reward(&i));
        // Total variation has a kink at ζ = 1: rounding decides its sign there, so only the smooth ones are at rest.
        if *name != "tv" {
            assert!(still.iter().all(|g| g.abs() < 1e-6), "{name} moves equal policies");
        }
    }
}

#[test]
fn disjoint_policies_have_nearly_log_2_and_a_kernel_near_a_quarter() {
    let (task, config) = (task(), config());
    let spec = task.make().unwrap().spec().clone();
    let ensemble = Ensemble::new(2, &spec, &config.policy, &config.ppo, 1);
    let ratio_config = RatioConfig {
        minibatch: 128,
        ..RatioConfig::default()
    };
    let mut memory = Memory::new(2, 4, 2, 0, 0.99, &ratio_config);
    let mut random = stream(2, Purpose::Truth, 2, 0);
    let mut cluster = |centre: f32| {
        let steps = 512;
        let observations: Vec<f32> = (0..4 * (steps + 1))
            .map(|_| centre + random.random_range(-0.3..0.3))
            .collect();
        Rollout {
            observations,
            actions: (0..2 * steps).map(|_| random.random_range(-1.0..1.0)).collect(),
            next: (1..=steps as u32).collect(),
            terminated: vec![false; steps],
            ended: (1..=steps).map(|t| t == steps).collect(),
            time: (0..steps as u32).map(|t| t % 100).collect(),
            initial: vec![0],
            ..Rollout::default()
        }
    };
    memory.remember(&[cluster(-1.0), cluster(1.0)]);
    let (data, features) = (memory.data(), memory.features.clone());
    let policies = GaussianPolicies {
        ensemble: &ensemble,
        features: &features,
    };
    let mut estimator = ratio::build("nce", 2, 6, 0.99, &ratio_config, 1).unwrap();
    estimator.update(&Round {
        policies: &policies,
        data: &data,
        seed: 1,
        round: 0,
        updates: 600,
        rate: (1.0, 0.0),
    });
    let newest = memory.newest();
    let js = divergence::by_name("js").unwrap();
    let mut d = vec![0.0; 4];
    for (p, (mut on_b, mut on_a)) in estimator.log_zetas(&policies, &newest, 1, 0).into_iter().enumerate() {
        let (a, b) = ratio::pair_of(p, 2);
        let c = bridge((&on_b, &newest[b].weights), (&on_a, &newest[a].weights)) as f32;
        on_b.iter_mut().chain(&mut on_a).for_each(|x| *x -= c);
        d[b * 2 + a] = divergence::value(
            js.as_ref(),
            LOG_CLAMP,
            (&on_b, &newest[b].weights),
            (&on_a, &newest[a].weights),
        );
    }
    let log_2 = std::f64::consts::LN_2;
    assert!(
        (d[1] - log_2).abs() < 0.1 * log_2 && (d[2] - log_2).abs() < 0.1 * log_2,
        "{d:?}"
    );
    let kernel = divergence_kernel(&d, 2, js.as_ref(), js.temperature(), 1.0);
    assert!((kernel[1] - 0.25).abs() < 0.05, "{kernel:?}");
}

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
    assert_eq!(qd.metrics().len(), qd.metric_names().len());
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
        (config.method, config.iterations, config.qd.ladder) = (method.into(), 3, ladder);
        let mut trainer = Trainer::new(config, task.as_ref()).unwrap();
        (0..3).for_each(|_| drop(trainer.iterate().unwrap()));
        let parameters = |i: usize| trainer.ensemble.policies.member(i).to_vec();
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
        .collect(
            &ensemble.policies.shape,
            ensemble.policies.member(0),
            &ensemble.normalizers[0],
            0,
            STEPS,
            &mut rollout,
        )
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
        (trainer.ensemble.policies.parameters.clone(), measured)
    };
    let (always, sometimes) = (run(1), run(3));
    assert_eq!(always.0, sometimes.0);
    assert_eq!(always.1, [true; 6]);
    // ω is 0 from the third iteration on; the fourth is the third's multiple, the sixth the last.
    assert_eq!(sometimes.1, [true, true, false, true, false, true]);
}
