//! Answers as they left, under the bodies that asked for them: to such a body nothing has to be read or written again.

use std::sync::atomic::{AtomicU64, Ordering};

use alipes_protocol::codec::json::EncodedResponse;
use bytes::Bytes;
use smallvec::SmallVec;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::key::Key;

/// How many bodies are remembered as having come once. Bodies share a place by chance, so this is no promise: it keeps
/// those that come once out of the cache, where they would take the room of answers that are asked for again.
const SEEN_PLACES: usize = 8192;

/// All that an answer depends on, where the body is not changed by headers and names no region: the version, where the
/// body's JSON ends, and the body.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BodyKey {
    /// Under which number the version was loaded.
    pub load: u64,
    /// Length of the JSON in front of tensors; none where all of the body is JSON.
    pub header_length: Option<usize>,
    /// The body as it was sent, or as it was before the client compressed it.
    pub body: Bytes,
    digest: u128,
}

impl BodyKey {
    /// A body that was posted to a version. Nobody outside knows the seed.
    pub fn new(seed: u64, load: u64, header_length: Option<usize>, body: Bytes) -> BodyKey {
        let digest = xxh3_128_with_seed(&body, seed_of(seed, load, header_length));
        BodyKey { load, header_length, body, digest }
    }

    /// Its key, which tells nothing for certain: whoever finds an answer under it compares the bodies.
    pub fn key(&self) -> Key {
        Key { request: self.digest, outputs: SmallVec::new() }
    }

    /// The same with a body of its own, whose memory nobody else holds or changes.
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

/// An answer's body, as it can be sent any number of times.
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

/// Which bodies came lately, by half of their keys.
pub struct Seen(Box<[AtomicU64]>);

impl Default for Seen {
    fn default() -> Seen {
        Seen((0..SEEN_PLACES).map(|_| AtomicU64::new(0)).collect())
    }
}

impl Seen {
    /// Whether this key was the last that came at its place; now it is.
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
        cache.insert_encoded(stored.clone(), encoded("answer"));
        assert_eq!(cache.find_encoded(&stored), Some(encoded("answer")));
        for other in [body_key(2, Some(2), "{}12"), body_key(1, None, "{}12"), body_key(1, Some(2), "{}13")] {
            assert_eq!(cache.find_encoded(&other), None, "{other:?}");
        }
    }

    #[test]
    fn it_goes_with_its_version_and_counts_among_the_bytes() {
        let cache = cache_of(1 << 20);
        cache.insert_encoded(body_key(1, None, "{}"), encoded("one"));
        let one = cache.usage().bytes;
        cache.insert_encoded(body_key(2, None, "{}"), encoded("one and seven"));
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
