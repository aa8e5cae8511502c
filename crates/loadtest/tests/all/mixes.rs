//! Several sources in one load.

use alipes_loadtest::{Engine, Loop, Plan, Source};

use crate::support::{GOOD, LONGEST_WAIT, Server, closed, held, of_sources, open, plan, until};

fn source(server: &Server, weight: f64) -> Source {
    let mut source = plan(server.address, &["x"], closed(1), None).sources.remove(0);
    source.weight = weight;
    source
}

fn mixed(servers: &[(&Server, f64)], pace: Loop, count: Option<u64>) -> Plan {
    of_sources(servers.iter().map(|(server, weight)| source(server, *weight)).collect(), pace, count)
}

fn good() -> Server {
    Server::start(|_, _| Some(GOOD.to_owned()))
}

#[test]
fn sources_have_their_shares_and_their_own_records() {
    let refusing = || Server::start(|_, _| Some("HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n".to_owned()));
    for pace in [closed(3), open(3000.0, 4)] {
        let (often, seldom) = (good(), refusing());
        let mut engine = Engine::start(mixed(&[(&often, 3.0), (&seldom, 1.0)], pace, Some(100))).unwrap();
        until("the end of the load", || engine.is_done());
        engine.stop(LONGEST_WAIT).unwrap();
        let records = engine.cut();
        assert_eq!((records[0].answers(), records[0].failures.len()), (75, 0));
        assert_eq!((records[1].answers(), records[1].failures["HTTP status 503"]), (0, 25));
        assert_eq!((often.seen(), seldom.seen()), (75, 25));
    }
}

#[test]
fn a_server_that_hangs_leaves_an_open_loop_to_the_others() {
    let (answer, _release) = held();
    let (stalled, lively) = (Server::start(answer), good());
    let mut engine = Engine::start(mixed(&[(&stalled, 1.0), (&lively, 1.0)], open(2000.0, 1), None)).unwrap();
    until("answers of the other", || lively.seen() > 50);
    assert_eq!(stalled.seen(), 1);
    engine.stop(std::time::Duration::ZERO).unwrap();
}

#[test]
fn a_weight_of_nothing_is_refused() {
    let server = good();
    assert!(Engine::start(mixed(&[(&server, 0.0)], closed(1), None)).is_err());
    assert!(Engine::start(of_sources(Vec::new(), closed(1), None)).is_err());
}
