//! Inputs that nobody wrote: what was recorded, damaged.

use proptest::prelude::*;
use proptest::sample::Index;

/// Bytes on which decoders turn: ends of integers, of varints, of strings and of containers.
const TURNING_POINTS: &[u8] = &[0x00, 0x01, 0x7f, 0x80, 0xff, b'"', b'\\', b'{', b'}', b'[', b']', b',', b':', b'-'];

#[derive(Clone, Debug)]
enum Damage {
    Set(Index, u8),
    Flip(Index, u8),
    Remove(Index, usize),
    Repeat(Index, usize, usize),
    Insert(Index, Vec<u8>),
    Cut(Index),
    /// What stands in another input from there on.
    Graft(Index, Index, Index),
}

/// One of the inputs of a corpus, damaged up to eight times; now and then left whole.
pub fn damaged(corpus: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let place = any::<Index>;
    let damage = prop_oneof![
        (place(), prop::sample::select(TURNING_POINTS)).prop_map(|(at, byte)| Damage::Set(at, byte)),
        (place(), 0..8_u8).prop_map(|(at, bit)| Damage::Flip(at, bit)),
        (place(), 1..9_usize).prop_map(|(at, count)| Damage::Remove(at, count)),
        (place(), 1..9_usize, 1..200_usize).prop_map(|(at, count, times)| Damage::Repeat(at, count, times)),
        (place(), proptest::collection::vec(any::<u8>(), 1..6)).prop_map(|(at, bytes)| Damage::Insert(at, bytes)),
        place().prop_map(Damage::Cut),
        (place(), place(), place()).prop_map(|(at, other, from)| Damage::Graft(at, other, from)),
    ];
    (place(), proptest::collection::vec(damage, 0..9)).prop_map(move |(start, damages)| {
        let whole = start.get(&corpus).clone();
        damages.iter().fold(whole, |bytes, damage| apply(bytes, damage, &corpus))
    })
}

fn apply(mut bytes: Vec<u8>, damage: &Damage, corpus: &[Vec<u8>]) -> Vec<u8> {
    let length = bytes.len();
    let within = |place: &Index| place.index(length + 1);
    let span = |place: &Index, count: usize| within(place)..(within(place) + count).min(length);
    match damage {
        Damage::Set(at, byte) => bytes.splice(span(at, 1), [*byte]).for_each(drop),
        Damage::Flip(at, bit) => bytes[span(at, 1)].iter_mut().for_each(|byte| *byte ^= 1 << bit),
        Damage::Remove(at, count) => bytes.drain(span(at, *count)).for_each(drop),
        Damage::Repeat(at, count, times) => {
            let piece = bytes[span(at, *count)].repeat(*times);
            bytes.splice(within(at)..within(at), piece).for_each(drop);
        }
        Damage::Insert(at, more) => bytes.splice(within(at)..within(at), more.iter().copied()).for_each(drop),
        Damage::Cut(at) => bytes.truncate(within(at)),
        Damage::Graft(at, other, from) => {
            let donor = other.get(corpus);
            bytes.truncate(within(at));
            bytes.extend_from_slice(&donor[from.index(donor.len() + 1)..]);
        }
    }
    bytes
}
