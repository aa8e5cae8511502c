//! Servers that do not answer, or answer with anything else.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener};
use std::thread;
use std::time::Duration;

use alipes_client::{Target, Wire};
use alipes_loadtest::{Engine, Plan, Prepared, Record, Source};

use crate::support::{closed, measured, of_sources, only, open, plan, until};

/// What a server does with a connection, to which it has listened for a moment.
#[derive(Clone, Copy)]
enum Act {
    Hang,
    HangUp,
    Say(&'static [u8]),
}

fn server(act: Act) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for mut stream in listener.incoming().map_while(Result::ok) {
            thread::spawn(move || {
                let _ = stream.read(&mut [0; 1024]);
                match act {
                    Act::Hang => drop(stream.read_to_end(&mut Vec::new())),
                    Act::HangUp => drop(stream.shutdown(Shutdown::Both)),
                    Act::Say(bytes) => drop(stream.write_all(bytes)),
                }
            });
        }
    });
    address
}

fn over(wire: Wire, address: SocketAddr, count: Option<u64>) -> Plan {
    if wire == Wire::Http {
        return plan(address, &["x"], closed(2), count);
    }
    let target = Target::new(&address.to_string(), wire, Vec::new(), Duration::from_secs(5)).unwrap();
    let outgoing = alipes_client::grpc::unary::control("ServerLive", b"");
    let requests = vec![Prepared::new(&target, &outgoing).unwrap()];
    of_sources(vec![Source { target, requests, sequences: None, weight: 1.0 }], closed(2), count)
}

/// The only failure of a load without answers, which happened as often.
fn failure(record: &Record, times: u64) -> &str {
    assert_eq!(record.answers(), 0);
    assert_eq!(record.failures.values().sum::<u64>(), times, "{:?}", record.failures);
    assert_eq!(record.failures.len(), 1, "{:?}", record.failures);
    record.failures.keys().next().unwrap()
}

#[test]
fn a_server_that_never_answers_is_a_failure_in_time() {
    for wire in [Wire::Http, Wire::Grpc] {
        let plan = over(wire, server(Act::Hang), Some(4));
        let record = measured(Plan { limit: Some(Duration::from_millis(50)), ..plan });
        assert_eq!(failure(&record, 4), "no answer within 0.05 s");
    }
}

#[test]
fn a_server_that_hangs_up_is_a_broken_connection() {
    for wire in [Wire::Http, Wire::Grpc] {
        let record = measured(over(wire, server(Act::HangUp), Some(4)));
        let broken = |text: &String| ["ended", "broke", "closed", "reset"].iter().any(|word| text.contains(word));
        assert!(record.failures.keys().all(broken), "{:?}", record.failures);
        assert_eq!((record.answers(), record.failures.values().sum::<u64>()), (0, 4));
    }
}

#[test]
fn what_is_no_answer_is_a_failure() {
    for wire in [Wire::Http, Wire::Grpc] {
        for garbage in [&b"hello\r\n\r\n"[..], &[0xff; 5000], b"HTTP/1.1 200 OK\r\nContent-Length: nine\r\n\r\n"] {
            let record = measured(over(wire, server(Act::Say(garbage)), Some(3)));
            assert_eq!((record.answers(), record.failures.values().sum::<u64>()), (0, 3), "{wire:?} {garbage:?}");
        }
    }
}

#[test]
fn an_answer_that_is_cut_short_is_a_failure() {
    let record =
        measured(over(Wire::Http, server(Act::Say(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nab")), Some(3)));
    assert!(failure(&record, 3).contains("closed"), "{:?}", record.failures);
}

#[test]
fn no_server_keeps_a_load_from_its_end() {
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    for address in [gone, server(Act::Hang), server(Act::HangUp)] {
        for wire in [Wire::Http, Wire::Grpc] {
            let mut plan = over(wire, address, None);
            if address == gone {
                plan.pace = open(1000.0, 4);
            }
            let mut engine = Engine::start(plan).unwrap();
            if address == gone {
                let mut failures = 0;
                until("a failure", || {
                    failures += only(&engine).failures.values().sum::<u64>();
                    failures > 0
                });
            }
            engine.stop(Duration::from_millis(20)).unwrap();
            assert!(engine.is_done());
        }
    }
}
