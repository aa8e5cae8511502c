//! The live sequences of a model that keeps its own state: who may go on, whose turn it is, and whose time is over.
//!
//! Each live sequence has a slot of its own, so sequences never wait for each other. The requests of one sequence have
//! their turns one after the other, in the order in which they came. The caller that finds a slot at rest drives this
//! slot until nothing waits there any more; the state is handed to that caller and back, so that no other thread can
//! touch it.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::hash::Hash;
use std::time::{Duration, Instant};

use slab::Slab;

/// Longest silence that is kept count of; see the dynamic batcher's longest delay.
const LONGEST_IDLE_TIME: Duration = Duration::from_secs(365 * 24 * 60 * 60);

/// What a request says of its sequence.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags {
    /// It opens the sequence: the state begins anew.
    pub start: bool,
    /// It closes the sequence: the slot is free after its turn.
    pub end: bool,
}

/// Why a request was not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// There is no such sequence, and the request does not start it.
    NotStarted,
    /// All slots are taken.
    Full,
}

/// What somebody finds who asks for a state without sending a request.
#[derive(Debug, PartialEq, Eq)]
pub enum Found<'a, S> {
    /// The state that the requests so far have left.
    State(&'a S),
    /// A request has its turn, or waits for it.
    Busy,
    /// There is no such sequence.
    None,
}

/// Why a state was not taken in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotPut {
    /// A request of the sequence has its turn, or waits for it.
    Busy,
    /// All slots are taken.
    Full,
}

/// The next request of a sequence, with the state that it needs.
#[derive(Debug, PartialEq, Eq)]
pub struct NextRequest<S, W> {
    /// The state after the requests before it; returned with [`Streams::give_back`].
    pub state: S,
    /// The request.
    pub work: W,
}

/// The slots of one model, and the requests that wait in them.
#[derive(Debug)]
pub struct Streams<K, S, W> {
    slots: Slab<Slot<K, S, W>>,
    places: HashMap<K, usize>,
    /// When each slot is to be looked at; at the latest when its time is over. Requests do not change it.
    looks: BinaryHeap<Reverse<Look>>,
    limit: usize,
    idle_time: Duration,
    born: u64,
    waiting: usize,
}

/// When a slot is to be looked at, where it is, and which of those that were there it was.
type Look = (Instant, usize, u64);

#[derive(Debug)]
struct Slot<K, S, W> {
    key: K,
    number: u64,
    state: S,
    line: VecDeque<(Flags, W)>,
    /// Somebody drives it.
    driven: bool,
    /// The state is with a request that has its turn.
    away: bool,
    /// The newest request has not closed the sequence.
    open: bool,
    touched: Instant,
}

impl<K: Clone + Eq + Hash, S: Default, W> Streams<K, S, W> {
    /// No sequences yet.
    ///
    /// # Arguments
    ///
    /// * `limit` - most live sequences.
    /// * `idle_time` - silence after which a sequence is over.
    pub fn new(limit: usize, idle_time: Duration) -> Self {
        Streams {
            slots: Slab::new(),
            places: HashMap::new(),
            looks: BinaryHeap::new(),
            limit,
            idle_time: idle_time.min(LONGEST_IDLE_TIME),
            born: 0,
            waiting: 0,
        }
    }

    /// Takes a request in. Where its slot was at rest, the caller drives it from now on: it calls [`take`](Self::take)
    /// until there is nothing to be taken.
    ///
    /// # Errors
    ///
    /// The request comes back where it may not go on with its sequence, or not begin one.
    pub fn enter(&mut self, now: Instant, key: K, flags: Flags, work: W) -> Result<Option<usize>, (Refusal, W)> {
        let place = match self.places.get(&key) {
            // Looked at late, but not treated late.
            Some(&place) if self.is_over(place, now) => {
                self.free(place);
                None
            }
            place => place.copied(),
        };
        let place = match place {
            Some(place) if flags.start || self.slots[place].open => place,
            None if flags.start && self.has_room(now) => self.open(now, key),
            None if flags.start => return Err((Refusal::Full, work)),
            _ => return Err((Refusal::NotStarted, work)),
        };
        let slot = &mut self.slots[place];
        slot.open = !flags.end;
        slot.touched = now;
        slot.line.push_back((flags, work));
        self.waiting += 1;
        Ok((!std::mem::replace(&mut slot.driven, true)).then_some(place))
    }

    /// The next request of a slot that the caller drives; none gives the slot back.
    pub fn take(&mut self, place: usize) -> Option<NextRequest<S, W>> {
        let slot = &mut self.slots[place];
        let Some((flags, work)) = slot.line.pop_front() else {
            slot.driven = false;
            if !slot.open {
                self.free(place);
            }
            return None;
        };
        self.waiting -= 1;
        slot.away = true;
        let previous = std::mem::take(&mut slot.state);
        Some(NextRequest { state: if flags.start { S::default() } else { previous }, work })
    }

    /// Takes the state back after a request. The time of its execution is no silence.
    pub fn give_back(&mut self, now: Instant, place: usize, state: S) {
        let slot = &mut self.slots[place];
        slot.state = state;
        slot.away = false;
        slot.touched = now;
    }

    /// The state of a sequence between its requests. Asking for it is no request: silence goes on.
    pub fn find(&self, now: Instant, key: &K) -> Found<'_, S> {
        match self.places.get(key) {
            Some(&place) if self.is_busy(place) => Found::Busy,
            Some(&place) if self.slots[place].open && !self.is_over(place, now) => {
                Found::State(&self.slots[place].state)
            }
            _ => Found::None,
        }
    }

    /// Has a sequence go on from a state, be it live or not; gives back what the state replaces.
    ///
    /// # Errors
    ///
    /// The state comes back where its sequence is at work, or has no slot and gets none.
    pub fn put(&mut self, now: Instant, key: K, state: S) -> Result<S, (NotPut, S)> {
        let place = match self.places.get(&key).copied() {
            Some(place) if self.is_busy(place) => return Err((NotPut::Busy, state)),
            Some(place) => place,
            None if self.has_room(now) => self.open(now, key),
            None => return Err((NotPut::Full, state)),
        };
        let slot = &mut self.slots[place];
        slot.open = true;
        slot.touched = now;
        Ok(std::mem::replace(&mut slot.state, state))
    }

    /// Ends a sequence between its requests; gives back its state, or none where there is no such sequence.
    ///
    /// # Errors
    ///
    /// A request of it has its turn, or waits for it.
    pub fn end(&mut self, key: &K) -> Result<Option<S>, NotPut> {
        match self.places.get(key).copied() {
            Some(place) if self.slots[place].driven || self.is_busy(place) => Err(NotPut::Busy),
            Some(place) => Ok(Some(self.free(place))),
            None => Ok(None),
        }
    }

    /// Moves the states of the sequences whose time is over into `gone`, and returns when to look again; none where no
    /// sequence is left.
    pub fn reap(&mut self, now: Instant, gone: &mut Vec<S>) -> Option<Instant> {
        while let Some(&Reverse((moment, place, number))) = self.looks.peek() {
            let slot = self.slots.get(place).filter(|slot| slot.number == number);
            if slot.is_some() && moment > now {
                return Some(moment);
            }
            self.looks.pop();
            let Some(slot) = slot else { continue };
            if self.is_over(place, now) {
                gone.push(self.free(place));
            } else {
                let from = if slot.driven { now } else { slot.touched };
                self.looks.push(Reverse((from + self.idle_time, place, number)));
            }
        }
        None
    }

    /// Sequences that are live.
    pub fn live(&self) -> usize {
        self.slots.len()
    }

    /// Requests that wait for their turn.
    pub fn waiting(&self) -> usize {
        self.waiting
    }

    fn is_busy(&self, place: usize) -> bool {
        let slot = &self.slots[place];
        slot.away || !slot.line.is_empty()
    }

    fn is_over(&self, place: usize, now: Instant) -> bool {
        let slot = &self.slots[place];
        !slot.driven && now.saturating_duration_since(slot.touched) >= self.idle_time
    }

    fn has_room(&mut self, now: Instant) -> bool {
        if self.slots.len() >= self.limit {
            self.reap(now, &mut Vec::new());
        }
        self.slots.len() < self.limit
    }

    fn open(&mut self, now: Instant, key: K) -> usize {
        self.born += 1;
        let number = self.born;
        let slot = Slot {
            key: key.clone(),
            number,
            state: S::default(),
            line: VecDeque::new(),
            driven: false,
            away: false,
            open: true,
            touched: now,
        };
        let place = self.slots.insert(slot);
        self.places.insert(key, place);
        self.forget_looks();
        self.looks.push(Reverse((now + self.idle_time, place, number)));
        place
    }

    /// Sequences that have ended leave their looks behind. When these are the most, they are cleared away, so that
    /// short sequences and a long idle time do not pile them up.
    fn forget_looks(&mut self) {
        if self.looks.len() > 2 * self.slots.len() + 16 {
            let slots = &self.slots;
            self.looks
                .retain(|Reverse((_, place, number))| slots.get(*place).is_some_and(|slot| slot.number == *number));
        }
    }

    fn free(&mut self, place: usize) -> S {
        let slot = self.slots.remove(place);
        self.places.remove(&slot.key);
        slot.state
    }
}
