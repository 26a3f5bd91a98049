//! Damaged, foreign and missing files of a run: exit code 2, one sentence that names the file and the cure, and not a
//! byte of the folder changed. The cure works.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use support::{Results, assert_refused, checkpoints, copy, run, snapshot, stein, succeed, train};

/// A finished run of 12 iterations, made once.
static WHOLE: LazyLock<tempfile::TempDir> = LazyLock::new(|| {
    let folder = tempfile::tempdir().unwrap();
    succeed(train(folder.path(), &[]));
    folder
});

/// A copy of the finished run.
fn finished_run() -> (tempfile::TempDir, PathBuf) {
    let place = tempfile::tempdir().unwrap();
    let folder = place.path().join("run");
    copy(WHOLE.path(), &folder);
    (place, folder)
}

/// The run in `folder` can neither go on nor, if `also_eval`, be evaluated or plotted.
#[track_caller]
fn refused(folder: &Path, file: &Path, words: &[&str], also_eval: bool) {
    let before = snapshot(folder);
    let mut commands = vec![
        train(folder, &["--resume"]),
        train(folder, &["--resume", "--iterations=20"]),
    ];
    if also_eval {
        commands.push(stein(&["eval", folder.to_str().unwrap()]));
        commands.push(stein(&["plot", folder.to_str().unwrap()]));
    }
    for command in commands {
        let finished = run(command);
        println!("{}", finished.stderr.trim_end());
        assert_refused(&finished, 2, &[words, &[file.to_str().unwrap()][..]].concat());
        assert!(snapshot(folder) == before, "the folder was changed");
    }
}

#[test]
fn damaged_checkpoints_are_refused_and_the_one_before_is_as_good() {
    let expected = Results::of(WHOLE.path());
    let good = fs::read(checkpoints(WHOLE.path()).pop().unwrap()).unwrap();
    let flipped = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 4;
        bytes
    };
    let version = good
        .windows(13)
        .position(|window| window == br#""version":"1""#)
        .unwrap();
    let mut later = good.clone();
    later[version + 11] = b'2';
    let table = br#"{"weight":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}     "#;
    let somebody_elses = [&64u64.to_le_bytes()[..], table, &[0; 4]].concat();
    assert_eq!(table.len(), 64);

    let go_back = "delete it and resume from the checkpoint before it";
    let damages: [(Vec<u8>, &[&str]); 11] = [
        (Vec::new(), &["is empty", go_back]),
        (good[..5].to_vec(), &["is cut off after 5 bytes", go_back]),
        (good[..300].to_vec(), &["is cut off after 300 of", go_back]),
        (good[..good.len() - 1].to_vec(), &["is cut off after", go_back]),
        ([&good[..], b"x"].concat(), &["is damaged", go_back]),
        (flipped(good.len() / 2), &["is damaged", "checksum", go_back]),
        (flipped(good.len() - 1), &["is damaged", "checksum", go_back]),
        (flipped(3), &["resume from the checkpoint before it"]),
        (
            b"iteration,return_mean\n1,2\n".to_vec(),
            &["is not a stein checkpoint", "move it away"],
        ),
        (somebody_elses, &["is not a stein checkpoint", "of another program"]),
        (later, &["written by a newer stein", "format 2"]),
    ];
    for (bytes, words) in damages {
        let (_place, folder) = finished_run();
        let newest = checkpoints(&folder).pop().unwrap();
        fs::write(&newest, bytes).unwrap();
        refused(&folder, &newest, words, true);
        fs::remove_file(&newest).unwrap();
        succeed(train(&folder, &["--resume"]));
        expected.assert_same_in(&folder, &words.join(" "));
    }
}

#[test]
fn a_checkpoint_of_another_run_is_refused() {
    for (extra, words) in [
        ("--seed=2", &["belongs to another run", "seed is 2 there and 1"][..]),
        ("--set=policy.hidden=[16]", &["belongs to another run", "policy.hidden"]),
        (
            "--set=env.horizon=50",
            &["belongs to another run", "env.horizon is 50 there and 100"],
        ),
    ] {
        let (place, folder) = finished_run();
        let other = place.path().join("other");
        succeed(train(&other, &[extra]));
        let newest = checkpoints(&folder).pop().unwrap();
        fs::copy(checkpoints(&other).pop().unwrap(), &newest).unwrap();
        refused(&folder, &newest, words, true);
    }
}

#[test]
fn a_folder_in_place_of_a_checkpoint_is_refused() {
    let (_place, folder) = finished_run();
    let newest = checkpoints(&folder).pop().unwrap();
    fs::remove_file(&newest).unwrap();
    fs::create_dir(&newest).unwrap();
    refused(&folder, &newest, &["is a folder where a run has a plain file"], false);
    let finished = run(stein(&["eval", folder.to_str().unwrap()]));
    assert_refused(&finished, 2, &["is not a file", newest.to_str().unwrap()]);
}

#[test]
fn settings_that_are_not_those_of_the_run_are_refused() {
    let (_place, folder) = finished_run();
    let before = snapshot(&folder);
    for (option, words) in [
        ("--seed=2", &["seed = 1", "but 2 was asked for"][..]),
        ("--ensemble=4", &["ensemble = 3", "but 4 was asked for"]),
        ("--set=ppo.clip=0.1", &["ppo.clip = 0.2", "but 0.1 was asked for"]),
        ("--set=env.horizon=50", &["env.horizon = 100", "but 50 was asked for"]),
    ] {
        let finished = run(train(&folder, &["--resume", option]));
        assert_refused(
            &finished,
            2,
            &[words, &[folder.to_str().unwrap(), "a new --out"][..]].concat(),
        );
        assert!(snapshot(&folder) == before, "the folder was changed");
    }
}

#[test]
fn damaged_settings_of_a_run_are_refused() {
    for (bytes, words) in [
        (&b"seed = = 1\n"[..], &["not valid TOML", "line 1"][..]),
        (b"", &["env.name is missing"]),
        (&[0xff, 0xfe, 0, 1], &["not a text file"]),
        (b"klip = 1\n[env]\nname = 'maze'\n", &["klip", "unknown field"]),
    ] {
        let (_place, folder) = finished_run();
        let file = folder.join("config.toml");
        fs::write(&file, bytes).unwrap();
        refused(&folder, &file, words, true);
    }
}

#[test]
fn damaged_tables_are_refused() {
    for name in ["metrics.csv", "timings.csv"] {
        let text = fs::read_to_string(WHOLE.path().join(name)).unwrap();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        let without_row_5 = [&lines[..5], &lines[6..]].concat().concat();
        let torn = format!("{}{}", lines[..5].concat(), &lines[5][..lines[5].len() / 2]);
        let damages: [(String, &[&str]); 6] = [
            (without_row_5, &["the row after 4 is damaged", "from a copy"]),
            (lines[..9].concat(), &["the rows after 8 are missing", "from a copy"]),
            (torn, &["the row after 4 is damaged", "from a copy"]),
            (
                text.replacen("\n7,", "\n7,x", 1),
                &["the row after 6 is damaged", "from a copy"],
            ),
            (
                text.replacen(',', ";", 3),
                &["another column 1 than `iteration`", "from a copy"],
            ),
            (String::new(), &["another column 1 than `iteration`", "from a copy"]),
        ];
        for (damaged, words) in damages {
            let (_place, folder) = finished_run();
            let file = folder.join(name);
            fs::write(&file, damaged).unwrap();
            refused(&folder, &file, words, false);
        }
        // The cure of the sentence.
        let (_place, folder) = finished_run();
        let file = folder.join(name);
        fs::write(&file, lines[..9].concat()).unwrap();
        refused(&folder, &file, &["delete the checkpoints after iteration 8"], false);
        let newer = checkpoints(&folder)
            .into_iter()
            .filter(|path| !path.ends_with("iteration-000008.safetensors"));
        newer.for_each(|path| fs::remove_file(path).unwrap());
        succeed(train(&folder, &["--resume"]));
        Results::of(WHOLE.path()).assert_same_in(&folder, name);
        let (_place, folder) = finished_run();
        let file = folder.join(name);
        fs::remove_file(&file).unwrap();
        refused(&folder, &file, &["is missing", "12 iterations", "from a copy"], false);
    }
}

#[test]
fn a_damaged_table_cannot_be_plotted() {
    let (_place, folder) = finished_run();
    let file = folder.join("metrics.csv");
    let text = fs::read_to_string(&file).unwrap();
    fs::write(&file, text.replacen("\n7,", "\n7,x", 1)).unwrap();
    let finished = run(stein(&["plot", folder.to_str().unwrap()]));
    assert_refused(&finished, 2, &["line 8 of", file.to_str().unwrap()]);
    assert!(!folder.join("figures").exists());
    fs::remove_file(&file).unwrap();
    let finished = run(stein(&["plot", folder.to_str().unwrap()]));
    assert_refused(&finished, 1, &["cannot read", file.to_str().unwrap()]);
}
