//! Random damage to everything that is read: settings, `--set`, checkpoints (as bytes, and signed again), tables, problems for
//! `stein verify`, scripts for `stein replay`. Whatever comes, there is no panic, and a refusal is one sentence.
//!
//! 500 cases; STEIN_FUZZ_CASES says how many else (`make test-long`: 20,000). Cases are numbered and each is a function of its
//! number: STEIN_FUZZ_FIRST begins at one that failed.

#[path = "support/forge.rs"]
mod forge;
mod support;

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

use forge::Forged;
use rand::RngExt;
use stein::Error;
use stein::checkpoint::Checkpoint;
use stein::env::Registry;
use stein::rng::{Purpose, Stream, stream};
use stein::run::metrics::{MetricsFile, Table};
use stein::run::settings::{Settings, read_table, set};
use stein::train::Trainer;
use stein::truth::TabularProblem;
use support::{checkpoints, run, stein, succeed};

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).ok().map_or(default, |text| text.parse().unwrap())
}

/// Texts that programs stumble over.
const TOKENS: &[&str] = &[
    "nan",
    "inf",
    "-inf",
    "-1",
    "0",
    "1e308",
    "-1e308",
    "1e-320",
    "1e999",
    "18446744073709551616",
    "9223372036854775807",
    "0x1p3",
    "\"\"",
    "[]",
    "{}",
    "[[[[[[[[",
    "{\"a\":",
    "true",
    "null",
    "=",
    ".",
    ",",
    "\n",
    "\"",
    "\u{0}",
    "\u{feff}",
    "é",
    "#",
    "[env]",
    "[ppo]",
    "[qd]",
    "[ratio]",
    "gamma = 0",
    "hidden = []",
    "hidden = [4096, 4096]",
    "clamp = 1e12",
    "name = \"maze\"",
];

/// Damages text or bytes in one to four places.
fn damage(bytes: &[u8], random: &mut Stream) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..random.random_range(1..5) {
        let at = random.random_range(0..bytes.len() + 1);
        let length = random.random_range(0..20).min(bytes.len() - at);
        match random.random_range(0..6) {
            0 if at < bytes.len() => bytes[at] ^= 1 << random.random_range(0..8),
            1 => drop(bytes.drain(at..at + length)),
            2 => {
                let part = bytes[at..at + length].to_vec();
                let to = random.random_range(0..bytes.len() + 1);
                bytes.splice(to..to, part);
            }
            3 => bytes.truncate(at),
            _ => {
                let token = TOKENS[random.random_range(0..TOKENS.len())];
                bytes.splice(at..at + length, token.bytes());
            }
        }
    }
    bytes
}

/// One sentence, and an exit code that says so.
fn check_sentence(error: &Error) {
    let sentence = error.to_string();
    assert!([1, 2].contains(&error.exit_code()));
    assert!(sentence.len() > 10 && sentence.chars().count() < 2000, "{sentence}");
    assert!(!sentence.contains('\n'), "more than one line: {sentence}");
}

/// Small runs of several methods, each with a checkpoint, and the other files that are damaged.
struct Corpus {
    place: tempfile::TempDir,
    runs: Vec<PathBuf>,
}

const SETTINGS: &str = "ensemble = 2\nsteps = 32\niterations = 3\n[policy]\nhidden = [8]\n[critic]\nhidden = [8]\n[ppo]\nepochs = 2\n\
    minibatches = 2\n[ratio]\nhidden = [8]\nminibatch = 16\nepochs = 1\nwarmup_updates = 2\n[checkpoint]\nevery = 3\n[env]\nname = \
    \"maze\"\nhorizon = 20\n";

const PROBLEM: &str = r#"{"gamma":0.9,"initial":[0.5,0.5],"transition":[[[0.9,0.1],[0.2,0.8]],[[0.5,0.5],[0.1,0.9]]],
    "policies":[[[0.3,0.7],[0.6,0.4]],[[0.8,0.2],[0.5,0.5]]],"reward":[[0,1],[2,-1]],"termination":[[0,0],[0,0.5]]}"#;

impl Corpus {
    fn new() -> Corpus {
        let place = tempfile::tempdir().unwrap();
        fs::write(place.path().join("settings.toml"), SETTINGS).unwrap();
        let methods = [
            ("nce", "method=qd"),
            ("ppo", "method=ppo"),
            ("diayn", "method=diayn"),
            ("si", "method=si"),
            ("gendice", "qd.estimator=gendice"),
            ("dualdice", "ratio.data=pair"),
        ];
        let runs = methods.map(|(name, pair)| {
            let folder = place.path().join(name);
            let mut command = stein(&["train", "--quiet", "--set", pair, "--config"]);
            command.arg(place.path().join("settings.toml"));
            if name.ends_with("dice") {
                command.args(["--set=qd.behaviour=state-action", &format!("--set=qd.estimator={name}")]);
            }
            succeed({
                command.arg("--out").arg(&folder);
                command
            });
            folder
        });
        Corpus {
            runs: runs.to_vec(),
            place,
        }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.place.path().join(name)
    }

    fn settings_of(&self, run: &Path) -> Settings {
        let table = read_table(&run.join("config.toml")).unwrap();
        Settings::resolve(table, "config.toml", &Registry::default()).unwrap()
    }
}

/// Settings that pass are small enough to be trained with, or are left alone.
fn try_settings(table: toml::Table) -> stein::Result<()> {
    let settings = Settings::resolve(table, "fuzz.toml", &Registry::default())?;
    let config = &settings.config;
    let widths = [&config.policy.hidden, &config.critic.hidden, &config.ratio.hidden];
    let wide: usize = widths.iter().flat_map(|hidden| hidden.iter()).sum();
    let work = config.ensemble * config.steps * (config.ppo.epochs + config.ratio.epochs) + config.ratio.warmup_updates;
    if work > 2_000 || wide > 100 || config.ratio.minibatch > 100 || config.ratio.pool > 20_000 {
        return Ok(());
    }
    let mut trainer = Trainer::new(config.clone(), settings.task.as_ref())?;
    trainer.iterate()?;
    trainer.iterate().map(drop)
}

/// Restores a checkpoint and goes on with it.
fn try_checkpoint(corpus: &Corpus, run: &Path, path: &Path) -> stein::Result<()> {
    let checkpoint = Checkpoint::load(path)?;
    let mut settings = corpus.settings_of(run);
    settings.config.iterations = 10;
    let mut trainer = Trainer::new(settings.config.clone(), settings.task.as_ref())?;
    trainer.restore(checkpoint)?;
    if trainer.iteration() < 9 {
        trainer.iterate()?;
        trainer.checkpoint().save(&path.with_extension("again"))?;
    }
    Ok(())
}

/// Changes a number, a shape, a name or the header.
fn forge(forged: &mut Forged, random: &mut Stream) {
    let names: Vec<String> = forged.tensors.keys().cloned().collect();
    for _ in 0..random.random_range(1..4) {
        let name = names[random.random_range(0..names.len())].clone();
        let Some(tensor) = forged.tensors.get_mut(&name) else {
            continue;
        };
        let count = tensor.shape.iter().product::<usize>();
        let odd = [
            f64::NAN,
            f64::INFINITY,
            -1.0,
            0.0,
            1e308,
            -1e308,
            1e30,
            1e-320,
            1e18,
            f64::MAX,
        ];
        match random.random_range(0..10) {
            0 => tensor.make_scalar(),
            1 => tensor.shape = vec![0],
            2 => tensor.shape.push(1),
            3 => tensor.shape.reverse(),
            4 => drop(forged.tensors.remove(&name)),
            5 => {
                // Half as many rows.
                if let Some(rows) = tensor.shape.first_mut().filter(|rows| **rows > 1) {
                    let kept = *rows / 2;
                    tensor.bytes.truncate(tensor.bytes.len() / *rows * kept);
                    *rows = kept;
                }
            }
            6 => {
                let (key, value) = [
                    ("iteration", serde_json::json!(u64::MAX)),
                    ("iteration", serde_json::json!(0)),
                    ("config", serde_json::json!("ensemble = 3")),
                    ("config", serde_json::json!("\u{0}")),
                    ("stein_version", serde_json::json!("9")),
                    ("state", serde_json::json!({"a": [1, 2]})),
                ][random.random_range(0..6)]
                .clone();
                forged.header.insert(key.into(), value);
            }
            _ if count > 0 => {
                let index = random.random_range(0..count);
                forged.set(&name, index, odd[random.random_range(0..odd.len())]);
            }
            _ => {}
        }
    }
}

fn try_case(corpus: &Corpus, case: u64) -> stein::Result<()> {
    let mut random = stream(case, Purpose::Truth, 0, 0);
    let run = &corpus.runs[random.random_range(0..corpus.runs.len())];
    let newest = checkpoints(run).pop().unwrap();
    match random.random_range(0..100) {
        0..25 => {
            let path = corpus.path("fuzz.toml");
            fs::write(&path, damage(SETTINGS.as_bytes(), &mut random)).unwrap();
            try_settings(read_table(&path)?)
        }
        25..45 => {
            let mut table: toml::Table = SETTINGS.parse().unwrap();
            let keys: Vec<String> = fs::read_to_string(run.join("config.toml"))
                .unwrap()
                .lines()
                .scan(String::new(), |section, line| {
                    if let Some(name) = line.strip_prefix('[') {
                        *section = format!("{}.", name.trim_end_matches(']'));
                    }
                    Some(
                        line.split_once(" = ")
                            .map(|(key, value)| format!("{section}{key}={value}")),
                    )
                })
                .flatten()
                .collect();
            let pair = &keys[random.random_range(0..keys.len())];
            let (key, value) = pair.split_once('=').unwrap();
            let pair = match random.random_range(0..3) {
                0 => format!("{key}={}", TOKENS[random.random_range(0..TOKENS.len())]),
                1 => String::from_utf8_lossy(&damage(pair.as_bytes(), &mut random)).into_owned(),
                _ => format!(
                    "{key}={}",
                    String::from_utf8_lossy(&damage(value.as_bytes(), &mut random))
                ),
            };
            set(&mut table, &pair)?;
            try_settings(table)
        }
        45..60 => {
            let path = corpus.path("raw.safetensors");
            fs::write(&path, damage(&fs::read(newest).unwrap(), &mut random)).unwrap();
            try_checkpoint(corpus, run, &path)
        }
        60..80 => {
            let path = corpus.path("forged.safetensors");
            let mut forged = Forged::read(&newest);
            forge(&mut forged, &mut random);
            forged.write(&path);
            try_checkpoint(corpus, run, &path)
        }
        80..90 => {
            let text = fs::read(run.join("metrics.csv")).unwrap();
            let columns = Table::read(&run.join("metrics.csv")).unwrap().columns;
            let path = corpus.path("metrics.csv");
            fs::write(&path, damage(&text, &mut random)).unwrap();
            let read = Table::read(&path).map(drop);
            let mut file = MetricsFile::resume(&path, &columns[1..], 2)?;
            file.append(3, &vec![0.0; columns.len() - 1])?;
            read
        }
        90..98 => {
            let text = damage(PROBLEM.as_bytes(), &mut random);
            TabularProblem::from_json(&String::from_utf8_lossy(&text), "fuzz.json").map(drop)
        }
        // A process of its own: a script for a robot, where there are robots.
        _ => {
            let path = corpus.path("script.json");
            let script = br#"{"qpos":[0,1.25,0,0,0,0],"qvel":[0,0,0,0,0,0],"actions":[[0.1,0.2,0.3],[0,0,0]]}"#;
            fs::write(&path, damage(script, &mut random)).unwrap();
            let finished = crate::run({
                let mut command = stein(&["replay", "hopper", "--input"]);
                command.arg(&path);
                command
            });
            assert!([Some(0), Some(1), Some(2)].contains(&finished.code), "{finished:?}");
            assert!(!finished.stderr.contains("panicked"), "{}", finished.stderr);
            Ok(())
        }
    }
}

#[test]
fn damage_gets_a_sentence_and_never_a_panic() {
    let corpus = Corpus::new();
    let (first, cases) = (number("STEIN_FUZZ_FIRST", 0), number("STEIN_FUZZ_CASES", 500));
    let mut refused = 0;
    for case in first..first + cases {
        let tried = catch_unwind(AssertUnwindSafe(|| {
            let result = try_case(&corpus, case);
            result.as_ref().err().iter().for_each(|error| check_sentence(error));
            result.is_err()
        }));
        match tried {
            Ok(failed) => refused += u64::from(failed),
            Err(_) => panic!("case {case}: STEIN_FUZZ_FIRST={case} STEIN_FUZZ_CASES=1 repeats it"),
        }
    }
    println!("{refused} of {cases} refused");
    // Damage that nothing notices would say that nothing was tried.
    assert!(refused * 3 > cases, "{refused} of {cases} refused");
}

/// What once failed.
#[test]
fn the_cases_that_once_failed() {
    let corpus = Corpus::new();
    let table = |pairs: &[&str]| {
        let mut table: toml::Table = SETTINGS.parse().unwrap();
        pairs.iter().for_each(|pair| set(&mut table, pair).unwrap());
        table
    };
    // A minibatch in which nothing has weight; a clamp between infinities.
    for estimator in ["nce", "valuedice", "dualdice", "gendice"] {
        for data in ["pooled", "pair"] {
            let common = [format!("qd.estimator={estimator}"), format!("ratio.data={data}")];
            let with = |pairs: &[&str]| {
                let common = common.iter().map(String::as_str).chain(["qd.behaviour=state-action"]);
                table(&common.chain(pairs.iter().copied()).collect::<Vec<_>>())
            };
            try_settings(with(&["ppo.gamma=0"])).unwrap();
            // The last rollouts have γ^t = 0 throughout.
            let long = with(&["env.horizon=20000", "ppo.gamma=0.5"]);
            let settings = Settings::resolve(long, "test", &Registry::default()).unwrap();
            let mut trainer = Trainer::new(settings.config.clone(), settings.task.as_ref()).unwrap();
            for iteration in 0..40 {
                let record = trainer.iterate();
                assert!(
                    record.is_ok(),
                    "{estimator}, {data}, iteration {iteration}: {:?}",
                    record.err()
                );
            }
            let wild = with(&["ratio.weight_decay=1", "ratio.learning_rate=10", "iterations=40"]);
            let settings = Settings::resolve(wild, "test", &Registry::default()).unwrap();
            let mut trainer = Trainer::new(settings.config.clone(), settings.task.as_ref()).unwrap();
            for _ in 0..12 {
                match trainer.iterate() {
                    Ok(record) => assert!(!record.metrics.iter().any(|value| value.is_infinite())),
                    Err(error) => {
                        assert!(error.to_string().contains("ratio.learning_rate"), "{error}");
                        break;
                    }
                }
            }
        }
    }
    let nested = format!("{}=1", vec!["a"; 5000].join("."));
    assert!(
        set(&mut toml::Table::new(), &nested)
            .unwrap_err()
            .to_string()
            .contains("5000 levels")
    );
    let deep = corpus.path("deep.toml");
    for text in [
        nested.clone(),
        format!("[{}]\n", vec!["a"; 5000].join(".")),
        format!("a = {}", "[".repeat(5000)),
    ] {
        fs::write(&deep, text).unwrap();
        let finished = run(stein(&["train", "maze", "--config", deep.to_str().unwrap()]));
        support::assert_refused(&finished, 2, &["deep.toml"]);
    }
    // Numbers that no run has, in checkpoints whose checksum is right.
    let run = &corpus.runs[0];
    let newest = checkpoints(run).pop().unwrap();
    let path = corpus.path("forged.safetensors");
    type Change<'a> = (&'a str, &'a dyn Fn(&mut Forged));
    let changes: [Change; 9] = [
        ("memory.0.0.weights", &|forged| {
            forged.tensors.get_mut("memory.0.0.weights").unwrap().make_scalar()
        }),
        ("memory.resets", &|forged| {
            forged.tensors.get_mut("memory.resets").unwrap().make_scalar()
        }),
        ("normalizer.0.count", &|forged| {
            forged.set("normalizer.0.count", 0, f64::INFINITY)
        }),
        ("normalizer.1.squares", &|forged| {
            forged.set("normalizer.1.squares", 0, -1.0)
        }),
        ("policy.adam.v", &|forged| forged.set("policy.adam.v", 3, -1.0)),
        ("policy.parameters", &|forged| {
            forged.set("policy.parameters", 0, f64::NAN)
        }),
        ("worker.0.taken", &|forged| forged.set("worker.0.taken", 0, 1e308)),
        ("worker.1.episode", &|forged| forged.set("worker.1.episode", 0, 1.8e19)),
        ("critic.scales", &|forged| forged.set("critic.scales", 2, -4.0)),
    ];
    for (name, change) in changes {
        let mut forged = Forged::read(&newest);
        change(&mut forged);
        forged.write(&path);
        let error = try_checkpoint(&corpus, run, &path).unwrap_err();
        check_sentence(&error);
        let sentence = error.to_string();
        assert!(sentence.contains(&format!("`{name}`")), "{name}: {sentence}");
        assert!(
            error.exit_code() == 2 && sentence.contains("forged.safetensors"),
            "{sentence}"
        );
    }
    // What is not damaged passes.
    try_settings(SETTINGS.parse().unwrap()).unwrap();
    TabularProblem::from_json(PROBLEM, "problem.json").unwrap();
    corpus
        .runs
        .iter()
        .for_each(|run| try_checkpoint(&corpus, run, &checkpoints(run).pop().unwrap()).unwrap());
    // Taken apart and put together again it is as it was.
    Forged::read(&newest).write(&path);
    assert!(fs::read(&path).unwrap() == fs::read(&newest).unwrap());
}
