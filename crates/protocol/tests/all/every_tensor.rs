//! A sink that keeps the tensors of a message apart.

use alipes_protocol::codec::proto::TensorSink;

/// Takes every tensor.
#[derive(Default)]
pub struct Sink(pub Vec<Vec<u8>>);

impl TensorSink for Sink {
    fn begin(&mut self, _length: usize) -> bool {
        self.0.push(Vec::new());
        true
    }

    fn extend(&mut self, bytes: &[u8]) {
        self.0.last_mut().expect("a tensor was begun").extend_from_slice(bytes);
    }
}
