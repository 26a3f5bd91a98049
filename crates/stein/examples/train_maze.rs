//! Trains three policies on the maze with the library alone, evaluates them and draws their paths:
//! `cargo run --release -p stein --example train_maze`.

use std::path::Path;

use stein::env::maze::MazeConfig;
use stein::plot::draw;
use stein::policy::evaluate::evaluate;
use stein::{Config, Task, Trainer};

fn main() -> stein::Result<()> {
    let task = MazeConfig::default();
    let config = Config {
        ensemble: 3,
        iterations: 60,
        ..Config::default()
    };
    let mut trainer = Trainer::new(config, &task)?;
    while trainer.iteration() < trainer.config.iterations {
        let record = trainer.iterate()?;
        println!("iteration {:2}  return {:.2}", record.iteration, record.metrics[0]);
    }

    // Five episodes per policy, with mean actions.
    let episodes = evaluate(&trainer.ensemble, &task, 1, 5, false)?;
    for (name, value) in task.measure_ensemble(&episodes) {
        println!("{name} {value:.3}");
    }
    for (name, figure) in task.figures(&episodes) {
        draw(&figure, Path::new(&name))?;
    }
    trainer.checkpoint().save(Path::new("three_policies.safetensors"))
}
