//! The documents keep up with the code: what they show compiles, what they list is complete, their links lead somewhere.

use std::fs;
use std::path::{Path, PathBuf};

use stein::config::Config;
use stein::divergence::DivergenceChoice;
use stein::env::maze::MazeConfig;
use stein::method::MethodChoice;
use stein::ratio::EstimatorChoice;
use stein::train::Trainer;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// The blocks of Rust in a document.
fn rust_blocks(document: &str) -> Vec<&str> {
    let blocks = document.split("```rust\n").skip(1);
    blocks.filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn code_in_documents_is_that_of_the_examples() {
    for (document, example) in [
        ("README.md", "crates/stein/examples/train_maze.rs"),
        ("docs/environments.md", "examples/own-environment/src/main.rs"),
    ] {
        let (document_text, example_text) = (read(document), read(example));
        let blocks = rust_blocks(&document_text);
        assert!(!blocks.is_empty(), "{document} shows no code");
        for block in blocks {
            assert!(
                example_text.contains(block),
                "{document} shows code that is not in {example}:\n{block}"
            );
        }
    }
}

/// The keys of a table of settings with their default values, as in a TOML file.
fn keys(prefix: &str, table: &toml::Table) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for (key, value) in table {
        let name = format!("{prefix}{key}");
        match value {
            toml::Value::Table(inner) => found.extend(keys(&format!("{name}."), inner)),
            value => found.push((name, value.to_string())),
        }
    }
    found
}

#[test]
fn every_setting_is_in_the_table_with_its_default() {
    let table = toml::Table::try_from(Config::default()).unwrap();
    let page = read("docs/algorithm.md");
    for (key, default) in keys("", &table).iter().filter(|(key, _)| key != "stein_version") {
        let row = page.lines().find(|line| line.starts_with(&format!("| `{key}` |")));
        let row = row.unwrap_or_else(|| panic!("docs/algorithm.md has no row for the setting {key} = {default}"));
        let shown = row.split('|').nth(2).unwrap_or_default().trim().trim_matches('`');
        assert_eq!(shown, default, "docs/algorithm.md shows another default of {key}");
    }
}

#[cfg(feature = "mujoco")]
#[test]
fn every_setting_of_a_robot_is_in_its_table_with_its_default() {
    let page = read("docs/robots.md");
    let cells = |row: &str| -> Vec<String> {
        row.split('|')
            .map(|cell| cell.trim().trim_matches('`').into())
            .collect()
    };
    let rows: Vec<Vec<String>> = page.lines().filter(|line| line.starts_with("| ")).map(cells).collect();
    let head = rows.iter().find(|row| row[1] == "key").unwrap();
    let registry = stein_cli::registry();
    for (robot, _) in registry.list().filter(|(name, _)| *name != "maze") {
        let column = head.iter().position(|cell| cell == robot);
        let column = column.unwrap_or_else(|| panic!("docs/robots.md has no column of settings for {robot}"));
        let (_, settings) = registry.build(robot, toml::Table::new()).unwrap();
        for (key, default) in keys("", &settings) {
            let row = rows.iter().find(|row| row[1] == key);
            let row = row.unwrap_or_else(|| panic!("docs/robots.md has no row for {key} of {robot}"));
            assert_eq!(
                row[column], default,
                "docs/robots.md shows another default of {key} of {robot}"
            );
        }
        let shown = rows
            .iter()
            .filter(|row| row.len() == head.len() && row[column] != "-")
            .count();
        assert_eq!(
            shown - 1,
            settings.len(),
            "docs/robots.md shows settings that {robot} has not"
        );
    }
}

#[test]
fn every_metric_is_in_the_glossary() {
    let page = read("docs/metrics.md");
    for method in MethodChoice::all() {
        let config = Config {
            ensemble: 2,
            method,
            ..Config::default()
        };
        let trainer = Trainer::new(config, &MazeConfig::default()).unwrap();
        for name in trainer.metric_names() {
            assert!(
                page.contains(&format!("`{name}`")),
                "docs/metrics.md does not explain {name} of {method}"
            );
        }
        for metric in trainer.listed_metrics() {
            let rows = || {
                page.lines()
                    .filter(|line| line.starts_with('|') && line.contains(&format!("`{}`", metric.name)))
            };
            assert!(
                rows().any(|row| row.contains(metric.meaning)),
                "docs/metrics.md does not say of {} that it is {:?}",
                metric.name,
                metric.meaning
            );
        }
    }
}

/// What can be chosen has a page that the index leads to.
#[test]
fn every_estimator_divergence_and_method_has_its_page() {
    let index = read("docs/README.md");
    let pages = EstimatorChoice::all().map(|estimator| format!("{}.md", estimator.name()));
    let pages = pages.chain(MethodChoice::all().map(|method| method.page().to_string()));
    for page in pages {
        assert!(root().join("docs").join(&page).exists(), "docs/{page} is missing");
        assert!(
            index.contains(&format!("({page}")),
            "docs/README.md does not link to {page}"
        );
    }
    let table = read("docs/divergences.md");
    for name in DivergenceChoice::names() {
        assert!(
            table.contains(&format!("`{name}`")),
            "docs/divergences.md has no {name}"
        );
    }
}

#[test]
fn links_lead_somewhere() {
    let mut pages = vec![PathBuf::from("README.md"), PathBuf::from("CHANGELOG.md")];
    let docs = fs::read_dir(root().join("docs")).unwrap();
    pages.extend(docs.map(|entry| Path::new("docs").join(entry.unwrap().file_name())));
    for page in pages
        .iter()
        .filter(|page| page.extension().is_some_and(|end| end == "md"))
    {
        let text = fs::read_to_string(root().join(page)).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = link.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains("://") {
                continue;
            }
            let target = root().join(page).parent().unwrap().join(file);
            assert!(
                target.exists(),
                "{} links to {file}, which is not there",
                page.display()
            );
        }
    }
}
