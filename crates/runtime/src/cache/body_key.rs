//! Encoded responses by request body: a body that comes again is answered without decoding or encoding.
//!
//! Without it (13 rounds of repeated requests, two shared cores, November 2026), a JSON request of 3x224x224 FP32 takes
//! 7.2 times the processor time (6.1 to 7.7), a small one 1.12 times as JSON (1.01 to 1.22) and 1.11 times as bytes
//! (0.99 to 1.29), an image as bytes 1.03 times (0.96 to 1.09).

use std::sync::atomic::{AtomicU64, Ordering};

use alipes_protocol::codec::json::EncodedResponse;
use bytes::Bytes;
use smallvec::SmallVec;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::key::Key;

/// How many bodies are remembered as seen once. Two bodies may share a place, so this is a heuristic: it keeps bodies
/// that come once out of the cache, where they would evict responses that are used again.
const SEEN_PLACES: usize = 8192;

/// All that a response depends on where no header changes the body and it names no region: the version, the length of
/// its JSON, and the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyKey {
    /// The number of the load of the version.
    pub load: u64,
    /// Length of the JSON in front of tensors; none where all of the body is JSON.
    pub header_length: Option<usize>,
    /// The body as it was sent, or as it was before the client compressed it.
    pub body: Bytes,
    digest: u128,
}

impl BodyKey {
    /// The key of a body sent to a version. Nobody outside knows the seed.
    pub fn new(seed: u64, load: u64, header_length: Option<usize>, body: Bytes) -> BodyKey {
        let digest = xxh3_128_with_seed(&body, seed_of(seed, load, header_length));
        BodyKey { load, header_length, body, digest }
    }

    /// The hash of the body, under which the cache keeps the response. Two bodies may share a hash, so the lookup that
    /// finds a response compares the bodies.
    pub fn key(&self) -> Key {
        Key { request: self.digest, outputs: SmallVec::new() }
    }

    /// This key with a copy of the body, whose memory nobody else holds or changes.
    pub fn copied(self) -> BodyKey {
        BodyKey { body: super::copy(&self.body), ..self }
    }
}

/// Far from the seed for decoded requests; the factors are odd, so that neither number hides the other.
fn seed_of(seed: u64, load: u64, header_length: Option<usize>) -> u64 {
    let header_length = header_length.map_or(0, |length| length as u64 + 1);
    (!seed)
        .wrapping_add(load.wrapping_mul(0x9e37_79b9_7f4a_7c15))
        .wrapping_add(header_length.wrapping_mul(0xd6e8_feb8_6659_fd93))
}

/// An encoded response, which can be sent any number of times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Encoded {
    /// The JSON.
    pub head: Bytes,
    /// Outputs in binary.
    pub tail: Vec<Bytes>,
    /// There are bytes behind the JSON.
    pub binary: bool,
}

impl Encoded {
    /// A copy of an answer that is about to leave: its bytes lie in buffers that others share, or in that of a worker.
    pub fn copy_of(answer: &EncodedResponse) -> Encoded {
        let tail = answer.tail.iter().map(super::copy).collect();
        Encoded { head: Bytes::copy_from_slice(&answer.head), tail, binary: answer.binary }
    }

    /// About how many bytes it takes.
    pub fn bytes(&self) -> usize {
        self.head.len() + self.tail.iter().map(|slice| slice.len() + size_of::<Bytes>()).sum::<usize>()
    }
}

impl From<EncodedResponse> for Encoded {
    fn from(EncodedResponse { head, tail, binary }: EncodedResponse) -> Encoded {
        Encoded { head: head.into(), tail, binary }
    }
}

/// The bodies seen lately, by half of their hashes.
pub struct Seen(Box<[AtomicU64]>);

impl Default for Seen {
    fn default() -> Seen {
        Seen((0..SEEN_PLACES).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Seen {
    /// Whether this key was the last one at its place; it is now.
    pub fn again(&self, body_key: &BodyKey) -> bool {
        self.is_again(body_key.digest)
    }

    fn is_again(&self, key: u128) -> bool {
        let (place, mark) = (key as usize % self.0.len(), (key >> 64) as u64);
        self.0[place].swap(mark, Ordering::Relaxed) == mark
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::tests::cache_of;
    use super::*;

    fn encoded(text: &'static str) -> Encoded {
        Encoded { head: text.into(), tail: vec![Bytes::from_static(&[1, 2])], binary: true }
    }

    fn body_key(load: u64, header_length: Option<usize>, body: &'static str) -> BodyKey {
        BodyKey::new(7, load, header_length, body.into())
    }

    #[test]
    fn the_same_body_finds_the_same_answer_and_no_other_does() {
        let cache = cache_of(1 << 20);
        let stored = body_key(1, Some(2), "{}12");
        cache.insert_encoded(stored.clone(), encoded("answer")).unwrap();
        assert_eq!(cache.find_encoded(&stored), Some(encoded("answer")));
        for other in [body_key(2, Some(2), "{}12"), body_key(1, None, "{}12"), body_key(1, Some(2), "{}13")] {
            assert_eq!(cache.find_encoded(&other), None, "{other:?}");
        }
    }

    #[test]
    fn it_goes_with_its_version_and_counts_among_the_bytes() {
        let cache = cache_of(1 << 20);
        cache.insert_encoded(body_key(1, None, "{}"), encoded("one")).unwrap();
        let one = cache.usage().bytes;
        cache.insert_encoded(body_key(2, None, "{}"), encoded("one and seven")).unwrap();
        assert_eq!((cache.usage().entries, cache.usage().bytes), (2, 2 * one + 10));
        cache.forget(2);
        assert_eq!((cache.usage().entries, cache.usage().bytes), (1, one));
        assert!(cache.find_encoded(&body_key(1, None, "{}")).is_some());
    }

    #[test]
    fn a_body_that_comes_for_the_first_time_has_not_come_before() {
        let seen = Seen::default();
        let keys: Vec<u128> = (1..=100).map(|number: u128| number << 64 | number).collect();
        assert!(!keys.iter().any(|&key| seen.is_again(key)));
        assert!(keys.iter().all(|&key| seen.is_again(key)));
    }

    #[test]
    fn two_bodies_that_share_a_place_only_push_each_other_out() {
        let seen = Seen::default();
        let (one, other) = (1_u128 << 64, 2_u128 << 64);
        assert_eq!([one, other, one, one].map(|key| seen.is_again(key)), [false, false, false, true]);
    }
}
