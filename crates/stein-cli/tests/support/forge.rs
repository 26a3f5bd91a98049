//! Checkpoints that are changed and signed again: their checksum is right, their numbers are not.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// A tensor as it stands in the file.
#[derive(Clone)]
pub struct Tensor {
    pub dtype: String,
    pub shape: Vec<usize>,
    pub bytes: Vec<u8>,
}

impl Tensor {
    /// Leaves its first number, without a dimension.
    pub fn make_scalar(&mut self) {
        let width = if self.dtype.ends_with("64") { 8 } else { 4 };
        if self.bytes.len() >= width {
            self.shape.clear();
            self.bytes.truncate(width);
        }
    }
}

/// A checkpoint taken apart.
#[derive(Clone)]
pub struct Forged {
    pub header: Map<String, Value>,
    pub tensors: BTreeMap<String, Tensor>,
}

impl Forged {
    /// Takes a checkpoint apart.
    pub fn read(path: &Path) -> Forged {
        let bytes = std::fs::read(path).unwrap();
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
        let table: Map<String, Value> = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
        let data = &bytes[8 + length..];
        let header = table["__metadata__"]["header"].as_str().unwrap();
        let number = |value: &Value| value.as_u64().unwrap() as usize;
        let tensors = table.iter().filter(|(name, _)| *name != "__metadata__");
        Forged {
            header: serde_json::from_str(header).unwrap(),
            tensors: tensors
                .map(|(name, info)| {
                    let [start, end] = [0, 1].map(|k| number(&info["data_offsets"][k]));
                    let tensor = Tensor {
                        dtype: info["dtype"].as_str().unwrap().into(),
                        shape: info["shape"].as_array().unwrap().iter().map(number).collect(),
                        bytes: data[start..end].to_vec(),
                    };
                    (name.clone(), tensor)
                })
                .collect(),
        }
    }

    /// Puts it together again with a checksum that fits.
    pub fn write(&self, path: &Path) {
        let header = Value::Object(self.header.clone()).to_string();
        let mut hash = Sha256::new();
        let text = |hash: &mut Sha256, bytes: &[u8]| {
            hash.update((bytes.len() as u64).to_le_bytes());
            hash.update(bytes);
        };
        hash.update("stein checkpoint 1\n");
        text(&mut hash, header.as_bytes());
        for (name, tensor) in &self.tensors {
            text(&mut hash, name.as_bytes());
            text(&mut hash, tensor.dtype.as_bytes());
            hash.update((tensor.shape.len() as u64).to_le_bytes());
            for &size in &tensor.shape {
                hash.update((size as u64).to_le_bytes());
            }
            text(&mut hash, &tensor.bytes);
        }
        let sha256: String = hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
        let mut table = Map::new();
        let metadata = json!({"format": "stein checkpoint", "version": "1", "header": header, "sha256": sha256});
        table.insert("__metadata__".into(), metadata);
        let mut tensors: Vec<_> = self.tensors.iter().collect();
        let place = |dtype: &str| ["U64", "F64", "F32"].iter().position(|known| *known == dtype);
        tensors.sort_by_key(|(_, tensor)| place(&tensor.dtype));
        let (mut start, mut data) = (0, Vec::new());
        for (name, tensor) in tensors {
            let end = start + tensor.bytes.len();
            let info = json!({"dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": [start, end]});
            table.insert(name.clone(), info);
            data.extend_from_slice(&tensor.bytes);
            start = end;
        }
        let mut table = Value::Object(table).to_string();
        while !table.len().is_multiple_of(8) {
            table.push(' ');
        }
        let bytes = [&(table.len() as u64).to_le_bytes()[..], table.as_bytes(), &data].concat();
        std::fs::write(path, bytes).unwrap();
    }

    /// Sets one number of a tensor, whatever its type.
    pub fn set(&mut self, name: &str, index: usize, value: f64) {
        let tensor = self.tensors.get_mut(name).unwrap();
        let bytes = match &tensor.dtype[..] {
            "F32" => (value as f32).to_le_bytes().to_vec(),
            "F64" => value.to_le_bytes().to_vec(),
            _ => (value as u64).to_le_bytes().to_vec(),
        };
        tensor.bytes[index * bytes.len()..][..bytes.len()].copy_from_slice(&bytes);
    }
}
