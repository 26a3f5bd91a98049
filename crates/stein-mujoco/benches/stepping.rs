//! The robots' `Env::step` against a bare loop of `mj_step` over the same episode, in the same run.

use std::time::Instant;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use rand::{RngExt, SeedableRng};
use stein::env::{Env, Registry};
use stein::rng::Stream;
use stein_mujoco::simulation::Simulation;

const STEPS: usize = 500;

/// Name, model and steps of the integrator per step.
const ROBOTS: [(&str, &str, usize); 4] = [
    ("hopper", include_str!("../models/hopper.xml"), 4),
    ("walker2d", include_str!("../models/walker2d.xml"), 4),
    ("halfcheetah", include_str!("../models/half_cheetah.xml"), 5),
    ("sawyer", include_str!("../models/sawyer.xml"), 20),
];

/// The same episode twice: through the environment, and by MuJoCo's functions alone.
struct Episode {
    env: Box<dyn Env>,
    observation: Vec<f64>,
    bare: Simulation,
    qpos: Vec<f64>,
    frames: usize,
    actions: Vec<Vec<f64>>,
}

impl Episode {
    fn new(robot: &str, model: &str, frames: usize) -> Self {
        let mut registry = Registry::empty();
        stein_mujoco::register(&mut registry);
        let (task, _) = registry.build(robot, Default::default()).unwrap();
        let mut env = task.make().unwrap();
        let mut observation = vec![0.0; env.spec().observation];
        env.reset(1, &mut observation);
        let bare = Simulation::new(model).unwrap();
        let mut stream = Stream::seed_from_u64(1);
        let mut action = || {
            (0..env.spec().action())
                .map(|_| stream.random_range(-1.0..1.0))
                .collect()
        };
        Episode {
            actions: (0..STEPS).map(|_| action()).collect(),
            observation,
            qpos: env.pose().to_vec(),
            env,
            bare,
            frames,
        }
    }

    fn through_the_environment(&mut self) -> f64 {
        let velocities = vec![0.0; self.qpos.len()];
        let env = self.env.settable().unwrap();
        env.set_state(&self.qpos, &velocities, &mut self.observation);
        let mut total = 0.0;
        for action in &self.actions {
            total += self.env.step(action, &mut self.observation).reward;
        }
        total
    }

    fn by_mujoco_alone(&mut self) -> f64 {
        let data = self.bare.data_mut();
        data.reset();
        data.qpos_mut().copy_from_slice(&self.qpos);
        data.forward();
        for action in &self.actions {
            data.ctrl_mut().copy_from_slice(action);
            for _ in 0..self.frames {
                data.step();
            }
        }
        data.qpos()[0]
    }
}

fn seconds(work: impl FnOnce() -> f64) -> f64 {
    let start = Instant::now();
    std::hint::black_box(work());
    start.elapsed().as_secs_f64()
}

fn stepping(criterion: &mut Criterion) {
    for (robot, model, frames) in ROBOTS {
        let mut episode = Episode::new(robot, model, frames);
        let mut group = criterion.benchmark_group(robot);
        group.sample_size(10);
        group.throughput(Throughput::Elements(STEPS as u64));
        group.bench_function("Env::step", |bencher| {
            bencher.iter(|| episode.through_the_environment())
        });
        group.bench_function("mj_step", |bencher| bencher.iter(|| episode.by_mujoco_alone()));
        group.finish();

        // Alternate the two, so that a noisy neighbour meets both.
        let (mut ours, mut bare) = (f64::INFINITY, f64::INFINITY);
        for _ in 0..40 {
            ours = ours.min(seconds(|| episode.through_the_environment()));
            bare = bare.min(seconds(|| episode.by_mujoco_alone()));
        }
        println!(
            "{robot}: {:.0} steps/s, mj_step alone {:.0} steps/s: overhead {:.1} %",
            STEPS as f64 / ours,
            STEPS as f64 / bare,
            100.0 * (ours / bare - 1.0)
        );
    }
}

criterion_group!(benches, stepping);
criterion_main!(benches);
