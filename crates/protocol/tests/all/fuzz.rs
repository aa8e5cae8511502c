//! Fuzzers of the messages, and what must hold of whatever they say.

use alipes_protocol::codec::elements;
use alipes_protocol::codec::proto::inference::{
    LogSettingsRequest, ModelConfigRequest, ModelInferRequest, ModelInferResponse, ModelMetadataRequest,
    ModelReadyRequest, ModelStatisticsRequest, ModelStreamInferResponse, RepositoryIndexRequest,
    RepositoryModelLoadRequest, RepositoryModelUnloadRequest, SystemSharedMemoryRegisterRequest, TraceSettingRequest,
};
use alipes_protocol::codec::proto::reflection::ServerReflectionRequest;
use alipes_protocol::codec::proto::{
    Reply, Splitter, StreamReply, check_output, decode_request, first_raw_tensor, named_model, parsed_bytes, read_bytes,
};
use alipes_protocol::limits::MAX_DIMENSIONS;
use alipes_protocol::{InferError, NoRegions, TritonRelease};
use alipes_testkit::corpus;
use alipes_testkit::fuzz::{Choices, Fuzzer, pieces};
use alipes_testkit::memory::{CountedAllocator, peak};
use bytes::Bytes;
use prost::Message;
use prost::encoding::{DecodeContext, WireType, decode_key, skip_field};

use super::every_tensor::Sink;

#[global_allocator]
static ALLOCATOR: CountedAllocator = CountedAllocator;

/// Bytes of an input's end that cut the message into pieces and say how often it stands there.
const CHOICES: usize = 12;

/// Longest input in bytes, so that a long name outweighs what is not announced.
const LONGEST: usize = 16 << 10;

/// Inputs where nobody searches: each is read in many ways.
const INPUTS: u32 = 1_500;

/// Most pieces of a message but the last.
const PIECES: usize = 5;

/// Bytes that parsing may hold unannounced: what a request without anything takes.
const UNANNOUNCED_BYTES: u64 = 1 << 10;

/// Field numbers of `ModelInferRequest`.
const MODEL_NAME: u32 = 1;
const MODEL_VERSION: u32 = 2;
const PARAMETERS: u32 = 4;

/// Most bytes of an error's text beside what it quotes.
const TEXT_BYTES: usize = 512;

const WORDS: [&str; 12] = [
    "FP32",
    "BYTES",
    "INT64",
    "UINT8",
    "BOOL",
    "sequence_id",
    "binary_data_size",
    "classification",
    "priority",
    "shared_memory_region",
    "shared_memory_byte_size",
    "timeout",
];

#[test]
fn whatever_a_request_says_early_and_late_looks_agree() {
    let seeds = corpus::grpc_requests().into_iter().map(|wire| Choices::seed(&wire, &[0; CHOICES]));
    Fuzzer::new("proto-request", seeds).words(WORDS).longest(LONGEST).inputs(INPUTS).run(check_request);
}

#[test]
fn whatever_a_server_answers_outputs_fit_their_shapes() {
    let single = corpus::grpc_responses();
    let streamed = single.iter().map(|wire| {
        let response = ModelInferResponse::decode(&wire[..]).ok();
        let message = ModelStreamInferResponse { error_message: "e".into(), infer_response: response };
        message.encode_to_vec()
    });
    let seeds: Vec<Vec<u8>> = streamed.chain(single.iter().cloned()).collect();
    Fuzzer::new("proto-response", seeds).words(WORDS).run(check_response);
}

#[test]
fn whatever_a_control_request_says_it_is_one_or_refused() {
    let seeds = [
        RepositoryModelLoadRequest { model_name: "m".into(), ..Default::default() }.encode_to_vec(),
        SystemSharedMemoryRegisterRequest { name: "r".into(), key: "/k".into(), offset: 1, byte_size: 2 }
            .encode_to_vec(),
        ModelConfigRequest { name: "m".into(), version: "1".into() }.encode_to_vec(),
        b"\x0a\x01m\x12\x0b\x0a\x06config\x12\x01\x1a\x22\x05\x0a\x01k\x12\x00".to_vec(),
    ];
    Fuzzer::new("proto-control", seeds).run(check_control);
}

fn check_request(input: &[u8]) {
    let (wire, mut choices) = Choices::split(input, CHOICES);
    // A message behind itself is a message: lists become long, and what each entry takes shows.
    let wire = Bytes::from(wire.repeat(1 << choices.below(4)));
    check_weight(&wire);
    check_early(&wire, &mut choices);
    check_pieces(&wire, &pieces(&wire, &mut choices, PIECES));
    let Ok(message) = ModelInferRequest::decode(wire.clone()) else { return };
    let again = ModelInferRequest::decode(message.encode_to_vec().as_slice()).expect("its own words");
    // As bytes, because NaN differs from itself.
    assert_eq!(again.encode_to_vec(), message.encode_to_vec());
    match decode_request(message, TritonRelease::default(), &mut NoRegions) {
        Ok(request) => {
            let held: usize = request.inputs.iter().map(|input| input.data.len()).sum();
            // A typed number of one byte may stand for eight, an empty string for four.
            assert!(held <= 8 * wire.len());
            assert!(request.inputs.iter().all(|input| input.shape.len() <= MAX_DIMENSIONS));
        }
        Err(error) => check_error(&error, wire.len()),
    }
}

fn check_error(error: &InferError, length: usize) {
    assert!(!error.message.is_empty() && error.message.len() <= TEXT_BYTES + 3 * length);
}

/// What a message is said to take covers what it takes.
fn check_weight(wire: &Bytes) {
    let read = read_bytes(wire);
    assert!(read <= wire.len());
    let Ok(announced) = parsed_bytes(wire) else { return };
    let work = || {
        ModelInferRequest::decode(wire.clone())
            .map(|message| decode_request(message, TritonRelease::default(), &mut NoRegions))
    };
    let (outcome, held) = peak(work);
    drop(outcome);
    assert!(held as u64 <= announced + UNANNOUNCED_BYTES, "{held} bytes, of which {announced} were announced");
}

/// Who looks into the beginning of a message sees what its parser will see, or nothing.
fn check_early(wire: &[u8], choices: &mut Choices<'_>) {
    let head = &wire[..choices.below(wire.len().min(1 << 15) + 1)];
    assert!(first_raw_tensor(head).is_none_or(|begin| begin <= head.len()));
    if let (Some((name, version)), Ok(message)) = (named_model(head), ModelInferRequest::decode(wire))
        && let Some(fields) = fields(wire)
    {
        // Of several the last counts, and a version may come late: what is received elsewhere then is copied.
        let is_once = |wanted: u32| fields.iter().filter(|&&field| field == wanted).count() == 1;
        assert!(!is_once(MODEL_NAME) || name == message.model_name);
        assert!(version.is_empty() || !is_once(MODEL_VERSION) || version == message.model_version);
    }
}

/// The numbers of a message's fields; `None` where it cannot be read to its end.
///
/// Prost reads an entry of a map whatever kind of field it is said to be, and so finds other fields behind it than
/// stand there.
fn fields(mut wire: &[u8]) -> Option<Vec<u32>> {
    let mut fields = Vec::new();
    while !wire.is_empty() {
        let (field, kind) = decode_key(&mut wire).ok()?;
        if field == PARAMETERS && kind != WireType::LengthDelimited {
            return None;
        }
        skip_field(kind, field, &mut wire, DecodeContext::default()).ok()?;
        fields.push(field);
    }
    Some(fields)
}

/// A message that arrives in pieces, its tensors apart, is the message.
fn check_pieces(wire: &[u8], pieces: &[&[u8]]) {
    let (mut sink, mut splitter) = (Sink::default(), Splitter::new(wire.len()));
    pieces.iter().for_each(|piece| splitter.take(piece, &mut sink));
    assert_eq!(splitter.left(), 0);
    let skeleton = splitter.finish();
    let separated: usize = sink.0.iter().map(Vec::len).sum();
    assert!(skeleton.message.len() + separated <= wire.len(), "bytes were made up");
    let mut arrived = ModelInferRequest::decode(skeleton.message.clone()).ok();
    if let Some(message) = &mut arrived {
        skeleton.fill(message, sink.0.into_iter().map(Bytes::from));
    }
    let bytes = |message: ModelInferRequest| message.encode_to_vec();
    assert_eq!(arrived.map(bytes), ModelInferRequest::decode(wire).ok().map(bytes));
}

fn check_response(wire: &[u8]) {
    let wire = Bytes::copy_from_slice(wire);
    for reply in [Reply::decode(wire.clone()), StreamReply::decode(wire.clone()).map(|streamed| streamed.reply)] {
        let reply = match reply {
            Ok(reply) => reply,
            Err(error) => {
                check_error(&error, wire.len());
                continue;
            }
        };
        for (index, output) in reply.outputs.iter().enumerate() {
            if reply.elsewhere.contains(&index) {
                assert!(output.data.is_empty());
                continue;
            }
            assert!(check_output(&output.name, output.datatype, &output.shape, output.data.len()).is_ok());
            // Only a reader of strings finds out whether they are whole.
            let _ = elements::count(&output.data);
        }
    }
}

fn check_control(wire: &[u8]) {
    one_message::<RepositoryModelLoadRequest>(wire);
    one_message::<RepositoryModelUnloadRequest>(wire);
    one_message::<RepositoryIndexRequest>(wire);
    one_message::<SystemSharedMemoryRegisterRequest>(wire);
    one_message::<TraceSettingRequest>(wire);
    one_message::<LogSettingsRequest>(wire);
    one_message::<ModelConfigRequest>(wire);
    one_message::<ModelMetadataRequest>(wire);
    one_message::<ModelReadyRequest>(wire);
    one_message::<ModelStatisticsRequest>(wire);
    one_message::<ServerReflectionRequest>(wire);
}

/// What is read is written as it was read, and takes no more than its bytes account for.
fn one_message<M: Message + Default>(wire: &[u8]) {
    let (decoded, held) = peak(|| M::decode(wire));
    // A parameter of four bytes is an entry of a map: a name, a value, and room beside them for others.
    assert!(held <= (8 << 10) + 256 * wire.len(), "{held} bytes for {}", wire.len());
    if let Ok(message) = decoded {
        let written = message.encode_to_vec();
        assert_eq!(M::decode(&written[..]).expect("its own words").encode_to_vec(), written);
    }
}
