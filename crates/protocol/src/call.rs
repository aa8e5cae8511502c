//! A *call*: a plain HTTP request to a model's endpoint, as an inference request with one input, the body; and the
//! response to it, whose one output is the body of a plain HTTP response.

use bytes::{BufMut, Bytes, BytesMut};

use crate::{Datatype, Shape, Tensor};

/// The input and the output: the body, as the one element of a `BYTES` tensor.
pub const BODY: &str = "alipes.body";
/// Parameter of request and response: the content type, empty where a request has none.
pub const CONTENT_TYPE: &str = "alipes.content_type";
/// The content type of a call whose body is a message of gRPC.
pub const MESSAGE: &str = "application/grpc";
/// Parameter of request and response: the text of a JSON object of headers.
pub const HEADERS: &str = "alipes.headers";
/// Parameter of the request: the method.
pub const METHOD: &str = "alipes.method";
/// Parameter of the request: the query string as it came, without its question mark.
pub const QUERY: &str = "alipes.query";
/// Parameter of the request: the path, for a model that gets requests of the inference protocols as calls.
pub const PATH: &str = "alipes.path";
/// Parameter of a response to a model that streams to callers of the protocols: true where further responses, which are
/// pieces of the same body, follow the first.
pub const MORE: &str = "alipes.more";
/// Parameter of the response: the status.
pub const STATUS: &str = "alipes.status";

/// Bytes in front of an element: its length.
pub const PREFIX_BYTES: usize = 4;

/// First segments of paths that no endpoint can have, since they are the server's own.
pub const RESERVED_NAMES: [&str; 5] = ["v1", "v2", "metrics", "docs", "openapi.json"];

/// The input of a call around a body that already has its length in front.
pub fn input(element: Bytes) -> Tensor {
    Tensor { name: BODY.into(), datatype: Datatype::Bytes, shape: shape(), data: element }
}

/// The shape of both tensors.
pub fn shape() -> Shape {
    [1].into_iter().collect()
}

/// The length of a body, as it stands in front of it. Bodies are bounded far below 4 GiB.
pub fn prefix(length: usize) -> [u8; PREFIX_BYTES] {
    u32::try_from(length).unwrap_or(u32::MAX).to_le_bytes()
}

/// A body with its length in front of it: a copy.
pub fn element(body: &[u8]) -> Bytes {
    let mut element = BytesMut::with_capacity(PREFIX_BYTES + body.len());
    element.put_slice(&prefix(body.len()));
    element.put_slice(body);
    element.freeze()
}

/// The body in the output of a response; none where the tensor is not one element.
pub fn body(output: &Tensor) -> Option<Bytes> {
    let (length, body) = output.data.split_first_chunk::<PREFIX_BYTES>()?;
    let is_one = output.datatype == Datatype::Bytes && u32::from_le_bytes(*length) as usize == body.len();
    is_one.then(|| output.data.slice(PREFIX_BYTES..))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_what_its_element_was_made_of() {
        for text in ["", "x", "{\"a\": [1, 2]}"] {
            assert_eq!(body(&input(element(text.as_bytes()))).unwrap(), text);
        }
    }

    #[test]
    fn what_is_not_one_element_is_no_body() {
        let two = [element(b"a"), element(b"b")].concat();
        for data in [&b""[..], &b"\0\0\0"[..], &b"\x02\0\0\0x"[..], &two] {
            assert_eq!(body(&input(Bytes::copy_from_slice(data))), None, "{data:?}");
        }
        let other = Tensor { datatype: Datatype::Uint8, ..input(element(b"a")) };
        assert_eq!(body(&other), None);
    }
}
