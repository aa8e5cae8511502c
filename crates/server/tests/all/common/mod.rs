//! A gRPC server on a real socket, a tonic client of it, and models in it that do what a test says.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use alipes_driver_native::slots::Slots;
use alipes_engine::{Engine, EngineError, InputView, OutputTensor};
use alipes_grpc::{GrpcProtocol, serve_connection};
use alipes_net::connection::TransportStream;
use alipes_net::phase::{Phase, Shutdown};
use alipes_protocol::codec::proto::inference::infer_parameter::ParameterChoice;
use alipes_protocol::codec::proto::inference::model_infer_request::InferInputTensor;
use alipes_protocol::codec::proto::inference::{InferParameter, ModelInferRequest, ModelStreamInferResponse};
use alipes_protocol::{Datatype, InferError, InferRequest, Tensor};
use alipes_request::chain::Holder;
use alipes_request::check::check_request;
use alipes_request::responder::{Reply, Responder};
use alipes_runtime::cancellation::Cancellation;
use alipes_runtime::executor::Step;
use alipes_runtime::model::ModelVersion;
use alipes_runtime::model::driver::Driver;
use alipes_runtime::model::{Pending, PendingRequest};
use alipes_scheduler::Effect;
use alipes_server::compose;
use alipes_service::Service;
use alipes_spec::ModelSpec;
use bytes::Bytes;
use prost::Message;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::metadata::MetadataValue;
use tonic::transport::Channel;
use tonic::{Request, Status, Streaming};
use tonic_prost::ProstCodec;

/// How long anything may take before a test gives up.
pub const TEST_TIMEOUT: Duration = Duration::from_secs(30);

/// A server with models, and a client of it.
pub struct GrpcServer {
    pub address: SocketAddr,
    pub client: Channel,
    pub service: Arc<Service>,
    pub phase: watch::Sender<Phase>,
}

impl GrpcServer {
    pub async fn open(models: impl IntoIterator<Item = Arc<ModelVersion>>) -> GrpcServer {
        let service = Arc::new(service(models));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (phase, watching) = watch::channel(Phase::Open);
        let protocol = Arc::new(GrpcProtocol::new(Arc::clone(&service), &Arc::default()));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let shutdown = Shutdown::new(watching.clone());
                tokio::spawn(serve_connection(TransportStream::tcp(stream), Arc::clone(&protocol), shutdown));
            }
        });
        let client = Channel::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
        GrpcServer { address, client, service, phase }
    }

    pub async fn call<Q, A>(&self, path: &'static str, request: Q) -> Result<A, Status>
    where
        Q: Message + 'static,
        A: Message + Default + 'static,
    {
        let mut grpc = tonic::client::Grpc::new(self.client.clone()).max_decoding_message_size(usize::MAX);
        grpc.ready().await.map_err(|error| Status::unknown(error.to_string()))?;
        let path = http::uri::PathAndQuery::from_static(path);
        Ok(grpc.unary(Request::new(request), path, ProstCodec::<Q, A>::default()).await?.into_inner())
    }

    /// Opens a stream; with `strict_errors` an error of a model ends it.
    pub async fn stream(&self, strict_errors: bool) -> Stream {
        let mut grpc = tonic::client::Grpc::new(self.client.clone()).max_decoding_message_size(usize::MAX);
        grpc.ready().await.unwrap();
        let (requests, receiver) = mpsc::unbounded_channel();
        let mut request = Request::new(UnboundedReceiverStream::new(receiver));
        if strict_errors {
            request.metadata_mut().insert("triton_grpc_error", MetadataValue::from_static("true"));
        }
        let path = http::uri::PathAndQuery::from_static("/inference.GRPCInferenceService/ModelStreamInfer");
        let codec = ProstCodec::<ModelInferRequest, ModelStreamInferResponse>::default();
        let responses = grpc.streaming(request, path, codec).await.unwrap().into_inner();
        Stream { requests: Some(requests), responses }
    }
}

/// A client's end of a stream.
pub struct Stream {
    requests: Option<mpsc::UnboundedSender<ModelInferRequest>>,
    responses: Streaming<ModelStreamInferResponse>,
}

impl Stream {
    pub fn send(&self, request: ModelInferRequest) {
        self.requests.as_ref().expect("the stream is half-closed").send(request).unwrap();
    }

    pub fn half_close(&mut self) {
        self.requests = None;
    }

    /// The next message, or how the stream ended.
    pub async fn next(&mut self) -> Result<Option<ModelStreamInferResponse>, Status> {
        tokio::time::timeout(TEST_TIMEOUT, self.responses.message()).await.expect("an answer in time")
    }

    pub async fn response(&mut self) -> ModelStreamInferResponse {
        self.next().await.unwrap().expect("the stream has not ended")
    }
}

/// The id, the error and the parameter `triton_final_response` of a message.
pub fn summary(message: &ModelStreamInferResponse) -> (&str, &str, Option<bool>) {
    let response = message.infer_response.as_ref().expect("every message says which request it is about");
    let last = response.parameters.get("triton_final_response").map(|last| match last.parameter_choice {
        Some(ParameterChoice::BoolParam(last)) => last,
        _ => panic!("{last:?} is no truth value"),
    });
    (&response.id, &message.error_message, last)
}

/// A service without listeners.
pub fn service(models: impl IntoIterator<Item = Arc<ModelVersion>>) -> Service {
    let endpoint = json!({"enabled": true, "address": "127.0.0.1", "port": 0});
    let config = json!({
        "schema": 1, "id": "alipes-test", "http": endpoint, "grpc": endpoint, "metrics": endpoint,
        "control_mode": "none", "counter_latencies": true, "cpu_metrics": false,
    });
    let service = compose::service(serde_json::from_value(config).unwrap());
    for model in models {
        let name = model.spec.name.clone();
        service.registry.publish(&name, "", vec![model]);
    }
    service.registry.set_index(Vec::new(), true);
    service
}

/// Version 3 of a model with the input `X` and the output `Y`, one instance and no batches.
pub fn model(name: &str, decoupled: bool, engine: impl Engine + 'static) -> Arc<ModelVersion> {
    model_of("FP32", name, decoupled, engine)
}

/// Version 3 of a model with the input `X` and the output `Y` of this datatype, one instance and no batches.
pub fn model_of(datatype: &str, name: &str, decoupled: bool, engine: impl Engine + 'static) -> Arc<ModelVersion> {
    model_driven(datatype, name, decoupled, Arc::new(Slots::new(vec![Box::new(engine)])))
}

fn model_driven(datatype: &str, name: &str, decoupled: bool, driver: Arc<dyn Driver>) -> Arc<ModelVersion> {
    let spec = json!({
        "schema": 1, "name": name, "version": 3, "platform": "test", "max_batch_size": 0,
        "inputs": [{"name": "X", "datatype": datatype, "dims": [-1]}],
        "outputs": [{"name": "Y", "datatype": datatype, "dims": [-1]}],
        "scheduling": {"kind": "direct"}, "instances": ["i"], "decoupled": decoupled,
        "engine": {"kind": "onnxruntime", "library": "", "model_path": "", "intra_op_threads": 1,
            "inter_op_threads": 1, "execution_mode": "sequential", "graph_optimization": "all",
            "session_config": {}, "memory_arena": true},
        // A ModelConfig whose name, field 1, is "echo".
        "config_json": "{}", "config_proto": "CgRlY2hv", "metric_tags": {},
    });
    Arc::new(ModelVersion::new(serde_json::from_value(spec).unwrap(), driver).unwrap())
}

/// Instances from 0 on that may call models. The test executes in their place.
struct Callers {
    slots: Slots,
    count: u64,
}

impl Driver for Callers {
    fn instances(&self) -> usize {
        self.slots.instances()
    }

    fn adapt(&self, _: &Arc<ModelVersion>, _: &ModelSpec, _: &Cancellation) -> Result<(), InferError> {
        Ok(())
    }

    fn start(&self, model: &Arc<ModelVersion>, instance: usize) {
        self.slots.start(model, instance);
    }

    fn step(&self, model: &Arc<ModelVersion>, instance: usize) -> Step {
        self.slots.step(model, instance)
    }

    fn holders(&self) -> Option<Vec<Holder>> {
        Some((0..self.count).map(|instance| Holder { instance, request: 0 }).collect())
    }
}

/// Answers its one input.
pub struct Echo;

impl Engine for Echo {
    fn run(
        &mut self,
        inputs: &[InputView<'_>],
        wanted: &[usize],
        outputs: &mut Vec<OutputTensor>,
    ) -> Result<(), EngineError> {
        outputs.extend(wanted.iter().map(|&index| OutputTensor {
            index,
            datatype: inputs[0].datatype,
            shape: inputs[0].shape.into(),
            data: Bytes::copy_from_slice(inputs[0].data),
        }));
        Ok(())
    }
}

/// Is never run: the test stands in for it.
struct Nobody;

impl Engine for Nobody {
    fn run(&mut self, _: &[InputView<'_>], _: &[usize], _: &mut Vec<OutputTensor>) -> Result<(), EngineError> {
        Err(EngineError::internal("the test answers in this model's place"))
    }
}

/// A model whose requests the test takes and answers itself.
pub struct Puppet {
    pub model: Arc<ModelVersion>,
}

impl Puppet {
    pub fn new(name: &str, decoupled: bool) -> Puppet {
        Puppet::of(model(name, decoupled, Nobody))
    }

    /// One whose instances, so many, may call models.
    pub fn calling(name: &str, count: u64) -> Puppet {
        let slots = Slots::new(vec![Box::new(Nobody)]);
        Puppet::of(model_driven("FP32", name, false, Arc::new(Callers { slots, count })))
    }

    fn of(model: Arc<ModelVersion>) -> Puppet {
        let checked =
            check_request(&model.spec, InferRequest { inputs: vec![tensor(1)], ..Default::default() }, &model.budget);
        let (responder, _) = Responder::unary();
        let arrived = Instant::now();
        let first = PendingRequest::alone(checked.unwrap(), arrived, responder);
        // With this request the only instance is claimed for good, and who has claimed it comes for all the others.
        let claimed = model.queue().submit(Instant::now(), first);
        assert_eq!(claimed.ok(), Some(Effect::Start(0)));
        let puppet = Puppet { model };
        drop(puppet.take_waiting());
        puppet
    }

    /// The next request, once it waits.
    pub async fn take(&self) -> Pending {
        let deadline = Instant::now() + TEST_TIMEOUT;
        while self.model.waiting() == 0 {
            assert!(Instant::now() < deadline, "no request came");
            tokio::task::yield_now().await;
        }
        self.take_waiting()
    }

    /// The next request, which waits.
    pub fn take_waiting(&self) -> Pending {
        let mut batch = Vec::new();
        let _ = self.model.queue().next(Instant::now(), 0, &mut batch);
        batch.pop().expect("a request waits")
    }
}

/// A request for a model, with an id and so many elements.
pub fn request(model: &str, id: &str, elements: usize) -> ModelInferRequest {
    let Tensor { name, shape, data, .. } = tensor(elements);
    let input = InferInputTensor {
        name: name.into_string(),
        datatype: "FP32".to_owned(),
        shape: shape.into_vec(),
        ..Default::default()
    };
    ModelInferRequest {
        model_name: model.to_owned(),
        id: id.to_owned(),
        inputs: vec![input],
        raw_input_contents: vec![data],
        ..Default::default()
    }
}

/// The same request, which also wants to know of an end that carries no response.
pub fn with_empty_final_response(mut request: ModelInferRequest) -> ModelInferRequest {
    let enabled = InferParameter { parameter_choice: Some(ParameterChoice::BoolParam(true)) };
    request.parameters.insert("triton_enable_empty_final_response".to_owned(), enabled);
    request
}

/// The input `X` of so many elements.
pub fn tensor(elements: usize) -> Tensor {
    let data: Vec<u8> = (0..elements * size_of::<f32>()).map(|at| at as u8).collect();
    Tensor {
        name: "X".into(),
        datatype: Datatype::Fp32,
        shape: [elements as i64].into_iter().collect(),
        data: data.into(),
    }
}

/// A reply with the output `Y` of so many elements.
pub fn reply(elements: usize) -> Reply {
    Reply { outputs: vec![Tensor { name: "Y".into(), ..tensor(elements) }], parameters: Vec::new() }
}
