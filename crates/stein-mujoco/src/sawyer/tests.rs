//! Sawyer against the published numbers, against physics, and under a controller that does the task.

use std::collections::BTreeSet;

use mujoco_rs::prelude::MjtObjBase;
use rand::{RngExt, SeedableRng};
use stein::env::{Env, Episode};
use stein::rng::Stream;

use super::kinematics::{TABLE, links, peg, reach};
use super::measure::{DISTANCE, OUTLINE, PEG, TORQUES, UNSTABLE};
use super::{JOINTS, MODEL, NEUTRAL, SIGNALS};
use crate::simulation::{Outcome, Simulation};
use crate::tests::{build, episode, make, observation, signals, step};
use crate::{Integrator, SawyerConfig};

/// Mass, centre of mass, and Ixx Ixy Ixz Iyy Iyz Izz about it, of each link.
#[rustfmt::skip]
const INERTIA: [(f64, [f64; 3], [f64; 6]); JOINTS] = [
    (5.3213, [0.024366, 0.010969, 0.14363], [0.053314, 0.0047093, 0.011734, 0.057902, 0.0080179, 0.023659]),
    (4.505, [-0.0030849, -0.026811, 0.092521], [0.022398, -0.00023986, -0.00029362, 0.014613, -0.0060875, 0.017295]),
    (1.745, [-0.00016044, -0.014967, 0.13582], [0.025506, 4.4101e-6, 1.4955e-5, 0.0253, -0.0033204, 0.0034179]),
    (2.5097, [-0.0048135, -0.0281, -0.084154], [0.01016, -9.7452e-6, 0.00026624, 0.0065685, 0.0030316, 0.0069078]),
    (1.1136, [-0.0018844, 0.0069001, 0.1341], [0.013557, 1.8109e-5, 0.00013523, 0.013555, 0.0010561, 0.0013658]),
    (1.5625, [0.0061133, -0.023697, 0.076416], [0.0047328, 0.00011526, 4.6269e-5, 0.0029676, -0.0011557, 0.0031762]),
    (0.3292, [-8.0726e-6, 0.0085838, -0.0049566],
     [0.00031105, 1.4771e-6, -3.7074e-7, 0.00021549, -8.4533e-6, 0.00035976]),
];

fn body(simulation: &Simulation, name: &str) -> usize {
    simulation.model().name_to_id(MjtObjBase::mjOBJ_BODY, name).unwrap()
}

fn site(simulation: &Simulation, name: &str) -> [f64; 3] {
    simulation.data().site_xpos()[simulation.model().name_to_id(MjtObjBase::mjOBJ_SITE, name).unwrap()]
}

fn distance(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| (a - b).powi(2)).sum::<f64>().sqrt()
}

fn random_pose(stream: &mut Stream) -> [f64; JOINTS] {
    TABLE
        .each_ref()
        .map(|joint| stream.random_range(joint.range[0]..joint.range[1]))
}

/// Puts the arm into a pose at rest and returns its observation.
fn place(env: &mut dyn Env, angles: &[f64; JOINTS]) -> Vec<f64> {
    let mut seen = observation(env);
    env.settable().unwrap().set_state(angles, &[0.0; JOINTS], &mut seen);
    seen
}

#[test]
fn forward_kinematics_are_those_of_the_urdf() {
    let mut simulation = Simulation::new(MODEL).unwrap();
    let mut stream = Stream::seed_from_u64(1);
    let mut worst = 0.0f64;
    for index in 0..200 {
        let angles = if index == 0 { NEUTRAL } else { random_pose(&mut stream) };
        simulation.set_state(&angles, &[0.0; JOINTS]);
        let data = simulation.data();
        for (link, expected) in links(&angles).iter().enumerate() {
            let number = body(&simulation, &format!("l{link}"));
            worst = worst.max(distance(data.xpos()[number], expected.map(|row| row[3])));
            let turned = &data.xmat()[number];
            let off = (0..9).map(|k| (turned[k] - expected[k / 3][k % 3]).abs());
            worst = off.fold(worst, f64::max);
        }
        worst = worst.max(distance(site(&simulation, "reference"), peg(&angles).0));
    }
    assert!(worst < 1e-6, "{worst:e}");
}

#[test]
fn masses_and_inertia_are_the_published_ones() {
    let simulation = Simulation::new(MODEL).unwrap();
    let model = simulation.model();
    let mut total = 0.0;
    for (link, (mass, centre, inertia)) in INERTIA.iter().enumerate() {
        let number = body(&simulation, &format!("l{link}"));
        assert!((model.body_mass()[number] - mass).abs() < 1e-12, "l{link}");
        assert!(distance(model.body_ipos()[number], *centre) < 1e-12, "l{link}");
        total += model.body_mass()[number];
        // MuJoCo keeps the principal moments, and their axes as a quaternion: turn them back.
        let [w, x, y, z] = model.body_iquat()[number];
        let axes = [
            [
                1.0 - 2.0 * (y * y + z * z),
                2.0 * (x * y - w * z),
                2.0 * (x * z + w * y),
            ],
            [
                2.0 * (x * y + w * z),
                1.0 - 2.0 * (x * x + z * z),
                2.0 * (y * z - w * x),
            ],
            [
                2.0 * (x * z - w * y),
                2.0 * (y * z + w * x),
                1.0 - 2.0 * (x * x + y * y),
            ],
        ];
        let moments = model.body_inertia()[number];
        let entries = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (2, 2)];
        for ((row, column), expected) in entries.into_iter().zip(inertia) {
            let found: f64 = (0..3).map(|k| axes[row][k] * moments[k] * axes[column][k]).sum();
            assert!(
                (found - expected).abs() < 1e-9,
                "l{link} {row}{column}: {found} {expected}"
            );
        }
    }
    for (name, mass) in [("base", 2.0687), ("connector", 0.1609), ("gripper", 0.3), ("peg", 0.01)] {
        assert!(
            (model.body_mass()[body(&simulation, name)] - mass).abs() < 1e-12,
            "{name}"
        );
        total += mass;
    }
    let sum = 5.3213 + 4.505 + 1.745 + 2.5097 + 1.1136 + 1.5625 + 0.3292 + 2.0687 + 0.1609 + 0.3 + 0.01;
    assert!((total - sum).abs() < 1e-9);
    for (index, joint) in TABLE.iter().enumerate() {
        assert_eq!(model.jnt_range()[index], joint.range);
        assert_eq!(model.actuator_gear()[index][0], joint.torque);
        assert_eq!(
            (model.dof_damping()[index], model.dof_frictionloss()[index]),
            (joint.damping, joint.friction)
        );
    }
}

/// The names of pairs of bodies that are in each other.
fn penetrations(simulation: &Simulation) -> BTreeSet<[String; 2]> {
    let model = simulation.model();
    let name = |geom: i32| {
        let body = model.geom_bodyid()[geom as usize] as usize;
        model.id_to_name(MjtObjBase::mjOBJ_BODY, body).unwrap().to_owned()
    };
    let contacts = simulation.data().contact().iter().filter(|contact| contact.dist < 0.0);
    contacts
        .map(|contact| {
            let mut pair = [name(contact.geom[0]), name(contact.geom[1])];
            pair.sort();
            pair
        })
        .collect()
}

#[test]
fn links_do_not_stick_in_each_other() {
    let mut simulation = Simulation::new(MODEL).unwrap();
    simulation.set_state(&NEUTRAL, &[0.0; JOINTS]);
    assert_eq!(penetrations(&simulation), BTreeSet::new());
    // A link and the one after the next are so close that an ill-chosen shape would be in the other's way.
    let mut stream = Stream::seed_from_u64(2);
    let mut seen = BTreeSet::new();
    for _ in 0..2000 {
        simulation.set_state(&random_pose(&mut stream), &[0.0; JOINTS]);
        seen.extend(penetrations(&simulation));
    }
    for link in 0..JOINTS - 2 {
        assert!(
            !seen.contains(&[format!("l{link}"), format!("l{}", link + 2)]),
            "l{link}"
        );
    }
    // Parts that are far from each other do meet, with each other and with the table.
    assert!(seen.contains(&["l0".into(), "l5".into()]) && seen.contains(&["peg".into(), "table".into()]));
}

/// The model with nothing that takes energy from it: no damping, friction, contacts or limits.
fn conservative(gravity_compensation: bool) -> Simulation {
    let mut xml = MODEL.replace("limited=\"true\"", "limited=\"false\"");
    for key in ["damping", "frictionloss"] {
        let start = format!("{key}=\"");
        let mut pieces = xml.split(&start);
        let mut rest = pieces.next().unwrap().to_owned();
        for piece in pieces {
            rest += piece.split_once('"').unwrap().1;
        }
        xml = rest;
    }
    xml = xml.replace(
        "integrator=\"RK4\"/>",
        "integrator=\"RK4\"><flag contact=\"disable\"/></option>",
    );
    if !gravity_compensation {
        xml = xml.replace("gravcomp=\"1\"", "");
    }
    let simulation = Simulation::new(&xml).unwrap();
    let model = simulation.model();
    assert!(
        model
            .dof_damping()
            .iter()
            .chain(model.dof_frictionloss())
            .all(|&loss| loss == 0.0)
    );
    simulation
}

fn energy(simulation: &mut Simulation) -> [f64; 2] {
    let data = simulation.data_mut();
    data.forward();
    data.energy_pos();
    data.energy_vel();
    *data.energy()
}

#[test]
fn a_falling_arm_keeps_its_energy() {
    let mut simulation = conservative(false);
    simulation.set_state(&NEUTRAL, &[0.3, -0.2, 0.5, 0.0, 1.0, -1.0, 2.0]);
    let [potential, kinetic] = energy(&mut simulation);
    let (first, mut fastest, mut drift) = (potential + kinetic, kinetic, 0.0f64);
    for _ in 0..200 {
        assert_eq!(simulation.step(&[0.0; JOINTS], 10), Outcome::Stable);
        let [potential, kinetic] = energy(&mut simulation);
        fastest = fastest.max(kinetic);
        drift = drift.max((potential + kinetic - first).abs());
    }
    // Against the kinetic energy: that of the potential depends on where heights are counted from.
    assert!(fastest > 5.0 && drift / fastest < 1e-4, "{drift:e} of {fastest}");
}

#[test]
fn a_compensated_arm_stays_where_it_is() {
    let mut simulation = conservative(true);
    for angles in [NEUTRAL, [0.4, -0.3, 0.2, 1.0, -0.5, 0.9, 1.0]] {
        simulation.set_state(&angles, &[0.0; JOINTS]);
        simulation.step(&[0.0; JOINTS], 2000);
        for (now, then) in simulation.positions().iter().zip(angles) {
            assert!((now - then).abs() < 1e-9, "{now} {then}");
        }
    }
    for (settings, falls) in [("", false), ("gravity_compensation = false", true)] {
        let mut env = make("sawyer", settings);
        place(env.as_mut(), &NEUTRAL);
        for _ in 0..50 {
            step(env.as_mut(), &[0.0; JOINTS]);
        }
        let moved = signals(env.as_mut())
            .iter()
            .zip(NEUTRAL)
            .map(|(now, then)| (now - then).abs())
            .fold(0.0, f64::max);
        assert!(if falls { moved > 0.01 } else { moved < 1e-9 }, "{settings}: {moved}");
    }
}

#[test]
fn the_hole_is_where_and_as_large_as_published() {
    let mut simulation = Simulation::new(MODEL).unwrap();
    simulation.set_state(&NEUTRAL, &[0.0; JOINTS]);
    let data = simulation.data();
    let target = site(&simulation, "target");
    assert!(distance(target, [0.6, 0.0, 0.0]) < 1e-12, "{target:?}");
    let table = body(&simulation, "table") as i32;
    let boxes: Vec<([f64; 3], [f64; 3])> = (0..simulation.model().geom_bodyid().len())
        .filter(|&geom| simulation.model().geom_bodyid()[geom] == table)
        .map(|geom| (data.geom_xpos()[geom], simulation.model().geom_size()[geom]))
        .collect();
    let solid = |point: [f64; 3]| {
        boxes
            .iter()
            .any(|(centre, half)| (0..3).all(|axis| (point[axis] - centre[axis]).abs() <= half[axis]))
    };
    let inside = 0.0199;
    for x in [-inside, 0.0, inside] {
        for y in [-inside, 0.0, inside] {
            assert!(!solid([0.6 + x, y, 0.0499]) && !solid([0.6 + x, y, -0.0499]));
            assert!(solid([0.6 + x, y, -0.0501]) && !solid([0.6 + x, y, 0.0501]));
        }
    }
    for (x, y) in [
        (0.0201, 0.0),
        (-0.0201, 0.0),
        (0.0, 0.0201),
        (0.0, -0.0201),
        (0.0201, 0.0201),
    ] {
        assert!(solid([0.6 + x, y, 0.0499]) && solid([0.6 + x, y, -0.0499]));
    }
    // The outline in the pictures is that of the table.
    for pair in OUTLINE.windows(2).filter(|pair| pair[0][1] == pair[1][1]) {
        let [[left, z], [right, _]] = [pair[0], pair[1]];
        for x in [left + 1e-3, (left + right) / 2.0, right - 1e-3] {
            assert!(solid([x, 0.0, z - 1e-3]) && !solid([x, 0.0, z + 1e-3]), "{x} {z}");
        }
    }
    assert!(!solid([0.199, 0.0, 0.0]) && !solid([1.001, 0.0, 0.0]));
}

#[test]
fn observation_reward_and_signals_by_hand() {
    let mut env = make("sawyer", "");
    let spec = env.spec();
    assert_eq!((spec.observation, spec.action(), spec.horizon), (17, 7, 200));
    assert!(!spec.can_terminate && spec.signals == SIGNALS);
    let seen = place(env.as_mut(), &NEUTRAL);
    assert_eq!(seen[..7], NEUTRAL);
    assert_eq!(seen[7..14], [0.0; 7]);
    assert!(distance([seen[14], seen[15], seen[16]], [0.6, 0.0, 0.0]) < 1e-12);

    let action = [0.5, -0.25, 0.1, 0.2, -1.0, 1.0, 0.3];
    let (outcome, seen) = step(env.as_mut(), &action);
    let now = signals(env.as_mut());
    assert!(seen[7] > 0.1 && seen[8] < -0.1 && seen[12] > 0.1, "{seen:?}");
    assert_eq!(now[..7], seen[..7]);
    // The place is that of the very state which is observed.
    let (point, _) = peg(&seen[..7]);
    let off = distance(point, [0.6, 0.0, 0.0]);
    assert!(distance(point, [now[PEG], now[PEG + 1], now[PEG + 2]]) < 1e-9);
    assert!((now[DISTANCE] - off).abs() < 1e-9 && (outcome.reward - (-off).exp()).abs() < 1e-9);
    assert!(!outcome.terminated && !outcome.truncated && now[UNSTABLE] == 0.0);
    for (index, torque) in [40.0, -20.0, 4.0, 8.0, -9.0, 9.0, 2.7].into_iter().enumerate() {
        assert!((now[TORQUES + index] - torque).abs() < 1e-12);
    }

    let mut free = make("sawyer", "reward = \"none\"");
    place(free.as_mut(), &NEUTRAL);
    assert_eq!(step(free.as_mut(), &action).0.reward, 0.0);
    assert_eq!(signals(free.as_mut()), now);
}

#[test]
fn resets_are_uniform_around_the_neutral_pose() {
    for (settings, noise) in [("", 0.02), ("reset_noise = 0.1", 0.1)] {
        let mut env = make("sawyer", settings);
        let mut seen = observation(env.as_ref());
        let mut offs = Vec::new();
        for seed in 0..2000 {
            env.reset(seed, &mut seen);
            offs.extend(
                seen.iter()
                    .zip(NEUTRAL)
                    .map(|(angle, neutral)| (angle - neutral) / noise),
            );
            assert_eq!(seen[7..14], [0.0; 7]);
        }
        let mean = offs.iter().sum::<f64>() / offs.len() as f64;
        let variance = offs.iter().map(|off| off * off).sum::<f64>() / offs.len() as f64;
        let largest = offs.iter().fold(0.0f64, |most, off| most.max(off.abs()));
        assert!(
            mean.abs() < 0.02 && (variance - 1.0 / 3.0).abs() < 0.01,
            "{mean} {variance}"
        );
        assert!((0.999..=1.0 + 1e-9).contains(&largest), "{largest}");
    }
}

#[test]
fn the_same_seed_and_actions_give_the_same_bits() {
    for settings in ["", "integrator = \"implicitfast\"", "gravity_compensation = false"] {
        let (mut fresh, mut used) = (make("sawyer", settings), make("sawyer", settings));
        episode(used.as_mut(), 5, 50);
        let first = episode(fresh.as_mut(), 9, 100);
        assert_eq!(first, episode(used.as_mut(), 9, 100));
        assert_ne!(first.0, episode(used.as_mut(), 10, 100).0);
        // And after it blew up.
        let mut seen = observation(used.as_ref());
        used.settable().unwrap().set_state(&NEUTRAL, &[1e12; JOINTS], &mut seen);
        assert!(step(used.as_mut(), &[0.0; JOINTS]).0.terminated);
        assert_eq!(first, episode(used.as_mut(), 9, 100));
    }
}

#[test]
fn a_blown_up_simulation_ends_the_episode_and_is_counted() {
    for velocity in [1e12, -1e9, 5e4] {
        let mut env = make("sawyer", "");
        let mut seen = observation(env.as_ref());
        env.settable()
            .unwrap()
            .set_state(&NEUTRAL, &[velocity; JOINTS], &mut seen);
        let (outcome, seen) = step(env.as_mut(), &[1.0; JOINTS]);
        assert_eq!((outcome.reward, outcome.terminated), (0.0, true), "{velocity}");
        assert_eq!(seen[..7], NEUTRAL);
        let now = signals(env.as_mut());
        assert_eq!((now[UNSTABLE], &now[TORQUES..DISTANCE]), (1.0, &[0.0; JOINTS][..]));
        let (next, _) = step(env.as_mut(), &[1.0; JOINTS]);
        assert!(!next.terminated && next.reward > 0.5 && signals(env.as_mut())[UNSTABLE] == 0.0);
    }
    assert!(!std::path::Path::new("MUJOCO_LOG.TXT").exists());
}

/// A whole episode under a controller that does the task: over the hole by a straight line of joint angles, then down
/// with the peg upright by inverse kinematics; torques are those of a PID controller of the angles. It sees what a
/// policy sees and acts as a policy does.
fn controlled(env: &mut dyn Env, seed: u64) -> Episode {
    const GAIN: [f64; JOINTS] = [300.0, 300.0, 200.0, 200.0, 60.0, 60.0, 60.0];
    const HEIGHT: f64 = 0.2;
    let above = reach([0.9, 0.1, -0.9, 1.4, -1.2, 0.7, 3.0], [0.6, 0.0, HEIGHT], 60);
    let mut seen = observation(env);
    env.reset(seed, &mut seen);
    let first: [f64; JOINTS] = std::array::from_fn(|joint| seen[joint]);
    let (mut goal, mut sum) = (first, [0.0; JOINTS]);
    let mut episode = Episode {
        signals: signals(env),
        ..Episode::default()
    };
    for time in 1.. {
        let share = f64::from(time) / 90.0;
        goal = if share <= 1.0 {
            std::array::from_fn(|joint| first[joint] + share * (above[joint] - first[joint]))
        } else {
            let down = (f64::from(time - 100) / 60.0).clamp(0.0, 1.0);
            reach(goal, [seen[14], seen[15], seen[16] + HEIGHT * (1.0 - down)], 2)
        };
        let action: [f64; JOINTS] = std::array::from_fn(|joint| {
            let wrong = goal[joint] - seen[joint];
            sum[joint] = (sum[joint] + 0.02 * wrong).clamp(-0.03, 0.03);
            let torque = GAIN[joint] * (wrong + 2.0 * sum[joint] - 0.1 * seen[JOINTS + joint]);
            (torque / TABLE[joint].torque).clamp(-1.0, 1.0)
        });
        let step = env.step(&action, &mut seen);
        episode.rewards.push(step.reward);
        episode.signals.extend(signals(env));
        if step.truncated {
            return episode;
        }
    }
    unreachable!("the horizon cuts every episode off")
}

#[test]
fn a_controller_inserts_the_peg() {
    for settings in ["", "integrator = \"implicitfast\""] {
        let task = build("sawyer", settings).unwrap();
        let mut env = task.make().unwrap();
        let episodes: Vec<Episode> = (0..3).map(|seed| controlled(env.as_mut(), seed)).collect();
        assert!(episodes.iter().all(|episode| episode.rewards.len() == 200));
        let measures = task.measure(&episodes);
        let value = |name: &str| measures.iter().find(|measure| measure.0 == name).unwrap().1;
        assert_eq!((value("success"), value("unstable")), (1.0, 0.0), "{measures:?}");
        assert!(value("final_distance") < 0.015, "{measures:?}");
        // In the hole: the tip, 1 cm below the reference point, is well below the rim, the peg within the walls.
        let last = &episodes[0].signals[episodes[0].signals.len() - SIGNALS.len()..];
        assert!(last[PEG + 2] < 0.02 && (last[PEG] - 0.6).abs() < 0.02 && last[PEG + 1].abs() < 0.02);
    }
}

#[test]
fn the_walls_hold_the_peg() {
    let mut env = make("sawyer", "");
    let posture = [0.9, 0.1, -0.9, 1.4, -1.2, 0.7, 3.0];
    for push in [0.5, -0.5] {
        // The shoulder pushes sideways, first with the peg in the hole, then above the table.
        let [held, free] = [0.0, 0.2].map(|height| {
            place(env.as_mut(), &reach(posture, [0.6, 0.0, height], 60));
            for _ in 0..25 {
                step(env.as_mut(), &[push, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
            }
            signals(env.as_mut())[PEG + 1]
        });
        assert!(held.abs() < 0.02 && free * push > 0.05, "{held} {free}");
    }
}

#[test]
fn hard_blows_do_not_drive_the_arm_into_the_table() {
    for integrator in [Integrator::Rk4, Integrator::ImplicitFast] {
        let config = SawyerConfig {
            integrator,
            ..SawyerConfig::default()
        };
        let (mut deepest, mut touched) = (0.0f64, 0);
        for seed in 0..10 {
            let mut stream = Stream::seed_from_u64(seed);
            let mut simulation = config.simulation().unwrap();
            simulation.set_state(&NEUTRAL, &[0.0; JOINTS]);
            for _ in 0..10 {
                // Full torques, one way or the other, for 0.4 s each.
                let control: Vec<f64> = (0..JOINTS)
                    .map(|_| if stream.random::<bool>() { 1.0 } else { -1.0 })
                    .collect();
                for _ in 0..400 {
                    assert_eq!(simulation.step(&control, 1), Outcome::Stable);
                    let depths = simulation.data().contact().iter().map(|contact| -contact.dist);
                    deepest = depths.clone().fold(deepest, f64::max);
                    touched += depths.count();
                }
            }
        }
        assert!(touched > 1000, "{touched} contacts");
        assert!(deepest < 0.01, "{:.1} mm deep", 1e3 * deepest);
    }
}

#[test]
fn impossible_settings_are_refused_by_name() {
    for (settings, expected) in [
        ("reward = \"nothing\"", "env.reward is wrong"),
        ("integrator = \"euler\"", "env.integrator is wrong"),
        ("gravity_compensation = 1", "env.gravity_compensation is wrong"),
        ("threshold = 3", "env.threshold is wrong"),
        ("horizon = 0", "env.horizon is 0; "),
        ("reset_noise = nan", "env.reset_noise is NaN; "),
        ("success_distance = -0.1", "env.success_distance is -0.1; "),
    ] {
        let error = build("sawyer", settings).err().expect(expected).to_string();
        assert!(error.starts_with(expected), "{error:?} instead of {expected:?}");
    }
    assert_eq!(SawyerConfig::default().integrator, Integrator::Rk4);
}
