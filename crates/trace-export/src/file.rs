//! Triton's trace file: a JSON list that Triton's own tools read. Source: Triton's user guide, "JSON Trace Output".

#![allow(clippy::disallowed_methods, reason = "the trace writer has a thread of its own")]

use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use alipes_protocol::limits::TRACE_MAX_FILES;
use alipes_protocol::trace::{Record, Side};
use alipes_protocol::{Datatype, Tensor};
use serde::Serialize;

/// Mode of a new file: traces hold tensors of clients, which other users of the machine have no right to see.
const MODE: u32 = 0o600;

/// The trace file, and the numbered files beside it.
pub struct TraceFile {
    path: PathBuf,
    /// Number of the next one.
    next: u64,
    /// Most numbered files at a time.
    most: u64,
    open: Option<File>,
}

impl TraceFile {
    /// A file that is created by the first write.
    pub fn new(path: impl AsRef<Path>) -> TraceFile {
        TraceFile { path: path.as_ref().to_owned(), next: 0, most: TRACE_MAX_FILES.into(), open: None }
    }

    /// Writes records: at the end of the file, or into a new file with the next number, for which the oldest goes where
    /// there are too many.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn save(&mut self, text: &str, numbered: bool) -> io::Result<()> {
        if numbered {
            let path = self.numbered(self.next);
            if let Some(oldest) = self.next.checked_sub(self.most) {
                let _ = fs::remove_file(self.numbered(oldest)); // moved away, it takes no room here
            }
            self.next += 1;
            // Made anew, so that a link with this name leads nowhere.
            let _ = fs::remove_file(&path);
            let mut file = OpenOptions::new().write(true).create_new(true).mode(MODE).open(path)?;
            return file.write_all(format!("[{text}]").as_bytes());
        }
        let mut file = match self.open.take() {
            Some(mut file) => {
                file.write_all(b",")?;
                file
            }
            None => {
                let mut file =
                    OpenOptions::new().write(true).create(true).truncate(true).mode(MODE).open(&self.path)?;
                file.write_all(b"[")?;
                file
            }
        };
        file.write_all(text.as_bytes())?;
        self.open = Some(file);
        Ok(())
    }

    fn numbered(&self, number: u64) -> PathBuf {
        let mut path = self.path.clone().into_os_string();
        path.push(format!(".{number}"));
        path.into()
    }

    /// Ends the list in a file that has another name now, or none. The next records begin a new one.
    ///
    /// # Errors
    ///
    /// The old file cannot be written.
    pub fn let_go_if_moved(&mut self) -> io::Result<()> {
        let Some(file) = &self.open else { return Ok(()) };
        let open = file.metadata()?;
        let is_there =
            fs::metadata(&self.path).is_ok_and(|found| (found.dev(), found.ino()) == (open.dev(), open.ino()));
        if is_there { Ok(()) } else { self.finish() }
    }

    /// Ends the list.
    ///
    /// # Errors
    ///
    /// The file cannot be written.
    pub fn finish(&mut self) -> io::Result<()> {
        self.open.take().map_or(Ok(()), |mut file| file.write_all(b"]"))
    }
}

#[derive(Serialize)]
struct Head<'a> {
    id: u64,
    model_name: &'a str,
    model_version: i64,
    #[serde(skip_serializing_if = "str::is_empty")]
    request_id: &'a str,
    #[serde(skip_serializing_if = "is_zero")]
    parent_id: u64,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

#[derive(Serialize)]
struct Timestamps<'a> {
    id: u64,
    timestamps: [Timestamp<'a>; 1],
}

#[derive(Serialize)]
struct Timestamp<'a> {
    name: &'a str,
    ns: u64,
}

#[derive(Serialize)]
struct Activity<'a> {
    id: u64,
    activity: &'a str,
    tensor: TensorText<'a>,
}

#[derive(Serialize)]
struct TensorText<'a> {
    name: &'a str,
    data: String,
    shape: String,
    dtype: &'a str,
}

/// Appends the list elements of records, separated by commas. The oldest request comes first.
pub fn render(text: &mut String, records: &[Record]) {
    let mut first = true;
    for record in records.iter().rev() {
        render_record(record, |document| {
            if !std::mem::take(&mut first) {
                text.push(',');
            }
            text.push_str(&document);
        });
    }
}

fn render_record(record: &Record, mut add: impl FnMut(String)) {
    let id = record.id;
    if let Some(subject) = &record.subject {
        add(json(&Head {
            id,
            model_name: &subject.model,
            model_version: subject.version,
            request_id: &subject.request_id,
            parent_id: record.parent,
        }));
    }
    let mut moments = record.moments.clone();
    moments.sort_by_key(|&(_, ns)| ns);
    for (moment, ns) in moments {
        add(json(&Timestamps { id, timestamps: [Timestamp { name: moment.name(), ns }] }));
    }
    for (side, tensor) in &record.tensors {
        add(json(&activity(id, *side, tensor)));
    }
}

fn json(document: &impl Serialize) -> String {
    serde_json::to_string(document).unwrap_or_default()
}

fn activity(id: u64, side: Side, tensor: &Tensor) -> Activity<'_> {
    let shape: Vec<String> = tensor.shape.iter().map(i64::to_string).collect();
    let tensor = TensorText {
        name: &tensor.name,
        data: elements(tensor),
        shape: shape.join(","),
        dtype: tensor.datatype.name(),
    };
    Activity { id, activity: side.name(), tensor }
}

/// The elements as text, separated by commas; empty for 16-bit floats, as in Triton.
fn elements(tensor: &Tensor) -> String {
    let data = &tensor.data[..];
    match tensor.datatype {
        Datatype::Bool => numbers(data, |[byte]: [u8; 1]| u8::from(byte != 0)),
        Datatype::Uint8 => numbers(data, u8::from_le_bytes),
        Datatype::Uint16 => numbers(data, u16::from_le_bytes),
        Datatype::Uint32 => numbers(data, u32::from_le_bytes),
        Datatype::Uint64 => numbers(data, u64::from_le_bytes),
        Datatype::Int8 => numbers(data, i8::from_le_bytes),
        Datatype::Int16 => numbers(data, i16::from_le_bytes),
        Datatype::Int32 => numbers(data, i32::from_le_bytes),
        Datatype::Int64 => numbers(data, i64::from_le_bytes),
        Datatype::Fp32 => numbers(data, f32::from_le_bytes),
        Datatype::Fp64 => numbers(data, f64::from_le_bytes),
        Datatype::Fp16 | Datatype::Bf16 => String::new(),
        Datatype::Bytes => texts(data),
    }
}

fn numbers<const N: usize, T: std::fmt::Display>(data: &[u8], read: impl Fn([u8; N]) -> T) -> String {
    let mut text = String::new();
    for (index, element) in data.as_chunks::<N>().0.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        let _ = write!(text, "{comma}{}", read(*element));
    }
    text
}

/// Strings in quotes; invalid UTF-8 is replaced.
fn texts(mut data: &[u8]) -> String {
    let mut found = Vec::new();
    while let Some((length, rest)) = data.split_first_chunk() {
        let Some((text, rest)) = rest.split_at_checked(u32::from_le_bytes(*length) as usize) else { break };
        found.push(json(&String::from_utf8_lossy(text)));
        data = rest;
    }
    found.join(",")
}

#[cfg(test)]
mod tests {
    use alipes_protocol::trace::{Moment, Subject};

    use super::*;

    fn tensor(datatype: Datatype, elements: i64, data: &[u8]) -> Tensor {
        let shape = [1, elements].into_iter().collect();
        Tensor { name: "X".into(), datatype, shape, data: data.to_vec().into() }
    }

    #[test]
    fn a_record_is_a_head_its_moments_in_order_and_its_tensors() {
        let subject = Subject { model: "m".into(), version: 3, request_id: "a\"b".into() };
        let moments = vec![(Moment::QueueStart, 20), (Moment::RequestStart, 10)];
        let tensors = vec![(Side::QueueInput, tensor(Datatype::Fp32, 2, &[0, 0, 0, 63, 0, 0, 128, 64]))];
        let child = Record { id: 2, parent: 1, ..Record::default() };
        let child = Record { subject: Some(Subject { request_id: String::new(), ..subject.clone() }), ..child };
        let root = Record { id: 1, subject: Some(subject), moments, tensors, ..Record::default() };
        let mut text = String::new();
        render(&mut text, &[child, root]);
        let expected = serde_json::json!([
            {"id": 1, "model_name": "m", "model_version": 3, "request_id": "a\"b"},
            {"id": 1, "timestamps": [{"name": "REQUEST_START", "ns": 10}]},
            {"id": 1, "timestamps": [{"name": "QUEUE_START", "ns": 20}]},
            {"id": 1, "activity": "TENSOR_QUEUE_INPUT",
                "tensor": {"name": "X", "data": "0.5,4", "shape": "1,2", "dtype": "FP32"}},
            {"id": 2, "model_name": "m", "model_version": 3, "parent_id": 1},
        ]);
        assert_eq!(serde_json::from_str::<serde_json::Value>(&format!("[{text}]")).unwrap(), expected);
    }

    #[test]
    fn elements_are_numbers_and_texts() {
        assert_eq!(elements(&tensor(Datatype::Bool, 3, &[0, 1, 2])), "0,1,1");
        assert_eq!(elements(&tensor(Datatype::Uint8, 2, &[7, 255])), "7,255");
        assert_eq!(elements(&tensor(Datatype::Int8, 1, &[255])), "-1");
        assert_eq!(elements(&tensor(Datatype::Fp16, 1, &[1, 2])), "");
        assert_eq!(elements(&tensor(Datatype::Bytes, 2, b"\x02\0\0\0a\"\x01\0\0\0\xff")), r#""a\"","�""#);
        assert_eq!(elements(&tensor(Datatype::Bytes, 2, b"\x01\0\0\0a\xff\xff\xff\xffb")), r#""a""#);
    }

    #[test]
    fn records_go_on_in_a_new_file_once_the_old_one_is_moved() {
        let folder = std::env::temp_dir().join(format!("alipes-trace-moved-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let [path, old] = ["trace.json", "old.json"].map(|name| folder.join(name));
        let mut file = TraceFile::new(&path);
        file.let_go_if_moved().unwrap();
        file.save("1", false).unwrap();
        file.let_go_if_moved().unwrap();
        file.save("2", false).unwrap();
        std::fs::rename(&path, &old).unwrap();
        file.let_go_if_moved().unwrap();
        file.save("3", false).unwrap();
        file.finish().unwrap();
        assert_eq!([old, path].map(|path| std::fs::read_to_string(path).unwrap()), ["[1,2]", "[3]"]);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn files_are_for_this_user_alone_and_the_oldest_gives_way() {
        let folder = std::env::temp_dir().join(format!("alipes-trace-most-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("trace.json");
        let other = folder.join("other");
        std::fs::write(&other, "theirs").unwrap();
        std::os::unix::fs::symlink(&other, folder.join("trace.json.3")).unwrap();
        let mut file = TraceFile { most: 2, ..TraceFile::new(&path) };
        file.save("0", false).unwrap();
        for number in 0..4 {
            file.save(&number.to_string(), true).unwrap();
        }
        let mut names: Vec<_> = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        names.sort();
        assert_eq!(names, ["other", "trace.json", "trace.json.2", "trace.json.3"]);
        for name in &names[1..] {
            let found = std::fs::symlink_metadata(folder.join(name)).unwrap();
            assert!(found.is_file() && found.mode() & 0o777 == 0o600, "{name:?} {:o}", found.mode());
        }
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "theirs");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn records_stand_in_one_list_or_in_files_with_numbers() {
        let folder = std::env::temp_dir().join(format!("alipes-trace-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join("trace.json");
        let mut file = TraceFile::new(&path);
        file.save("1", false).unwrap();
        file.save("2", true).unwrap();
        file.save("3", false).unwrap();
        file.save("4", true).unwrap();
        file.finish().unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.join(name)).unwrap();
        assert_eq!(["trace.json", "trace.json.0", "trace.json.1"].map(read), ["[1,3]", "[2]", "[4]"]);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
