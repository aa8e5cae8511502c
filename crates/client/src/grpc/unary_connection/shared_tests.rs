//! Calls of several callers against the library's own server.

use std::time::Duration;

use bytes::{BufMut, Bytes, BytesMut};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::LocalSet;

use super::frames::{self, FrameHead};
use super::shared::SharedConnection;
use super::tests::{framed, serve, target};
use crate::error::{ClientError, Kind};
use crate::socket::Socket;

/// A connection, and the other end of it.
fn pair() -> (SharedConnection, UnixStream) {
    let (own, other) = UnixStream::pair().unwrap();
    let (connection, driver) = SharedConnection::new(Socket::Unix(own));
    tokio::task::spawn_local(driver);
    (connection, other)
}

fn connect() -> SharedConnection {
    let (connection, other) = pair();
    tokio::spawn(serve(other));
    connection
}

/// A connection to a server that takes one call at a time.
async fn one_at_a_time() -> (SharedConnection, UnixStream) {
    let (connection, mut other) = pair();
    allow(&mut other, 1).await;
    (connection, other)
}

/// Has the server take so many calls at a time; the client has acknowledged it when this returns.
async fn allow(other: &mut UnixStream, calls: u32) {
    let (mut bytes, mut acknowledgement) = (BytesMut::new(), BytesMut::new());
    frames::settings(&[(3, calls)], &mut bytes);
    other.write_all(&bytes).await.unwrap();
    FrameHead { length: 0, kind: frames::SETTINGS, flags: frames::ACK, call: 0 }.write(&mut acknowledgement);
    let mut seen = Vec::new();
    let read = async {
        while !seen.windows(acknowledgement.len()).any(|window| *window == acknowledgement[..]) {
            assert_ne!(other.read_buf(&mut seen).await.unwrap(), 0, "the connection has ended");
        }
    };
    tokio::time::timeout(Duration::from_secs(30), read).await.expect("the settings are acknowledged");
}

async fn ask(connection: &SharedConnection, method: &str, message: &[u8]) -> Result<Bytes, ClientError> {
    connection.ask(&target(), method, framed(message)).await.map(|received| received.body)
}

/// Runs a test on its thread, where connections have to stay.
async fn on_one_thread(work: impl Future<Output = ()>) {
    LocalSet::new().run_until(work).await;
}

/// Waits for what others bring about.
async fn until(what: &str, is_so: impl Fn() -> bool) {
    let wait = async {
        while !is_so() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), wait).await.unwrap_or_else(|_| panic!("{what} did not come"));
}

#[tokio::test]
async fn calls_of_all_sizes_are_under_way_together() {
    on_one_thread(async {
        let connection = connect();
        let mut callers = tokio::task::JoinSet::new();
        for caller in 0..20_usize {
            let connection = connection.clone();
            callers.spawn_local(async move {
                for round in 0..20_usize {
                    let size = [0, 1, 64, 5_000, 70_000, 400_000][(caller + round) % 6];
                    let message: Vec<u8> = (0..size).map(|byte| ((byte + caller) % 251) as u8).collect();
                    assert!(ask(&connection, "Echo", &message).await.unwrap() == message, "{size} bytes");
                }
            });
        }
        while let Some(ended) = callers.join_next().await {
            ended.unwrap();
        }
    })
    .await;
}

#[tokio::test]
async fn a_call_that_fails_leaves_the_others() {
    on_one_thread(async {
        let connection = connect();
        let (refused, reset, good) = tokio::join!(
            ask(&connection, "Refuse", b"x"),
            ask(&connection, "Reset", b"x"),
            ask(&connection, "Echo", b"y")
        );
        assert_eq!(refused.unwrap_err().kind, Kind::Refused(5));
        let reset = reset.unwrap_err();
        assert!(reset.kind == Kind::Broken && reset.message.contains("refused"), "{reset}");
        assert_eq!(good.unwrap(), "y");
        assert!(!connection.is_spent());
    })
    .await;
}

#[tokio::test]
async fn a_call_that_is_dropped_is_withdrawn() {
    on_one_thread(async {
        let connection = connect();
        let hanging = tokio::time::timeout(Duration::from_millis(20), ask(&connection, "Hang", b"x")).await;
        assert!(hanging.is_err());
        assert_eq!(ask(&connection, "Echo", b"y").await.unwrap(), "y");
    })
    .await;
}

#[tokio::test]
async fn after_a_goaway_calls_are_answered_and_none_is_made() {
    on_one_thread(async {
        let connection = connect();
        assert_eq!(ask(&connection, "GoAway", b"x").await.unwrap(), "x");
        assert!(ask(&connection, "Echo", b"x").await.is_err());
        assert!(connection.is_spent());
    })
    .await;
}

#[tokio::test]
async fn a_server_that_is_gone_fails_all_calls() {
    on_one_thread(async {
        let (connection, other) = pair();
        let (one, two, ()) =
            tokio::join!(ask(&connection, "Echo", b"x"), ask(&connection, "Echo", b"y"), async { drop(other) });
        for failed in [one, two, ask(&connection, "Echo", b"z").await] {
            assert_eq!(failed.unwrap_err().kind, Kind::Broken);
        }
        assert!(connection.is_spent());
    })
    .await;
}

#[tokio::test]
async fn what_is_no_http2_fails_the_call() {
    on_one_thread(async {
        let (connection, mut other) = pair();
        other.write_all(b"HTTP/1.1 400 Bad Request\r\n\r\n").await.unwrap();
        let error = ask(&connection, "Echo", b"x").await.unwrap_err();
        assert!(error.kind == Kind::Broken && error.message.contains("HTTP/2"), "{error}");
    })
    .await;
}

#[tokio::test]
async fn a_server_that_takes_one_call_at_a_time_gets_one() {
    on_one_thread(async {
        let (connection, mut other) = one_at_a_time().await;
        let [first, second] = [b"x", b"y"].map(|message| {
            let connection = connection.clone();
            tokio::task::spawn_local(async move { ask(&connection, "Echo", message).await })
        });
        until("a call", || connection.under_way() > 0).await;
        // Both callers have had their turns by now.
        for _ in 0..100 {
            tokio::task::yield_now().await;
            assert_eq!(connection.under_way(), 1);
        }
        let mut reset = BytesMut::new();
        FrameHead { length: 4, kind: frames::RST_STREAM, flags: 0, call: 1 }.write(&mut reset);
        reset.put_u32(7);
        other.write_all(&reset).await.unwrap();
        assert!(first.await.unwrap().is_err());
        until("the other's turn", || connection.under_way() == 1).await;
        drop(other);
        assert!(second.await.unwrap().is_err());
    })
    .await;
}

#[tokio::test]
async fn the_connection_ends_with_its_last_caller() {
    on_one_thread(async {
        let (connection, other) = pair();
        let further = connection.clone();
        drop(connection);
        tokio::task::yield_now().await;
        drop(further);
        let mut rest = Vec::new();
        let mut other = other;
        let read = other.read_to_end(&mut rest);
        tokio::time::timeout(Duration::from_secs(30), read).await.expect("the socket is closed").unwrap();
    })
    .await;
}

#[tokio::test]
async fn a_call_that_waits_for_room_gets_what_cancelled_calls_leave() {
    on_one_thread(async {
        let (connection, other) = one_at_a_time().await;
        let first = ask(&connection, "Echo", b"x");
        let mut first = Box::pin(first);
        assert!(tokio::time::timeout(Duration::from_millis(5), &mut first).await.is_err());
        let mut second = Box::pin(ask(&connection, "Echo", b"y"));
        assert!(tokio::time::timeout(Duration::from_millis(5), &mut second).await.is_err());
        let third = tokio::task::spawn_local({
            let connection = connection.clone();
            async move { ask(&connection, "Echo", b"z").await }
        });
        tokio::time::sleep(Duration::from_millis(5)).await;
        // The second has been woken for the first's room, and leaves without using it.
        drop(first);
        drop(second);
        until("the third's turn", || connection.under_way() == 1).await;
        drop(other);
        assert!(third.await.unwrap().is_err());
    })
    .await;
}

#[tokio::test]
async fn more_room_is_for_all_who_wait() {
    on_one_thread(async {
        let (connection, mut other) = one_at_a_time().await;
        let callers: Vec<_> = (0..5)
            .map(|_| {
                let connection = connection.clone();
                tokio::task::spawn_local(async move { ask(&connection, "Echo", b"x").await })
            })
            .collect();
        until("a call", || connection.under_way() > 0).await;
        assert_eq!(connection.under_way(), 1);
        allow(&mut other, 100).await;
        until("all turns", || connection.under_way() == callers.len()).await;
        drop(other);
        for caller in callers {
            assert!(caller.await.unwrap().is_err());
        }
    })
    .await;
}

#[tokio::test]
async fn a_server_that_reads_nothing_and_asks_for_answers_is_left() {
    on_one_thread(async {
        let (connection, mut other) = pair();
        let mut pings = BytesMut::new();
        for _ in 0..1000 {
            FrameHead { length: 8, kind: frames::PING, flags: 0, call: 0 }.write(&mut pings);
            pings.extend_from_slice(b"12345678");
        }
        let flood = tokio::spawn(async move { while other.write_all(&pings).await.is_ok() {} });
        let ended = tokio::time::timeout(Duration::from_secs(60), ask(&connection, "Echo", b"x")).await;
        let error = ended.expect("it is left").unwrap_err();
        assert!(error.message.contains("has not read"), "{error}");
        assert!(connection.is_spent());
        drop(connection);
        tokio::time::timeout(Duration::from_secs(60), flood).await.expect("the socket is closed").unwrap();
    })
    .await;
}
