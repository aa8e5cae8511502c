//! HTTP/2 clients that withhold, never read or fall silent, on both protocols: each limit on a clock that jumps.

use std::collections::BTreeSet;
use std::time::Duration;

use alipes_net::policy::ListenerKind;
use alipes_spec::{ConnectionSpec, KeepaliveSpec};
use prost::Message;
use tokio::time::sleep;

use crate::common::request;
use crate::memory::Endpoint;
use crate::memory::http2::{
    ACK, DATA, END_STREAM, ENHANCE_YOUR_CALM, GOAWAY, HEADERS, NO_WINDOW, PING, PREFACE, RST_STREAM, SETTINGS,
    WINDOW_UPDATE, call, empty_call, frame, get, window,
};

const LIVE: &str = "/inference.GRPCInferenceService/ServerLive";
const INFER: &str = "/inference.GRPCInferenceService/ModelInfer";
const STREAM: &str = "/inference.GRPCInferenceService/ModelStreamInfer";

const KINDS: [ListenerKind; 2] = [ListenerKind::Http, ListenerKind::Grpc];

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A request whose answer has a few bytes.
fn asks(kind: ListenerKind, stream: u32) -> Vec<u8> {
    match kind {
        ListenerKind::Http => get(stream, "/v2/models/echo"),
        _ => empty_call(stream, LIVE),
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_never_gets_set_up_is_let_go() {
    for kind in KINDS {
        let half_settings = [PREFACE, &frame(SETTINGS, 0, 0, &[])[..5]].concat();
        for begin in [&[][..], PREFACE, &half_settings] {
            let mut connection = Endpoint::impatient(kind).connect();
            assert!(connection.send(begin).await);
            connection.rest().await;
            assert!((seconds(4)..seconds(13)).contains(&connection.age()), "{kind:?} {:?}", connection.age());
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_idle_connection_gets_goaway_and_closes() {
    for kind in KINDS {
        let mut connection = Endpoint::impatient(kind).connect();
        connection.begin_http2(&[]).await;
        assert!(connection.send(asks(kind, 1)).await);
        assert_eq!(connection.next(HEADERS).await.stream, 1);
        assert_eq!(connection.goaway().await.expect("a GOAWAY").error_code(), 0);
        assert!(connection.age() >= seconds(60), "{kind:?} {:?}", connection.age());
    }
}

#[tokio::test(start_paused = true)]
async fn an_old_connection_gets_goaway_and_closes() {
    let age = KeepaliveSpec {
        max_connection_age_ms: 300_000,
        max_connection_age_grace_ms: 100_000,
        ..KeepaliveSpec::default()
    };
    let endpoint = Endpoint::open(ListenerKind::Grpc, ConnectionSpec::default(), age, []);
    let mut connection = endpoint.connect();
    connection.begin_http2(&[]).await;
    assert!(connection.send(call(1, STREAM)).await);
    assert_eq!(connection.next(GOAWAY).await.error_code(), 0);
    assert!((seconds(300)..seconds(320)).contains(&connection.age()), "{:?}", connection.age());
    // The stream is still open; the server does not wait for its end.
    connection.goaway().await;
    assert!((seconds(400)..seconds(440)).contains(&connection.age()), "{:?}", connection.age());
}

#[tokio::test(start_paused = true)]
async fn a_connection_without_ping_answers_is_closed() {
    let keepalive = KeepaliveSpec { time_ms: 10_000, timeout_ms: 8_000, ..KeepaliveSpec::default() };
    let endpoint = Endpoint::open(ListenerKind::Grpc, ConnectionSpec::default(), keepalive, []);
    let mut silent = endpoint.connect();
    silent.begin_http2(&[]).await;
    assert!(silent.send(call(1, STREAM)).await);
    assert_eq!(silent.next(PING).await.flags & ACK, 0);
    silent.goaway().await;
    assert!((seconds(18)..seconds(20)).contains(&silent.age()), "{:?}", silent.age());
    let mut alive = endpoint.connect();
    alive.begin_http2(&[]).await;
    for _ in 0..30 {
        let ping = alive.next(PING).await;
        assert!(alive.send(frame(PING, ACK, 0, &ping.payload)).await);
    }
    assert!(alive.age() >= seconds(300), "{:?}", alive.age());
}

#[tokio::test(start_paused = true)]
async fn a_client_of_grpc_may_ping_now_and_then_but_not_too_often() {
    let endpoint = Endpoint::impatient(ListenerKind::Grpc);
    let ping = frame(PING, 0, 0, &[0; 8]);
    let mut connection = endpoint.connect();
    connection.begin_http2(&[]).await;
    assert!(connection.send(call(1, STREAM)).await);
    for _ in 0..20 {
        sleep(seconds(301)).await;
        assert!(connection.send(&ping).await);
        while connection.next(PING).await.flags & ACK == 0 {}
    }
    assert!(connection.send(ping.repeat(4)).await);
    let goaway = connection.next(GOAWAY).await;
    assert_eq!((goaway.error_code(), &goaway.payload[8..]), (ENHANCE_YOUR_CALM, &b"too_many_pings"[..]));
}

#[tokio::test(start_paused = true)]
async fn silent_streams_stay_open() {
    let mut connection = Endpoint::impatient(ListenerKind::Grpc).connect();
    connection.begin_http2(&[]).await;
    assert!(connection.send(call(1, STREAM)).await);
    sleep(seconds(24 * 3600)).await;
    assert!(connection.send(empty_call(3, LIVE)).await);
    let head = connection.next(HEADERS).await;
    assert!(head.stream == 1 || head.stream == 3, "{head:?}");
    assert!(connection.send(frame(DATA, END_STREAM, 1, &[])).await);
    let mut open = BTreeSet::from([1, 3]);
    while !open.is_empty() {
        let found = connection.frame().await.expect("the server goes on");
        assert_ne!(found.kind, RST_STREAM);
        if found.ends_call() {
            open.remove(&found.stream);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_message_that_stops_half_way_ends_its_call_and_no_other() {
    let halves: [&[u8]; 4] = [b"", b"\0", b"\0\0\0\x03\xe8half", b"\0\x80\0\0\0"];
    for half in halves {
        let mut connection = Endpoint::impatient(ListenerKind::Grpc).connect();
        connection.begin_http2(&[]).await;
        assert!(connection.send([call(1, INFER), frame(DATA, 0, 1, half), empty_call(3, LIVE)].concat()).await);
        let mut open = BTreeSet::from([1, 3]);
        while !open.is_empty() {
            let found = connection.frame().await.expect("the server goes on");
            if found.ends_call() {
                open.remove(&found.stream);
            }
        }
        assert!(connection.age() < seconds(15), "{:?}", connection.age());
    }
}

#[tokio::test(start_paused = true)]
async fn answers_for_which_a_client_gives_no_room_are_thrown_away() {
    for kind in KINDS {
        let mut streams: BTreeSet<u32> = (1..41).step_by(2).collect();
        let mut connection = Endpoint::impatient(kind).connect();
        connection.begin_http2(NO_WINDOW).await;
        assert!(connection.send(streams.iter().flat_map(|&stream| asks(kind, stream)).collect::<Vec<_>>()).await);
        while !streams.is_empty() {
            let found = connection.frame().await.expect("the server goes on");
            assert_ne!(found.kind, DATA, "it was not allowed to send a byte");
            if found.kind == RST_STREAM {
                streams.remove(&found.stream);
            }
        }
        assert!((seconds(5)..seconds(10)).contains(&connection.age()), "{:?}", connection.age());
        // The connection goes on.
        assert!(connection.send([asks(kind, 41), window(41, 1 << 16)].concat()).await);
        assert_eq!(connection.next(DATA).await.stream, 41);
    }
}

#[tokio::test(start_paused = true)]
async fn a_stalled_answer_is_dropped_while_others_on_the_connection_move() {
    for kind in KINDS {
        let mut connection = Endpoint::impatient(kind).connect();
        connection.begin_http2(NO_WINDOW).await;
        assert!(connection.send([window(0, 1 << 28), asks(kind, 1)].concat()).await);
        let mut reset = BTreeSet::new();
        for stream in (3..43).step_by(2) {
            assert!(connection.send([asks(kind, stream), window(stream, 1 << 16)].concat()).await);
            loop {
                let found = connection.frame().await.expect("the server goes on");
                assert_ne!(found.kind, GOAWAY);
                assert!(found.kind != DATA || found.stream != 1);
                if found.kind == RST_STREAM {
                    reset.insert(found.stream);
                }
                if found.stream == stream && found.ends_call() {
                    break;
                }
            }
            sleep(seconds(1)).await;
        }
        assert_eq!(reset, BTreeSet::from([1]), "{kind:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_large_answer_that_a_client_takes_in_part_is_thrown_away() {
    const ELEMENTS: usize = 1 << 18;
    let message = request("echo", "7", ELEMENTS).encode_to_vec();
    let message = [&[0], &u32::try_from(message.len()).unwrap().to_be_bytes()[..], &message].concat();
    // Room for nothing, for some of it, and for all but its last bytes.
    for room in [1, 100_000, 4 * ELEMENTS as u32 - 10_000] {
        let mut connection = Endpoint::impatient(ListenerKind::Grpc).connect();
        connection.begin_http2(&[&[0, 4][..], &room.to_be_bytes()].concat()).await;
        connection.next(SETTINGS).await;
        // Until the server has widened the connection, it takes 64 KiB and no more.
        connection.next(WINDOW_UPDATE).await;
        assert!(connection.send([frame(SETTINGS, ACK, 0, &[]), window(0, 1 << 24), call(1, INFER)].concat()).await);
        for piece in message.chunks(1 << 14) {
            assert!(connection.send(frame(DATA, 0, 1, piece)).await);
        }
        assert!(connection.send(frame(DATA, END_STREAM, 1, &[])).await);
        assert_eq!(connection.next(RST_STREAM).await.stream, 1, "{room}");
    }
}
