//! Loads against a server that does what a test says.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use alipes_client::{Outgoing, Target, Verb, Wire};
use alipes_loadtest::arrivals::{Piece, Schedule};
use alipes_loadtest::{Engine, Loop, Plan, Prepared, Record};

/// Longest wait for what happens at once.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

const GOOD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A server whose answers are `answer`'s, of the number of the request and its body; it lives as long as the process.
struct Server {
    address: SocketAddr,
    seen: Arc<AtomicUsize>,
    connections: Arc<AtomicUsize>,
}

impl Server {
    fn start(answer: impl Fn(usize, &[u8]) -> Option<String> + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (seen, connections) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (answer, own_seen, own_connections) = (Arc::new(answer), seen.clone(), connections.clone());
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                own_connections.fetch_add(1, Ordering::SeqCst);
                let (answer, seen) = (answer.clone(), own_seen.clone());
                thread::spawn(move || serve(&stream, &*answer, &seen));
            }
        });
        Server { address, seen, connections }
    }

    fn seen(&self) -> usize {
        self.seen.load(Ordering::SeqCst)
    }
}

/// Answers one request after the other, until the client leaves or there is no answer.
fn serve(stream: &TcpStream, answer: &dyn Fn(usize, &[u8]) -> Option<String>, seen: &AtomicUsize) {
    let mut reader = BufReader::new(stream);
    while let Some(body) = request(&mut reader) {
        let number = seen.fetch_add(1, Ordering::SeqCst);
        let Some(text) = answer(number, &body) else { return };
        let mut writer = stream;
        if writer.write_all(text.as_bytes()).is_err() || text.contains("Connection: close") {
            return;
        }
    }
}

fn request(reader: &mut BufReader<&TcpStream>) -> Option<Vec<u8>> {
    let mut length = 0;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).ok()? == 0 {
            return None;
        }
        if line == "\r\n" {
            break;
        }
        if let Some(text) = line.strip_prefix("Content-Length: ") {
            length = text.trim().parse().ok()?;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(body)
}

fn number(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap()
}

/// A load of these bodies over HTTP.
fn plan(address: SocketAddr, bodies: &[&str], pace: Loop, count: Option<u64>) -> Plan {
    let target = Target::new(&address.to_string(), Wire::Http, Vec::new(), Duration::from_secs(5)).unwrap();
    let prepare = |body: &&str| {
        let pieces = vec![body.as_bytes().to_vec().into()];
        let outgoing = Outgoing { path: "/x".to_owned(), verb: Verb::Post, json_length: None, pieces, infer: false };
        Prepared::new(&target, &outgoing).unwrap()
    };
    let requests = bodies.iter().map(prepare).collect();
    Plan { target, requests, pace, threads: number(2), calls_per_connection: number(8), count, samples: 8 }
}

fn closed(callers: usize) -> Loop {
    Loop::Closed { callers: number(callers) }
}

fn open(rate: f64, in_flight: usize) -> Loop {
    let pieces = vec![Piece { length: Duration::from_secs(3600), from: rate, to: rate }];
    Loop::Open { schedule: Schedule::Rate { pieces, seed: None }, in_flight: number(in_flight) }
}

/// Waits for what another thread brings about.
fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = alipes_clock::now();
    while !is_so() {
        assert!(alipes_clock::elapsed(begun) < LONGEST_WAIT, "{what} did not happen");
        thread::park_timeout(Duration::from_millis(1));
    }
}

/// All of a load that ends by itself.
fn measured(plan: Plan) -> Record {
    let mut engine = Engine::start(plan).unwrap();
    until("the end of the load", || engine.is_done());
    engine.stop(Duration::ZERO).unwrap();
    engine.cut()
}

/// An answer that the server gives once the test says so.
fn held() -> (impl Fn(usize, &[u8]) -> Option<String> + Send + Sync, std::sync::mpsc::Sender<()>) {
    let (release, released): (_, Receiver<()>) = channel();
    let released = Mutex::new(released);
    let answer = move |number: usize, _: &[u8]| {
        if number == 0 {
            let _ = released.lock().unwrap().recv_timeout(LONGEST_WAIT);
        }
        Some(GOOD.to_owned())
    };
    (answer, release)
}

#[test]
fn a_closed_loop_sends_so_many_requests_in_turn() {
    let bodies = Arc::new(Mutex::new(Vec::new()));
    let seen = bodies.clone();
    let server = Server::start(move |_, body| {
        seen.lock().unwrap().push(String::from_utf8(body.to_vec()).unwrap());
        Some(GOOD.to_owned())
    });
    let record = measured(plan(server.address, &["a", "bc"], closed(4), Some(10)));
    assert_eq!((record.answers(), record.received_bytes, record.failures.len()), (10, 20, 0));
    assert_eq!(record.connections, server.connections.load(Ordering::SeqCst) as u64);
    let mut bodies = bodies.lock().unwrap().clone();
    bodies.sort();
    assert_eq!(bodies, ["a", "a", "a", "a", "a", "bc", "bc", "bc", "bc", "bc"]);
    assert!(record.samples.iter().all(|sample| sample.answer == "ok"));
}

#[test]
fn a_closed_loop_leaves_out_what_a_stall_costs_and_an_open_one_counts_it() {
    let (answer, release) = held();
    let server = Server::start(answer);
    let mut engine = Engine::start(plan(server.address, &["x"], closed(1), None)).unwrap();
    until("the first request", || server.seen() == 1);
    thread::park_timeout(Duration::from_millis(50));
    assert_eq!(server.seen(), 1, "the only caller waits");
    release.send(()).unwrap();
    until("further requests", || server.seen() > 10);
    engine.stop(LONGEST_WAIT).unwrap();

    let (answer, release) = held();
    let server = Server::start(answer);
    let mut engine = Engine::start(plan(server.address, &["x"], open(1000.0, 1), Some(20))).unwrap();
    until("the first request", || server.seen() == 1);
    let stalled = alipes_clock::now();
    thread::park_timeout(Duration::from_millis(200));
    let stall = alipes_clock::elapsed(stalled);
    release.send(()).unwrap();
    until("the end of the load", || engine.is_done());
    engine.stop(Duration::ZERO).unwrap();
    let record = engine.cut();
    assert_eq!(record.answers(), 20);
    // The last of them was due 20 ms after the first.
    let shortest = stall.saturating_sub(Duration::from_millis(25)).as_nanos() as u64;
    assert!(record.latencies.min() >= shortest, "{} after {stall:?}", record.latencies.min());
}

#[test]
fn a_refused_request_is_counted_by_its_text() {
    let refusal = r#"{"error":"no such model"}"#;
    let text = format!("HTTP/1.1 404 Not Found\r\nContent-Length: {}\r\n\r\n{refusal}", refusal.len());
    let server = Server::start(move |number, _| Some(if number % 2 == 0 { text.clone() } else { GOOD.to_owned() }));
    let record = measured(plan(server.address, &["x"], closed(1), Some(10)));
    assert_eq!((record.answers(), record.failures["no such model"], record.connections), (5, 5, 1));
}

#[test]
fn connections_that_the_server_ends_are_opened_again() {
    let closing = GOOD.replace("\r\n\r\n", "\r\nConnection: close\r\n\r\n");
    let server = Server::start(move |_, _| Some(closing.clone()));
    let record = measured(plan(server.address, &["x"], closed(2), Some(6)));
    assert_eq!((record.answers(), record.connections, record.failures.len()), (6, 6, 0));
}

#[test]
fn a_server_that_is_not_there_is_a_failure_and_no_end() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut engine = Engine::start(plan(gone, &["x"], closed(1), None)).unwrap();
    let mut failures = 0;
    until("two failures", || {
        failures += engine.cut().failures.values().sum::<u64>();
        failures >= 2
    });
    engine.stop(Duration::ZERO).unwrap();
}

#[test]
fn a_server_that_hangs_up_on_every_request_is_a_failure_each_time() {
    let server = Server::start(|_, _| None);
    let record = measured(plan(server.address, &["x"], closed(1), Some(3)));
    assert_eq!((record.answers(), record.failures.values().sum::<u64>()), (0, 3));
}

#[test]
fn stopping_cuts_off_a_server_that_never_answers() {
    let (answer, _release) = held();
    let server = Server::start(answer);
    let mut engine = Engine::start(plan(server.address, &["x"], open(100.0, 1), None)).unwrap();
    until("the first request", || server.seen() == 1);
    thread::park_timeout(Duration::from_millis(50));
    engine.stop(Duration::from_millis(10)).unwrap();
    assert!(engine.is_done());
    let record = engine.cut();
    assert_eq!(record.answers(), 0);
    assert!(record.dropped > 0, "what waited for the connection was never sent");
}

#[test]
fn a_plan_without_requests_is_refused() {
    let address = "127.0.0.1:1".parse().unwrap();
    assert!(Engine::start(plan(address, &[], closed(1), None)).is_err());
}
