//! Checkpoints: all the state of a run in one safetensors file, checked by SHA-256. `docs/checkpoints.md` describes it.

mod format;
mod store;

pub use store::{CheckpointConfig, Store};

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use safetensors::tensor::Dtype;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use self::format::{METADATA, Trouble, not_finite};
use crate::error::{Error, Result};
use crate::files::atomic;

/// The cure for a damaged file.
const GO_BACK: &str = "delete it and resume from the checkpoint before it";

/// The part of a checkpoint that is not a tensor.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Header {
    /// Version of the program that wrote it.
    pub stein_version: String,
    /// Iterations done.
    pub iteration: usize,
    /// The resolved settings as TOML.
    pub config: String,
    /// Small named values. Integers, strings and booleans are stored exactly; JSON does not preserve the bits of
    /// floats, so [`Checkpoint::save`] rejects them: they belong in tensors.
    pub state: Map<String, Value>,
}

/// Named numbers of one shape; the bytes are as in the file.
#[derive(Clone, Debug, PartialEq)]
struct Tensor {
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// All state of a run after some iteration.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    /// Everything but the tensors.
    pub header: Header,
    tensors: BTreeMap<String, Tensor>,
    /// The file it was loaded from, for error messages.
    source: Option<PathBuf>,
}

/// Defines the functions that insert and take a tensor of `$number`.
macro_rules! tensors_of {
    ($number:ty, $dtype:expr, $insert:ident, $take:ident) => {
        #[doc = concat!("Adds a tensor of ", stringify!($number), "s.")]
        ///
        /// # Panics
        /// If the name is taken or not plain printable ASCII, or the shape does not match the values.
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
    /// More than anything that is counted reaches.
    pub const COUNTABLE: u64 = 1 << 53;

    /// A checkpoint after this many iterations, without tensors yet. `config` are the resolved settings as TOML.
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

    /// Shape of the tensor with this name, if there is one.
    pub fn shape(&self, name: &str) -> Option<&[usize]> {
        self.tensors.get(name).map(|tensor| &tensor.shape[..])
    }

    /// Rows of the tensor with this name, its first dimension; 0 if there is none.
    pub fn rows(&self, name: &str) -> usize {
        self.shape(name).and_then(|shape| shape.first().copied()).unwrap_or(0)
    }

    /// Rejects a checkpoint whose tensor `name` has impossible values; `wanted` says what they must be.
    pub fn require(&self, good: bool, name: &str, wanted: &str) -> Result<()> {
        match good {
            true => Ok(()),
            false => Err(Error::input(format!(
                "{} is damaged (numbers of `{name}` are not {wanted}): {GO_BACK}",
                self.file()
            ))),
        }
    }

    /// The file it was loaded from, for error messages.
    fn file(&self) -> String {
        let path = self.source.as_ref();
        path.map_or("the checkpoint".into(), |path| path.display().to_string())
    }

    fn insert(&mut self, name: &str, dtype: Dtype, shape: &[usize], bytes: Vec<u8>) {
        // Names that JSON need not escape have only one spelling, so that no flipped bit goes unnoticed.
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
        Err(Error::input(format!(
            "{} does not belong to these settings: they need tensor `{name}` as {dtype} of shape {shape:?}, the \
             file has it {found}; use the settings the run was started with, or start a new run",
            self.file()
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
        if let Some(name) = not_finite(&self.tensors) {
            return Err(Error::failed(format!(
                "`{name}` is no longer finite, so that {} was not written: lower the learning rates",
                path.display()
            )));
        }
        let header = serde_json::to_string(&self.header).expect("a map with text keys is JSON");
        atomic::write_with(path, |file| format::write(file, &header, &self.tensors))
    }

    /// Reads a checkpoint. A damaged or foreign file, or one of a later format, is rejected with a sentence.
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
        let read = format::read(&mut file, about.len()).map_err(|trouble| match trouble {
            Trouble::Io(error) => failed(error),
            Trouble::Input(sentence) => Error::input(format!("{} {sentence}", path.display())),
        })?;
        Ok(Checkpoint {
            source: Some(path.to_path_buf()),
            ..read
        })
    }
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

#[cfg(test)]
mod tests;
