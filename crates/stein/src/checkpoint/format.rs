//! The file of a checkpoint: how it is written, read and checked.
//!
//! ```text
//! file         = length of the table (u64) ‖ table (JSON) ‖ data of the tensors
//! __metadata__ = { format: "stein checkpoint", version: "1", header: JSON text of Header, sha256: hex of S }
//! S            = SHA-256( "stein checkpoint 1\n" ‖ text(header) ‖ for each tensor in the order of the names:
//!                         text(name) ‖ text(dtype) ‖ rank ‖ dimensions… ‖ text(data) )      text(x) = len(x) ‖ x
//! ```
//!
//! All numbers are little-endian, lengths and dimensions u64. The data of u64 tensors come first, then f64, then f32,
//! each in the order of the names, so equal checkpoints are equal files. Reference: the safetensors format,
//! <https://github.com/huggingface/safetensors>.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read, Write};

use safetensors::tensor::{Dtype, Metadata};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::{Checkpoint, GO_BACK, Tensor};

const FORMAT: &str = "stein checkpoint";
const VERSION: u64 = 1;
/// The key of the table that names no tensor.
pub(super) const METADATA: &str = "__metadata__";
/// The longest table that safetensors allows.
pub(super) const TABLE_LIMIT: u64 = 100_000_000;

/// Writes a checkpoint; the wide numbers first: all data are aligned then, which other readers like.
pub(super) fn write(file: &mut impl Write, header: &str, tensors: &BTreeMap<String, Tensor>) -> io::Result<()> {
    let mut ordered: Vec<_> = tensors.iter().collect();
    ordered.sort_by_key(|(_, tensor)| std::cmp::Reverse(tensor.dtype));
    let table = table(header, &digest(header, tensors), &ordered);
    file.write_all(&(table.len() as u64).to_le_bytes())?;
    file.write_all(table.as_bytes())?;
    ordered.iter().try_for_each(|(_, tensor)| file.write_all(&tensor.bytes))
}

/// Why a file is not a checkpoint: a sentence whose subject is the file.
pub(super) enum Trouble {
    Io(io::Error),
    Input(String),
}

impl From<io::Error> for Trouble {
    fn from(error: io::Error) -> Self {
        match error.kind() {
            // The length of the file was checked: it must have shrunk since.
            ErrorKind::UnexpectedEof => Trouble::Input(format!("is cut off: {GO_BACK}")),
            _ => Trouble::Io(error),
        }
    }
}

fn foreign(why: impl std::fmt::Display) -> Trouble {
    Trouble::Input(format!(
        "is not a stein checkpoint, or a damaged one ({why}): move it away and resume from the checkpoint before it"
    ))
}

fn damaged(why: impl std::fmt::Display) -> Trouble {
    Trouble::Input(format!("is damaged ({why}): {GO_BACK}"))
}

/// Reads a checkpoint of `length` bytes. No length in the file is believed before it is held against `length`.
pub(super) fn read(file: &mut impl Read, length: u64) -> std::result::Result<Checkpoint, Trouble> {
    if length < 8 {
        let size = if length == 0 {
            "empty".into()
        } else {
            format!("cut off after {length} bytes")
        };
        return Err(Trouble::Input(format!("is {size}: {GO_BACK}")));
    }
    let mut word = [0; 8];
    file.read_exact(&mut word)?;
    let table_length = u64::from_le_bytes(word);
    if table_length > TABLE_LIMIT {
        return Err(foreign("it does not begin as a safetensors file"));
    }
    check_length(length, table_length + 8)?;
    let mut table = vec![0; table_length as usize];
    file.read_exact(&mut table)?;
    let table: Metadata = serde_json::from_slice(&table).map_err(|error| foreign(format!("its table: {error}")))?;

    let (header, sha256) = our_metadata(&table)?;
    let expected = (table_length + 8).checked_add(table.data_len() as u64);
    let expected = expected.ok_or_else(|| damaged("its table names impossible sizes"))?;
    check_length(length, expected)?;
    if length > expected {
        return Err(damaged(format!(
            "it has {length} bytes where its table names {expected}"
        )));
    }

    let tensors = read_tensors(file, &table)?;
    if digest(header, &tensors) != sha256 {
        return Err(damaged("its checksum does not match"));
    }
    if let Some(name) = not_finite(&tensors) {
        return Err(damaged(format!("numbers of `{name}` are not finite")));
    }
    let header = serde_json::from_str(header).map_err(|error| damaged(format!("its header: {error}")))?;
    Ok(Checkpoint {
        header,
        tensors,
        source: None,
    })
}

fn check_length(length: u64, expected: u64) -> std::result::Result<(), Trouble> {
    if length < expected {
        return Err(Trouble::Input(format!(
            "is cut off after {length} of {expected} bytes: {GO_BACK}"
        )));
    }
    Ok(())
}

/// The header text and the checksum, if the file is a checkpoint of a version that this program reads.
fn our_metadata(table: &Metadata) -> std::result::Result<(&str, &str), Trouble> {
    let metadata = table.metadata().as_ref();
    let get = |key: &str| metadata.and_then(|metadata| metadata.get(key)).map(String::as_str);
    if get("format") != Some(FORMAT) {
        return Err(foreign("it is a safetensors file of another program"));
    }
    let version = get("version").unwrap_or_default();
    match version.parse::<u64>() {
        Ok(VERSION) if version == VERSION.to_string() => {}
        Ok(later) if later > VERSION => {
            return Err(Trouble::Input(format!(
                "was written by a newer stein (format {later}; this program reads {VERSION}): use that version, or \
                 resume from a checkpoint of this one"
            )));
        }
        _ => return Err(damaged(format!("its format version is {version:?}"))),
    }
    let header = get("header").ok_or_else(|| damaged("it has no header"))?;
    let sha256 = get("sha256").ok_or_else(|| damaged("it has no checksum"))?;
    Ok((header, sha256))
}

fn read_tensors(file: &mut impl Read, table: &Metadata) -> std::result::Result<BTreeMap<String, Tensor>, Trouble> {
    let mut tensors = BTreeMap::new();
    for name in table.offset_keys() {
        let info = table.info(&name).expect("the name came from the table");
        let mut bytes = vec![0; info.data_offsets.1 - info.data_offsets.0];
        file.read_exact(&mut bytes)?;
        let (dtype, shape) = (info.dtype, info.shape.clone());
        tensors.insert(name, Tensor { dtype, shape, bytes });
    }
    Ok(tensors)
}

/// The first tensor that holds an infinity or a NaN where none belongs.
pub(super) fn not_finite(tensors: &BTreeMap<String, Tensor>) -> Option<&str> {
    // What is not known yet is a NaN or an infinity there.
    let may_be_unknown = |name: &str| name.starts_with("quota.") || name.ends_with(".constant");
    let finite = |tensor: &Tensor| match tensor.dtype {
        Dtype::F32 => {
            let (values, _) = tensor.bytes.as_chunks();
            values.iter().all(|value| f32::from_le_bytes(*value).is_finite())
        }
        Dtype::F64 => {
            let (values, _) = tensor.bytes.as_chunks();
            values.iter().all(|value| f64::from_le_bytes(*value).is_finite())
        }
        _ => true,
    };
    let odd = tensors
        .iter()
        .find(|(name, tensor)| !may_be_unknown(name) && !finite(tensor));
    odd.map(|(name, _)| &name[..])
}

/// The table of a safetensors file, padded to a multiple of 8 bytes so that the data after it are aligned.
fn table(header: &str, sha256: &str, tensors: &[(&String, &Tensor)]) -> String {
    let mut table = Map::new();
    let version = VERSION.to_string();
    let metadata = json!({"format": FORMAT, "version": version, "header": header, "sha256": sha256});
    table.insert(METADATA.to_string(), metadata);
    let mut start = 0;
    for (name, tensor) in tensors {
        let end = start + tensor.bytes.len();
        let info = json!({"dtype": tensor.dtype.to_string(), "shape": tensor.shape, "data_offsets": [start, end]});
        table.insert(name.to_string(), info);
        start = end;
    }
    let mut text = Value::Object(table).to_string();
    let padding = text.len().next_multiple_of(8) - text.len();
    text.extend(std::iter::repeat_n(' ', padding));
    text
}

/// The checksum of everything else, in hexadecimal.
pub(super) fn digest(header: &str, tensors: &BTreeMap<String, Tensor>) -> String {
    let mut hash = Sha256::new();
    hash.update(format!("{FORMAT} {VERSION}\n"));
    // Every piece goes in behind its length, so that no two checkpoints give the hash the same bytes.
    let text = |hash: &mut Sha256, bytes: &[u8]| {
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    text(&mut hash, header.as_bytes());
    for (name, tensor) in tensors {
        text(&mut hash, name.as_bytes());
        text(&mut hash, tensor.dtype.to_string().as_bytes());
        hash.update((tensor.shape.len() as u64).to_le_bytes());
        tensor
            .shape
            .iter()
            .for_each(|&dimension| hash.update((dimension as u64).to_le_bytes()));
        text(&mut hash, &tensor.bytes);
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
