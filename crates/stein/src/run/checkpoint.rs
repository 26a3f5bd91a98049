//! Checkpoints: all the state of a run in one safetensors file, checked by SHA-256. `docs/checkpoints.md` describes it.
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

mod store;

pub use store::Store;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

use safetensors::tensor::{Dtype, Metadata};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use super::atomic;
use crate::error::{Error, Result};

const FORMAT: &str = "stein checkpoint";
const VERSION: u64 = 1;
const METADATA: &str = "__metadata__";
/// The longest table that safetensors allows.
const TABLE_LIMIT: u64 = 100_000_000;
/// The cure for a damaged file.
const GO_BACK: &str = "delete it and resume from the checkpoint before it";

/// The part of a checkpoint that is not a tensor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// Version of the program that wrote it.
    pub stein_version: String,
    /// Iterations done.
    pub iteration: usize,
    /// The resolved settings as TOML.
    pub config: String,
    /// Small named values. Integers, texts and truth values come back exactly; JSON does not keep the bits of floats,
    /// so [`Checkpoint::save`] refuses them: they belong into tensors.
    pub state: Map<String, Value>,
}

/// Named numbers of one shape; the bytes are as in the file.
#[derive(Clone, Debug, PartialEq)]
struct Tensor {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// All the state of a run after some iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Everything but the tensors.
    pub header: Header,
    tensors: BTreeMap<String, Tensor>,
    /// The file it was loaded from, for error messages.
    source: Option<PathBuf>,
}

/// Defines the pair of functions that put a tensor of `$number` in and take it out.
macro_rules! tensors_of {
    ($number:ty, $dtype:expr, $insert:ident, $take:ident) => {
        #[doc = concat!("Adds a tensor of ", stringify!($number), "s.")]
        ///
        /// # Panics
        /// When the name is taken or not plain printable ASCII, or the shape does not fit the values.
        pub fn $insert(&mut self, name: &str, shape: &[usize], values: &[$number]) {
            assert_eq!(shape.iter().product::<usize>(), values.len(), "shape of tensor {name:?}");
            let bytes = values.iter().flat_map(|value| value.to_le_bytes()).collect();
            self.insert(name, $dtype, shape, bytes);
        }

        #[doc = concat!("Takes a tensor of ", stringify!($number), "s out; refuses one that is missing or of another shape.")]
        pub fn $take(&mut self, name: &str, shape: &[usize]) -> Result<Vec<$number>> {
            let bytes = self.take(name, $dtype, shape)?;
            let (values, _) = bytes.as_chunks();
            Ok(values.iter().map(|value| <$number>::from_le_bytes(*value)).collect())
        }
    };
}

impl Checkpoint {
    /// A checkpoint after so many iterations, without tensors yet. `config` are the resolved settings as TOML.
    pub fn new(iteration: usize, config: impl Into<String>) -> Self {
        let header = Header {
            stein_version: env!("CARGO_PKG_VERSION").to_string(),
            iteration,
            config: config.into(),
            state: Map::new(),
        };
        Checkpoint {
            header,
            tensors: BTreeMap::new(),
            source: None,
        }
    }

    tensors_of!(f32, Dtype::F32, insert_f32, take_f32);
    tensors_of!(f64, Dtype::F64, insert_f64, take_f64);
    tensors_of!(u64, Dtype::U64, insert_u64, take_u64);

    /// Shape of the tensor of this name, where there is one.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|tensor| &tensor.shape[..])
    }

    fn insert(&mut self, name: &str, dtype: Dtype, shape: &[usize], bytes: Vec<u8>) {
        // Names that JSON need not escape have one spelling alone, so that no flipped bit can hide in another one.
        let plain = |byte: u8| byte.is_ascii_graphic() && byte != b'"' && byte != b'\\';
        assert!(
            !name.is_empty() && name.bytes().all(plain) && name != METADATA,
            "tensor name {name:?}"
        );
        let shape = shape.to_vec();
        let before = self.tensors.insert(name.to_string(), Tensor { dtype, shape, bytes });
        assert!(before.is_none(), "tensor {name:?} is there already");
    }

    fn take(&mut self, name: &str, dtype: Dtype, shape: &[usize]) -> Result<Vec<u8>> {
        let found = match self.tensors.get(name) {
            Some(tensor) if tensor.dtype == dtype && tensor.shape == shape => {
                return Ok(self.tensors.remove(name).expect("it was found just now").bytes);
            }
            Some(tensor) => format!("as {} of shape {:?}", tensor.dtype, tensor.shape),
            None => "not at all".to_string(),
        };
        let file = self
            .source
            .as_ref()
            .map_or("the checkpoint".into(), |path| path.display().to_string());
        Err(Error::input(format!(
            "{file} does not belong to these settings: they need tensor `{name}` as {dtype} of shape {shape:?}, the \
             file has it {found}; use the settings the run was started with, or start a new run"
        )))
    }

    /// Writes the checkpoint to `path`, atomically.
    pub fn save(&self, path: &Path) -> Result<()> {
        if let Some((name, _)) = self.header.state.iter().find(|(_, value)| holds_float(value)) {
            return Err(Error::failed(format!(
                "the state `{name}` of {} holds a float, and JSON does not keep its bits: store it as a tensor",
                path.display()
            )));
        }
        let header = serde_json::to_string(&self.header).expect("a map with text keys is JSON");
        let ordered = self.in_file_order();
        let table = table(&header, &digest(&header, &self.tensors), &ordered);
        atomic::write_with(path, |file| {
            file.write_all(&(table.len() as u64).to_le_bytes())?;
            file.write_all(table.as_bytes())?;
            ordered.iter().try_for_each(|(_, tensor)| file.write_all(&tensor.bytes))
        })
    }

    /// The wide numbers first: all data are aligned then, which other readers like.
    fn in_file_order(&self) -> Vec<(&String, &Tensor)> {
        let mut tensors: Vec<_> = self.tensors.iter().collect();
        tensors.sort_by_key(|(_, tensor)| std::cmp::Reverse(tensor.dtype));
        tensors
    }

    /// Reads a checkpoint. A damaged or foreign file, and one of a later format, is refused with a sentence.
    pub fn load(path: &Path) -> Result<Self> {
        let failed = |error| Error::io("read", path, error);
        let about = fs::metadata(path).map_err(failed)?;
        if !about.is_file() {
            return Err(Error::input(format!(
                "{} is not a file: move it away and resume from the checkpoint before it",
                path.display()
            )));
        }
        let mut file = File::open(path).map_err(failed)?;
        let read = read(&mut file, about.len()).map_err(|trouble| match trouble {
            Trouble::Io(error) => failed(error),
            Trouble::Input(sentence) => Error::input(format!("{} {sentence}", path.display())),
        })?;
        Ok(Checkpoint {
            source: Some(path.to_path_buf()),
            ..read
        })
    }
}

/// Why a file is not a checkpoint: a sentence whose subject is the file.
enum Trouble {
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
fn read(file: &mut impl Read, length: u64) -> std::result::Result<Checkpoint, Trouble> {
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

/// Whether there is a number in `value` that JSON may not give back bit by bit.
fn holds_float(value: &Value) -> bool {
    match value {
        Value::Number(number) => number.is_f64(),
        Value::Array(values) => values.iter().any(holds_float),
        Value::Object(values) => values.values().any(holds_float),
        Value::Null | Value::Bool(_) | Value::String(_) => false,
    }
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
fn digest(header: &str, tensors: &BTreeMap<String, Tensor>) -> String {
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

#[cfg(test)]
mod tests;
