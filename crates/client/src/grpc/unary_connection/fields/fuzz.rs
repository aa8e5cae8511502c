//! A fuzzer of header blocks: whatever they say, few bytes are remembered.

use alipes_testkit::fuzz::Fuzzer;

use super::*;

/// A block behind its length.
fn counted(block: &[u8]) -> Vec<u8> {
    [&[block.len() as u8], block].concat()
}

#[test]
fn whatever_headers_a_server_sends_few_are_remembered() {
    let blocks: [&[u8]; 6] = [
        b"\x88\x40\x0ccontent-type\x10application/grpc",
        b"\x00\x0bgrpc-status\x010",
        b"\x88\x00\x0bgrpc-status\x015\x00\x0cgrpc-message\x06no%20x",
        b"\xbe\xbf\x7e\x01x\x3f\x11\x20",
        b"\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff",
        b"\x3f\xe1\x1f\x40\x01a\x01b\xbe\xbe",
    ];
    let seeds = blocks.iter().map(|block| counted(block));
    let all = blocks.iter().flat_map(|block| counted(block)).collect();
    Fuzzer::new("client-headers", seeds.chain([all])).words(["grpc-status", "grpc-message", ":status"]).run(check);
}

fn check(input: &[u8]) {
    let (mut fields, mut rest) = (Fields::default(), input);
    while let Some((&length, behind)) = rest.split_first() {
        let (block, behind) = behind.split_at(usize::from(length).min(behind.len()));
        rest = behind;
        let mut plain = 0;
        let read = fields.read(block, |name, value| plain += name.len() + value.len());
        // A byte may stand for all that is remembered.
        assert!(plain <= block.len() * TABLE_BYTES);
        assert_eq!(fields.bytes, fields.remembered.iter().map(size).sum::<usize>());
        assert!(fields.bytes <= TABLE_BYTES, "{} bytes", fields.bytes);
        if read.is_none() {
            return;
        }
    }
}
