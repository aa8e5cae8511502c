//! HTTP/2 clients that flood, and busy ones that do not, on both protocols: what is read of a flood, and who goes on.

use std::sync::atomic::Ordering;
use std::time::Duration;

use alipes_net::policy::ListenerKind;
use alipes_protocol::limits::{
    FLOOD_HOLD_TIME, FLOOD_PROBATION_TIME, GRPC_MAX_CONCURRENT_CALLS, HTTP2_CONTROL_BURST_SECONDS,
    HTTP2_CONTROL_FRAMES_PER_SECOND, HTTP2_FRAMES_PER_QUANTUM,
};
use alipes_spec::{ConnectionSpec, KeepaliveSpec};
use prost::Message;
use serde_json::json;
use tokio::time::sleep;

use crate::common::{Echo, Puppet, model, request};
use crate::memory::http2::{
    ACK, CONTINUATION, DATA, END_STREAM, ENHANCE_YOUR_CALM, GOAWAY, HEADERS, PING, PREFACE, PRIORITY, RST_STREAM,
    SETTINGS, WINDOW_UPDATE, call, empty_call, frame, frames, get, reset,
};
use crate::memory::{Connection, Endpoint};

const LIVE: &str = "/inference.GRPCInferenceService/ServerLive";
const INFER: &str = "/inference.GRPCInferenceService/ModelInfer";
const STREAM: &str = "/inference.GRPCInferenceService/ModelStreamInfer";

const KINDS: [ListenerKind; 2] = [ListenerKind::Http, ListenerKind::Grpc];

const BURST: usize = (HTTP2_CONTROL_FRAMES_PER_SECOND * HTTP2_CONTROL_BURST_SECONDS) as usize;

/// A type of frames that nobody knows.
const UNKNOWN: u8 = 0xf3;

const ATTACKER: &str = "203.0.113.9";

fn endpoint(kind: ListenerKind, limits: ConnectionSpec) -> Endpoint {
    Endpoint::open(kind, limits, KeepaliveSpec::default(), [model("echo", false, Echo)])
}

/// A whole request whose answer has a few bytes.
fn asks(kind: ListenerKind, stream: u32) -> Vec<u8> {
    match kind {
        ListenerKind::Http => get(stream, "/v2/models/echo"),
        _ => empty_call(stream, LIVE),
    }
}

/// Begins HTTP/2 and waits until the server has its part.
async fn begin(connection: &mut Connection) {
    connection.begin_http2(&[]).await;
    connection.next(SETTINGS).await;
    assert!(connection.send(frame(SETTINGS, ACK, 0, &[])).await);
}

/// Asks for something and waits for the end of the answer.
async fn is_answered(connection: &mut Connection, kind: ListenerKind, stream: u32) {
    assert!(connection.send(asks(kind, stream)).await);
    loop {
        let found = connection.frame().await.expect("the server goes on");
        assert_ne!(found.kind, GOAWAY, "{found:?}");
        if found.stream == stream && found.ends_call() {
            assert_ne!(found.kind, RST_STREAM);
            return;
        }
    }
}

/// Calls that are opened and reset at once, a hundred in a piece.
fn rapid_resets(calls: usize) -> impl Iterator<Item = Vec<u8>> {
    let pairs = |first: usize| (first..first + 100).flat_map(|number| rapid_reset(2 * number as u32 + 1)).collect();
    (0..calls).step_by(100).map(pairs)
}

fn rapid_reset(stream: u32) -> Vec<u8> {
    [call(stream, INFER), reset(stream)].concat()
}

/// Floods a connection from an address until the server closes it; how many bytes of the flood were read.
async fn flood(endpoint: &Endpoint, address: &str, pieces: impl IntoIterator<Item = Vec<u8>>) -> usize {
    let (mut connection, read) = endpoint.connect_from(address);
    begin(&mut connection).await;
    let before = read.load(Ordering::Relaxed);
    connection.exchange(pieces).await;
    read.load(Ordering::Relaxed) - before
}

#[tokio::test(start_paused = true)]
async fn floods_of_every_kind_of_frame_end_their_connection() {
    for (kind, flags, on_call, payload) in [
        (WINDOW_UPDATE, 0, false, &[0, 0, 0, 1][..]),
        (WINDOW_UPDATE, 0, true, &[0, 0, 0, 1]),
        (UNKNOWN, 0, false, &[]),
        (UNKNOWN, 0, true, &[7; 100]),
        (PRIORITY, 0, true, &[0; 5]),
        (PING, ACK, false, &[0; 8]),
        (PING, 0, false, &[0; 8]),
        (SETTINGS, 0, false, &[]),
        (GOAWAY, 0, false, &[0; 8]),
        (DATA, 0, true, &[]),
        (DATA, 0, true, &[7]),
    ] {
        for endpoint_kind in KINDS {
            let one = frame(kind, flags, u32::from(on_call), payload);
            let limits = ConnectionSpec { http2_control_frames_per_s: 100, ..ConnectionSpec::default() };
            let (mut connection, read) = endpoint(endpoint_kind, limits).connect_from(ATTACKER);
            begin(&mut connection).await;
            assert!(connection.send(call(1, STREAM)).await);
            let before = read.load(Ordering::Relaxed);
            let received = connection.exchange((0..100).map(|_| one.repeat(1000))).await;
            let found = (kind, flags, endpoint_kind);
            let goaway = frames(&received).into_iter().rfind(|frame| frame.kind == GOAWAY);
            assert_eq!(goaway.expect("a GOAWAY").error_code(), ENHANCE_YOUR_CALM, "{found:?}");
            // What lies in the buffers was read too.
            let most = BURST / 10 + 2 * HTTP2_FRAMES_PER_QUANTUM as usize + (64 << 10) / one.len();
            let frames = (read.load(Ordering::Relaxed) - before) / one.len();
            assert!(frames <= most, "{frames} of at most {most} frames were read {found:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_head_in_empty_pieces_ends_its_connection() {
    for kind in KINDS {
        let mut connection = endpoint(kind, ConnectionSpec::default()).connect();
        begin(&mut connection).await;
        let head = frame(HEADERS, 0, 1, &[]);
        let pieces = (0..1000).map(|_| frame(CONTINUATION, 0, 1, &[]));
        let received = connection.exchange(std::iter::once(head).chain(pieces)).await;
        assert!(frames(&received).iter().any(|frame| frame.kind == GOAWAY), "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_flood_gives_way_to_others_on_its_thread() {
    for kind in KINDS {
        let endpoint = endpoint(kind, ConnectionSpec::default());
        let mut good = endpoint.connect();
        begin(&mut good).await;
        is_answered(&mut good, kind, 1).await;
        let (mut connection, read) = endpoint.connect_from(ATTACKER);
        begin(&mut connection).await;
        let before = read.load(Ordering::Relaxed);
        let pieces: Vec<u8> = rapid_resets(1400).flatten().collect();
        // As much as the connection's buffer takes, at once.
        assert!(connection.send(&pieces).await);
        is_answered(&mut good, kind, 3).await;
        let read = read.load(Ordering::Relaxed) - before;
        assert!(read < pieces.len() / 2, "{read} of {} bytes of the flood came first", pieces.len());
    }
}

/// A message of a call to a model that answers only when the test does.
fn executing(stream: u32) -> Vec<u8> {
    let message = request("puppet", "", 1).encode_to_vec();
    let message = [&[0], &u32::try_from(message.len()).unwrap().to_be_bytes()[..], &message].concat();
    [call(stream, INFER), frame(DATA, END_STREAM, stream, &message)].concat()
}

#[tokio::test(start_paused = true)]
async fn a_proxy_may_withdraw_a_thousand_calls_a_second_of_each_kind() {
    let puppet = Puppet::new("puppet", false);
    let endpoint = Endpoint::open(
        ListenerKind::Grpc,
        ConnectionSpec::default(),
        KeepaliveSpec::default(),
        [puppet.model.clone(), model("echo", false, Echo)],
    );
    let (mut connection, _) = endpoint.connect_from(ATTACKER);
    begin(&mut connection).await;
    let mut streams = (1..).step_by(2);
    let mut next = || streams.next().expect("streams do not end");
    for _ in 0..800 {
        // In ten milliseconds: ten calls that are executing, that are answered, and that are withdrawn at once.
        let begun: Vec<u32> = (0..10).map(|_| next()).collect();
        assert!(connection.send(begun.iter().flat_map(|&stream| executing(stream)).collect::<Vec<_>>()).await);
        let answered: Vec<u32> = (0..10).map(|_| next()).collect();
        assert!(
            connection.send(answered.iter().flat_map(|&stream| empty_call(stream, LIVE)).collect::<Vec<_>>()).await
        );
        let mut open = answered.len();
        while open > 0 {
            let found = connection.frame().await.expect("the server goes on");
            assert_ne!(found.kind, GOAWAY, "{found:?}");
            open -= usize::from(found.ends_call());
        }
        let late: Vec<u8> = begun.iter().chain(&answered).flat_map(|&stream| reset(stream)).collect();
        let at_once: Vec<u8> = (0..10).flat_map(|_| rapid_reset(next())).collect();
        assert!(connection.send([late, at_once].concat()).await);
        sleep(Duration::from_millis(10)).await;
    }
    is_answered(&mut connection, ListenerKind::Grpc, next()).await;
    assert_eq!(puppet.model.waiting(), 0);
}

#[tokio::test(start_paused = true)]
async fn a_proxy_may_go_on_sending_what_was_refused_early() {
    let mut connection = endpoint(ListenerKind::Grpc, ConnectionSpec::default()).connect();
    begin(&mut connection).await;
    let streams: Vec<u32> = (1..200).step_by(2).collect();
    for &stream in &streams {
        assert!(connection.send(call(stream, "/no.Service/Method")).await);
        while connection.next(RST_STREAM).await.stream != stream {}
    }
    // Of half of the calls the library knows no more by now that it has ended them.
    for _ in 0..30 {
        for &stream in &streams {
            assert!(connection.send(frame(DATA, 0, stream, &[7; 1024])).await);
        }
        sleep(Duration::from_millis(1)).await;
    }
    is_answered(&mut connection, ListenerKind::Grpc, 1001).await;
}

#[tokio::test(start_paused = true)]
async fn a_proxy_may_pass_on_calls_that_are_malformed() {
    for kind in KINDS {
        let mut connection = endpoint(kind, ConnectionSpec::default()).connect();
        begin(&mut connection).await;
        for stream in (1..4001).step_by(2) {
            // No method, no path.
            assert!(connection.send(frame(HEADERS, 4 | END_STREAM, stream, b"\0\x07:scheme\x04http")).await);
            while connection.next(RST_STREAM).await.stream != stream {}
        }
        is_answered(&mut connection, kind, 4001).await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_proxy_may_open_more_calls_than_there_is_room_for() {
    let mut connection = endpoint(ListenerKind::Grpc, ConnectionSpec::default()).connect();
    begin(&mut connection).await;
    let streams = (1..).step_by(2).take(GRPC_MAX_CONCURRENT_CALLS as usize + 1500);
    let (open, refused): (Vec<u32>, Vec<u32>) = streams.partition(|&stream| stream < 2 * GRPC_MAX_CONCURRENT_CALLS);
    for stream in open {
        assert!(connection.send(call(stream, STREAM)).await);
    }
    for stream in refused {
        assert!(connection.send(call(stream, STREAM)).await);
        while connection.next(RST_STREAM).await.stream != stream {}
    }
    assert!(connection.send(frame(DATA, END_STREAM, 1, &[])).await);
    while !connection.frame().await.expect("the server goes on").ends_call() {}
    is_answered(&mut connection, ListenerKind::Grpc, 100_001).await;
}

#[tokio::test(start_paused = true)]
async fn a_client_that_connects_again_after_a_flood_has_no_new_budget() {
    let endpoint = endpoint(ListenerKind::Grpc, ConnectionSpec::default());
    let pair = rapid_reset(1).len();
    // What is read at once, beside what the budget allows.
    let buffered = (128 << 10) / pair;
    let first = flood(&endpoint, ATTACKER, rapid_resets(12_000)).await / pair;
    assert!((BURST..BURST + buffered).contains(&first), "{first}");
    // A connection that was open before, and is honest.
    let mut good = endpoint.connect_from(ATTACKER).0;
    begin(&mut good).await;
    let mut again = 0;
    for number in 0..8 {
        again += flood(&endpoint, ATTACKER, rapid_resets(12_000)).await / pair;
        is_answered(&mut good, ListenerKind::Grpc, 4 * number + 1).await;
        // It may withdraw a call as well.
        assert!(good.send(rapid_reset(4 * number + 3)).await);
    }
    // Each connection is held for a second, and the address has a budget of a thousand frames a second.
    assert!(again < 9 * HTTP2_CONTROL_FRAMES_PER_SECOND as usize + 8 * buffered, "{again}");
    let other = flood(&endpoint, "203.0.113.10", rapid_resets(12_000)).await / pair;
    assert!(other >= BURST, "{other}");
    sleep(FLOOD_PROBATION_TIME + FLOOD_HOLD_TIME).await;
    let later = flood(&endpoint, ATTACKER, rapid_resets(12_000)).await / pair;
    assert!(later >= BURST, "{later}");
}

#[tokio::test(start_paused = true)]
async fn a_client_that_leaves_before_it_is_cut_off_has_flooded_too() {
    let endpoint = endpoint(ListenerKind::Grpc, ConnectionSpec::default());
    let pieces: Vec<u8> = rapid_resets(1200).flatten().collect();
    for _ in 0..40 {
        let mut connection = endpoint.connect_from(ATTACKER).0;
        begin(&mut connection).await;
        // As much as the connection's buffer takes, of which the server reads some while it is its turn.
        assert!(connection.send(&pieces).await);
        sleep(Duration::from_millis(20)).await;
        connection.reset();
    }
    sleep(Duration::from_millis(100)).await;
    // By now the address is on probation: all its connections share a budget, and of most next to nothing is read.
    let mut connections = Vec::new();
    for _ in 0..8 {
        let mut connection = endpoint.connect_from(ATTACKER).0;
        begin(&mut connection).await;
        assert!(connection.send(&pieces).await);
        connections.push(connection);
    }
    let mut calls = Vec::new();
    for mut connection in connections {
        let received = connection.exchange(std::iter::empty::<Vec<u8>>()).await;
        let goaway = frames(&received).into_iter().rfind(|frame| frame.kind == GOAWAY).expect("a GOAWAY");
        assert_eq!(goaway.error_code(), ENHANCE_YOUR_CALM);
        calls.push(u32::from_be_bytes(goaway.payload[..4].try_into().unwrap()).div_ceil(2));
    }
    assert!(calls.iter().sum::<u32>() < 2 * HTTP2_CONTROL_FRAMES_PER_SECOND, "{calls:?}");
    let mut good = endpoint.connect_from(ATTACKER).0;
    begin(&mut good).await;
    is_answered(&mut good, ListenerKind::Grpc, 1).await;
}

#[tokio::test(start_paused = true)]
async fn a_connection_that_floods_gets_goaway_and_is_held_before_it_is_closed() {
    let endpoint = endpoint(ListenerKind::Grpc, ConnectionSpec::default());
    let (mut connection, _) = endpoint.connect_from(ATTACKER);
    assert!(connection.send(PREFACE).await);
    let pieces = std::iter::once(frame(SETTINGS, 0, 0, &[])).chain(rapid_resets(12_000));
    let received = connection.exchange(pieces).await;
    assert!((FLOOD_HOLD_TIME..2 * FLOOD_HOLD_TIME).contains(&connection.age()), "{:?}", connection.age());
    let goaway = frames(&received).into_iter().find(|frame| frame.kind == GOAWAY).expect("a GOAWAY");
    assert_eq!((goaway.error_code(), &goaway.payload[8..]), (ENHANCE_YOUR_CALM, &b"too_many_resets"[..]));
}

#[tokio::test(start_paused = true)]
async fn a_trusted_proxy_has_a_full_budget_after_a_flood() {
    let trusted_proxies = serde_json::from_value(json!(["203.0.113.0/24"])).unwrap();
    let endpoint = endpoint(ListenerKind::Grpc, ConnectionSpec { trusted_proxies, ..ConnectionSpec::default() });
    let pair = rapid_reset(1).len();
    for _ in 0..3 {
        assert!(flood(&endpoint, ATTACKER, rapid_resets(12_000)).await / pair >= BURST);
    }
}
