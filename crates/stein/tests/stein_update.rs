//! The Stein update: what it is without neighbours, where it pushes, and that it does not care how policies are numbered.

#[allow(dead_code)]
mod scene;

use rand::RngExt;
use scene::{N, STEPS, Scene, config, ensemble, scene, task};
use stein::divergence::{self, Divergence, DivergenceChoice, LOG_CLAMP, Shift};
use stein::kernel::divergence_kernel;
use stein::method::{Guidance, Qd};
use stein::policy::PpoConfig;
use stein::policy::critic::Advantages;
use stein::policy::{Ensemble, Rollout};
use stein::ratio::{self, EstimatorChoice, GaussianPolicies, Memory, RatioConfig, Round, bridge};
use stein::rng::{Purpose, stream};
use stein::truth::{Ring, TabularMdp};
use stein::update::Updater;

fn updated(scene: &Scene, advantages: &Advantages, guidance: &Guidance) -> Vec<f32> {
    let mut ensemble = ensemble(&scene.config, &scene.spec);
    let shape = ensemble.policies.shape.clone();
    let mut updater = Updater::new(N, &shape, STEPS, &scene.config.ppo);
    updater.update(
        &mut ensemble,
        &scene.rollouts,
        advantages,
        guidance,
        &scene.orders,
        &scene.config.ppo,
        1e-3,
    );
    ensemble.policies.parameters().to_vec()
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
        let stein = updated(&scene, &scene.advantages, &guidance);
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
        &scene.advantages,
        &Guidance {
            task,
            streams,
            ..Guidance::independent(N)
        },
    );
    assert!(first.iter().zip(&other).any(|(a, b)| (a - b).abs() > 1e-4));
}

/// The task's advantages alone, as a method without streams has them.
fn scene_task_only(scene: &Scene) -> Advantages {
    let advantages = (0..N).map(|i| scene.advantages.advantages[2 * i].clone()).collect();
    Advantages {
        advantages,
        ..Advantages::default()
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
    let before = ensemble(&scene.config, &scene.spec).policies.parameters().to_vec();
    let after = updated(
        &scene,
        &scene.advantages,
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
            .flat_map(|&i| scene.advantages.advantages[2 * i..][..2].to_vec())
            .collect();
        let mut ensemble = ensemble(&scene.config, &scene.spec);
        let original = ensemble.policies.clone();
        for (i, &from) in order.iter().enumerate() {
            ensemble.policies.copy_member(i, original.network(from));
        }
        let shape = ensemble.policies.shape.clone();
        let rollouts: Vec<Rollout> = order.iter().map(|&i| scene.rollouts[i].clone()).collect();
        let orders: Vec<Vec<u32>> = order.iter().map(|&i| scene.orders[i].clone()).collect();
        let guidance = Guidance {
            task,
            streams,
            ..Guidance::independent(N)
        };
        let advantages = Advantages {
            advantages,
            ..Advantages::default()
        };
        let mut updater = Updater::new(N, &shape, STEPS, &scene.config.ppo);
        updater.update(
            &mut ensemble,
            &rollouts,
            &advantages,
            &guidance,
            &orders,
            &scene.config.ppo,
            1e-3,
        );
        let mut result = vec![Vec::new(); N];
        for (i, &from) in order.iter().enumerate() {
            result[from] = ensemble.network(i).values().to_vec();
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
    scene.advantages.advantages[0].fill(0.0);
    let advantages = scene_task_only(&scene);
    let run = |limit: f64| {
        let mut ensemble = ensemble(&scene.config, &scene.spec);
        let shape = ensemble.policies.shape.clone();
        let ppo = PpoConfig {
            kl_limit: limit,
            ..scene.config.ppo.clone()
        };
        let mut updater = Updater::new(N, &shape, STEPS, &ppo);
        let guidance = Guidance::independent(N);
        let before = ensemble.policies.parameters().to_vec();
        let reports = updater.update(
            &mut ensemble,
            &scene.rollouts,
            &advantages,
            &guidance,
            &scene.orders,
            &ppo,
            0.01,
        );
        let size = shape.parameters();
        let moved = |i: usize| {
            let (before, after) = (&before[i * size..][..size], ensemble.network(i).values());
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
    for divergence in DivergenceChoice::all() {
        let name = divergence.name();
        let reward = |other: &[f64]| -> Vec<f64> {
            let zeta = mdp.zeta(other, &i);
            let logs: Vec<f32> = zeta.iter().map(|z| z.ln() as f32).collect();
            let rewards = divergence::rewards(divergence.get(), Shift::None, LOG_CLAMP, &logs, &vec![1.0; logs.len()]);
            rewards.into_iter().map(f64::from).collect()
        };
        let gradient = policy_gradient(&mdp, &theta_i, &reward(&j));
        let norm = gradient.iter().map(|g| g * g).sum::<f64>().sqrt();
        let moved: Vec<f64> = theta_i
            .iter()
            .zip(&gradient)
            .map(|(x, g)| x + 1e-3 * g / norm)
            .collect();
        let before = exact_divergence(&mdp, divergence.get(), &i, &j);
        let after = exact_divergence(&mdp, divergence.get(), &softmax(&mdp, &moved), &j);
        assert!(after > before, "{name}: {before} → {after}");

        let still = policy_gradient(&mdp, &theta_i, &reward(&i));
        // Total variation has a kink at ζ = 1: rounding decides its sign there, so only the smooth ones are at rest.
        if name != "tv" {
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
    let mut estimator = ratio::build(EstimatorChoice::default(), 2, 6, 0.99, &ratio_config, 1).unwrap();
    estimator.update(&Round {
        policies: &policies,
        data: &data,
        seed: 1,
        round: 0,
        updates: 600,
        rate: (1.0, 0.0),
    });
    let newest = memory.newest();
    let js = DivergenceChoice::named("js").unwrap();
    let mut d = vec![0.0; 4];
    for (p, (mut on_b, mut on_a)) in estimator.log_zetas(&policies, &newest, 1, 0).into_iter().enumerate() {
        let (a, b) = ratio::pair_of(p, 2);
        let c = bridge((&on_b, &newest[b].weights), (&on_a, &newest[a].weights)) as f32;
        on_b.iter_mut().chain(&mut on_a).for_each(|x| *x -= c);
        d[b * 2 + a] = divergence::value(
            js.get(),
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
    let kernel = divergence_kernel(&d, 2, js.get(), js.temperature(), 1.0);
    assert!((kernel[1] - 0.25).abs() < 0.05, "{kernel:?}");
}
