//! Three policies in the maze with a rollout each and random advantages: what the tests of the update and of `qd` begin with.

use rand::RngExt;
use stein::config::Config;
use stein::env::{Registry, Spec, Task};
use stein::policy::critic::Advantages;
use stein::policy::{Ensemble, Rollout, Worker};
use stein::rng::{Purpose, stream};

pub const N: usize = 3;
pub const STEPS: usize = 128;

pub struct Scene {
    pub config: Config,
    pub spec: Spec,
    pub rollouts: Vec<Rollout>,
    pub advantages: Advantages,
    pub orders: Vec<Vec<u32>>,
}

pub fn task() -> Box<dyn Task> {
    Registry::default().build("maze", Default::default()).unwrap().0
}

pub fn config() -> Config {
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

pub fn ensemble(config: &Config, spec: &Spec) -> Ensemble {
    Ensemble::new(N, spec, &config.policy, &config.ppo, config.seed)
}

/// Rollouts of N policies on the maze, with random advantages of the task and of diversity.
pub fn scene() -> Scene {
    let (task, config) = (task(), config());
    let spec = task.make().unwrap().spec().clone();
    let ensemble = ensemble(&config, &spec);
    let mut rollouts = vec![Rollout::default(); N];
    for (i, rollout) in rollouts.iter_mut().enumerate() {
        let mut worker = Worker::new(task.as_ref(), 1, i).unwrap();
        let normalizer = &ensemble.normalizers[i];
        worker
            .collect(ensemble.actor(i), normalizer, 0, STEPS, rollout)
            .unwrap();
    }
    let mut random = stream(5, Purpose::Truth, 0, 0);
    let advantages = (0..2 * N)
        .map(|_| (0..STEPS).map(|_| random.random_range(-1.0..1.0)).collect())
        .collect();
    let advantages = Advantages {
        advantages,
        ..Advantages::default()
    };
    let orders = (0..N as u32)
        .map(|i| (0..2 * STEPS as u32).map(|k| (k * 37 + i) % STEPS as u32).collect())
        .collect();
    Scene {
        config,
        spec,
        rollouts,
        advantages,
        orders,
    }
}
