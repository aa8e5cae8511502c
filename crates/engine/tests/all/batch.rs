//! Batches: what is gathered and run comes back to each request as its own rows.

use alipes_engine::OutputTensor;
use alipes_engine::batch::{Gather, Layout, MadeInput, MadeKind, Member, Split};
use alipes_protocol::codec::elements;
use alipes_protocol::{Code, Datatype, Shape};
use bytes::Bytes;
use proptest::prelude::*;

/// An input of a request that owns its bytes.
#[derive(Clone, Debug, PartialEq)]
struct Owned {
    index: usize,
    datatype: Datatype,
    shape: Vec<i64>,
    data: Vec<u8>,
}

impl Owned {
    fn new(datatype: Datatype, shape: &[i64], data: &[u8]) -> Owned {
        Owned { index: 0, datatype, shape: shape.to_vec(), data: data.to_vec() }
    }

    fn member(&self) -> Member<'_> {
        Member { index: self.index, datatype: self.datatype, shape: &self.shape, data: &self.data }
    }
}

fn members(requests: &[Vec<Owned>]) -> impl Iterator<Item = impl Iterator<Item = Member<'_>>> {
    requests.iter().map(|request| request.iter().map(Owned::member))
}

fn output(member: &Member<'_>) -> OutputTensor {
    OutputTensor {
        index: member.index,
        datatype: member.datatype,
        shape: Shape::from_slice(member.shape),
        data: Bytes::copy_from_slice(member.data),
    }
}

/// Requests of one batch: the same inputs, each with its own number of rows and its own bytes.
fn batches() -> impl Strategy<Value = Vec<Vec<Owned>>> {
    let port = (prop::sample::select(Datatype::ALL.to_vec()), prop::collection::vec(0_i64..4, 0..3));
    let ports = prop::collection::vec(port, 1..4);
    let rows = prop::collection::vec(0_i64..4, 1..6);
    (ports, rows, any::<u64>()).prop_map(|(ports, rows, seed)| {
        let mut noise = Noise(seed | 1);
        let mut input = |index: usize, (datatype, rest): &(Datatype, Vec<i64>), rows: i64| {
            let shape: Vec<i64> = [rows].into_iter().chain(rest.iter().copied()).collect();
            let count = usize::try_from(shape.iter().product::<i64>()).unwrap();
            Owned { index, datatype: *datatype, data: noise.elements(*datatype, count), shape }
        };
        let request = |&rows: &i64| ports.iter().enumerate().map(|(index, port)| input(index, port, rows)).collect();
        rows.iter().map(request).collect()
    })
}

/// Cheap bytes, told from a seed, so that failing cases shrink by shape and not by content.
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u8 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.to_le_bytes()[3]
    }

    fn elements(&mut self, datatype: Datatype, count: usize) -> Vec<u8> {
        let mut data = Vec::new();
        for _ in 0..count {
            match datatype.size() {
                Some(size) => data.extend((0..size).map(|_| self.next())),
                None => {
                    let element: Vec<u8> = (0..self.next() % 5).map(|_| self.next()).collect();
                    elements::push(&mut data, &element);
                }
            }
        }
        data
    }
}

proptest! {
    #[test]
    fn what_is_gathered_and_split_is_what_was_sent(requests in batches()) {
        let mut gather = Gather::default();
        // Twice through the same buffers: nothing is left over from the batch before.
        for _ in 0..2 {
            let views = gather.gather(members(&requests)).unwrap();
            for view in &views {
                prop_assert!(view.is_aligned());
            }
            let rows = requests.iter().map(|request| usize::try_from(request[0].shape[0]).unwrap());
            let outputs: Vec<OutputTensor> = views.iter().map(output).collect();
            let mut split = Split::new(&outputs, Some(rows.clone().sum())).unwrap();
            for (request, rows) in requests.iter().zip(rows) {
                let pieces: Vec<OutputTensor> = split.take(rows).collect();
                let sent: Vec<OutputTensor> = request.iter().map(|input| output(&input.member())).collect();
                prop_assert_eq!(pieces, sent);
            }
        }
    }
}

#[test]
fn a_lone_aligned_request_is_not_copied() {
    let sent = Owned::new(Datatype::Uint8, &[1, 3], b"abc");
    let mut gather = Gather::default();
    let views = gather.gather([[sent.member()]]).unwrap();
    assert_eq!(views[0].data.as_ptr(), sent.data.as_ptr());
    drop(views);
    assert_eq!(gather.copies(), 0);
}

#[test]
fn lone_misaligned_requests_are_copied_once_each_and_counted() {
    let bytes: Vec<u8> = (0..64).collect();
    let odd = &bytes[bytes.as_ptr().align_offset(4) + 1..];
    let mut gather = Gather::default();
    for (shape, data) in [([1, 4], &odd[..16]), ([1, 2], &odd[16..24])] {
        let views = gather.gather([[Member { index: 0, datatype: Datatype::Fp32, shape: &shape, data }]]).unwrap();
        assert!(views[0].data.as_ptr().addr().is_multiple_of(64));
        assert_eq!((views[0].shape, views[0].data), (&shape[..], data));
    }
    assert_eq!(gather.copies(), 2);
}

#[test]
fn a_request_without_bytes_is_aligned_wherever_it_is() {
    let bytes = [0_u8; 8];
    let odd = &bytes[bytes.as_ptr().align_offset(4) + 1..][..0];
    let mut gather = Gather::default();
    drop(gather.gather([[Member { index: 0, datatype: Datatype::Fp32, shape: &[0, 2], data: odd }]]).unwrap());
    assert_eq!(gather.copies(), 0);
}

#[test]
fn several_requests_lie_behind_one_another_at_a_cache_line() {
    let (one, two) = (Owned::new(Datatype::Uint8, &[1, 2], b"ab"), Owned::new(Datatype::Uint8, &[2, 2], b"cdef"));
    let mut gather = Gather::default();
    let views = gather.gather([[one.member()], [two.member()]]).unwrap();
    assert!(views[0].data.as_ptr().addr().is_multiple_of(64));
    assert_eq!((views[0].shape, views[0].data), (&[3, 2][..], &b"abcdef"[..]));
}

#[test]
fn requests_that_differ_never_share_a_batch() {
    let base = Owned::new(Datatype::Uint8, &[1, 2], b"ab");
    let refuse = |other: &[Owned]| {
        let error = Gather::default().gather(members(&[vec![base.clone()], other.to_vec()])).unwrap_err();
        assert_eq!(error.code, Code::Internal);
        error.message
    };
    let shape =
        "requests of one batch differ: one has UINT8 of shape [1,3] as input 0, where the batch has shape [1,2]";
    assert_eq!(refuse(&[Owned::new(Datatype::Uint8, &[1, 3], b"abc")]), shape);
    assert!(refuse(&[Owned::new(Datatype::Bool, &[1, 2], b"ab")]).contains("where the batch has UINT8 as input 0"));
    assert!(refuse(&[Owned::new(Datatype::Uint8, &[], b"a")]).contains("shape [] as input 0"));
    assert!(refuse(&[base.clone(), base.clone()]).contains("that the batch has not"));
    assert!(refuse(&[]).contains("that a request has not"));
    assert!(refuse(&[Owned::new(Datatype::Uint8, &[i64::MAX, 2], b"")]).contains("where the batch has shape"));
}

fn tensor(datatype: Datatype, shape: &[i64], data: &'static [u8]) -> OutputTensor {
    OutputTensor { index: 3, datatype, shape: Shape::from_slice(shape), data: Bytes::from_static(data) }
}

#[test]
fn pieces_are_slices_of_the_output() {
    let outputs = [tensor(Datatype::Uint16, &[3, 1], b"aabbcc")];
    let mut split = Split::new(&outputs, Some(3)).unwrap();
    let first = split.take(1).next().unwrap();
    let second = split.take(2).next().unwrap();
    assert_eq!((&first.data[..], &second.data[..]), (&b"aa"[..], &b"bbcc"[..]));
    assert_eq!(second.data.as_ptr(), outputs[0].data[2..].as_ptr());
    assert_eq!((first.index, &second.shape[..]), (3, &[2, 1][..]));
}

#[test]
fn outputs_of_a_model_that_does_not_batch_are_handed_out_whole() {
    let outputs = [tensor(Datatype::Uint8, &[], b"x"), tensor(Datatype::Uint8, &[5], b"abcde")];
    let pieces: Vec<OutputTensor> = Split::new(&outputs, None).unwrap().take(1).collect();
    assert_eq!(pieces, outputs);
}

#[test]
fn an_output_needs_a_row_for_each_of_the_batch() {
    let refuse = |output: OutputTensor| Split::new(&[output], Some(2)).unwrap_err().message;
    let text = "output 3: shape [3,1] does not match the batch of 2 rows";
    assert_eq!(refuse(tensor(Datatype::Uint8, &[3, 1], b"abc")), text);
    assert!(refuse(tensor(Datatype::Uint8, &[], b"a")).contains("shape [] does not match"));
    assert!(refuse(tensor(Datatype::Uint8, &[-1], b"")).contains("shape [-1] does not match"));
}

#[test]
fn bytes_that_are_not_as_many_as_the_shape_says_are_refused() {
    let refuse = |output: OutputTensor| Split::new(&[output], Some(2)).unwrap_err().message;
    assert_eq!(
        refuse(tensor(Datatype::Uint8, &[2, 2], b"abc")),
        "output 3: 3 bytes are no UINT8 tensor of shape [2,2]"
    );
    assert!(refuse(tensor(Datatype::Uint8, &[2, i64::MAX], b"abc")).contains("are no UINT8 tensor"));
    assert!(refuse(tensor(Datatype::Bytes, &[2, 1], b"\x01\0\0\0a")).contains("are no BYTES tensor"));
    assert!(refuse(tensor(Datatype::Bytes, &[2, 0], b"\x01\0\0\0a")).contains("are no BYTES tensor"));
}

/// A shape and bytes.
type Piece = (Vec<i64>, Vec<u8>);

/// A batch of three requests with 2, 3 and 4 elements in input 0, which is ragged, and what is made of it as input 1.
fn made(kind: MadeKind, datatype: Datatype) -> Piece {
    let request =
        |shape: &[i64]| vec![Owned::new(Datatype::Uint8, shape, &vec![7; shape.iter().product::<i64>() as usize])];
    let requests = [request(&[1, 2]), request(&[1, 3]), request(&[2, 2])];
    let layout =
        Layout { ragged: vec![0], made: vec![MadeInput { index: 1, kind, datatype, source: 0 }], ..Layout::default() };
    let mut gather = Gather::default();
    let views = gather.gather_laid_out(&layout, members(&requests)).unwrap();
    assert_eq!((views[0].shape, views[0].data), (&[9_i64][..], &[7_u8; 9][..]), "one long row");
    assert_eq!((views[1].index, views[1].datatype, views[1].is_aligned()), (1, datatype, true));
    (views[1].shape.to_vec(), views[1].data.to_vec())
}

fn int32s(values: &[i32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_ne_bytes()).collect()
}

#[test]
fn batch_inputs_locate_the_requests() {
    let made_int32 = |kind| made(kind, Datatype::Int32);
    assert_eq!(made_int32(MadeKind::ElementCount), (vec![3], int32s(&[2, 3, 4])));
    assert_eq!(made_int32(MadeKind::AccumulatedElementCount), (vec![3], int32s(&[2, 5, 9])));
    assert_eq!(made_int32(MadeKind::AccumulatedElementCountWithZero), (vec![4], int32s(&[0, 2, 5, 9])));
    assert_eq!(made_int32(MadeKind::MaxElementCountAsShape), (vec![4], int32s(&[0; 4])));
    assert_eq!(made_int32(MadeKind::ItemShape), (vec![4, 1], int32s(&[2, 3, 2, 2])));
    assert_eq!(made_int32(MadeKind::ItemShapeFlatten), (vec![4], int32s(&[2, 3, 2, 2])));
}

#[test]
fn batch_inputs_are_floats_where_declared() {
    let floats: Vec<u8> = [2.0_f32, 5.0, 9.0].iter().flat_map(|value| value.to_ne_bytes()).collect();
    assert_eq!(made(MadeKind::AccumulatedElementCount, Datatype::Fp32), (vec![3], floats));
}

#[test]
fn a_lone_ragged_request_is_one_long_row_and_is_not_copied() {
    let requests = [vec![Owned::new(Datatype::Uint8, &[2, 3], &[1, 2, 3, 4, 5, 6])]];
    let layout = Layout { ragged: vec![0], ..Layout::default() };
    let mut gather = Gather::default();
    let views = gather.gather_laid_out(&layout, members(&requests)).unwrap();
    assert_eq!((views[0].shape, views[0].data.as_ptr()), (&[6_i64][..], requests[0][0].data.as_ptr()));
}

#[test]
fn inputs_that_are_not_ragged_are_still_joined_by_rows() {
    let request = |value: u8, elements: usize| {
        let plain = Owned { index: 1, ..Owned::new(Datatype::Uint8, &[1, 2], &[value; 2]) };
        vec![Owned::new(Datatype::Uint8, &[1, elements as i64], &vec![value; elements]), plain]
    };
    let requests = [request(1, 1), request(2, 3)];
    let layout = Layout { ragged: vec![0], ..Layout::default() };
    let mut gather = Gather::default();
    let views = gather.gather_laid_out(&layout, members(&requests)).unwrap();
    assert_eq!((views[0].shape, views[0].data), (&[4_i64][..], &[1_u8, 2, 2, 2][..]));
    assert_eq!((views[1].shape, views[1].data), (&[2_i64, 2][..], &[1_u8, 1, 2, 2][..]));
}

/// One long row of these bytes, cut up for requests with these shapes.
fn scattered(datatype: Datatype, data: &[u8], shapes: &[&[i64]]) -> Result<Vec<Piece>, Code> {
    let elements = data.len() as i64;
    let whole = [output(&Member { index: 0, datatype, shape: &[elements], data })];
    let shapes: Vec<Shape> = shapes.iter().map(|shape| Shape::from_slice(shape)).collect();
    let rows: i64 = shapes.iter().map(|shape| shape[0]).sum();
    let split = Split::laid_out(&whole, Some(rows as usize), |_| Some(shapes.clone()));
    let mut split = split.map_err(|error| error.code)?;
    let pieces = shapes.iter().flat_map(|shape| split.take(shape[0] as usize).collect::<Vec<_>>());
    Ok(pieces.map(|piece| (piece.shape.to_vec(), piece.data.to_vec())).collect())
}

#[test]
fn an_output_may_be_cut_up_the_way_an_input_was_put_together() {
    let pieces = scattered(Datatype::Uint8, &[1, 2, 3, 4, 5, 6], &[&[1, 2], &[2, 2]]);
    assert_eq!(pieces, Ok(vec![(vec![1, 2], vec![1, 2]), (vec![2, 2], vec![3, 4, 5, 6])]));
    let mut texts = Vec::new();
    [&b"a"[..], b"", b"ccc"].iter().for_each(|text| elements::push(&mut texts, text));
    let pieces = scattered(Datatype::Bytes, &texts, &[&[1, 2], &[1, 1]]).unwrap();
    assert_eq!((pieces[0].1.len(), &pieces[1].1[4..]), (9, &b"ccc"[..]));
}

#[test]
fn an_output_of_another_size_than_its_input_is_an_error() {
    assert_eq!(scattered(Datatype::Uint8, &[1, 2, 3], &[&[1, 2], &[1, 2]]), Err(Code::Internal));
    assert_eq!(scattered(Datatype::Uint8, &[1, 2, 3, 4, 5], &[&[1, 2], &[1, 2]]), Err(Code::Internal));
    assert_eq!(scattered(Datatype::Bytes, &[9, 0, 0, 0], &[&[1, 1]]), Err(Code::Internal));
}
