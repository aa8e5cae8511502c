//! What is kept, within a bound on its bytes.

use std::hash::{BuildHasher, RandomState};
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use alipes_request::budget::{Budget, Charge};
use alipes_request::check::{Checked, CheckedInput};
use alipes_request::responder::Reply;
use alipes_stats::metrics::Usage;
use bytes::Bytes;
use lru::LruCache;
use parking_lot::Mutex;

use super::body_key::{BodyKey, Encoded, Seen};
use super::key::{Key, StoredRequest, input_bytes, parameter_bytes};

/// What an entry takes besides what it holds: its places in the table and in the list, and its head.
const ENTRY_BYTES: usize = 256;

/// The server's store of answers, for all models that want it.
pub struct ResponseCache {
    seed: u64,
    limit_bytes: usize,
    /// What requests take until they are answered, copies included.
    budget: Arc<Budget>,
    loads: AtomicU64,
    /// Bodies that came lately.
    seen: Seen,
    entries: Mutex<Entries>,
}

/// What is larger than all that may be kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooLarge {
    /// What it takes.
    pub bytes: usize,
    /// What there is.
    pub limit_bytes: usize,
}

struct Entries {
    by_key: LruCache<Key, Arc<Entry>>,
    bytes: usize,
    evictions: u64,
}

struct Entry {
    /// Under which number its version was loaded.
    load: u64,
    contents: Contents,
    bytes: usize,
}

/// What is kept, with what it answers.
enum Contents {
    Reply(StoredRequest, Reply),
    Encoded(BodyKey, Encoded),
}

impl Contents {
    fn load(&self) -> u64 {
        match self {
            Contents::Reply(request, _) => request.load,
            Contents::Encoded(body_key, _) => body_key.load,
        }
    }

    fn bytes(&self) -> usize {
        match self {
            Contents::Reply(request, reply) => request.bytes() + reply_bytes(reply),
            Contents::Encoded(body_key, encoded) => body_key.body.len() + encoded.bytes(),
        }
    }
}

impl ResponseCache {
    /// An empty one that holds so many bytes at most. What is copied for a request counts in the budget until its
    /// answer.
    pub fn new(limit_bytes: usize, budget: &Arc<Budget>) -> ResponseCache {
        let entries = Entries { by_key: LruCache::unbounded(), bytes: 0, evictions: 0 };
        // Whatever the standard library finds random.
        let seed = RandomState::new().hash_one(0);
        ResponseCache {
            seed,
            limit_bytes,
            budget: Arc::clone(budget),
            loads: AtomicU64::new(0),
            seen: Seen::default(),
            entries: Mutex::new(entries),
        }
    }

    /// A number for a version that is being loaded, given once.
    pub fn next_load(&self) -> u64 {
        self.loads.fetch_add(1, Ordering::Relaxed)
    }

    /// The key of a request.
    pub fn key(&self, load: u64, checked: &Checked) -> Key {
        Key::new(self.seed, load, checked)
    }

    /// The answer to a request, where there is one.
    pub fn find(&self, key: &Key, load: u64, checked: &Checked) -> Option<Reply> {
        let found = self.get(key)?;
        match &found.contents {
            Contents::Reply(request, reply) => request.is(load, checked).then(|| reply.clone()),
            Contents::Encoded(..) => None,
        }
    }

    /// The key of a body sent to a version.
    pub fn body_key(&self, load: u64, header_length: Option<usize>, body: &Bytes) -> BodyKey {
        BodyKey::new(self.seed, load, header_length, body.clone())
    }

    /// The encoded response to a body, where there is one.
    pub fn find_encoded(&self, body_key: &BodyKey) -> Option<Encoded> {
        let found = self.get(&body_key.key())?;
        match &found.contents {
            Contents::Encoded(before, encoded) => (before == body_key).then(|| encoded.clone()),
            Contents::Reply(..) => None,
        }
    }

    /// Whether the body came before, lately. Remembers it as seen.
    pub fn is_repeated(&self, body_key: &BodyKey) -> bool {
        self.seen.again(body_key)
    }

    /// What is kept under a key. Whether it answers the same is for the caller to compare, without the lock: a picture
    /// takes as long as a hundred look-ups.
    fn get(&self, key: &Key) -> Option<Arc<Entry>> {
        self.entries.lock().by_key.get(key).map(Arc::clone)
    }

    /// Counts the copied inputs of a request until the request is done with them.
    pub fn charge(&self, inputs: &mut [CheckedInput]) {
        let bytes: usize = inputs.iter().map(|input| input.data.len()).sum();
        let charge = Charge::unchecked(&self.budget, bytes as u64);
        if let Some(largest) = inputs.iter_mut().max_by_key(|input| input.data.len()) {
            largest.data = charge.over(mem::take(&mut largest.data));
        }
    }

    /// Whether a request might fit, whatever its answer.
    ///
    /// # Errors
    ///
    /// It does not.
    pub fn check_room_for(&self, checked: &Checked) -> Result<(), TooLarge> {
        let bytes = ENTRY_BYTES + input_bytes(&checked.inputs);
        if bytes < self.limit_bytes { Ok(()) } else { Err(TooLarge { bytes, limit_bytes: self.limit_bytes }) }
    }

    /// Keeps an answer. Others make room for it.
    ///
    /// # Errors
    ///
    /// It alone is larger than all that may be kept.
    pub fn insert(&self, key: Key, request: StoredRequest, reply: Reply) -> Result<(), TooLarge> {
        self.put(key, Contents::Reply(request, reply))
    }

    /// Keeps an answer as it was encoded, likewise.
    ///
    /// # Errors
    ///
    /// As for `insert`.
    pub fn insert_encoded(&self, body_key: BodyKey, encoded: Encoded) -> Result<(), TooLarge> {
        self.put(body_key.key(), Contents::Encoded(body_key, encoded))
    }

    fn put(&self, key: Key, contents: Contents) -> Result<(), TooLarge> {
        let bytes = ENTRY_BYTES + contents.bytes();
        if bytes > self.limit_bytes {
            return Err(TooLarge { bytes, limit_bytes: self.limit_bytes });
        }
        let entry = Arc::new(Entry { load: contents.load(), contents, bytes });
        let mut gone = Vec::new();
        let mut entries = self.entries.lock();
        entries.bytes += bytes;
        if let Some(before) = entries.by_key.put(key, entry) {
            entries.bytes -= before.bytes;
            gone.push(before);
        }
        while entries.bytes > self.limit_bytes
            && let Some((_, oldest)) = entries.by_key.pop_lru()
        {
            entries.bytes -= oldest.bytes;
            entries.evictions += 1;
            gone.push(oldest);
        }
        // Freed without the lock.
        drop(entries);
        drop(gone);
        Ok(())
    }

    /// Lets go of everything that a version has answered.
    pub fn forget(&self, load: u64) {
        let mut gone = Vec::new();
        let mut entries = self.entries.lock();
        let keys: Vec<Key> =
            entries.by_key.iter().filter(|(_, entry)| entry.load == load).map(|(key, _)| key.clone()).collect();
        for entry in keys.iter().filter_map(|key| entries.by_key.pop(key)).collect::<Vec<_>>() {
            entries.bytes -= entry.bytes;
            gone.push(entry);
        }
        drop(entries);
        drop(gone);
    }

    /// How full it is.
    pub fn usage(&self) -> Usage {
        let entries = self.entries.lock();
        let (count, bytes, evictions) = (entries.by_key.len(), entries.bytes, entries.evictions);
        Usage { entries: count, bytes, limit_bytes: self.limit_bytes, evictions }
    }
}

fn reply_bytes(reply: &Reply) -> usize {
    let outputs = reply
        .outputs
        .iter()
        .map(|output| output.data.len() + output.name.len() + size_of_val(&output.shape[..]) + size_of_val(output));
    outputs.sum::<usize>() + reply.parameters.iter().map(parameter_bytes).sum::<usize>()
}

#[cfg(test)]
pub mod tests {
    use alipes_protocol::{Datatype, Tensor};

    use super::super::key::tests::checked;
    use super::*;

    const REQUESTS: [&[u8]; 4] = [&[1; 100], &[2; 100], &[3; 100], &[4; 100]];

    pub fn cache_of(limit_bytes: usize) -> ResponseCache {
        ResponseCache::new(limit_bytes, &Budget::new(1 << 20))
    }

    fn reply(bytes: usize) -> Reply {
        let shape = [1].into_iter().collect();
        let output = Tensor { name: "Y".into(), datatype: Datatype::Uint8, shape, data: vec![9; bytes].into() };
        Reply { outputs: vec![output], parameters: Vec::new() }
    }

    fn insert(cache: &ResponseCache, load: u64, request: usize, bytes: usize) {
        put(cache, load, request, bytes).unwrap();
    }

    fn put(cache: &ResponseCache, load: u64, request: usize, bytes: usize) -> Result<(), TooLarge> {
        let checked = checked(REQUESTS[request], &[100]);
        cache.insert(cache.key(load, &checked), StoredRequest::new(load, &checked), reply(bytes))
    }

    fn holds(cache: &ResponseCache, load: u64, request: usize) -> bool {
        let checked = checked(REQUESTS[request], &[100]);
        cache.find(&cache.key(load, &checked), load, &checked).is_some()
    }

    fn size_of_one(bytes: usize) -> usize {
        let cache = cache_of(1 << 20);
        insert(&cache, 0, 0, bytes);
        cache.usage().bytes
    }

    #[test]
    fn the_least_recently_used_answer_is_evicted() {
        let cache = cache_of(3 * size_of_one(1000));
        (0..3).for_each(|request| insert(&cache, 0, request, 1000));
        assert_eq!(cache.usage().bytes, cache.usage().limit_bytes);
        assert!(holds(&cache, 0, 0));
        insert(&cache, 0, 3, 1000);
        assert_eq!([0, 1, 2, 3].map(|request| holds(&cache, 0, request)), [true, false, true, true]);
        assert_eq!((cache.usage().entries, cache.usage().evictions), (3, 1));
    }

    #[test]
    fn an_answer_larger_than_the_cache_evicts_nothing() {
        let limit = size_of_one(1000);
        let cache = cache_of(limit);
        insert(&cache, 0, 0, 1000);
        assert_eq!(put(&cache, 0, 1, 1001), Err(TooLarge { bytes: limit + 1, limit_bytes: limit }));
        assert!(holds(&cache, 0, 0) && !holds(&cache, 0, 1));
        assert_eq!(cache.usage(), Usage { entries: 1, bytes: limit, limit_bytes: limit, evictions: 0 });
    }

    #[test]
    fn a_repeated_answer_replaces_the_first() {
        let cache = cache_of(1 << 20);
        insert(&cache, 0, 0, 1000);
        insert(&cache, 0, 0, 10);
        assert_eq!((cache.usage().entries, cache.usage().bytes), (1, size_of_one(10)));
    }

    #[test]
    fn a_version_that_goes_takes_its_answers_with_it_and_no_others() {
        let cache = cache_of(1 << 20);
        for (load, request) in [(0, 0), (0, 1), (1, 0)] {
            insert(&cache, load, request, 1000);
        }
        cache.forget(0);
        assert_eq!([(0, 0), (0, 1), (1, 0)].map(|(load, request)| holds(&cache, load, request)), [false, false, true]);
        assert_eq!((cache.usage().entries, cache.usage().bytes), (1, size_of_one(1000)));
    }

    #[test]
    fn two_requests_with_one_key_are_compared() {
        let cache = cache_of(1 << 20);
        let (one, other) = (checked(REQUESTS[0], &[100]), checked(REQUESTS[1], &[100]));
        let key = cache.key(0, &one);
        cache.insert(key.clone(), StoredRequest::new(0, &one), reply(10)).unwrap();
        assert!(cache.find(&key, 0, &one).is_some());
        assert!(cache.find(&key, 0, &other).is_none());
    }
}
