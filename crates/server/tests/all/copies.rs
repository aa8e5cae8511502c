//! What `docs/explanation/memory-and-copies.md` promises, held against the copies that are counted.

use std::sync::Arc;

use crate::common::{Echo, GrpcServer, TEST_TIMEOUT, model, request};
use alipes_http::{HttpProtocol, serve_connection};
use alipes_net::connection::TransportStream;
use alipes_net::phase::Shutdown;
use alipes_protocol::codec::proto::inference::infer_parameter::ParameterChoice;
use alipes_protocol::codec::proto::inference::model_infer_request::InferRequestedOutputTensor;
use alipes_protocol::codec::proto::inference::{InferParameter, ModelInferRequest, ModelInferResponse};
use alipes_protocol::copies::copied_bytes;
use alipes_protocol::limits::HTTP2_LAST_PIECE_BYTES;
use rustix::fs::Mode;
use rustix::shm;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A picture of 3x224x224.
const ELEMENTS: usize = 3 * 224 * 224;
const BYTES: u64 = 4 * ELEMENTS as u64;

/// A head of JSON or protobuf is copied together with its tensor, or the tensor's beginning.
const HEAD_BYTES: u64 = 512;

/// The last bytes of a large answer over HTTP/2.
const LAST_BYTES: u64 = HTTP2_LAST_PIECE_BYTES as u64;

/// An object of shared memory with room for one picture, which has lost its name.
fn share(server: &GrpcServer, region: &str) {
    let key = format!("/alipes_copies_{}_{region}", std::process::id());
    let object = shm::open(&key, shm::OFlags::CREATE | shm::OFlags::RDWR, Mode::RUSR | Mode::WUSR).unwrap();
    rustix::fs::ftruncate(object, BYTES).unwrap();
    server.service.regions.register(region, &key, 0, BYTES).unwrap();
    shm::unlink(&key).unwrap();
}

fn place(region: &str) -> impl Iterator<Item = (String, InferParameter)> {
    let parameters = [
        ("shared_memory_region", ParameterChoice::StringParam(region.to_owned())),
        ("shared_memory_byte_size", ParameterChoice::Int64Param(BYTES as i64)),
    ];
    parameters.into_iter().map(|(key, choice)| (key.to_owned(), InferParameter { parameter_choice: Some(choice) }))
}

async fn infer(server: &GrpcServer, request: ModelInferRequest) -> ModelInferResponse {
    server.call("/inference.GRPCInferenceService/ModelInfer", request).await.unwrap()
}

/// Posts a request with a binary tensor and reads the whole answer.
async fn post(server: &GrpcServer, tensor: &[u8]) -> usize {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
    let (stream, _) = listener.accept().await.unwrap();
    let protocol = Arc::new(HttpProtocol::new(Arc::clone(&server.service), &Arc::default()));
    tokio::spawn(serve_connection(TransportStream::tcp(stream), protocol, Shutdown::never()));
    let json = format!(
        r#"{{"inputs":[{{"name":"X","datatype":"FP32","shape":[{ELEMENTS}],"parameters":{{"binary_data_size":{BYTES}}}}}],"parameters":{{"binary_data_output":true}}}}"#
    );
    let head = format!(
        "POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {}\r\n\
         Inference-Header-Content-Length: {}\r\n\r\n{json}",
        json.len() + tensor.len(),
        json.len()
    );
    client.write_all(head.as_bytes()).await.unwrap();
    client.write_all(tensor).await.unwrap();
    let mut answer = Vec::new();
    tokio::time::timeout(TEST_TIMEOUT, client.read_to_end(&mut answer)).await.unwrap().unwrap();
    answer.len()
}

/// Bytes that are copied while a future runs.
async fn copied<T>(future: impl Future<Output = T>) -> u64 {
    let before = copied_bytes();
    future.await;
    copied_bytes() - before
}

/// One test, since the count is the process's.
#[tokio::test]
async fn a_large_tensor_is_copied_once_on_the_way_in_and_never_out() {
    alipes_testkit::own_process!();
    let server = GrpcServer::open([model("echo", false, Echo)]).await;
    let large = request("echo", "7", ELEMENTS);

    let sent = copied(async { assert!(post(&server, &large.raw_input_contents[0]).await > BYTES as usize) }).await;
    assert!(sent <= BYTES + HEAD_BYTES, "HTTP: {sent} bytes were copied for a tensor of {BYTES}");

    let sent = copied(async {
        assert_eq!(infer(&server, large.clone()).await.raw_output_contents[0].len(), BYTES as usize);
    });
    let sent = sent.await;
    assert!(sent <= BYTES + HEAD_BYTES + LAST_BYTES, "gRPC: {sent} bytes were copied for a tensor of {BYTES}");

    share(&server, "given");
    share(&server, "taken");
    let mut shared = large.clone();
    shared.raw_input_contents.clear();
    shared.inputs[0].parameters.extend(place("given"));
    let mut output = InferRequestedOutputTensor { name: "Y".to_owned(), ..Default::default() };
    shared.outputs = vec![output.clone()];
    let sent = copied(infer(&server, shared.clone())).await;
    assert_eq!(sent, LAST_BYTES, "an input in shared memory is read where it lies");

    output.parameters.extend(place("taken"));
    shared.outputs = vec![output];
    assert_eq!(copied(infer(&server, shared)).await, BYTES, "an output is written into shared memory once");
}
