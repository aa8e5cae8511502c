//! Whether the sizes of a model's inputs tell how long it takes, by the nodes of its graph.
//!
//! Most operators take as long as the sizes of their inputs say. Some read from the values how large their outputs are,
//! or how often they repeat something: where those values come from a request, eight bytes may ask for an hour.
//!
//! Sources: the messages of `onnx.proto3`, and the operators' own pages.

use std::collections::HashSet;
use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek};
use std::path::Path;

/// Largest node that is looked at; only constants are larger.
const MAX_NODE_BYTES: u64 = 64 << 20;

/// Most bytes of all nodes: graphs of large language models have some megabytes.
const MAX_GRAPH_BYTES: u64 = 256 << 20;

/// Operators by whose inputs at these places the size of an output is told, or the work; where there is no place, by
/// any values.
const BY_VALUE: &[(&str, &[usize])] = &[
    ("AffineGrid", &[1]),
    ("BlackmanWindow", &[0]),
    ("CenterCropPad", &[1]),
    ("Col2Im", &[1, 2]),
    ("Compress", &[]),
    ("ConstantOfShape", &[0]),
    ("DFT", &[1]),
    ("Expand", &[1]),
    ("GRU", &[4]),
    ("HammingWindow", &[0]),
    ("HannWindow", &[0]),
    ("ImageDecoder", &[]),
    ("LSTM", &[4]),
    ("MaxUnpool", &[2]),
    ("MelWeightMatrix", &[0, 1]),
    ("NonMaxSuppression", &[]),
    ("NonZero", &[]),
    ("OneHot", &[1]),
    ("Pad", &[1]),
    ("RNN", &[4]),
    ("Range", &[0, 1, 2]),
    ("RegexFullMatch", &[]),
    ("Reshape", &[1]),
    ("Resize", &[1, 2, 3]),
    ("STFT", &[1, 3]),
    ("Slice", &[1, 2, 3, 4]),
    ("Split", &[1]),
    ("SplitToSequence", &[1]),
    ("StringNormalizer", &[]),
    ("StringSplit", &[]),
    ("Tile", &[1]),
    ("TopK", &[1]),
    ("Unique", &[]),
    ("Upsample", &[1]),
];

/// What of a node is looked at.
#[derive(Debug, Default)]
struct Node {
    operator: String,
    domain: String,
    inputs: Vec<String>,
    outputs: Vec<String>,
    /// It has a graph of its own, which it repeats or chooses.
    has_graph: bool,
}

/// What of a graph is looked at.
#[derive(Debug, Default)]
struct Graph {
    nodes: Vec<Node>,
    /// Names of its constants.
    constants: HashSet<String>,
    /// Operators may be any, made of others.
    has_functions: bool,
}

/// Whether sizes tell how long the model in this file takes; no, where the file is of another kind or damaged.
#[allow(clippy::disallowed_methods, reason = "a load reads it, on a thread of its own")]
pub fn sizes_tell(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    let Ok(length) = file.metadata().map(|metadata| metadata.len()) else { return false };
    read(BufReader::new(file), length).is_some_and(|graph| graph.follows_sizes())
}

impl Graph {
    fn follows_sizes(&self) -> bool {
        // What depends on sizes alone is no more than they tell. A node stands behind those that it needs.
        let mut by_sizes: HashSet<&str> = self.constants.iter().map(String::as_str).collect();
        for node in &self.nodes {
            let known = |name: &str| name.is_empty() || by_sizes.contains(name);
            if !node.follows_sizes(known) {
                return false;
            }
            let is_constant = match &*node.operator {
                "Constant" | "Shape" | "Size" => true,
                _ => !node.inputs.is_empty() && node.inputs.iter().all(|name| known(name)),
            };
            if is_constant {
                by_sizes.extend(node.outputs.iter().map(String::as_str));
            }
        }
        !self.has_functions
    }
}

impl Node {
    fn follows_sizes(&self, known: impl Fn(&str) -> bool) -> bool {
        let is_usual = matches!(&*self.domain, "" | "ai.onnx" | "ai.onnx.ml");
        let by_places = match BY_VALUE.iter().find(|(operator, _)| *operator == self.operator) {
            None => true,
            Some((_, [])) => false,
            Some((_, places)) => places.iter().filter_map(|&place| self.inputs.get(place)).all(|name| known(name)),
        };
        is_usual && by_places && !self.has_graph
    }
}

/// A field of a message: its number, and the value or the length of what follows.
struct Field {
    number: u64,
    /// None where nothing follows.
    length: Option<u64>,
}

/// A message that is read from its beginning to its end.
struct Reader<R> {
    source: R,
    left: u64,
}

impl<R: BufRead + Seek> Reader<R> {
    fn byte(&mut self) -> Option<u8> {
        let mut byte = [0];
        self.left = self.left.checked_sub(1)?;
        self.source.read_exact(&mut byte).ok()?;
        Some(byte[0])
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7F) << shift;
            if byte < 0x80 {
                return Some(value);
            }
        }
        None
    }

    /// The next field; what follows it has to be read or skipped. None at the end, and where it cannot be read.
    fn field(&mut self) -> Option<Field> {
        let tag = self.varint()?;
        let length = match tag & 7 {
            0 => {
                self.varint()?;
                None
            }
            1 => Some(8),
            2 => Some(self.varint()?),
            5 => Some(4),
            _ => return None,
        };
        Some(Field { number: tag >> 3, length })
    }

    fn skip(&mut self, bytes: u64) -> Option<()> {
        self.left = self.left.checked_sub(bytes)?;
        self.source.seek_relative(i64::try_from(bytes).ok()?).ok()
    }

    fn bytes(&mut self, bytes: u64) -> Option<Vec<u8>> {
        self.left = self.left.checked_sub(bytes).filter(|_| bytes <= MAX_NODE_BYTES)?;
        let mut read = Vec::new();
        self.source.by_ref().take(bytes).read_to_end(&mut read).ok()?;
        (read.len() as u64 == bytes).then_some(read)
    }

    fn text(&mut self, bytes: u64) -> Option<String> {
        String::from_utf8(self.bytes(bytes)?).ok()
    }

    /// A message within this one; what it reads counts there, too.
    fn within(&mut self, bytes: u64) -> Option<Reader<&mut R>> {
        self.left = self.left.checked_sub(bytes)?;
        Some(Reader { source: &mut self.source, left: bytes })
    }
}

/// The graph of a model, in the first `left` bytes of a source.
fn read(source: impl BufRead + Seek, left: u64) -> Option<Graph> {
    let (mut reader, mut found) = (Reader { source, left }, None);
    let mut has_functions = false;
    while reader.left > 0 {
        let Field { number, length } = reader.field()?;
        match (number, length) {
            (7, Some(length)) => found = Some(graph(reader.within(length)?)?),
            (25, Some(length)) => {
                has_functions = true;
                reader.skip(length)?;
            }
            (_, length) => reader.skip(length.unwrap_or(0))?,
        }
    }
    found.map(|graph| Graph { has_functions, ..graph })
}

fn graph<R: BufRead + Seek>(mut reader: Reader<R>) -> Option<Graph> {
    let (mut graph, mut left) = (Graph::default(), MAX_GRAPH_BYTES);
    while reader.left > 0 {
        let Field { number, length } = reader.field()?;
        match (number, length) {
            (1, Some(length)) => {
                left = left.checked_sub(length)?;
                graph.nodes.push(node(&reader.bytes(length)?)?);
            }
            (5, Some(length)) => graph.constants.extend(name(reader.within(length)?, 8)?),
            (15, Some(length)) => {
                // A sparse constant, whose name is that of its values.
                let mut sparse = reader.within(length)?;
                while sparse.left > 0 {
                    match sparse.field()? {
                        Field { number: 1, length: Some(length) } => {
                            graph.constants.extend(name(sparse.within(length)?, 8)?);
                        }
                        Field { length, .. } => sparse.skip(length.unwrap_or(0))?,
                    }
                }
            }
            (_, length) => reader.skip(length.unwrap_or(0))?,
        }
    }
    Some(graph)
}

/// The text in a field of a message that is read to its end.
fn name<R: BufRead + Seek>(mut reader: Reader<R>, of: u64) -> Option<Option<String>> {
    let mut found = None;
    while reader.left > 0 {
        match reader.field()? {
            Field { number, length: Some(length) } if number == of => found = Some(reader.text(length)?),
            Field { length, .. } => reader.skip(length.unwrap_or(0))?,
        }
    }
    Some(found)
}

fn node(message: &[u8]) -> Option<Node> {
    let mut reader = Reader { source: std::io::Cursor::new(message), left: message.len() as u64 };
    let mut node = Node::default();
    while reader.left > 0 {
        let Field { number, length } = reader.field()?;
        match (number, length) {
            (1, Some(length)) => node.inputs.push(reader.text(length)?),
            (2, Some(length)) => node.outputs.push(reader.text(length)?),
            (4, Some(length)) => node.operator = reader.text(length)?,
            (5, Some(length)) => {
                let mut attribute = reader.within(length)?;
                while attribute.left > 0 {
                    let Field { number, length } = attribute.field()?;
                    node.has_graph |= matches!(number, 6 | 11);
                    attribute.skip(length.unwrap_or(0))?;
                }
            }
            (7, Some(length)) => node.domain = reader.text(length)?,
            (_, length) => reader.skip(length.unwrap_or(0))?,
        }
    }
    Some(node)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    fn varint(mut value: usize) -> Vec<u8> {
        let mut bytes = Vec::new();
        while value >= 0x80 {
            bytes.push(value as u8 | 0x80);
            value >>= 7;
        }
        bytes.push(value as u8);
        bytes
    }

    fn field(number: usize, content: impl AsRef<[u8]>) -> Vec<u8> {
        let content = content.as_ref();
        [varint(number << 3 | 2), varint(content.len()), content.to_vec()].concat()
    }

    fn node(operator: &str, inputs: &[&str], output: &str, beside: &[u8]) -> Vec<u8> {
        let inputs: Vec<u8> = inputs.iter().flat_map(|name| field(1, name)).collect();
        field(1, [&inputs[..], &field(2, output), &field(4, operator), beside].concat())
    }

    /// A model of these nodes with a constant `c` of many bytes.
    fn model(nodes: &[Vec<u8>]) -> Vec<u8> {
        let constant = field(5, [vec![0x08, 3], field(9, vec![7; 100_000]), field(8, "c")].concat());
        [vec![0x08, 8], field(7, [nodes.concat(), field(2, "graph"), constant].concat()), field(8, "opset")].concat()
    }

    fn follows(bytes: &[u8]) -> Option<bool> {
        read(Cursor::new(bytes), bytes.len() as u64).map(|graph| graph.follows_sizes())
    }

    #[test]
    fn sizes_tell_what_most_operators_take() {
        let nodes = [node("MatMul", &["x", "c"], "a", &[]), node("Relu", &["a"], "y", &field(5, field(1, "alpha")))];
        assert_eq!(follows(&model(&nodes)), Some(true));
    }

    #[test]
    fn a_size_may_come_from_constants_and_sizes_but_not_from_values() {
        let expand = |size: &str| node("Expand", &["x", size], "y", &[]);
        let shape = node("Shape", &["x"], "s", &[]);
        let product = node("Mul", &["s", "c"], "p", &[]);
        assert_eq!(follows(&model(&[expand("c")])), Some(true));
        assert_eq!(follows(&model(&[shape.clone(), product, expand("p")])), Some(true));
        assert_eq!(follows(&model(&[expand("x")])), Some(false));
        assert_eq!(follows(&model(&[shape, node("Mul", &["s", "x"], "p", &[]), expand("p")])), Some(false));
        assert_eq!(follows(&model(&[node("RandomNormal", &[], "r", &[]), expand("r")])), Some(false));
        // An input that is left out has no name.
        assert_eq!(follows(&model(&[node("Resize", &["x", "", "c"], "y", &[])])), Some(true));
    }

    #[test]
    fn no_loop_function_or_operator_of_others_follows_sizes() {
        let with = |beside: &[u8]| follows(&model(&[node("Relu", &["x"], "y", beside)]));
        for graphs in [6, 11] {
            assert_eq!(with(&field(5, [field(1, "body"), field(graphs, "graph")].concat())), Some(false));
        }
        assert_eq!(with(&field(7, "ai.onnx.ml")), Some(true));
        assert_eq!(with(&field(7, "com.someone")), Some(false));
        assert_eq!(follows(&model(&[node("NonZero", &["c"], "y", &[])])), Some(false));
        let functions = [model(&[node("Relu", &["x"], "y", &[])]), field(25, "function")].concat();
        assert_eq!(follows(&functions), Some(false));
    }

    #[test]
    fn what_is_cut_off_or_no_model_does_not_follow_sizes() {
        let whole = model(&[node("Relu", &["x"], "y", &[])]);
        for length in (0..whole.len() - 8).step_by(if whole.len() > 1000 { 997 } else { 1 }) {
            assert_ne!(follows(&whole[..length]), Some(true), "{length}");
        }
        assert_eq!(follows(b"ORTM and more"), None);
        assert_eq!(follows(&[0xFF; 40]), None);
        assert!(!sizes_tell(Path::new("/no/such/file")));
    }
}
