//! Keeps requests under way on one gRPC stream and checks every response:
//! `PORT REQUEST RESPONSES IN_FLIGHT MILLISECONDS [SEQUENCES]`. Prints the figures as one line of JSON. With `any` for the
//! responses each request has one, of any value, and they come in the order of the requests. With a number of sequences
//! requests belong to each of them in turn.
//!
//! Compiled, since a client in Python would be slower than any server that it measures.

use std::{
    env, fs,
    future::Future,
    pin::Pin,
    process,
    task::{Context, Poll},
    time::{Duration, Instant},
};

use floors::{
    flights::{Expected, Flights},
    inference::{
        InferParameter, ModelInferRequest, grpc_inference_service_client::GrpcInferenceServiceClient,
        infer_parameter::ParameterChoice,
    },
};
use hyper::{
    body::Incoming,
    client::conn::http2::{Builder, SendRequest},
    rt::Executor,
};
use hyper_util::rt::TokioIo;
use prost::Message;
use tokio::{
    net::TcpStream,
    runtime,
    sync::mpsc::{UnboundedSender, unbounded_channel},
    task::LocalSet,
};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Streaming, body::Body, codegen::Service};

/// Flow-control windows, in bytes: the server shall never wait for the client to say that it has read.
const WINDOW_BYTES: u32 = 16 << 20;

type Failure = Box<dyn std::error::Error>;

/// What the command line says.
struct Plan {
    port: u16,
    request: ModelInferRequest,
    expected: Expected,
    in_flight: u32,
    time: Duration,
    /// Zero where requests belong to none.
    sequences: u64,
}

impl Plan {
    fn from_command_line() -> Result<Self, Failure> {
        let arguments: Vec<String> = env::args().skip(1).collect();
        let [port, request, responses, in_flight, milliseconds, sequences @ ..] = arguments.as_slice() else {
            return Err("usage: stream-load PORT REQUEST RESPONSES IN_FLIGHT MILLISECONDS [SEQUENCES]".into());
        };
        Ok(Self {
            port: port.parse()?,
            request: ModelInferRequest::decode(fs::read(request)?.as_slice())?,
            expected: if responses == "any" { Expected::AnyOne } else { Expected::Indices(responses.parse()?) },
            in_flight: in_flight.parse()?,
            time: Duration::from_millis(milliseconds.parse()?),
            sequences: sequences.first().map_or(Ok(0), |sequences| sequences.parse())?,
        })
    }

    /// The next request, the `number`th before which as many were sent. The first of each sequence starts it.
    fn request(&self, number: u64, id: String) -> ModelInferRequest {
        let mut request = ModelInferRequest { id, ..self.request.clone() };
        if self.sequences > 0 {
            let mut say = |name: &str, value| {
                request.parameters.insert(name.to_owned(), InferParameter { parameter_choice: Some(value) });
            };
            say("sequence_id", ParameterChoice::Int64Param((number % self.sequences + 1) as i64));
            say("sequence_start", ParameterChoice::BoolParam(number < self.sequences));
        }
        request
    }
}

/// What was found.
#[derive(Default)]
struct Figures {
    time: Duration,
    /// How long each request took, to its last response.
    requests: Vec<Duration>,
}

impl Figures {
    fn json(mut self) -> String {
        self.requests.sort_unstable();
        let at = |share: usize| self.requests[(self.requests.len() - 1) * share / 100].as_micros();
        let (count, time) = (self.requests.len(), self.time.as_micros());
        format!(r#"{{"requests": {count}, "duration_us": {time}, "p50_us": {}, "p99_us": {}}}"#, at(50), at(99))
    }
}

fn main() {
    let runtime = runtime::Builder::new_current_thread().enable_io().build().expect("a runtime can be built");
    let outcome = Plan::from_command_line().and_then(|plan| LocalSet::new().block_on(&runtime, run(plan)));
    match outcome {
        Ok(figures) => println!("{}", figures.json()),
        Err(error) => {
            eprintln!("{error}");
            process::exit(1);
        }
    }
}

async fn run(plan: Plan) -> Result<Figures, Failure> {
    let mut client = connect(plan.port).await?;
    let (sender, receiver) = unbounded_channel();
    let mut flights = Flights::new(plan.expected);
    let begin = Instant::now();
    // Some servers answer nothing, not even headers, before a request has come.
    for _ in 0..plan.in_flight {
        send(&plan, &mut flights, &sender)?;
    }
    let mut responses = client.model_stream_infer(UnboundedReceiverStream::new(receiver)).await?.into_inner();
    let mut figures = Figures::default();
    while !flights.is_empty() {
        let message = responses.message().await?.ok_or("the server ended the stream while requests were under way")?;
        if let Some(time) = flights.take(&message)? {
            figures.requests.push(time);
            if begin.elapsed() < plan.time {
                send(&plan, &mut flights, &sender)?;
            }
        }
    }
    figures.time = begin.elapsed();
    drop(sender);
    end(responses).await?;
    Ok(figures)
}

fn send(plan: &Plan, flights: &mut Flights, sender: &UnboundedSender<ModelInferRequest>) -> Result<(), Failure> {
    let number = flights.sent();
    let id = flights.send();
    sender.send(plan.request(number, id)).map_err(|_| "the server refused further requests".into())
}

/// Waits until the server ends the stream too: nothing may follow.
async fn end(mut responses: Streaming<floors::inference::ModelStreamInferResponse>) -> Result<(), Failure> {
    match responses.message().await? {
        None => Ok(()),
        Some(message) => Err(format!("a response too many: {message:?}").into()),
    }
}

async fn connect(port: u16) -> Result<GrpcInferenceServiceClient<Connection>, Failure> {
    let stream = TcpStream::connect(("127.0.0.1", port)).await?;
    stream.set_nodelay(true)?;
    let mut builder = Builder::new(SameThread);
    builder.initial_stream_window_size(WINDOW_BYTES).initial_connection_window_size(WINDOW_BYTES);
    let (requests, connection) = builder.handshake(TokioIo::new(stream)).await?;
    // How it ends is told to whoever reads the responses.
    tokio::task::spawn_local(async { drop(connection.await) });
    let origin = format!("http://127.0.0.1:{port}").parse()?;
    Ok(GrpcInferenceServiceClient::with_origin(Connection(requests), origin))
}

/// Runs whatever a connection needs on its own thread.
#[derive(Clone)]
struct SameThread;

impl<F: Future<Output = ()> + 'static> Executor<F> for SameThread {
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}

/// A connection as the generated client wants it.
struct Connection(SendRequest<Body>);

impl Service<http::Request<Body>> for Connection {
    type Response = http::Response<Incoming>;
    type Error = hyper::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>>>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), hyper::Error>> {
        self.0.poll_ready(context)
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(self.0.send_request(request))
    }
}
