//! The gRPC server on a real socket, with tonic as a client that we did not write.

use std::sync::Arc;

use crate::common::{Echo, GrpcServer, Puppet, model};
use alipes_net::phase::Phase;
use alipes_protocol::codec::proto::health::{HealthCheckRequest, HealthCheckResponse};
use alipes_protocol::codec::proto::inference::{
    ModelConfigRequest, ModelConfigResponse, ModelInferRequest, ModelInferResponse, ModelMetadataRequest,
    ModelMetadataResponse, ModelReadyRequest, ModelReadyResponse, ModelStatisticsRequest, ModelStatisticsResponse,
    RepositoryIndexRequest, RepositoryIndexResponse, RepositoryModelLoadRequest, RepositoryModelLoadResponse,
    ServerLiveRequest, ServerLiveResponse, ServerMetadataRequest, ServerMetadataResponse, ServerReadyRequest,
    ServerReadyResponse,
};
use bytes::Bytes;
use http_body_util::Empty;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::net::TcpStream;
use tonic::{Code, Status};

const ELEMENTS: usize = 4;

async fn open() -> GrpcServer {
    GrpcServer::open([model("echo", false, Echo)]).await
}

async fn infer(server: &GrpcServer, request: ModelInferRequest) -> Result<ModelInferResponse, Status> {
    server.call("/inference.GRPCInferenceService/ModelInfer", request).await
}

fn request(elements: usize) -> ModelInferRequest {
    crate::common::request("echo", "7", elements)
}

#[tokio::test]
async fn tensors_of_any_size_come_back() {
    let server = open().await;
    for elements in [0, 1, 1000, 4094, 4096, 20_000, 3_000_000] {
        let request = request(elements);
        let response = infer(&server, request.clone()).await.unwrap();
        assert_eq!(response.raw_output_contents, request.raw_input_contents);
        assert_eq!((response.id.as_str(), response.model_version.as_str()), ("7", "3"));
        assert_eq!(response.outputs[0].shape, [elements as i64]);
    }
}

#[tokio::test]
async fn calls_share_a_connection() {
    let server = Arc::new(open().await);
    let calls = (1..200_usize).map(|elements| {
        let server = Arc::clone(&server);
        tokio::spawn(async move { infer(&server, request(elements)).await.unwrap().raw_output_contents[0].len() })
    });
    for (elements, call) in (1..).zip(calls.collect::<Vec<_>>()) {
        assert_eq!(call.await.unwrap(), elements * ELEMENTS);
    }
}

#[tokio::test]
async fn errors_arrive_with_code_and_text_and_hurt_no_later_call() {
    let server = open().await;
    let unknown = ModelInferRequest { model_name: "modèle %".to_owned(), ..Default::default() };
    let status = infer(&server, unknown).await.unwrap_err();
    assert_eq!(
        (status.code(), status.message()),
        (Code::NotFound, "Request for unknown model: 'modèle %' is not found")
    );
    let mut empty = request(4);
    empty.raw_input_contents.clear();
    let status = infer(&server, empty).await.unwrap_err();
    let text = "unable to find data for input tensor 'X' for model 'echo' in request.";
    assert_eq!((status.code(), status.message()), (Code::InvalidArgument, text));
    let endless = ModelInferRequest { model_name: "x".repeat(1 << 20), ..Default::default() };
    assert_eq!(infer(&server, endless).await.unwrap_err().code(), Code::NotFound);
    assert!(infer(&server, request(4)).await.is_ok());
}

#[tokio::test]
async fn bytes_that_are_no_message_are_an_internal_error() {
    let server = open().await;
    // Field 1 is a number here, where the request has a text.
    let no_message = HealthCheckResponse { status: 1 };
    let status = server.call::<_, ModelInferResponse>("/inference.GRPCInferenceService/ModelInfer", no_message).await;
    assert_eq!(status.unwrap_err().code(), Code::Internal);
}

#[tokio::test]
async fn methods_that_nobody_knows_are_unimplemented() {
    let server = open().await;
    let status = server.call::<_, ServerLiveResponse>("/inference.Dream/On", ServerLiveRequest {}).await.unwrap_err();
    assert_eq!((status.code(), status.message()), (Code::Unimplemented, "unknown method /inference.Dream/On"));
}

#[tokio::test]
async fn the_server_reports_its_status() {
    let server = open().await;
    let live: ServerLiveResponse =
        server.call("/inference.GRPCInferenceService/ServerLive", ServerLiveRequest {}).await.unwrap();
    let metadata: ServerMetadataResponse =
        server.call("/inference.GRPCInferenceService/ServerMetadata", ServerMetadataRequest {}).await.unwrap();
    assert!(live.live);
    assert_eq!(metadata.name, "alipes-test");
    for ready in [true, false] {
        server.service.registry.set_index(Vec::new(), ready);
        let answer: ServerReadyResponse =
            server.call("/inference.GRPCInferenceService/ServerReady", ServerReadyRequest {}).await.unwrap();
        let request = HealthCheckRequest { service: "whatever".to_owned() };
        let health: HealthCheckResponse = server.call("/grpc.health.v1.Health/Check", request).await.unwrap();
        assert_eq!((answer.ready, health.status), (ready, if ready { 1 } else { 2 }));
    }
}

#[tokio::test]
async fn a_model_reports_its_metadata() {
    let server = open().await;
    let (name, version) = ("echo".to_owned(), String::new());
    let request = ModelReadyRequest { name: name.clone(), version: version.clone() };
    let ready: ModelReadyResponse = server.call("/inference.GRPCInferenceService/ModelReady", request).await.unwrap();
    assert!(ready.ready);
    let request = ModelMetadataRequest { name: name.clone(), version: version.clone() };
    let metadata: ModelMetadataResponse =
        server.call("/inference.GRPCInferenceService/ModelMetadata", request).await.unwrap();
    assert_eq!((metadata.versions, metadata.inputs[0].datatype.as_str()), (vec!["3".to_owned()], "FP32"));
    let request = ModelConfigRequest { name: name.clone(), version: version.clone() };
    let config: ModelConfigResponse =
        server.call("/inference.GRPCInferenceService/ModelConfig", request).await.unwrap();
    assert_eq!(config.config.unwrap().name, "echo");
    infer(&server, self::request(4)).await.unwrap();
    let request = ModelStatisticsRequest { name, version };
    let statistics: ModelStatisticsResponse =
        server.call("/inference.GRPCInferenceService/ModelStatistics", request).await.unwrap();
    assert_eq!(statistics.model_stats[0].inference_stats.as_ref().unwrap().success.as_ref().unwrap().count, 1);
}

#[tokio::test]
async fn the_repository_is_shown_and_not_changed() {
    let server = open().await;
    let index: RepositoryIndexResponse = server
        .call("/inference.GRPCInferenceService/RepositoryIndex", RepositoryIndexRequest::default())
        .await
        .unwrap();
    assert!(index.models.is_empty());
    let request = RepositoryModelLoadRequest { model_name: "echo".to_owned(), ..Default::default() };
    let status = server
        .call::<_, RepositoryModelLoadResponse>("/inference.GRPCInferenceService/RepositoryModelLoad", request)
        .await
        .unwrap_err();
    assert_eq!(status.code(), Code::Unavailable);
}

#[tokio::test]
async fn a_draining_connection_takes_its_leave() {
    let server = open().await;
    let stream = TcpStream::connect(server.address).await.unwrap();
    let handshake = http2::handshake::<_, _, Empty<Bytes>>(TokioExecutor::new(), TokioIo::new(stream));
    // The client holds the sender and could go on calling: that the connection ends is the server's doing.
    let (_sender, connection) = handshake.await.unwrap();
    server.phase.send_replace(Phase::Draining);
    connection.await.unwrap();
}

#[tokio::test]
async fn a_stopping_server_refuses_inferences_and_answers_questions() {
    let server = open().await;
    server.phase.send_replace(Phase::Refusing);
    // The connection from before may be served until it has seen the phase.
    let status = loop {
        if let Err(status) = infer(&server, request(1)).await {
            break status;
        }
    };
    let text = "Server is stopping, it does not accept new requests";
    assert_eq!((status.code(), status.message()), (Code::Unavailable, text));
    let live: ServerLiveResponse =
        server.call("/inference.GRPCInferenceService/ServerLive", ServerLiveRequest {}).await.unwrap();
    assert!(live.live);
}

#[tokio::test]
async fn a_call_that_is_cut_gets_the_reason() {
    let puppet = Puppet::new("puppet", false);
    let server = Arc::new(GrpcServer::open([Arc::clone(&puppet.model)]).await);
    let caller = Arc::clone(&server);
    let call = tokio::spawn(async move { infer(&caller, crate::common::request("puppet", "7", 1)).await });
    let pending = puppet.take().await;
    server.phase.send_replace(Phase::Cut);
    let status = call.await.unwrap().unwrap_err();
    let text = "Server is stopping, the request was not finished in time";
    assert_eq!((status.code(), status.message()), (Code::Unavailable, text));
    assert!(pending.responder.is_cancelled());
}
