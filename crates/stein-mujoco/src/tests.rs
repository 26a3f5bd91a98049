//! The robots as environments: rewards, ends, observations, resets, and what is left of one episode in the next.

use rand::{RngExt, SeedableRng};
use stein::env::{Env, Episode, Measure, Registry, Step, Task};
use stein::plot::Figure;
use stein::rng::Stream;

use crate::simulation::Simulation;
use crate::*;

const ROBOTS: [&str; 4] = ["hopper", "walker2d", "halfcheetah", "deceptive-cheetah"];

pub(crate) fn build(robot: &str, settings: &str) -> stein::Result<Box<dyn Task>> {
    let mut registry = Registry::empty();
    register(&mut registry);
    Ok(registry.build(robot, settings.parse().unwrap())?.0)
}

pub(crate) fn make(robot: &str, settings: &str) -> Box<dyn Env> {
    build(robot, settings).unwrap().make().unwrap()
}

pub(crate) fn observation(env: &dyn Env) -> Vec<f64> {
    vec![0.0; env.spec().observation]
}

pub(crate) fn signals(env: &mut dyn Env) -> Vec<f64> {
    let mut signals = vec![0.0; env.spec().signals.len()];
    env.signals(&mut signals);
    signals
}

/// Puts a robot into its first pose, changed by `change`, and returns its observation.
fn place(robot: &str, env: &mut dyn Env, change: impl Fn(&mut [f64], &mut [f64])) -> Vec<f64> {
    let mut observation = observation(env);
    let env = env.settable().unwrap();
    let (nq, nv) = env.state_sizes();
    let (mut qpos, mut qvel) = (vec![0.0; nq], vec![0.0; nv]);
    qpos[1] = if robot.contains("cheetah") { 0.0 } else { 1.25 };
    change(&mut qpos, &mut qvel);
    env.set_state(&qpos, &qvel, &mut observation);
    observation
}

pub(crate) fn step(env: &mut dyn Env, action: &[f64]) -> (Step, Vec<f64>) {
    let mut observation = observation(env);
    let step = env.step(action, &mut observation);
    (step, observation)
}

#[test]
fn sizes_are_those_of_the_published_robots() {
    for (robot, sizes, can_terminate) in [
        ("hopper", (11, 3), true),
        ("walker2d", (17, 6), true),
        ("halfcheetah", (17, 6), false),
        ("deceptive-cheetah", (17, 6), false),
    ] {
        let env = make(robot, "");
        let spec = env.spec();
        assert_eq!((spec.observation, spec.action()), sizes);
        assert_eq!((spec.horizon, spec.can_terminate), (1000, can_terminate));
        assert!(spec.action_low.iter().all(|&low| low == -1.0) && spec.action_high.iter().all(|&high| high == 1.0));
    }
    assert!(!make("hopper", "terminate_when_unhealthy = false").spec().can_terminate);
}

#[test]
fn masses_are_the_published_ones() {
    for (model, masses) in [
        (include_str!("../models/hopper.xml"), &[3.665, 4.058, 2.781, 5.316][..]),
        (
            include_str!("../models/walker2d.xml"),
            &[3.665, 4.058, 2.781, 3.167, 4.058, 2.781, 3.167],
        ),
        (
            include_str!("../models/half_cheetah.xml"),
            &[6.250, 1.544, 1.587, 1.095, 1.438, 1.201, 0.884],
        ),
    ] {
        let simulation = simulation::Simulation::new(model).unwrap();
        let found = simulation.model().body_mass();
        assert_eq!(found.len(), masses.len() + 1);
        for (found, mass) in found[1..].iter().zip(masses) {
            assert!((found - mass).abs() < 1e-3, "{found} is not {mass}");
        }
    }
}

#[test]
fn rewards_follow_the_formula() {
    for (robot, settings, dt, forward, control, healthy) in [
        ("hopper", "", 0.008, 1.0, 1e-3, 1.0),
        ("walker2d", "", 0.008, 1.0, 1e-3, 1.0),
        ("halfcheetah", "", 0.05, 1.0, 0.1, 0.0),
        (
            "hopper",
            "forward_reward_weight = 2.5\ncontrol_cost_weight = 0.5\nhealthy_reward = -0.25",
            0.008,
            2.5,
            0.5,
            -0.25,
        ),
    ] {
        let mut env = make(robot, settings);
        place(robot, env.as_mut(), |_, qvel| qvel[0] = 0.7);
        let action = vec![0.5; env.spec().action()];
        let before = signals(env.as_mut())[0];
        let (step, _) = step(env.as_mut(), &action);
        let after = signals(env.as_mut());
        let velocity = (after[0] - before) / dt;
        assert!(velocity.abs() > 0.01 && (after[3] - velocity).abs() < 1e-12);
        let norm = 0.25 * action.len() as f64;
        let expected = forward * velocity + healthy - control * norm;
        assert!((step.reward - expected).abs() < 1e-12, "{robot}: {}", step.reward);
        assert!(!step.terminated);

        let mut free = make(robot, "reward = \"none\"");
        place(robot, free.as_mut(), |_, qvel| qvel[0] = 0.7);
        let (silent, _) = self::step(free.as_mut(), &action);
        assert_eq!((silent.reward, silent.terminated), (0.0, false));
        assert_eq!(signals(free.as_mut()), after);
    }
}

#[test]
fn the_deceptive_cheetah_is_paid_beyond_the_threshold_only() {
    for (settings, threshold) in [("", 5.0), ("threshold = 2.5", 2.5)] {
        let mut env = make("deceptive-cheetah", settings);
        let mut plain = make("halfcheetah", "");
        let action = [0.3; 6];
        let mut run_from = |x: f64| {
            let fast = |qpos: &mut [f64], qvel: &mut [f64]| (qpos[0], qvel[0]) = (x, 2.0);
            place("halfcheetah", env.as_mut(), fast);
            place("halfcheetah", plain.as_mut(), fast);
            let steps = (step(env.as_mut(), &action).0, step(plain.as_mut(), &action).0);
            (steps.0.reward, steps.1.reward, signals(env.as_mut())[0])
        };
        // Not before it, in the very step that passes it, and after it.
        let (deceptive, usual, x) = run_from(threshold - 1.0);
        assert!(x < threshold && usual > 0.5);
        assert!((deceptive + 0.1 * 6.0 * 0.09).abs() < 1e-12);
        for start in [threshold - 0.01, threshold + 3.0] {
            let (deceptive, usual, x) = run_from(start);
            assert!(x > threshold && deceptive == usual);
        }
    }
}

/// A change of the state by index and value; positions first.
type Change = (usize, f64);

#[test]
fn falls_end_episodes() {
    // Values just outside and just inside: a step moves a robot at rest by a hair only.
    let cases: [(&str, Change, Change); 5] = [
        ("hopper", (2, 0.21), (2, 0.19)),
        ("hopper", (2, -0.21), (2, -0.19)),
        ("walker2d", (1, 2.01), (1, 1.99)),
        ("walker2d", (2, 1.01), (2, 0.99)),
        ("walker2d", (2, -1.01), (2, -0.99)),
    ];
    for (robot, fallen, upright) in cases {
        for ((index, value), terminated) in [(fallen, true), (upright, false)] {
            let (mut env, mut patient) = (make(robot, ""), make(robot, "terminate_when_unhealthy = false"));
            let action = vec![0.0; env.spec().action()];
            let mut rewards = Vec::new();
            for env in [&mut env, &mut patient] {
                // High enough that no foot touches the ground, where the height does not matter.
                place(robot, env.as_mut(), |qpos, _| {
                    qpos[1] = 1.6;
                    qpos[index] = value;
                });
                let (step, _) = step(env.as_mut(), &action);
                assert_eq!(
                    step.terminated,
                    terminated && env.spec().can_terminate,
                    "{robot} {value}"
                );
                rewards.push(step.reward);
            }
            assert_eq!(rewards[0], rewards[1]);
            let velocity = signals(env.as_mut())[3];
            assert_eq!(
                rewards[0] > velocity + 0.5,
                !terminated,
                "a fallen robot is not paid for health"
            );
        }
    }
}

#[test]
fn a_wildly_moving_hopper_is_unhealthy_and_a_cheetah_never_is() {
    let mut hopper = make("hopper", "");
    place("hopper", hopper.as_mut(), |qpos, qvel| {
        (qpos[1], qvel[1]) = (50.0, 101.0)
    });
    assert!(step(hopper.as_mut(), &[0.0; 3]).0.terminated);
    place("hopper", hopper.as_mut(), |qpos, qvel| {
        (qpos[1], qvel[1]) = (50.0, 99.0)
    });
    assert!(!step(hopper.as_mut(), &[0.0; 3]).0.terminated);
    let mut cheetah = make("halfcheetah", "");
    place("halfcheetah", cheetah.as_mut(), |qpos, qvel| {
        (qpos[2], qvel[1]) = (3.0, 200.0)
    });
    assert!(!step(cheetah.as_mut(), &[0.0; 6]).0.terminated);
}

#[test]
fn episodes_are_cut_off_at_the_horizon() {
    for robot in ROBOTS {
        let mut env = make(robot, "horizon = 7");
        let action = vec![0.0; env.spec().action()];
        let mut seen = observation(env.as_ref());
        for episode in 0..2 {
            env.reset(episode, &mut seen);
            let truncated: Vec<bool> = (0..7).map(|_| env.step(&action, &mut seen).truncated).collect();
            assert_eq!(truncated, [false, false, false, false, false, false, true]);
        }
    }
}

#[test]
fn velocities_are_clipped_where_they_are_published_so() {
    for (robot, clip) in [("hopper", 10.0), ("walker2d", 10.0), ("halfcheetah", f64::INFINITY)] {
        let mut env = make(robot, "");
        let seen = place(robot, env.as_mut(), |qpos, qvel| {
            qpos[0] = 3.0;
            (qvel[0], qvel[1], qvel[2]) = (25.0, -30.0, 4.0);
        });
        let positions = env.settable().unwrap().state_sizes().0;
        assert_eq!(
            seen[positions - 1..positions + 2],
            [25.0f64.min(clip), (-30.0f64).max(-clip), 4.0]
        );
        // The position along the way is not seen: the first is the height.
        assert_eq!(seen[0], signals(env.as_mut())[1]);
    }
}

/// Mean, variance and kurtosis.
fn moments(values: &[f64]) -> [f64; 3] {
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let power = |exponent| values.iter().map(|value| (value - mean).powi(exponent)).sum::<f64>() / count;
    [mean, power(2), power(4) / power(2).powi(2)]
}

#[test]
fn resets_have_the_published_distribution() {
    for (robot, noise, normal) in [
        ("hopper", 5e-3, false),
        ("walker2d", 5e-3, false),
        ("halfcheetah", 0.1, true),
    ] {
        let mut env = make(robot, "");
        let rest = place(robot, env.as_mut(), |_, _| ());
        let (nq, _) = env.settable().unwrap().state_sizes();
        let (mut positions, mut velocities) = (Vec::new(), Vec::new());
        for seed in 0..3000 {
            let mut seen = observation(env.as_ref());
            env.reset(seed, &mut seen);
            let off: Vec<f64> = seen
                .iter()
                .zip(&rest)
                .map(|(seen, rest)| (seen - rest) / noise)
                .collect();
            positions.extend_from_slice(&off[..nq - 1]);
            velocities.extend_from_slice(&off[nq - 1..]);
            let now = signals(env.as_mut());
            assert_eq!([now[3], now[5]], [0.0, 0.0]);
        }
        let uniform = |values: &[f64]| {
            let [mean, variance, kurtosis] = moments(values);
            assert!(
                mean.abs() < 0.02 && (variance - 1.0 / 3.0).abs() < 0.01,
                "{mean} {variance}"
            );
            assert!((kurtosis - 1.8).abs() < 0.05, "{kurtosis}");
            let largest = values.iter().fold(0.0f64, |most, value| most.max(value.abs()));
            assert!((0.999..=1.0 + 1e-9).contains(&largest), "{largest}");
        };
        uniform(&positions);
        if normal {
            let [mean, variance, kurtosis] = moments(&velocities);
            assert!(mean.abs() < 0.02 && (variance - 1.0).abs() < 0.03, "{mean} {variance}");
            assert!((kurtosis - 3.0).abs() < 0.15, "{kurtosis}");
        } else {
            uniform(&velocities);
        }
    }
}

/// Everything an episode gives under random actions, which do not stop at a termination.
pub(crate) fn episode(env: &mut dyn Env, seed: u64, steps: usize) -> (Vec<f64>, Episode) {
    let mut stream = Stream::seed_from_u64(seed ^ 77);
    let mut seen = observation(env);
    env.reset(seed, &mut seen);
    let mut observations = seen.clone();
    let mut episode = Episode {
        signals: signals(env),
        ..Episode::default()
    };
    for _ in 0..steps {
        let action: Vec<f64> = (0..env.spec().action())
            .map(|_| stream.random_range(-1.0..1.0))
            .collect();
        let step = env.step(&action, &mut seen);
        observations.extend_from_slice(&seen);
        episode.rewards.push(step.reward);
        episode.signals.extend(signals(env));
    }
    (observations, episode)
}

#[test]
fn the_same_seed_and_actions_give_the_same_bits() {
    for robot in ROBOTS {
        let (mut fresh, mut used) = (make(robot, ""), make(robot, ""));
        episode(used.as_mut(), 5, 150);
        // A used robot repeats an episode as a fresh one does: so a resumed run can rebuild where it was.
        let first = episode(fresh.as_mut(), 9, 300);
        assert_eq!(first, episode(used.as_mut(), 9, 300));
        assert_ne!(first.0, episode(used.as_mut(), 10, 300).0);
        // And so does one that blew up.
        place(robot, used.as_mut(), |_, qvel| qvel[1] = 1e12);
        let action = vec![0.0; used.spec().action()];
        assert!(step(used.as_mut(), &action).0.terminated);
        assert_eq!(first, episode(used.as_mut(), 9, 300));
    }
}

#[test]
fn a_blown_up_simulation_ends_the_episode_and_is_counted() {
    for robot in ROBOTS {
        for velocity in [1e12, -1e9, 5e4] {
            let mut env = make(robot, "");
            place(robot, env.as_mut(), |_, qvel| qvel.fill(velocity));
            assert_eq!(signals(env.as_mut())[5], 0.0);
            let action = vec![1.0; env.spec().action()];
            let (step, seen) = step(env.as_mut(), &action);
            assert_eq!((step.reward, step.terminated), (0.0, true), "{robot} {velocity}");
            assert!(seen.iter().all(|value| value.abs() < 10.0), "{seen:?}");
            let now = signals(env.as_mut());
            assert_eq!([now[3], now[5], now[6]], [0.0, 1.0, 0.0]);
            // The next step is an ordinary one again.
            let (next, _) = self::step(env.as_mut(), &action);
            assert!(!next.terminated && next.reward.is_finite());
            assert_eq!(signals(env.as_mut())[5], 0.0);
        }
    }
    assert!(!std::path::Path::new("MUJOCO_LOG.TXT").exists());
}

/// An episode of a hopper whose centre of mass has these velocities, one a step, and whose root moves by as many metres.
/// It may blow up in one more step, back to where it began.
fn moving(velocities: &[f64], unstable: bool) -> Episode {
    let mut signals = vec![0.0; 7];
    let (mut x, mut centre) = (0.0, 0.0);
    for velocity in velocities {
        x += velocity;
        centre += velocity * 0.008;
        signals.extend([x, 1.0, 0.0, 7.0, centre, 0.0, 5.0]);
    }
    if unstable {
        signals.extend([0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0]);
    }
    Episode {
        rewards: vec![1.0; velocities.len() + usize::from(unstable)],
        signals,
        terminated: unstable,
        ..Episode::default()
    }
}

#[test]
fn pace_is_a_running_mean_of_the_velocity() {
    for (robot, dt) in [("hopper", 0.008), ("halfcheetah", 0.05)] {
        let mut env = make(robot, "");
        place(robot, env.as_mut(), |_, qvel| qvel[0] = 2.0);
        let action = vec![0.3; env.spec().action()];
        let mut pace = 0.0;
        assert_eq!(signals(env.as_mut())[6], pace);
        for _ in 0..40 {
            step(env.as_mut(), &action);
            let now = signals(env.as_mut());
            pace += (1.0 - f64::exp(-dt / 0.3)) * (now[3] - pace);
            assert!((now[6] - pace).abs() < 1e-9, "{robot}: {} {pace}", now[6]);
        }
        assert!(pace != 0.0);
        place(robot, env.as_mut(), |_, _| ());
        assert_eq!(signals(env.as_mut())[6], 0.0, "a new episode begins anew");
    }
}

#[test]
fn the_centre_of_mass_is_that_of_the_state() {
    let mut env = make("hopper", "");
    let mut other = make("hopper", "");
    let action = [0.7, -0.4, 0.9];
    for env in [&mut env, &mut other] {
        place("hopper", env.as_mut(), |qpos, qvel| (qpos[0], qvel[0]) = (0.3, 1.0));
    }
    for _ in 0..50 {
        let (_, seen) = step(env.as_mut(), &action);
        let now = signals(env.as_mut());
        // A fresh simulation put into this very state.
        let mut still = Simulation::new(HopperConfig::default().rules().model).unwrap();
        let mut qpos = vec![now[0]];
        qpos.extend_from_slice(&seen[..5]);
        still.set_state(&qpos, &[0.0; 6]);
        let (masses, places) = (still.model().body_mass(), still.data().xipos());
        let moment: f64 = masses.iter().zip(places).map(|(mass, place)| mass * place[0]).sum();
        let expected = moment / masses.iter().sum::<f64>();
        assert!((now[4] - expected).abs() < 1e-12, "{} {expected}", now[4]);
        assert!((now[4] - now[0]).abs() > 1e-4, "the centre of mass is not the root");
        // To ask for it changes nothing.
        assert_eq!(step(other.as_mut(), &action).1, seen);
    }
}

#[test]
fn measures_are_those_of_the_velocities_of_all_steps() {
    let task = HopperConfig::default();
    // The step that blows up has no velocity, and ends at 0.
    let slow = vec![moving(&[1.0, 3.0], false), moving(&[2.0, 2.0, 2.0, 2.0], true)];
    let fast = vec![moving(&[6.0, 6.0], true)];
    let measures = task.measure(&slow);
    let expected = [
        ("velocity_mean", 2.0),
        ("velocity_std", (1.0f64 / 3.0).sqrt()),
        ("final_x", 2.0),
        ("episode_length", 3.5),
        ("unstable", 1.0),
    ];
    let same = |measures: &[Measure], expected: &[Measure]| {
        assert_eq!(measures.len(), expected.len());
        for (measure, expected) in measures.iter().zip(expected) {
            assert_eq!(measure.0, expected.0);
            assert!((measure.1 - expected.1).abs() < 1e-12, "{measure:?}");
        }
    };
    same(&measures, &expected);
    // 1, 3, 2, 2, 2, 2, 6, 6: mean 3, squares of the deviations 4 + 0 + 4·1 + 2·9 = 26.
    // The policies' own means are 2 and 6; the episodes have 2, 5 and 3 steps.
    let ensemble = task.measure_ensemble(&[slow, fast]);
    same(
        &ensemble,
        &[
            ("velocity_variance", 3.25),
            ("velocity_between", 4.0),
            ("velocity_mean", 3.0),
            ("episode_length", 10.0 / 3.0),
            ("unstable", 2.0),
        ],
    );
}

#[test]
fn the_histogram_counts_every_step_once() {
    let task = HopperConfig::default();
    let policies = [
        vec![moving(&[1.0, 1.0, 3.0], false), moving(&[-2.0], false)],
        vec![moving(&[4.0; 5], true)],
    ];
    let figures = task.figures(&policies);
    let [(name, Figure::Ridges(ridges)), _] = &figures[..] else {
        panic!("{figures:?}")
    };
    assert_eq!(name, "velocities");
    // 1, 1, 3, -2, 4, 4, 4, 4, 4: mean 23/9, mean of the squares 95/9.
    assert!(ridges.title.contains(" 4.02 m²/s²"), "{}", ridges.title);
    assert_eq!((ridges.low, ridges.width), (-2.0, 0.1));
    // Bars of a tenth from -2 to 4, the last one with its end.
    let bars = |policy: usize| -> Vec<(usize, f64)> {
        let row = ridges.rows[policy].iter().copied().enumerate();
        row.filter(|(_, share)| *share > 0.0).collect()
    };
    assert_eq!(ridges.rows.iter().map(Vec::len).collect::<Vec<_>>(), [60, 60]);
    assert_eq!(bars(0), [(0, 0.25), (30, 0.5), (50, 0.25)]);
    assert_eq!(bars(1), [(59, 1.0)]);
    assert!(task.figures(&[vec![]]).is_empty());
    assert_eq!(task.figures(&[vec![moving(&[0.0], false)]]).len(), 2);
}

#[test]
fn positions_are_drawn_over_seconds() {
    let task = HopperConfig::default();
    let policies = [
        vec![moving(&[1.0, 1.0, 3.0], false), moving(&[-2.0], false)],
        vec![moving(&[0.5; 1001], false)],
    ];
    let figures = task.figures(&policies);
    let [_, (name, Figure::Lines(lines))] = &figures[..] else {
        panic!("{figures:?}")
    };
    assert_eq!(name, "positions");
    let [first, second, long] = &lines.curves[..] else {
        panic!("{} curves", lines.curves.len())
    };
    assert_eq!(first.points, [[0.0, 0.0], [0.008, 1.0], [0.016, 2.0], [0.024, 5.0]]);
    assert_eq!(second.points, [[0.0, 0.0], [0.008, -2.0]]);
    assert_eq!((first.name.as_deref(), &second.name), (Some("policy 0"), &None));
    // Thinned out, but its end is there.
    assert!(long.points.len() <= 252);
    assert_eq!(long.points.last(), Some(&[1001.0 * 0.008, 500.5]));
    // Where there is a threshold it is a line as long as the longest episode.
    let task = crate::DeceptiveCheetahConfig::default();
    let figures = task.figures(&policies);
    let [_, (_, Figure::Lines(lines))] = &figures[..] else {
        panic!("{figures:?}")
    };
    let level = &lines.curves[3];
    assert_eq!(level.name.as_deref(), Some("threshold"));
    assert_eq!(level.points, [[0.0, 5.0], [1001.0 * 0.05, 5.0]]);
}

#[test]
fn step_times_are_those_of_the_models() {
    for rules in [
        HopperConfig::default().rules(),
        Walker2dConfig::default().rules(),
        HalfCheetahConfig::default().rules(),
    ] {
        let simulation = Simulation::new(rules.model).unwrap();
        assert!((simulation.timestep() * rules.frames as f64 - rules.step_time).abs() < 1e-15);
    }
}

#[test]
fn impossible_settings_are_refused_by_name() {
    for (robot, settings, expected) in [
        ("hopper", "reward = \"nothing\"", "env.reward is wrong"),
        ("hopper", "colour = 3", "env.colour is wrong"),
        ("hopper", "threshold = 3", "env.threshold is wrong"),
        ("hopper", "horizon = 0", "env.horizon is 0; "),
        ("walker2d", "horizon = 1000001", "env.horizon is 1000001; "),
        ("walker2d", "reset_noise = -0.1", "env.reset_noise is -0.1; "),
        ("walker2d", "reset_noise = nan", "env.reset_noise is NaN; "),
        (
            "halfcheetah",
            "control_cost_weight = -1",
            "env.control_cost_weight is -1; ",
        ),
        (
            "halfcheetah",
            "forward_reward_weight = inf",
            "env.forward_reward_weight is inf; ",
        ),
        ("halfcheetah", "healthy_reward = 1", "env.healthy_reward is wrong"),
        ("hopper", "healthy_reward = nan", "env.healthy_reward is NaN; "),
        ("deceptive-cheetah", "threshold = nan", "env.threshold is NaN; "),
        ("deceptive-cheetah", "threshold = -inf", "env.threshold is -inf; "),
        ("deceptive-cheetah", "reward = \"none\"", "env.reward is wrong"),
    ] {
        let error = build(robot, settings).err().expect(expected).to_string();
        assert!(error.starts_with(expected), "{error:?} instead of {expected:?}");
    }
}
