//! Stacked instances as requests of as many as a model takes at once.

use alipes_protocol::codec::elements;
use alipes_protocol::shape::element_count;
use alipes_protocol::{Shape, Tensor};
use bytes::Bytes;

/// The inputs of each request, `most` instances in all but the last. `is_whole`: the instances are what the model takes
/// at once, so that each is a request by itself and loses its place in front.
///
/// The tensors stay slices of the stacked ones.
pub fn split(inputs: &[Tensor], instances: usize, most: usize, is_whole: bool) -> Vec<Vec<Tensor>> {
    let most = if is_whole { 1 } else { most.max(1) };
    let mut requests: Vec<Vec<Tensor>> = Vec::with_capacity(instances.div_ceil(most));
    requests.resize_with(instances.div_ceil(most), || Vec::with_capacity(inputs.len()));
    for input in inputs {
        let rest = &input.shape[1.min(input.shape.len())..];
        let mut data = input.data.clone();
        for (index, request) in requests.iter_mut().enumerate() {
            let count = most.min(instances - index * most);
            let bytes = data.split_to(bytes_of(input, rest, count, &data));
            let lead = (!is_whole).then(|| i64::try_from(count).unwrap_or(i64::MAX));
            let shape: Shape = lead.into_iter().chain(rest.iter().copied()).collect();
            request.push(Tensor { name: input.name.clone(), datatype: input.datatype, shape, data: bytes });
        }
    }
    requests
}

/// Bytes of the first `count` instances.
fn bytes_of(input: &Tensor, rest: &[i64], count: usize, data: &Bytes) -> usize {
    let each = element_count(rest).unwrap_or(0);
    let bytes = match input.datatype.size() {
        Some(size) => count * each * size,
        None => elements::iter(data).take(count * each).map(|element| elements::PREFIX_BYTES + element.len()).sum(),
    };
    bytes.min(data.len())
}

#[cfg(test)]
mod tests {
    use alipes_protocol::Datatype;

    use super::*;

    fn tensor(datatype: Datatype, shape: &[i64], data: &'static [u8]) -> Tensor {
        Tensor { name: "x".into(), datatype, shape: Shape::from_slice(shape), data: Bytes::from_static(data) }
    }

    #[test]
    fn every_request_but_the_last_is_full() {
        let inputs = [
            tensor(Datatype::Uint8, &[3, 2], &[1, 2, 3, 4, 5, 6]),
            tensor(Datatype::Bytes, &[3, 1], b"\x01\0\0\0a\0\0\0\0\x02\0\0\0bc"),
        ];
        let requests = split(&inputs, 3, 2, false);
        assert_eq!(requests.len(), 2);
        assert_eq!(requests[0][0], tensor(Datatype::Uint8, &[2, 2], &[1, 2, 3, 4]));
        assert_eq!(requests[0][1], tensor(Datatype::Bytes, &[2, 1], b"\x01\0\0\0a\0\0\0\0"));
        assert_eq!(requests[1][0], tensor(Datatype::Uint8, &[1, 2], &[5, 6]));
        assert_eq!(requests[1][1], tensor(Datatype::Bytes, &[1, 1], b"\x02\0\0\0bc"));
        assert_eq!(split(&inputs, 3, 8, false)[0], inputs);
    }

    #[test]
    fn an_instance_that_is_all_loses_its_place_in_front() {
        let requests = split(&[tensor(Datatype::Uint8, &[2, 2], &[1, 2, 3, 4])], 2, 8, true);
        assert_eq!(requests[1], [tensor(Datatype::Uint8, &[2], &[3, 4])]);
    }
}
