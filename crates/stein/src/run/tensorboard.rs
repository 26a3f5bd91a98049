//! Scalars and texts for TensorBoard: an event file is a sequence of records, each a protocol-buffer message.
//!
//! ```text
//! record  = length (u64) ‖ mask(crc(length)) (u32) ‖ event ‖ mask(crc(event)) (u32)      all little-endian
//! mask(c) = (c rotated right by 15) + 0xa282ead8
//! event   = { 1: wall time (double), 2: step (int64), and one of
//!             3: file version (string) | 5: summary { 1: { 1: tag, and 2: value (float) or text }… } | 7: session { 1: status } }
//! text    = 8: tensor { 1: type (7, string), 2: shape { 2: { 1: size } }, 8: content }, 9: metadata { 1: { 1: plug-in } }
//! ```
//!
//! `crc` is CRC-32C. References: TensorFlow's `tfrecord` format and its `event.proto` and `summary.proto`;
//! Castagnoli, Bräuer, Herrmann 1993, "Optimization of cyclic redundancy-check codes with 24 and 32 parity bits".

use std::fs::{self, File};
use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::error::{Error, Result};

const PREFIX: &str = "events.out.tfevents.";
const SUFFIX: &str = ".stein";

/// TensorBoard looks for restarts only in files of version 2 or later.
const FILE_VERSION: &[u8] = b"brain.Event:2";
/// `SessionLog.START`.
const SESSION_START: u64 = 1;

// Keys of the fields that are written: number · 8 + wire type (0 varint, 1 eight bytes, 2 length first, 5 four bytes).
const EVENT_WALL_TIME: u8 = 8 + 1;
const EVENT_STEP: u8 = 2 * 8;
const EVENT_FILE_VERSION: u8 = 3 * 8 + 2;
const EVENT_SUMMARY: u8 = 5 * 8 + 2;
const EVENT_SESSION: u8 = 7 * 8 + 2;
const SUMMARY_VALUE: u8 = 8 + 2;
const VALUE_TAG: u8 = 8 + 2;
const VALUE_NUMBER: u8 = 2 * 8 + 5;
const VALUE_TENSOR: u8 = 8 * 8 + 2;
const VALUE_METADATA: u8 = 9 * 8 + 2;
const TENSOR_TYPE: u8 = 8;
const TENSOR_SHAPE: u8 = 2 * 8 + 2;
const TENSOR_TEXT: u8 = 8 * 8 + 2;
/// `DT_STRING`.
const STRING: u64 = 7;
const SESSION_STATUS: u8 = 8;

/// An event file open for writing.
#[derive(Debug)]
pub struct EventWriter {
    path: PathBuf,
    file: BufWriter<File>,
}

impl EventWriter {
    /// Creates a new event file in `folder`.
    pub fn create(folder: &Path) -> Result<Self> {
        let (path, file) = new_file(folder)?;
        let file = BufWriter::new(file);
        let mut writer = EventWriter { path, file };
        writer.event(0, EVENT_FILE_VERSION, FILE_VERSION)?;
        writer.flush()?;
        Ok(writer)
    }

    /// Creates a new event file in the `folder` of a resumed run. `step` is the first step that it will write:
    /// TensorBoard discards this step and later ones from earlier files.
    pub fn resume(folder: &Path, step: usize) -> Result<Self> {
        let mut writer = Self::create(folder)?;
        let mut session = vec![SESSION_STATUS];
        varint(&mut session, SESSION_START);
        writer.event(step, EVENT_SESSION, &session)?;
        writer.flush()?;
        Ok(writer)
    }

    /// Adds named numbers of one step. NaN means "not measured" and is skipped.
    pub fn scalars(&mut self, step: usize, scalars: &[(&str, f64)]) -> Result<()> {
        let mut summary = Vec::new();
        for (tag, number) in scalars.iter().filter(|(_, number)| !number.is_nan()) {
            let mut value = Vec::new();
            field(&mut value, VALUE_TAG, tag.as_bytes());
            value.push(VALUE_NUMBER);
            value.extend((*number as f32).to_le_bytes());
            field(&mut summary, SUMMARY_VALUE, &value);
        }
        self.event(step, EVENT_SUMMARY, &summary)
    }

    /// Adds a text of one step, displayed as Markdown.
    pub fn text(&mut self, step: usize, tag: &str, text: &str) -> Result<()> {
        // One dimension of size 1.
        let shape = [2 * 8 + 2, 2, 8, 1];
        let mut tensor = vec![TENSOR_TYPE];
        varint(&mut tensor, STRING);
        field(&mut tensor, TENSOR_SHAPE, &shape);
        field(&mut tensor, TENSOR_TEXT, text.as_bytes());
        let (mut plugin, mut metadata) = (Vec::new(), Vec::new());
        field(&mut plugin, 8 + 2, b"text");
        field(&mut metadata, 8 + 2, &plugin);
        let mut value = Vec::new();
        field(&mut value, VALUE_TAG, tag.as_bytes());
        field(&mut value, VALUE_TENSOR, &tensor);
        field(&mut value, VALUE_METADATA, &metadata);
        let mut summary = Vec::new();
        field(&mut summary, SUMMARY_VALUE, &value);
        self.event(step, EVENT_SUMMARY, &summary)
    }

    /// Flushes all events so far.
    pub fn flush(&mut self) -> Result<()> {
        self.file.flush().map_err(|error| Error::io("write", &self.path, error))
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn event(&mut self, step: usize, key: u8, content: &[u8]) -> Result<()> {
        let mut event = vec![EVENT_WALL_TIME];
        event.extend(wall_time().to_le_bytes());
        event.push(EVENT_STEP);
        varint(&mut event, step as u64);
        field(&mut event, key, content);
        self.record(&event)
            .map_err(|error| Error::io("write", &self.path, error))
    }

    fn record(&mut self, event: &[u8]) -> io::Result<()> {
        let length = (event.len() as u64).to_le_bytes();
        self.file.write_all(&length)?;
        self.file.write_all(&masked(crc32c(&length)).to_le_bytes())?;
        self.file.write_all(event)?;
        self.file.write_all(&masked(crc32c(event)).to_le_bytes())
    }
}

/// A file whose name sorts after those of the existing event files in `folder`, because TensorBoard reads them in the
/// order of their names: if the second is taken, or the clock went back, the name runs ahead of the clock.
fn new_file(folder: &Path) -> Result<(PathBuf, File)> {
    fs::create_dir_all(folder).map_err(|error| Error::io("create", folder, error))?;
    let newest = newest(folder).map_err(|error| Error::io("read", folder, error))?;
    let mut time = newest
        .map_or(0, |newest| newest.saturating_add(1))
        .max(wall_time() as u64);
    loop {
        let path = folder.join(format!("{PREFIX}{time}{SUFFIX}"));
        match File::create_new(&path) {
            Ok(file) => return Ok((path, file)),
            Err(error) if error.kind() == ErrorKind::AlreadyExists && time < u64::MAX => time += 1,
            Err(error) => return Err(Error::io("create", &path, error)),
        }
    }
}

/// The latest time in the names of the event files in `folder`.
fn newest(folder: &Path) -> io::Result<Option<u64>> {
    let mut newest = None;
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        let time = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX)?.split('.').next()?.parse().ok());
        newest = newest.max(time);
    }
    Ok(newest)
}

/// Seconds since 1970.
fn wall_time() -> f64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0.0, |time| time.as_secs_f64())
}

/// Appends a field of bytes: key, length, content.
fn field(message: &mut Vec<u8>, key: u8, content: &[u8]) {
    message.push(key);
    varint(message, content.len() as u64);
    message.extend(content);
}

/// Appends a number, seven bits per byte, low ones first; the high bit means that more follow.
fn varint(message: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        message.push(number as u8 | 0x80);
        number >>= 7;
    }
    message.push(number as u8);
}

/// Checksums are stored masked, because the checksum of data that contains its own checksum is degenerate.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// CRC-32C of `bytes`: polynomial 0x1EDC6F41, reflected.
fn crc32c(bytes: &[u8]) -> u32 {
    let update = |crc: u32, &byte: &u8| (crc >> 8) ^ CRC_TABLE[usize::from(crc as u8 ^ byte)];
    !bytes.iter().fold(!0, update)
}

const CRC_TABLE: [u32; 256] = crc_table();

const fn crc_table() -> [u32; 256] {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = index as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = (crc >> 1) ^ (if crc & 1 == 1 { 0x82f6_3b78 } else { 0 });
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes `count` bytes from the front.
    fn take<'a>(bytes: &mut &'a [u8], count: usize) -> &'a [u8] {
        let (front, rest) = bytes.split_at(count);
        *bytes = rest;
        front
    }

    fn take_varint(bytes: &mut &[u8]) -> u64 {
        let mut number = 0;
        for shift in (0..).step_by(7) {
            let byte = take(bytes, 1)[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                break;
            }
        }
        number
    }

    fn take_field<'a>(bytes: &mut &'a [u8], key: u8) -> &'a [u8] {
        assert_eq!(take(bytes, 1), [key]);
        let length = take_varint(bytes) as usize;
        take(bytes, length)
    }

    /// The events of a file: step, key and content.
    fn events(path: &Path) -> Vec<(u64, u8, Vec<u8>)> {
        let bytes = fs::read(path).unwrap();
        let mut rest = &bytes[..];
        let mut events = Vec::new();
        while !rest.is_empty() {
            let length = take(&mut rest, 8);
            assert_eq!(take(&mut rest, 4), masked(crc32c(length)).to_le_bytes());
            let mut event = take(&mut rest, u64::from_le_bytes(length.try_into().unwrap()) as usize);
            assert_eq!(take(&mut rest, 4), masked(crc32c(event)).to_le_bytes());
            assert_eq!(take(&mut event, 1), [0x09]);
            let time = f64::from_le_bytes(take(&mut event, 8).try_into().unwrap());
            assert!((wall_time() - time).abs() < 60.0);
            assert_eq!(take(&mut event, 1), [0x10]);
            let step = take_varint(&mut event);
            let key = event[0];
            events.push((step, key, take_field(&mut event, key).to_vec()));
            assert!(event.is_empty());
        }
        events
    }

    fn scalars(mut summary: &[u8]) -> Vec<(String, f32)> {
        let mut scalars = Vec::new();
        while !summary.is_empty() {
            let mut value = take_field(&mut summary, 0x0a);
            let tag = String::from_utf8(take_field(&mut value, 0x0a).to_vec()).unwrap();
            assert_eq!(take(&mut value, 1), [0x15]);
            scalars.push((tag, f32::from_le_bytes(value.try_into().unwrap())));
        }
        scalars
    }

    #[test]
    fn checksums_agree_with_published_ones() {
        assert_eq!(crc32c(b"123456789"), 0xe306_9283);
        // RFC 3720, appendix B.4.
        assert_eq!(crc32c(&[0; 32]), 0x8a91_36aa);
        assert_eq!(crc32c(&[0xff; 32]), 0x62a8_ab43);
        assert_eq!(crc32c(&std::array::from_fn::<u8, 32, _>(|i| i as u8)), 0x46dd_794e);
        assert_eq!(crc32c(b""), 0);
        assert_eq!(masked(0), 0xa282_ead8);
    }

    #[test]
    fn scalars_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = EventWriter::create(&folder.path().join("events")).unwrap();
        let long = "policy/".repeat(40);
        writer
            .scalars(1, &[("loss", 0.5), ("absent", f64::NAN), (&long, -1e9)])
            .unwrap();
        writer.scalars(300, &[("loss", f64::INFINITY)]).unwrap();
        writer.flush().unwrap();
        let events = events(writer.path());
        assert_eq!(events[0], (0, 0x1a, b"brain.Event:2".to_vec()));
        assert_eq!((events[1].0, events[1].1), (1, 0x2a));
        assert_eq!(scalars(&events[1].2), [("loss".into(), 0.5), (long, -1e9)]);
        assert_eq!((events[2].0, events[2].1), (300, 0x2a));
        assert_eq!(scalars(&events[2].2), [("loss".into(), f32::INFINITY)]);
        assert_eq!(events.len(), 3);
    }

    #[test]
    fn a_resumed_file_begins_with_a_session_start() {
        let folder = tempfile::tempdir().unwrap();
        let writer = EventWriter::resume(folder.path(), 51).unwrap();
        let events = events(writer.path());
        assert_eq!(events[0].1, 0x1a);
        assert_eq!(events[1], (51, 0x3a, vec![0x08, 1]));
    }

    #[test]
    fn names_of_one_second_differ_and_sort_in_order_of_creation() {
        let folder = tempfile::tempdir().unwrap();
        let ahead = folder
            .path()
            .join(format!("{PREFIX}{}.other-writer.7", wall_time() as u64 + 1000));
        fs::write(&ahead, "").unwrap();
        let mut paths = vec![ahead];
        paths.extend((0..20).map(|_| EventWriter::create(folder.path()).unwrap().path));
        assert!(paths.is_sorted_by(|earlier, later| earlier < later), "{paths:?}");
    }

    #[test]
    fn a_file_in_place_of_the_folder_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        fs::write(&path, "").unwrap();
        let error = EventWriter::create(&path).unwrap_err().to_string();
        assert!(error.contains(&path.display().to_string()), "{error}");
    }
}
