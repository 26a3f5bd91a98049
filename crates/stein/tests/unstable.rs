//! Episodes that end because a simulation broke down are counted, and only those.

use stein::Result;
use stein::config::Config;
use stein::env::{Env, Spec, Step, Task};
use stein::train::Trainer;

/// Every episode ends by itself in its fifth step; every second one because the simulation broke down.
struct Fragile {
    spec: Spec,
    steps: usize,
    episode: u64,
}

impl Env for Fragile {
    fn spec(&self) -> &Spec {
        &self.spec
    }

    fn reset(&mut self, _seed: u64, observation: &mut [f64]) {
        (self.steps, self.episode) = (0, self.episode + 1);
        observation[0] = 0.0;
    }

    fn step(&mut self, action: &[f64], observation: &mut [f64]) -> Step {
        self.steps += 1;
        observation[0] = action[0];
        Step {
            reward: 1.0,
            terminated: self.steps == 5,
            truncated: false,
        }
    }

    fn signals(&mut self, _signals: &mut [f64]) {}

    fn unstable(&self) -> bool {
        self.steps == 5 && self.episode.is_multiple_of(2)
    }
}

struct Glass;

impl Task for Glass {
    fn validate(&self) -> Result<()> {
        Ok(())
    }

    fn make(&self) -> Result<Box<dyn Env>> {
        Ok(Box::new(Fragile {
            spec: Spec {
                observation: 1,
                action_low: vec![-1.0],
                action_high: vec![1.0],
                horizon: 10,
                can_terminate: true,
                signals: Vec::new(),
            },
            steps: 0,
            episode: 0,
        }))
    }
}

#[test]
fn broken_simulations_are_counted() {
    let mut config = Config {
        method: stein::method::MethodChoice::named("ppo").unwrap(),
        ensemble: 3,
        steps: 100,
        ..Config::default()
    };
    config.ppo.minibatches = 4;
    let mut trainer = Trainer::new(config, &Glass).unwrap();
    let record = trainer.iterate().unwrap();
    let names = trainer.metric_names();
    let metric = |name: &str| record.metrics[names.iter().position(|other| other == name).unwrap()];
    assert_eq!(metric("episodes"), 60.0);
    assert_eq!(metric("unstable"), 30.0);
}
