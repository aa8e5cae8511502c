//! Decodes each request and answers a fixed response; a request of a stream gets a number of them, counted.

use std::future::Future;

use floors::{
    inference::{
        ModelInferRequest, ModelInferResponse,
        grpc_inference_service_server::{GrpcInferenceService, GrpcInferenceServiceServer},
    },
    options::Options,
    responses::Responses,
    shards,
};
use hyper::{rt::Executor, server::conn::http2};
use hyper_util::{rt::TokioIo, service::TowerToHyperService};
use prost::Message;
use tokio::{net::TcpStream, sync::mpsc::UnboundedReceiver};
use tonic::{Request, Response, Status, Streaming};

/// Flow-control window of a stream, in bytes: an image in one piece, without waiting for the window to grow.
const STREAM_WINDOW_BYTES: u32 = 4 << 20;
/// Flow-control window of a connection, in bytes.
const CONNECTION_WINDOW_BYTES: u32 = 16 << 20;
/// Largest piece that a client may send at once, in bytes.
const FRAME_BYTES: u32 = 1 << 20;
/// Largest message that is read, in bytes.
const MESSAGE_BYTES: usize = 64 << 20;

/// The fixed answer.
struct Floor {
    answer: ModelInferResponse,
    /// How often a request of a stream gets it.
    responses: u32,
}

#[tonic::async_trait]
impl GrpcInferenceService for Floor {
    async fn model_infer(&self, _: Request<ModelInferRequest>) -> Result<Response<ModelInferResponse>, Status> {
        Ok(Response::new(self.answer.clone()))
    }

    type ModelStreamInferStream = Responses;

    async fn model_stream_infer(
        &self,
        request: Request<Streaming<ModelInferRequest>>,
    ) -> Result<Response<Responses>, Status> {
        Ok(Response::new(Responses::new(request.into_inner(), self.answer.clone(), self.responses)))
    }
}

type Service = GrpcInferenceServiceServer<Floor>;

/// Runs the streams of a connection on the connection's own thread.
#[derive(Clone)]
struct SameThread;

impl<F: Future<Output = ()> + 'static> Executor<F> for SameThread {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

fn main() {
    let options = Options::from_command_line();
    let answer = ModelInferResponse::decode(options.answer).expect("--answer holds a serialized ModelInferResponse");
    let service = Service::new(Floor { answer, responses: options.responses }).max_decoding_message_size(MESSAGE_BYTES);
    shards::serve(options.port, options.threads, move |connections| shard(connections, service.clone()));
}

async fn shard(mut connections: UnboundedReceiver<TcpStream>, service: Service) {
    while let Some(stream) = connections.recv().await {
        tokio::task::spawn_local(connection(stream, service.clone()));
    }
}

async fn connection(stream: TcpStream, service: Service) {
    // A client that goes away is no concern of a measuring instrument.
    let _ = http2::Builder::new(SameThread)
        .initial_stream_window_size(STREAM_WINDOW_BYTES)
        .initial_connection_window_size(CONNECTION_WINDOW_BYTES)
        .max_frame_size(FRAME_BYTES)
        .auto_date_header(false)
        .serve_connection(TokioIo::new(stream), TowerToHyperService::new(service))
        .await;
}
