//! `stein bench`: the phases of the median iteration, beside the machine's matrix-product peak.

use clap::Args;
use serde_json::{Value, json};
use stein::env::Registry;
use stein::nn::peak::sgemm_peak_gflops;
use stein::train::{Timings, Trainer};
use stein::{Error, Result};

use crate::options::TrainOptions;
use crate::{Ended, print, print_json};

/// Arguments of `stein bench`: those of `train`, where --iterations says how many are timed.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    options: TrainOptions,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Iterations that are timed unless --iterations says otherwise, after one that is not.
const TIMED: usize = 7;

pub fn run(arguments: Arguments, registry: &Registry) -> Result<Ended> {
    let mut options = arguments.options;
    let timed = options.iterations.unwrap_or(TIMED);
    if !(1..=100_000).contains(&timed) {
        return Err(Error::input(format!(
            "--iterations {timed} is out of range: choose 1 to 100000"
        )));
    }
    options.iterations = None;
    if options.env.is_none() && options.config.is_none() {
        options.env = Some("maze".into());
    }
    let mut settings = options.resolve(registry)?;
    // A run long enough that ratios do not come to rest while they are timed (`ratio.idle`).
    settings.config.iterations = settings.config.iterations.max(100 * (timed + 1));
    let pool = options.threads.pool()?;
    let result = pool.install(|| -> Result<Value> {
        let mut trainer = Trainer::new(settings.config.clone(), settings.task.as_ref())?;
        trainer.iterate()?;
        let mut timings = Vec::new();
        for _ in 0..timed {
            timings.push(trainer.iterate()?.timings);
        }
        let median = median(&mut timings);
        let config = &settings.config;
        let steps = (config.steps * config.ensemble) as f64;
        let ms = |seconds: f64| (seconds * 1e4).round() / 10.0;
        let rounded = |value: f64| (value * 10.0).round() / 10.0;
        let threads = rayon::current_num_threads();
        // Before the yardstick, whose three matrices are no part of training.
        let memory = peak_memory_mb();
        Ok(json!({
            "env": settings.env(),
            "method": config.method,
            "ensemble": config.ensemble,
            "estimator": if config.method == "qd" { json!(config.qd.estimator) } else { Value::Null },
            "divergence": if config.method == "qd" { json!(config.qd.divergence) } else { Value::Null },
            "threads": threads,
            "iterations": timed,
            "phases_ms": {
                "rollout": ms(median.rollout),
                "ratio": if trainer.ratio_flops() > 0.0 { ms(median.ratio) } else { 0.0 },
                "advantages": ms(median.advantages),
                "update": ms(median.update),
                "total": ms(median.total),
            },
            "env_steps_per_s": (steps / median.rollout).round(),
            "ratio_gflops": rounded(trainer.ratio_flops() / median.ratio / 1e9),
            "update_gflops": rounded(trainer.update_flops() / median.update / 1e9),
            "sgemm_peak_gflops": rounded(sgemm_peak_gflops(threads)),
            "peak_rss_mb": memory,
        }))
    })?;
    if arguments.json {
        print_json(&result);
    } else {
        print(&table(&result));
    }
    Ok(Ended::Done)
}

/// The iteration of median total time.
fn median(timings: &mut [Timings]) -> Timings {
    timings.sort_by(|a, b| a.total.total_cmp(&b.total));
    timings[timings.len() / 2]
}

/// Largest resident memory of this process so far, from the kernel; null where it does not tell.
fn peak_memory_mb() -> Value {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kib.map_or(Value::Null, |kib| json!((kib / 102.4).round() / 10.0))
}

fn table(result: &Value) -> String {
    let mut text = String::new();
    for (key, value) in result.as_object().into_iter().flatten() {
        match value {
            Value::Object(phases) => {
                text += &format!("{key}\n");
                for (phase, value) in phases {
                    text += &format!("  {phase:<18} {value}\n");
                }
            }
            value => text += &format!("{key:<20} {}\n", value.to_string().trim_matches('"')),
        }
    }
    text
}
