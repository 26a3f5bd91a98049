//! Tests of tables: exact bytes, resumption, damage.

use super::*;

const COLUMNS: [&str; 2] = ["return", "loss"];

fn values(iteration: usize) -> [f64; 2] {
    let loss = if iteration == 3 {
        f64::NAN
    } else {
        1.0 / iteration as f64
    };
    [iteration as f64 - 3.0, loss]
}

fn append(file: &mut MetricsFile, iterations: std::ops::RangeInclusive<usize>) {
    for iteration in iterations {
        file.append(iteration, &values(iteration)).unwrap();
    }
}

/// A file with the rows 1 to 6.
fn six() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("metrics.csv");
    append(&mut MetricsFile::create(&path, &COLUMNS).unwrap(), 1..=6);
    (folder, path)
}

fn refusal(path: &Path, columns: &[&str], iteration: usize) -> String {
    let before = fs::read(path).unwrap();
    let error = MetricsFile::resume(path, columns, iteration).unwrap_err();
    assert_eq!(fs::read(path).unwrap(), before, "a refused file must stay as it was");
    assert_eq!(error.exit_code(), 2);
    error.to_string()
}

#[test]
fn the_text_is_exact() {
    let (_folder, path) = six();
    let text = "iteration,return,loss\n1,-2,1\n2,-1,0.5\n3,0,\n4,1,0.25\n5,2,0.2\n6,3,0.16666666666666666\n";
    assert_eq!(fs::read_to_string(path).unwrap(), text);
}

#[test]
fn numbers_read_back_to_the_same_bits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("numbers.csv");
    let numbers = [
        0.1 + 0.2,
        -0.0,
        f64::MAX,
        f64::MIN_POSITIVE,
        5e-324,
        f64::NEG_INFINITY,
        f64::INFINITY,
        1e21,
    ];
    let columns: Vec<String> = (0..numbers.len()).map(|i| format!("c{i}")).collect();
    MetricsFile::create(&path, &columns)
        .unwrap()
        .append(0, &numbers)
        .unwrap();
    let before = fs::read(&path).unwrap();
    MetricsFile::resume(&path, &columns, 0).unwrap();
    assert_eq!(fs::read(&path).unwrap(), before);
    let bits = |numbers: &[f64]| numbers.iter().map(|n| n.to_bits()).collect::<Vec<_>>();
    assert_eq!(bits(&Table::read(&path).unwrap().rows[0][1..]), bits(&numbers));
}

#[test]
fn a_run_cut_anywhere_and_resumed_gives_the_same_bytes() {
    let (_folder, path) = six();
    let whole = fs::read(&path).unwrap();
    let end_of_three = whole.windows(6).position(|w| w == b"\n4,1,0").unwrap() + 1;
    for cut in end_of_three..=whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let mut file = MetricsFile::resume(&path, &COLUMNS, 3).unwrap();
        assert_eq!(fs::read(&path).unwrap(), &whole[..end_of_three]);
        append(&mut file, 4..=6);
        assert_eq!(fs::read(&path).unwrap(), whole, "cut at {cut}");
    }
    for cut in 0..end_of_three {
        fs::write(&path, &whole[..cut]).unwrap();
        refusal(&path, &COLUMNS, 3);
    }
}

#[test]
fn rows_are_not_written_to_a_file_that_is_gone() {
    let (_place, path) = six();
    let mut file = MetricsFile::resume(&path, &COLUMNS, 6).unwrap();
    file.append(7, &values(7)).unwrap();
    file.sync().unwrap();
    fs::remove_file(&path).unwrap();
    let words = file.sync().unwrap_err().to_string();
    assert!(words.contains("was removed or replaced"), "{words}");
}

#[test]
fn a_run_without_a_checkpoint_resumes_from_nothing() {
    let (_folder, path) = six();
    let whole = fs::read(&path).unwrap();
    append(&mut MetricsFile::resume(&path, &COLUMNS, 0).unwrap(), 1..=6);
    assert_eq!(fs::read(&path).unwrap(), whole);
    fs::remove_file(&path).unwrap();
    append(&mut MetricsFile::resume(&path, &COLUMNS, 0).unwrap(), 1..=6);
    assert_eq!(fs::read(&path).unwrap(), whole);
    fs::remove_file(&path).unwrap();
    let error = MetricsFile::resume(&path, &COLUMNS, 1).unwrap_err();
    assert!(error.to_string().contains("metrics.csv is missing"), "{error}");
    assert_eq!(error.exit_code(), 2);
}

#[test]
fn other_columns_and_damaged_rows_are_refused() {
    let (_folder, path) = six();
    assert!(refusal(&path, &["return", "gain"], 3).contains("another column 3 than `gain`"));
    assert!(refusal(&path, &["return"], 3).contains("another column 2 than `return`"));
    assert!(refusal(&path, &COLUMNS, 7).contains("the rows after 6 are missing"));
    let text = fs::read_to_string(&path).unwrap();
    for (from, to) in [
        ("2,-1,0.5\n", ""),
        ("2,-1,0.5\n", "2,-1,0.5\n2,-1,0.5\n"),
        ("2,-1", "2,-1,0"),
        ("0.5", "0.5x"),
        ("0.5", "0.50"),
        ("2,-1,0.5", "2,-1"),
        ("2,-1,0.5\n", "\n"),
    ] {
        fs::write(&path, text.replacen(from, to, 1)).unwrap();
        let sentence = refusal(&path, &COLUMNS, 5);
        assert!(
            sentence.contains("metrics.csv") && sentence.contains("is damaged"),
            "{sentence}"
        );
    }
}

#[test]
fn create_never_overwrites_and_append_takes_each_iteration_once() {
    let (_folder, path) = six();
    let before = fs::read(&path).unwrap();
    let error = MetricsFile::create(&path, &COLUMNS).unwrap_err();
    assert!(error.to_string().contains("resume it"), "{error}");
    let mut file = MetricsFile::resume(&path, &COLUMNS, 6).unwrap();
    file.sync().unwrap();
    for (iteration, values) in [(6, &[0.0; 2][..]), (8, &[0.0; 2]), (7, &[0.0])] {
        assert!(file.append(iteration, values).is_err());
    }
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn column_names_must_fit_a_plain_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("m.csv");
    for columns in [["a", "a"], ["a,b", "c"], ["", "c"], ["iteration", "c"], ["a\n", "c"]] {
        assert!(MetricsFile::create(&path, &columns).is_err());
    }
    assert!(!path.exists());
}

#[test]
fn a_table_gives_its_columns_and_leaves_a_torn_line_out() {
    let (_folder, path) = six();
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..text.len() - 3]).unwrap();
    let table = Table::read(&path).unwrap();
    assert_eq!(table.columns, ["iteration", "return", "loss"]);
    assert_eq!(table.column("iteration").unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0]);
    assert!(table.column("loss").unwrap()[2].is_nan());
    assert_eq!(table.column("absent"), None);
    fs::write(&path, text.replacen("0.5", "half", 1)).unwrap();
    let error = Table::read(&path).unwrap_err().to_string();
    assert!(
        error.starts_with("line 3 of") && error.contains("metrics.csv"),
        "{error}"
    );
    for foreign in [&b""[..], b"a,b\n1,2\n", b"iteration\n\xff\n"] {
        fs::write(&path, foreign).unwrap();
        assert_eq!(Table::read(&path).unwrap_err().exit_code(), 2);
    }
}
