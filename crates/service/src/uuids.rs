//! Random identifiers: of exchanges in the payload log, of events.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};

/// A source of identifiers that no other has.
#[derive(Default)]
pub struct Uuids {
    random: RandomState,
    drawn: AtomicU64,
}

impl Uuids {
    /// A random identifier, as RFC 9562 writes those of version 4.
    pub fn next(&self) -> String {
        let number = self.drawn.fetch_add(1, Ordering::Relaxed);
        let (high, low) = (self.random.hash_one((1, number)), self.random.hash_one((2, number)));
        let (high, low) = (high & !0xF000 | 0x4000, low & !(3 << 62) | (2 << 62));
        let (a, b, c) = (high >> 32, high >> 16 & 0xFFFF, high & 0xFFFF);
        format!("{a:08x}-{b:04x}-{c:04x}-{:04x}-{:012x}", low >> 48, low & 0xFFFF_FFFF_FFFF)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn identifiers_are_of_version_4_and_differ() {
        let uuids = Uuids::default();
        let names: BTreeSet<String> = (0..100).map(|_| uuids.next()).collect();
        assert_eq!(names.len(), 100);
        for name in names {
            assert_eq!((name.len(), &name[14..15]), (36, "4"), "{name}");
            assert!(matches!(&name[19..20], "8" | "9" | "a" | "b"), "{name}");
        }
    }
}
