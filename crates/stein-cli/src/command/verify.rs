//! `stein verify`: the ratio estimators against exact ratios, on random systems or on a tabular problem from a file.

use std::path::{Path, PathBuf};

use clap::Args;
use serde_json::{Map, json};
use stein::config::Config;
use stein::env::Registry;
use stein::parallel;
use stein::ratio::EstimatorChoice;
use stein::run::settings;
use stein::truth::TabularProblem;
use stein::verify::drifting::{self, Drift};
use stein::verify::robots::{Verdict, Watch, watch};
use stein::verify::training::{Course, Followed, follow};
use stein::verify::{self, Preset, SAMPLES, Score, System, tabular};
use stein::{Error, Result};

use crate::options::Threads;
use crate::{Ended, print, print_json, tell};

/// Arguments of `stein verify`.
#[derive(Args)]
pub struct Arguments {
    /// Seed of the random systems, the data and the networks
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Number of seeds, starting at --seed
    #[arg(long, value_name = "K", default_value_t = 1, conflicts_with = "mdp")]
    seeds: u64,
    /// Also rings of 16 states and 4 actions with γ = 0.95
    #[arg(long, conflicts_with = "mdp")]
    full: bool,
    /// Only systems whose name contains this, as in ring, terminating, linear-gaussian or (--training) walker2d
    #[arg(long, value_name = "NAME", conflicts_with = "mdp")]
    system: Option<String>,
    #[arg(long, conflicts_with = "mdp", help = format!("Only this estimator: {}", EstimatorChoice::in_words()))]
    estimator: Option<String>,
    /// Instead, check how well ratios track changing policies with few samples and updates, as in training: on a ring,
    /// on a linear-Gaussian system of 20 dimensions and on robots
    #[arg(long, conflicts_with_all = ["mdp", "full"])]
    training: bool,
    /// A setting of [ratio] for --training, as in ratio.epochs=4 (may be repeated)
    #[arg(long = "set", value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Use this tabular problem of two policies instead (docs/verify.md describes the JSON)
    #[arg(long, value_name = "FILE")]
    mdp: Option<PathBuf>,
    /// Transitions per policy for --mdp
    #[arg(long, value_name = "N", default_value_t = SAMPLES, requires = "mdp")]
    samples: usize,
    #[command(flatten)]
    threads: Threads,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Maximum number of transitions per policy.
const MOST_SAMPLES: usize = 1_000_000_000;

pub fn run(arguments: Arguments, registry: &Registry) -> Result<Ended> {
    if let Some(pair) = arguments.set.first().filter(|_| !arguments.training) {
        return Err(Error::input(format!(
            "--set {pair} is for --training; the other forms have a preset of their own (docs/verify.md)"
        )));
    }
    let pool = arguments.threads.pool()?;
    match &arguments.mdp {
        Some(path) => pool.run(|| file(path, &arguments)),
        None if arguments.training => pool.run(|| training(&arguments, registry)),
        None => pool.run(|| systems(&arguments)),
    }
}

fn seeds(arguments: &Arguments) -> Result<Vec<u64>> {
    if !(1..=1000).contains(&arguments.seeds) || arguments.seed > u64::MAX - 1000 {
        return Err(Error::input(format!(
            "--seeds {} from --seed {} on is out of range: choose 1 to 1000 seeds",
            arguments.seeds, arguments.seed
        )));
    }
    Ok((arguments.seed..arguments.seed + arguments.seeds).collect())
}

fn estimators(arguments: &Arguments) -> Result<Vec<EstimatorChoice>> {
    match &arguments.estimator {
        Some(name) => Ok(vec![EstimatorChoice::named(name)?]),
        None => Ok(EstimatorChoice::all().collect()),
    }
}

/// Robots used by --training.
const ROBOTS: [&str; 2] = ["halfcheetah", "walker2d"];

/// The ring of --training, whose policies follow exact gradients.
const RING: &str = "ring";

/// Ratios of changing policies, with the settings of training.
fn training(arguments: &Arguments, registry: &Registry) -> Result<Ended> {
    let (seeds, estimators) = (seeds(arguments)?, estimators(arguments)?);
    let mut table = toml::Table::new();
    for pair in &arguments.set {
        if !pair.trim_start().starts_with("ratio.") {
            return Err(Error::input(format!(
                "--set {pair}: only settings of [ratio] matter here, as in ratio.epochs=4"
            )));
        }
        settings::set(&mut table, pair).map_err(|error| error.within("--set"))?;
    }
    let config = Config::from_table(table, "the command line")?;
    config.validate()?;
    let known: Vec<&str> = registry.list().map(|(name, _)| name).collect();
    let systems: Vec<&str> = [RING, drifting::NAME].into_iter().chain(ROBOTS).collect();
    let wanted = |name: &&&str| arguments.system.as_deref().is_none_or(|part| name.contains(part));
    let chosen: Vec<&str> = systems.iter().filter(wanted).copied().collect();
    if chosen.is_empty() {
        return Err(Error::input(format!(
            "no system of --training has \"{}\" in its name; choose from: {}",
            arguments.system.as_deref().unwrap_or_default(),
            systems.join(", ")
        )));
    }
    let cases: Vec<_> = estimators
        .iter()
        .flat_map(|&estimator| seeds.iter().map(move |&seed| (estimator, seed)))
        .collect();
    let mut followed = Vec::new();
    let mut verdicts: Vec<Verdict> = Vec::new();
    for name in chosen {
        match name {
            RING => {
                let course = Course::default();
                let each = parallel::map(&cases[..], |_, &(estimator, seed)| {
                    follow(&course, estimator, &config.ratio, seed)
                });
                followed = each.into_iter().collect::<Result<Vec<Followed>>>()?;
            }
            drifting::NAME => {
                let drift = Drift::default();
                let each = parallel::map(&cases[..], |_, &(estimator, seed)| {
                    drifting::follow(&drift, estimator, &config.ratio, seed)
                });
                verdicts.extend(each.into_iter().collect::<Result<Vec<_>>>()?);
            }
            // A build without the simulator has no robots.
            robot if !known.contains(&robot) => {
                tell(&format!("{robot} is left out: this program was built without it"))
            }
            robot => {
                let (task, _) = registry.build(robot, toml::Table::new())?;
                for &seed in &seeds {
                    tell(&format!("{robot}, seed {seed}: a run of 30 iterations is watched"));
                    let ratio = &config.ratio;
                    verdicts.extend(watch(
                        &Watch::of(robot),
                        robot,
                        task.as_ref(),
                        &estimators,
                        ratio,
                        seed,
                    )?);
                }
            }
        }
    }
    let complaints: Vec<String> = verdicts.iter().filter_map(Verdict::complaint).collect();
    if arguments.json {
        print_json(&json!({ "passed": complaints.is_empty(), "followed": followed, "verdicts": verdicts }));
    } else {
        print(&training_tables(&followed, &verdicts));
        if !verdicts.is_empty() {
            let judged = verdicts.iter().filter(|verdict| verdict.judged).count();
            print(&closing(
                judged,
                complaints.len(),
                verdicts.len() - judged + followed.len(),
            ));
        }
    }
    match complaints.len() {
        0 => Ok(Ended::Done),
        count => Err(Error::failed(format!(
            "{count} estimators miss a bound: {}",
            complaints.join("; ")
        ))),
    }
}

fn training_tables(followed: &[Followed], verdicts: &[Verdict]) -> String {
    let mut text = String::new();
    if !followed.is_empty() {
        text += "ring: estimator  seed  correlation with exact  with classifier  error of D_JS  of D_JS\n";
    }
    for one in followed {
        text += &format!(
            "{:<15} {:>5}  {:>22.3}  {:>15.3}  {:>13.4}  {:>7.4}\n",
            one.estimator, one.seed, one.exact, one.classifier, one.js_error, one.js
        );
    }
    if !verdicts.is_empty() {
        text += "system              seed estimator  pairs  rank   10 %  (ceiling)  [all steps]    D_JS  estimated  error\n";
    }
    for one in verdicts {
        text += &format!(
            "{:<18} {:>5} {:<9}  {:>5}  {:.3}  {:.3}  ({:.3})    [{:.3} {:.3}]  {:.3}  {:.3}      {:.3}  {}\n",
            one.task,
            one.seed,
            one.estimator,
            one.pairs,
            one.rank,
            one.rank_low,
            one.ceiling,
            one.alike.0,
            one.alike.1,
            one.js.0,
            one.js.1,
            one.js_error,
            match (one.missed.is_empty(), one.judged) {
                (false, _) => "MISSED",
                (true, true) => "ok",
                (true, false) => "(biased here, not checked)",
            }
        );
    }
    text
}

/// Random systems, checked against the bounds.
fn systems(arguments: &Arguments) -> Result<Ended> {
    let (seeds, estimators) = (seeds(arguments)?, estimators(arguments)?);
    let mut systems = System::all(arguments.full);
    if let Some(part) = &arguments.system {
        let names: Vec<String> = systems.iter().map(System::name).collect();
        systems.retain(|system| system.name().contains(part));
        if systems.is_empty() {
            return Err(Error::input(format!(
                "no system has \"{part}\" in its name; choose from: {}",
                names.join(", ")
            )));
        }
    }
    let mut scores = Vec::new();
    for &seed in &seeds {
        let of_seed = verify::verify(&systems, &estimators, &[seed])?;
        if seeds.len() > 1 {
            // A seed takes minutes: show progress.
            let missed = of_seed.iter().filter_map(Score::complaint).count();
            tell(&format!("seed {seed}: {missed} bounds missed"));
        }
        scores.extend(of_seed);
    }
    let complaints: Vec<String> = scores.iter().filter_map(Score::complaint).collect();
    if arguments.json {
        print_json(&json!({ "passed": complaints.is_empty(), "scores": scores }));
    } else {
        print(&table(&scores));
        let judged = scores.iter().filter(|score| score.judged).count();
        print(&closing(judged, complaints.len(), scores.len() - judged));
    }
    match complaints.len() {
        0 => Ok(Ended::Done),
        count => Err(Error::failed(format!(
            "{count} bounds are missed: {}",
            complaints.join("; ")
        ))),
    }
}

/// The summary line of a table.
fn closing(judged: usize, missed: usize, reported: usize) -> String {
    let within = match missed {
        0 if judged > 0 => "all within bounds".into(),
        0 => "so none out of bounds".into(),
        missed => format!("{missed} out of bounds"),
    };
    format!("{judged} checked, {within}; {reported} reported only\n")
}

/// A problem from a file: exact and estimated ratios of every pair.
fn file(path: &Path, arguments: &Arguments) -> Result<Ended> {
    let samples = arguments.samples;
    if !(1..=MOST_SAMPLES).contains(&samples) {
        return Err(Error::input(format!(
            "--samples {samples} is out of range: choose 1 to {MOST_SAMPLES}"
        )));
    }
    let source = path.display().to_string();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Error::input(format!(
            "cannot read {source}: {error}; give --mdp a JSON file (docs/verify.md)"
        ))
    })?;
    let problem = TabularProblem::from_json(&text, &source)?;
    let data = tabular::draw(&problem, samples, arguments.seed);
    let estimators: Vec<EstimatorChoice> = EstimatorChoice::all().collect();
    let learned = parallel::map(&estimators[..], |_, &estimator| {
        tabular::estimate(&problem, &data, estimator, &patient(estimator), arguments.seed)
    });
    let learned: Result<Vec<_>> = learned.into_iter().collect();
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let (mut estimated, mut errors, mut scores) = (Map::new(), Map::new(), Vec::new());
    for (estimator, learned) in estimators.into_iter().zip(learned?) {
        let rows =
            |direction: usize| -> Vec<&[Option<f64>]> { learned.zeta[direction].chunks(problem.mdp.actions).collect() };
        if learned.zeta.iter().flatten().flatten().any(|zeta| !zeta.is_finite()) {
            return Err(Error::failed(format!(
                "{source}: {estimator} did not converge to finite ratios; try another --seed or more --samples"
            )));
        }
        estimated.insert(estimator.to_string(), json!({ "zeta_01": rows(0), "zeta_10": rows(1) }));
        let both = tabular::scores(&name, &problem, &data, &learned, estimator, arguments.seed);
        errors.insert(
            estimator.to_string(),
            json!({ "rmse_01": both[0].rmse, "rmse_10": both[1].rmse }),
        );
        scores.extend(both);
    }
    if !arguments.json {
        print(&table(&scores));
        return Ok(Ended::Done);
    }
    let exact = tabular::exact(&problem);
    let rows = |direction: usize| -> Vec<&[Option<f64>]> { exact[direction].chunks(problem.mdp.actions).collect() };
    print_json(&json!({
        "exact": { "zeta_01": rows(0), "zeta_10": rows(1) },
        "estimated": estimated,
        "errors": errors,
        "scores": scores,
        "samples": samples,
        "seed": arguments.seed,
    }));
    Ok(Ended::Done)
}

/// The preset of a problem from a file, which may be harder than the rings for which the preset was tuned.
fn patient(estimator: EstimatorChoice) -> Preset {
    let mut preset = Preset::tabular(estimator);
    preset.updates *= 3;
    preset
}

/// One line per score.
fn table(scores: &[Score]) -> String {
    let width = scores
        .iter()
        .map(|score| score.system.chars().count())
        .max()
        .unwrap_or(0)
        .max(6);
    let mut text = format!(
        "{:<width$} seed estimator  ratio   rmse   rank    D_JS   error   D_KLS   error  mean ζ (exact)  value error\n",
        "system"
    );
    for score in scores {
        let mean = score.mean.map_or("      -        ".into(), |mean| {
            format!("{:6.3} ({:6.3})", mean.estimated, mean.exact)
        });
        text += &format!(
            "{:<width$} {:>4} {:<9}  ζ_{}  {:5.3} {:6.3} {:7.4} {:+7.4} {:7.4} {:+7.4} {mean}  {:+8.4}  {}\n",
            score.system,
            score.seed,
            score.estimator,
            score.direction,
            score.rmse,
            score.rank,
            score.js.estimated,
            score.js.error,
            score.kls.estimated,
            score.kls.error,
            score.value.error,
            match (score.missed.is_empty(), score.judged) {
                (false, _) => "MISSED",
                (true, true) => "ok",
                (true, false) => "(biased here, not checked)",
            }
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::closing;

    #[test]
    fn the_last_line_counts() {
        assert_eq!(closing(26, 0, 6), "26 checked, all within bounds; 6 reported only\n");
        assert_eq!(closing(26, 2, 0), "26 checked, 2 out of bounds; 0 reported only\n");
        assert_eq!(closing(0, 0, 4), "0 checked, so none out of bounds; 4 reported only\n");
    }
}
