//! Streams of inference requests.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::Duration;

use alipes_client::{Outgoing, Target, Verb, Wire};
use alipes_loadtest::{Keep, Plan, Prepared, Source};
use bytes::Bytes;
use h2::server::SendResponse;
use http::{HeaderMap, Request, Response};

use crate::support::{closed, measured, of_sources, open};

/// What a server does with one request.
#[derive(Clone)]
enum Act {
    /// Sends these messages.
    Answer(Vec<Vec<u8>>),
    /// Ends the stream with this status.
    End(&'static str, &'static str),
    /// Says nothing.
    Hang,
}

/// A server of streams; it lives as long as the process.
struct StreamServer {
    address: SocketAddr,
    streams: Arc<AtomicUsize>,
}

impl StreamServer {
    fn start(act: impl Fn(usize) -> Act + Send + Sync + 'static) -> StreamServer {
        let streams = Arc::new(AtomicUsize::new(0));
        let (act, own) = (Arc::new(act), streams.clone());
        let (ready, address) = mpsc::channel();
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
                ready.send(listener.local_addr().unwrap()).unwrap();
                let seen = Arc::new(AtomicUsize::new(0));
                while let Ok((socket, _)) = listener.accept().await {
                    let (act, streams, seen) = (act.clone(), own.clone(), seen.clone());
                    tokio::spawn(async move {
                        let Ok(mut connection) = h2::server::handshake(socket).await else { return };
                        while let Some(Ok((request, respond))) = connection.accept().await {
                            assert!(request.uri().path().ends_with("/ModelStreamInfer"));
                            streams.fetch_add(1, Ordering::SeqCst);
                            tokio::spawn(serve(request, respond, act.clone(), seen.clone()));
                        }
                    });
                }
            });
        });
        StreamServer { address: address.recv().unwrap(), streams }
    }
}

async fn serve(
    request: Request<h2::RecvStream>,
    mut respond: SendResponse<Bytes>,
    act: Arc<impl Fn(usize) -> Act>,
    seen: Arc<AtomicUsize>,
) -> Option<()> {
    let mut body = request.into_body();
    let mut sending = respond.send_response(Response::new(()), false).ok()?;
    let mut come = Vec::new();
    while let Some(Ok(piece)) = body.data().await {
        let _ = body.flow_control().release_capacity(piece.len());
        come.extend_from_slice(&piece);
        while come.len() >= 5 {
            let whole = 5 + u32::from_be_bytes(come[1..5].try_into().unwrap()) as usize;
            if come.len() < whole {
                break;
            }
            come.drain(..whole);
            match act(seen.fetch_add(1, Ordering::SeqCst)) {
                Act::Answer(messages) => {
                    for message in messages {
                        sending.send_data(framed(&message), false).ok()?;
                        tokio::time::sleep(Duration::from_millis(2)).await;
                    }
                }
                Act::End(status, text) => {
                    let mut trailers = HeaderMap::new();
                    trailers.insert("grpc-status", status.parse().unwrap());
                    trailers.insert("grpc-message", text.parse().unwrap());
                    return sending.send_trailers(trailers).ok();
                }
                Act::Hang => {}
            }
        }
    }
    Some(())
}

fn framed(message: &[u8]) -> Bytes {
    [&[0][..], &(message.len() as u32).to_be_bytes(), message].concat().into()
}

/// A field of a message that has a length.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, u8::try_from(content.len()).unwrap()][..], content].concat()
}

/// A response with an output, or without one, that says whether it is the last, or does not.
fn response(last: Option<bool>, has_output: bool) -> Vec<u8> {
    let output = if has_output { field(5, &field(1, b"Y")) } else { Vec::new() };
    let mark = last.map(|last| {
        let entry = [field(1, b"triton_final_response"), field(2, &[1 << 3, u8::from(last)])].concat();
        field(4, &entry)
    });
    field(2, &[mark.unwrap_or_default(), output].concat())
}

fn failure(text: &str) -> Vec<u8> {
    field(1, text.as_bytes())
}

fn streaming(server: &StreamServer, decoupled: bool, pace: alipes_loadtest::Loop, count: u64) -> Plan {
    let target = Target::new(&server.address.to_string(), Wire::Grpc, Vec::new(), Duration::from_secs(5)).unwrap();
    let pieces = vec![framed(b"")];
    let outgoing = Outgoing {
        path: "ModelStreamInfer".to_owned(),
        verb: Verb::Post,
        json_length: None,
        pieces,
        infer: true,
        sequence: None,
        headers: Vec::new(),
    };
    let requests = vec![Prepared::stream(&target, &outgoing, decoupled).unwrap()];
    let source = Source { target, requests, sequences: None, weight: 1.0 };
    let plan = of_sources(vec![source], pace, Some(count));
    Plan { keep: Keep { samples: 4, requests: 100 }, ..plan }
}

#[test]
fn a_request_is_over_with_its_last_response() {
    let answers = [response(Some(false), true), response(Some(false), true), response(Some(true), false)];
    let server = StreamServer::start(move |_| Act::Answer(answers.to_vec()));
    for pace in [closed(2), open(500.0, 2)] {
        let record = measured(streaming(&server, true, pace, 10));
        let streamed = record.streamed.as_ref().unwrap();
        assert_eq!((record.answers(), record.failures.len(), streamed.responses), (10, 0, 20));
        assert_eq!((streamed.firsts.len(), streamed.gaps.len()), (10, 10));
        assert!(record.latencies.min() >= streamed.firsts.min());
        assert!(record.samples.all.iter().all(|sample| sample.answer == response(Some(false), true)));
        assert_eq!((record.log.entries.len(), record.log.responses_ns.len()), (10, 20));
        assert!(record.log.entries.iter().all(|entry| entry.due_ns <= entry.begun_ns && entry.begun_ns < entry.end_ns));
    }
    assert_eq!(server.streams.load(Ordering::SeqCst), 4, "each caller has one stream");
}

#[test]
fn without_responses_a_request_is_over_all_the_same() {
    let server = StreamServer::start(|_| Act::Answer(vec![response(Some(true), false)]));
    let record = measured(streaming(&server, true, closed(1), 3));
    assert_eq!((record.answers(), record.streamed.unwrap().responses), (3, 0));
}

#[test]
fn a_model_that_is_not_decoupled_answers_once() {
    let server = StreamServer::start(|_| Act::Answer(vec![response(None, true)]));
    let record = measured(streaming(&server, false, closed(1), 3));
    assert_eq!((record.answers(), record.streamed.unwrap().responses), (3, 3));
}

#[test]
fn an_error_behind_a_response_is_the_failure_of_that_request() {
    for (decoupled, first) in [(true, None), (true, Some(false)), (false, Some(false))] {
        let server = StreamServer::start(move |number| match number {
            0 => Act::Answer(vec![response(first, true), failure("it ran out")]),
            _ => Act::Answer(vec![response(Some(true), true)]),
        });
        let record = measured(streaming(&server, decoupled, closed(1), 3));
        assert_eq!((record.answers(), record.failures["it ran out"]), (2, 1), "{decoupled} {first:?}");
    }
}

#[test]
fn an_error_on_a_stream_is_the_failure_of_its_request() {
    for decoupled in [false, true] {
        let server = StreamServer::start(|number| match number % 2 {
            0 => Act::Answer(vec![failure("it is negative")]),
            _ => Act::Answer(vec![response(Some(true), true)]),
        });
        let record = measured(streaming(&server, decoupled, closed(1), 10));
        assert_eq!((record.answers(), record.failures["it is negative"]), (5, 5));
    }
}

#[test]
fn a_stream_that_the_server_ends_is_a_failure_with_its_status() {
    let server = StreamServer::start(|number| match number {
        1 => Act::End("13", "out of luck"),
        _ => Act::Answer(vec![response(Some(true), true)]),
    });
    let record = measured(streaming(&server, true, closed(1), 4));
    assert_eq!((record.answers(), record.failures["out of luck"]), (3, 1));
    assert_eq!(record.connections, 1, "the connection is not to blame");
}

#[test]
fn a_stream_without_an_answer_ends_with_its_time() {
    let server = StreamServer::start(|number| match number {
        1 => Act::Hang,
        _ => Act::Answer(vec![response(Some(true), true)]),
    });
    let plan = streaming(&server, true, closed(1), 4);
    let record = measured(Plan { limit: Some(Duration::from_millis(100)), ..plan });
    assert_eq!((record.answers(), record.failures["no answer within 0.1 s"]), (3, 1));
    assert_eq!(server.streams.load(Ordering::SeqCst), 2, "a late answer is not taken for another's");
    assert_eq!(record.log.entries.iter().filter(|entry| entry.failed && entry.responses == 0).count(), 1);
}
