//! Tests of checkpoints: exactness, damage, foreign files.

use serde_json::json;

use super::format::{TABLE_LIMIT, digest, read};
use super::*;

const F64: [f64; 6] = [0.1, -0.0, f64::MIN, 5e-324, f64::MAX, 1.0 / 3.0];

/// A checkpoint with a tensor of each type, an empty one, and strings that JSON must escape.
fn sample() -> Checkpoint {
    let mut checkpoint = Checkpoint::new(50, "seed = 1\n# \"quoted\" \\ ζ \u{1b}\n");
    checkpoint.header.state.insert("steps".into(), u64::MAX.into());
    checkpoint
        .header
        .state
        .insert("lost".into(), json!([i64::MIN, true, null, "text"]));
    checkpoint.insert_f32(
        "policy.weights",
        &[2, 3],
        &[1.5, -0.0, f32::MIN_POSITIVE, f32::MAX, 0.1, -7.0],
    );
    checkpoint.insert_f64("moments/0", &[3, 2], &F64);
    checkpoint.insert_u64("counts", &[2], &[u64::MAX, 1 << 53 | 1]);
    checkpoint.insert_f32("empty", &[0, 4], &[]);
    checkpoint.insert_f64("worker.constant", &[], &[f64::from_bits(0x7ff8_0000_0000_0123)]);
    checkpoint
}

fn saved(checkpoint: &Checkpoint) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.safetensors");
    checkpoint.save(&path).unwrap();
    fs::read(path).unwrap()
}

/// The error for these contents.
fn refusal(bytes: &[u8]) -> String {
    match read(&mut &bytes[..], bytes.len() as u64) {
        Err(Trouble::Input(sentence)) => sentence,
        Err(Trouble::Io(error)) => panic!("{error}"),
        Ok(_) => panic!("a file that must be refused was read"),
    }
}

/// A file with this table and these data.
fn file(table: &str, data: &[u8]) -> Vec<u8> {
    [&(table.len() as u64).to_le_bytes(), table.as_bytes(), data].concat()
}

#[test]
fn everything_comes_back_bit_by_bit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.safetensors");
    let original = sample();
    original.save(&path).unwrap();
    let mut loaded = Checkpoint::load(&path).unwrap();
    assert_eq!(loaded.header, original.header);
    assert_eq!(loaded.tensors, original.tensors);
    assert_eq!(loaded.header.stein_version, env!("CARGO_PKG_VERSION"));
    assert_eq!(loaded.header.state["steps"].as_u64(), Some(u64::MAX));
    let weights = loaded.take_f32("policy.weights", &[2, 3]).unwrap();
    assert_eq!(weights[1].to_bits(), (-0.0f32).to_bits());
    assert_eq!(loaded.take_f64("moments/0", &[3, 2]).unwrap(), F64);
    assert_eq!(loaded.take_u64("counts", &[2]).unwrap(), [u64::MAX, 1 << 53 | 1]);
    assert!(loaded.take_f32("empty", &[0, 4]).unwrap().is_empty());
    assert_eq!(
        loaded.take_f64("worker.constant", &[]).unwrap()[0].to_bits(),
        0x7ff8_0000_0000_0123
    );
}

#[test]
fn what_is_not_finite_is_neither_written_nor_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.safetensors");
    for odd in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mut checkpoint = Checkpoint::new(1, "");
        checkpoint.insert_f64("moments", &[2], &[1.0, odd]);
        let error = checkpoint.save(&path).unwrap_err();
        assert!(error.to_string().contains("`moments` is no longer finite"), "{error}");
        assert!(!path.exists());
        // Not yet known values may be non-finite.
        let mut checkpoint = Checkpoint::new(1, "");
        checkpoint.insert_f64("quota.returns", &[2], &[1.0, odd]);
        checkpoint.insert_f64("worker.0.constant", &[1], &[odd]);
        checkpoint.save(&path).unwrap();
        Checkpoint::load(&path).unwrap();
        fs::remove_file(&path).unwrap();
    }
    let error = Checkpoint::new(1, "").require(false, "counts", "counts").unwrap_err();
    assert!(
        error.to_string().contains("numbers of `counts` are not counts"),
        "{error}"
    );
    assert_eq!(Checkpoint::new(1, "").rows("nothing"), 0);
    assert_eq!(
        sample().rows("worker.constant"),
        0,
        "a tensor without dimensions has no rows"
    );
}

#[test]
fn equal_checkpoints_are_equal_files_that_the_reference_reader_accepts() {
    let bytes = saved(&sample());
    assert_eq!(bytes, saved(&sample()));
    let reference = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let view = reference.tensor("counts").unwrap();
    assert_eq!((view.dtype(), view.shape()), (Dtype::U64, &[2][..]));
    assert_eq!(&view.data()[..8], [0xff; 8]);
    assert_eq!(reference.len(), 5);
    let none = saved(&Checkpoint::new(0, ""));
    assert!(safetensors::SafeTensors::deserialize(&none).unwrap().is_empty());
    assert!(read(&mut &none[..], none.len() as u64).is_ok());
}

#[test]
fn the_checksum_is_the_documented_one() {
    // From Python's hashlib over the bytes that docs/checkpoints.md lists.
    let mut checkpoint = Checkpoint::new(0, "");
    checkpoint.insert_f32("b", &[1], &[1.0]);
    checkpoint.insert_u64("a", &[], &[7]);
    assert_eq!(
        digest("{}", &checkpoint.tensors),
        "7e0a887201c6c40d3898308fb884526512058a24fb2631e37893ebcb8c046e3e"
    );
}

#[test]
fn every_flipped_bit_is_noticed() {
    let mut bytes = saved(&sample());
    for index in 0..bytes.len() {
        for bit in 0..8 {
            bytes[index] ^= 1 << bit;
            assert!(refusal(&bytes).contains(':'));
            bytes[index] ^= 1 << bit;
        }
    }
    assert!(read(&mut &bytes[..], bytes.len() as u64).is_ok());
}

#[test]
fn every_truncation_and_anything_appended_is_noticed() {
    let bytes = saved(&sample());
    assert!(refusal(&[]).starts_with("is empty: delete it"));
    for length in 1..bytes.len() {
        let sentence = refusal(&bytes[..length]);
        assert!(
            sentence.starts_with(&format!("is cut off after {length} ")),
            "{sentence}"
        );
    }
    assert!(refusal(&[&bytes[..], b"\0"].concat()).contains("is damaged"));
    // A file that shrinks while it is read.
    let half = &bytes[..bytes.len() - 4];
    assert!(matches!(
        read(&mut &half[..], bytes.len() as u64),
        Err(Trouble::Input(_))
    ));
}

#[test]
fn foreign_files_are_refused() {
    for foreign in [
        b"iteration,return\n1,2\n".to_vec(),
        b"\x89PNG\r\n\x1a\n and so on".to_vec(),
        vec![0; 64],
        file("[1, 2]", b""),
        file(r#"{"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}"#, &[0; 4]),
        file(r#"{"__metadata__":{"format":"pt"}}"#, b""),
    ] {
        assert!(
            refusal(&foreign).starts_with("is not a stein checkpoint"),
            "{}",
            refusal(&foreign)
        );
    }
}

#[test]
fn a_later_version_is_named() {
    let text = |version| format!(r#"{{"__metadata__":{{"format":"stein checkpoint","version":"{version}"}}}}"#);
    let sentence = refusal(&file(&text("2"), b"of another layout"));
    assert!(
        sentence.starts_with("was written by a newer stein (format 2; this program reads 1): use"),
        "{sentence}"
    );
    for version in ["0", "01", "", "x", "-1"] {
        assert!(refusal(&file(&text(version), b"")).starts_with("is damaged"));
    }
    assert!(refusal(&file(&text("1"), b"")).contains("no header"));
}

#[test]
fn absurd_sizes_are_refused_without_being_allocated() {
    let metadata = r#""__metadata__":{"format":"stein checkpoint","version":"1","header":"{}","sha256":""}"#;
    let with = |info: &str| file(&format!(r#"{{{metadata},"a":{info}}}"#), &[0; 8]);
    let max = u64::MAX;
    for info in [
        format!(r#"{{"dtype":"F32","shape":[{max},{max}],"data_offsets":[0,8]}}"#),
        format!(
            r#"{{"dtype":"F32","shape":[{}],"data_offsets":[0,{}]}}"#,
            max / 64,
            max / 64 * 4
        ),
        r#"{"dtype":"F32","shape":[200000000000],"data_offsets":[0,800000000000]}"#.into(),
        r#"{"dtype":"F32","shape":[1],"data_offsets":[4,8]}"#.into(),
        r#"{"dtype":"F32","shape":[-1],"data_offsets":[0,8]}"#.into(),
        r#"{"dtype":"F16","shape":[4],"data_offsets":[0,8]}"#.into(),
    ] {
        refusal(&with(&info));
    }
    for length in [max, max - 7, TABLE_LIMIT, TABLE_LIMIT + 1] {
        refusal(&[&length.to_le_bytes()[..], b"{}"].concat());
    }
    refusal(&file(&"[".repeat(100_000), b""));
    refusal(&file(&r#"{"a":"#.repeat(100_000), b""));
}

#[test]
fn a_tensor_that_does_not_fit_the_settings_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.safetensors");
    sample().save(&path).unwrap();
    let mut loaded = Checkpoint::load(&path).unwrap();
    let file = path.display().to_string();
    let sentences = [
        (
            loaded.take_f32("policy.weights", &[3, 2]).unwrap_err(),
            "F32 of shape [3, 2], the file has it as F32 of shape [2, 3]",
        ),
        (
            loaded.take_f64("policy.weights", &[2, 3]).unwrap_err(),
            "F64 of shape [2, 3], the file has it as F32 of shape [2, 3]",
        ),
        (
            loaded.take_f32("critic", &[1]).unwrap_err(),
            "F32 of shape [1], the file has it not at all",
        ),
    ];
    for (error, part) in sentences {
        assert_eq!(error.exit_code(), 2);
        let sentence = error.to_string();
        assert!(sentence.contains(part), "{sentence}");
        assert!(
            sentence.starts_with(&format!("{file} does not belong to these settings")),
            "{sentence}"
        );
    }
    assert!(loaded.take_f32("policy.weights", &[2, 3]).is_ok());
    assert!(loaded.take_f32("policy.weights", &[2, 3]).is_err());
}

#[test]
fn load_names_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.safetensors");
    assert!(matches!(Checkpoint::load(&path), Err(Error::Io { .. })));
    assert!(matches!(Checkpoint::load(folder.path()), Err(Error::Input(_))));
    fs::write(&path, b"").unwrap();
    let error = Checkpoint::load(&path).unwrap_err();
    assert_eq!(error.to_string(), format!("{} is empty: {GO_BACK}", path.display()));
    assert_eq!(error.exit_code(), 2);
}

#[test]
fn floats_in_the_state_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("c.safetensors");
    let mut checkpoint = sample();
    checkpoint.header.state.insert("rate".into(), json!([{"now": 0.1}]));
    assert!(checkpoint.save(&path).unwrap_err().to_string().contains("`rate`"));
    assert!(!path.exists());
}

#[test]
#[should_panic(expected = "tensor name")]
fn names_that_json_escapes_are_refused() {
    Checkpoint::new(0, "").insert_f32("a\"b", &[0], &[]);
}
