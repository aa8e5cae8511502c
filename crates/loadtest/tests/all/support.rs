//! A server that does what a test says, and loads for it.

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
use alipes_loadtest::{Engine, Ids, Keep, Loop, Plan, Prepared, Record, Sequences, Source, Unnumbered};

/// Longest wait for what happens at once.
pub const LONGEST_WAIT: Duration = Duration::from_secs(60);

pub const GOOD: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

/// A server whose answers are `answer`'s, of the number of the request and its body; it lives as long as the process.
pub struct Server {
    pub address: SocketAddr,
    pub seen: Arc<AtomicUsize>,
    pub connections: Arc<AtomicUsize>,
}

impl Server {
    pub fn start(answer: impl Fn(usize, &[u8]) -> Option<String> + Send + Sync + 'static) -> Server {
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

    pub fn seen(&self) -> usize {
        self.seen.load(Ordering::SeqCst)
    }
}

/// Answers one request after the other, until the client leaves or there is no answer.
pub fn serve(stream: &TcpStream, answer: &dyn Fn(usize, &[u8]) -> Option<String>, seen: &AtomicUsize) {
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

pub fn request(reader: &mut BufReader<&TcpStream>) -> Option<Vec<u8>> {
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

pub fn number(number: usize) -> NonZeroUsize {
    NonZeroUsize::new(number).unwrap()
}

/// A load of these bodies over HTTP.
pub fn plan(address: SocketAddr, bodies: &[&str], pace: Loop, count: Option<u64>) -> Plan {
    let target = Target::new(&address.to_string(), Wire::Http, Vec::new(), Duration::from_secs(5)).unwrap();
    let prepare = |body: &&str| {
        let pieces = vec![body.as_bytes().to_vec().into()];
        let outgoing = Outgoing {
            path: "/x".to_owned(),
            verb: Verb::Post,
            json_length: None,
            pieces,
            infer: false,
            sequence: None,
            headers: Vec::new(),
        };
        Prepared::new(&target, &outgoing).unwrap()
    };
    let requests = bodies.iter().map(prepare).collect();
    let source = Source { target, requests, sequences: None, weight: 1.0 };
    of_sources(vec![source], pace, count)
}

/// A load of sequences over HTTP, of so many requests each, with ids from 1 on. The bodies are names.
pub fn plan_of_sequences(address: SocketAddr, bodies: &[&str], length: usize, pace: Loop, count: Option<u64>) -> Plan {
    let mut plan = plan(address, &[], pace, count);
    let source = &mut plan.sources[0];
    let prepare = |body: &&str| {
        let json = format!("{{\"id\":\"{body}\",\"parameters\":{{\"of\":{length}}}}}");
        let (path, json_length, headers) = ("/x".to_owned(), Some(json.len()), Vec::new());
        let pieces = vec![json.into()];
        let outgoing = Outgoing { path, verb: Verb::Post, json_length, pieces, infer: true, sequence: None, headers };
        Prepared::OfSequence(Box::new(Unnumbered::new(&source.target, outgoing, None).unwrap()))
    };
    source.requests = bodies.iter().map(prepare).collect();
    let chains = (0..bodies.len()).step_by(length).map(|first| first..first + length).collect();
    source.sequences = Some(Sequences { chains, ids: Arc::new(Ids::new(1..u64::MAX)), most: None });
    plan
}

pub fn of_sources(sources: Vec<Source>, pace: Loop, count: Option<u64>) -> Plan {
    let keep = Keep { samples: 8, requests: 0 };
    Plan { sources, pace, threads: number(2), calls_per_connection: number(8), count, limit: None, keep }
}

pub fn closed(callers: usize) -> Loop {
    Loop::Closed { callers: number(callers) }
}

pub fn open(rate: f64, in_flight: usize) -> Loop {
    let pieces = vec![Piece { length: Duration::from_secs(3600), from: rate, to: rate }];
    Loop::Open { schedule: Schedule::Rate { pieces, seed: None, repeats: false }, in_flight: number(in_flight) }
}

/// Waits for what another thread brings about.
pub fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = alipes_clock::now();
    while !is_so() {
        assert!(alipes_clock::elapsed(begun) < LONGEST_WAIT, "{what} did not happen");
        thread::park_timeout(Duration::from_millis(1));
    }
}

/// All of a load that ends by itself.
pub fn measured(plan: Plan) -> Record {
    let mut engine = Engine::start(plan).unwrap();
    until("the end of the load", || engine.is_done());
    engine.stop(Duration::ZERO).unwrap();
    only(&engine)
}

/// What was measured of the only source.
pub fn only(engine: &Engine) -> Record {
    engine.cut().remove(0)
}

/// An answer that the server gives once the test says so.
pub fn held() -> (impl Fn(usize, &[u8]) -> Option<String> + Send + Sync, std::sync::mpsc::Sender<()>) {
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
