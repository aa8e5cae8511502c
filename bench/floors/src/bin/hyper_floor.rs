//! Reads each HTTP/1.1 request to its end and answers a fixed body.

use std::{convert::Infallible, sync::Arc};

use bytes::Bytes;
use floors::{options::Options, shards};
use http::{HeaderMap, HeaderName, HeaderValue, Response, header::CONTENT_TYPE};
use http_body_util::{BodyExt, Full};
use hyper::{Request, body::Incoming, server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, sync::mpsc::UnboundedReceiver};

/// Most bytes that are read at once.
const READ_BUFFER_BYTES: usize = 1 << 20;

/// The fixed answer.
struct Answer {
    headers: HeaderMap,
    body: Bytes,
}

fn main() {
    let options = Options::from_command_line();
    let answer = Arc::new(Answer { headers: headers(&options), body: options.answer });
    shards::serve(options.port, options.threads, move |connections| shard(connections, answer.clone()));
}

fn headers(options: &Options) -> HeaderMap {
    let value = |text: &str| HeaderValue::from_str(text).expect("header values are plain text");
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, value(&options.content_type));
    for (name, text) in &options.headers {
        headers.insert(HeaderName::from_bytes(name.as_bytes()).expect("header names are tokens"), value(text));
    }
    headers
}

async fn shard(mut connections: UnboundedReceiver<TcpStream>, answer: Arc<Answer>) {
    while let Some(stream) = connections.recv().await {
        tokio::task::spawn_local(connection(stream, answer.clone()));
    }
}

async fn connection(stream: TcpStream, answer: Arc<Answer>) {
    let service = service_fn(move |request| respond(request, answer.clone()));
    // A client that goes away is no concern of a measuring instrument.
    let mut builder = http1::Builder::new();
    builder.max_buf_size(READ_BUFFER_BYTES).pipeline_flush(true);
    let _ = builder.serve_connection(TokioIo::new(stream), service).await;
}

async fn respond(request: Request<Incoming>, answer: Arc<Answer>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut body = request.into_body();
    while let Some(Ok(frame)) = body.frame().await {
        drop(frame);
    }
    let mut response = Response::new(Full::new(answer.body.clone()));
    *response.headers_mut() = answer.headers.clone();
    Ok(response)
}
