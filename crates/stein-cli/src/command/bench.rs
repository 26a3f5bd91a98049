//! `stein bench`: the phases of the median iteration, compared with the machine's matrix-product peak.

use clap::Args;
use serde_json::{Map, Value, json};
use stein::env::Registry;
use stein::foresee::foresee;
use stein::machine::{available, size};
use stein::nn::peak::sgemm_peak_gflops;
use stein::run::settings::Settings;
use stein::train::{Timings, Trainer};
use stein::{Error, Result};

use crate::options::TrainOptions;
use crate::{Ended, print, print_json};

/// Arguments of `stein bench`: those of `train`; --iterations is the number of timed iterations.
#[derive(Args)]
pub struct Arguments {
    #[command(flatten)]
    options: TrainOptions,
    /// Do not train: print how much memory these settings need, and for what
    #[arg(long)]
    dry_run: bool,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Timed iterations without --iterations, after an untimed one.
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
    // A run long enough that ratio updates do not pause while they are timed (`ratio.idle`).
    settings.config.iterations = settings.config.iterations.max(100 * (timed + 1));
    let pool = options.threads.pool()?;
    if arguments.dry_run {
        return dry_run(&settings, pool.run(stein::parallel::threads), arguments.json);
    }
    let result = pool.run(|| -> Result<Value> {
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
        let threads = stein::parallel::threads();
        // Before the reference product, whose three matrices are not part of training.
        let memory = peak_memory_mb();
        Ok(json!({
            "env": settings.env(),
            "method": config.method,
            "ensemble": config.ensemble,
            "estimator": if config.has_part("qd") { json!(config.qd.estimator) } else { Value::Null },
            "divergence": if config.has_part("qd") { json!(config.qd.divergence) } else { Value::Null },
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

/// The predicted memory of a run by part, and how much there is.
fn dry_run(settings: &Settings, threads: usize, as_json: bool) -> Result<Ended> {
    let spec = settings.task.make()?.spec().clone();
    let parts = foresee(&settings.config, &spec, threads)?;
    let needed: f64 = parts.iter().map(|part| part.bytes).sum();
    let free = available();
    if as_json {
        let parts: Map<String, Value> = parts.iter().map(|part| (part.name.into(), json!(part.bytes))).collect();
        print_json(&json!({ "bytes": needed, "parts": parts, "available": free }));
        return Ok(Ended::Done);
    }
    let mut text = format!("{:<22} {:>10}  grows with\n", "memory for", "about");
    for part in &parts {
        text += &format!("{:<22} {:>10}  {}\n", part.name, size(part.bytes), part.settings);
    }
    text += &format!("{:<22} {:>10}\n", "together", size(needed));
    let free = free.map_or("not known".into(), size);
    print(&(text + &format!("{:<22} {free:>10}\n", "free here")));
    Ok(Ended::Done)
}

/// The iteration with the median total time.
fn median(timings: &mut [Timings]) -> Timings {
    timings.sort_by(|a, b| a.total.total_cmp(&b.total));
    timings[timings.len() / 2]
}

/// Peak resident memory of this process so far, from the kernel; null if it is not reported.
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
