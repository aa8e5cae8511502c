//! A fuzzer of the heads of answers: a head is whole or not, and says the same whatever stands behind it.

use alipes_testkit::fuzz::{Choices, Fuzzer};

use super::*;

#[test]
fn whatever_a_server_sends_its_head_ends_where_it_ends() {
    let heads = [
        "HTTP/1.1 200 OK\r\nContent-Length: 5\r\nInference-Header-Content-Length: 3\r\n\r\nhello",
        "HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello",
        "HTTP/1.0 200 OK\r\nConnection: keep-alive, x\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\n",
        "\u{15}\u{3}\u{1}\u{0}\u{2}",
    ];
    let seeds = heads.iter().map(|head| Choices::seed(head.as_bytes(), &[0, 0]));
    Fuzzer::new("client-http-head", seeds).words(["Content-Length", "chunked", "\r\n\r\n"]).run(check);
}

fn check(input: &[u8]) {
    let (wire, mut choices) = Choices::split(input, 2);
    let part = &wire[..choices.below(wire.len() + 1)];
    match (response(wire), response(part)) {
        (Ok(Some(whole)), Ok(seen)) => {
            assert!(whole.size <= wire.len());
            assert!(whole.keep <= (whole.length != Length::UntilClosed), "the next answer would be taken for this one");
            assert!(seen.is_none_or(|seen| seen == whole), "a head ends early");
            assert!(seen.is_some() || part.len() < whole.size);
        }
        (Ok(_), Err(error)) => panic!("a part of a head is refused: {error}"),
        (Ok(None), Ok(seen)) => assert_eq!(seen, None),
        (Err(_), Ok(Some(seen))) => panic!("{seen:?} is no head once more has come"),
        (Err(error), _) => assert!(!error.message.is_empty() && error.message.len() < 512),
    }
}
