//! Addresses whose connections flooded the server, and what their next connections may do.
//!
//! Each connection has a budget of its own, and a client that connects again has a new one. So after a flood all
//! connections of the client's address share one budget for a while. What clients owe when they leave adds up to a
//! flood as well. A client that sends nothing which needs the budget does not notice, whatever others do from the same
//! address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Instant;

use alipes_protocol::limits::{
    FLOOD_HOLD_TIME, FLOOD_MAX_ADDRESSES, FLOOD_MAX_HELD, FLOOD_PROBATION_TIME, HTTP2_CONTROL_BURST_SECONDS,
};
use alipes_spec::{AddressRange, ConnectionSpec};
use alipes_stats::events::EventQueue;
use parking_lot::Mutex;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};

use super::frame_budget::FrameBudget;
use super::notices::Notices;

/// Seconds of the shared budget that may be spent at once.
const BURST_S: u32 = 1;

/// Which addresses are on probation, and what others have left unpaid.
pub struct Probation {
    frames_per_s: u32,
    trusted: Vec<AddressRange>,
    addresses: Mutex<HashMap<IpAddr, Account>>,
    /// How many they are, for those who need not look: nearly always none.
    count: AtomicUsize,
    holds: Arc<Semaphore>,
    events: Arc<EventQueue>,
    notices: Notices,
}

/// What is known of an address.
struct Account {
    /// When its probation ends; in the past where it is not on probation.
    until: Instant,
    /// What its connections share on probation; what those that have ended owe before.
    budget: FrameBudget,
}

/// Where a connection comes from.
#[derive(Clone)]
pub struct Origin {
    probation: Arc<Probation>,
    /// None over a Unix socket.
    address: Option<IpAddr>,
}

/// A connection that is held, unread, before it is closed.
pub struct Hold {
    timer: Pin<Box<Sleep>>,
    _permit: OwnedSemaphorePermit,
}

impl Probation {
    /// Nobody is on probation yet. Trusted addresses never are.
    pub fn new(limits: &ConnectionSpec, events: Arc<EventQueue>) -> Arc<Probation> {
        Arc::new(Probation {
            frames_per_s: limits.http2_control_frames_per_s,
            trusted: limits.trusted_proxies.clone(),
            addresses: Mutex::default(),
            count: AtomicUsize::new(0),
            holds: Arc::new(Semaphore::new(FLOOD_MAX_HELD)),
            events,
            notices: Notices::default(),
        })
    }

    /// The origin of a connection from an address; none over a Unix socket.
    pub fn origin(self: &Arc<Self>, address: Option<IpAddr>) -> Origin {
        Origin { probation: Arc::clone(self), address }
    }

    /// Logs a flood, at most once in an interval.
    fn log(&self, who: &str, flood: &str) {
        self.notices.log(&self.events, || {
            format!(
                "an HTTP/2 connection of {who} is closed for a flood of frames ({flood}), \
                 see --http2-max-control-frames"
            )
        });
    }
}

impl Origin {
    /// Whether so many frames fit into the budget of the address; they do where it is not on probation.
    pub fn affords(&self, frames: u32, now: Instant) -> bool {
        if frames == 0 || self.probation.count.load(Ordering::Relaxed) == 0 {
            return true;
        }
        let Some(key) = self.key() else { return true };
        let mut addresses = self.probation.addresses.lock();
        let Some(account) = addresses.get_mut(&key) else { return true };
        if account.until <= now {
            account.budget.settle(now);
            if account.budget.debt() == 0 {
                addresses.remove(&key);
                self.probation.count.store(addresses.len(), Ordering::Relaxed);
            }
            return true;
        }
        account.budget.charge(frames);
        account.budget.settle(now);
        !account.budget.is_overdrawn()
    }

    /// Whether the address is on probation.
    pub fn is_on_probation(&self, now: Instant) -> bool {
        self.probation.count.load(Ordering::Relaxed) > 0
            && self.key().is_some_and(|key| self.probation.addresses.lock().get(&key).is_some_and(|it| it.until > now))
    }

    /// The client has left and owes so many frames: one that leaves before it is cut off has flooded too, once that is
    /// more than one connection may owe.
    pub fn leave(&self, frames: u32, now: Instant) {
        let Some(key) = self.key() else { return };
        let mut addresses = self.probation.addresses.lock();
        let account = entry(&mut addresses, key, now, || {
            FrameBudget::new(self.probation.frames_per_s, HTTP2_CONTROL_BURST_SECONDS, now)
        });
        if account.until > now {
            return; // On probation a frame is charged when it comes.
        }
        account.budget.charge(frames);
        account.budget.settle(now);
        if account.budget.is_overdrawn() {
            self.begin_probation(account, now);
            self.probation.log(&self.name(), "connections that were left");
        }
        self.probation.count.store(addresses.len(), Ordering::Relaxed);
    }

    /// Puts the address on probation for a flood of this name. Holds the connection, where there is room to hold it.
    pub fn penalise(&self, flood: &str) -> Option<Hold> {
        let now = alipes_clock::now();
        self.probation.log(&self.name(), flood);
        let key = self.key()?;
        let mut addresses = self.probation.addresses.lock();
        let budget = || FrameBudget::new(self.probation.frames_per_s, BURST_S, now);
        self.begin_probation(entry(&mut addresses, key, now, budget), now);
        self.probation.count.store(addresses.len(), Ordering::Relaxed);
        let permit = Arc::clone(&self.probation.holds).try_acquire_owned().ok()?;
        Some(Hold { timer: Box::pin(sleep(FLOOD_HOLD_TIME)), _permit: permit })
    }

    /// Begins a probation, or has it last longer.
    fn begin_probation(&self, account: &mut Account, now: Instant) {
        if account.until <= now {
            account.budget = FrameBudget::new(self.probation.frames_per_s, BURST_S, now);
        }
        account.until = now + FLOOD_PROBATION_TIME;
    }

    /// Its name in the log.
    fn name(&self) -> String {
        self.address.map_or_else(|| "a Unix socket".to_owned(), |address| address.to_canonical().to_string())
    }

    /// The address that answers for the connection; none where nobody does. Of IPv6 a client has a whole network.
    fn key(&self) -> Option<IpAddr> {
        let address = self.address?;
        if self.probation.trusted.iter().any(|range| range.contains(address)) {
            return None;
        }
        Some(match address.to_canonical() {
            IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into(),
            address => address,
        })
    }
}

/// The account of an address; a new one, which is not on probation, has this budget.
fn entry(
    addresses: &mut HashMap<IpAddr, Account>,
    key: IpAddr,
    now: Instant,
    budget: impl FnOnce() -> FrameBudget,
) -> &mut Account {
    if !addresses.contains_key(&key) {
        make_room(addresses, now);
    }
    addresses.entry(key).or_insert_with(|| Account { until: now, budget: budget() })
}

/// Leaves room for one more address.
fn make_room(addresses: &mut HashMap<IpAddr, Account>, now: Instant) {
    if addresses.len() < FLOOD_MAX_ADDRESSES {
        return;
    }
    addresses.retain(|_, account| account.until > now);
    if addresses.len() >= FLOOD_MAX_ADDRESSES
        && let Some(first) = addresses.iter().min_by_key(|(_, account)| account.until).map(|(address, _)| *address)
    {
        addresses.remove(&first);
    }
}

impl Hold {
    /// Ready when the connection may be closed.
    pub fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.timer.as_mut().poll(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use alipes_clock::Held;

    use super::*;

    fn probation(trusted: &str) -> Arc<Probation> {
        let trusted_proxies = vec![AddressRange::try_from(trusted.to_owned()).unwrap()];
        Probation::new(&ConnectionSpec { trusted_proxies, ..ConnectionSpec::default() }, Arc::default())
    }

    /// How many frames a connection may be charged, in steps of 64, before its address affords no more.
    fn affordable(probation: &Arc<Probation>, address: &str) -> Option<u32> {
        let origin = probation.origin(address.parse().ok());
        (0..100_000).step_by(64).find(|_| !origin.affords(64, alipes_clock::now()))
    }

    #[tokio::test]
    async fn connections_of_an_address_share_a_budget_after_a_flood() {
        let clock = Held::new();
        let _entered = clock.enter();
        let probation = probation("10.0.0.0/8");
        assert_eq!(affordable(&probation, "203.0.113.9"), None);
        drop(probation.origin("203.0.113.9".parse().ok()).penalise("too_many_resets"));
        assert!(affordable(&probation, "203.0.113.9").is_some_and(|frames| frames <= 1000));
        // A second connection finds nothing left, and one a second later what time has forgiven.
        assert_eq!(affordable(&probation, "::ffff:203.0.113.9"), Some(0));
        assert_eq!(affordable(&probation, "203.0.113.10"), None);
        clock.advance(Duration::from_secs(3));
        assert!(affordable(&probation, "203.0.113.9").is_some_and(|frames| frames > 500));
        clock.advance(FLOOD_PROBATION_TIME);
        assert_eq!(affordable(&probation, "203.0.113.9"), None);
        assert_eq!(probation.count.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_connections_owe_when_they_are_left_adds_up_to_a_flood() {
        let clock = Held::new();
        let _entered = clock.enter();
        let probation = probation("10.0.0.0/8");
        let origin = probation.origin("203.0.113.9".parse().ok());
        // What one connection may owe, and then what time forgives.
        (0..10).for_each(|_| origin.leave(500, alipes_clock::now()));
        for _ in 0..100 {
            clock.advance(Duration::from_millis(500));
            origin.leave(500, alipes_clock::now());
        }
        assert!(!origin.is_on_probation(alipes_clock::now()));
        (0..2).for_each(|_| origin.leave(500, alipes_clock::now()));
        assert!(origin.is_on_probation(alipes_clock::now()));
        assert!(affordable(&probation, "203.0.113.9").is_some_and(|frames| frames <= 1000));
        clock.advance(FLOOD_PROBATION_TIME);
        assert!(!origin.is_on_probation(alipes_clock::now()));
        assert_eq!(affordable(&probation, "203.0.113.9"), None);
        assert_eq!(probation.count.load(Ordering::Relaxed), 0);
    }

    #[tokio::test]
    async fn proxies_that_are_trusted_and_unix_sockets_are_never_on_probation() {
        let probation = probation("10.0.0.0/8");
        for address in ["10.1.2.3", ""] {
            assert!(probation.origin(address.parse().ok()).penalise("too_many_resets").is_none());
            assert_eq!(affordable(&probation, address), None);
        }
    }

    #[tokio::test]
    async fn a_network_of_ipv6_answers_for_its_addresses() {
        let probation = probation("10.0.0.0/8");
        drop(probation.origin("2001:db8::1".parse().ok()).penalise("too_many_resets"));
        assert!(affordable(&probation, "2001:db8::ffff:2").is_some());
        assert_eq!(affordable(&probation, "2001:db8:0:1::1"), None);
    }

    #[tokio::test]
    async fn addresses_and_held_connections_are_bounded() {
        let probation = probation("10.0.0.0/8");
        let mut held = Vec::new();
        for number in 0..FLOOD_MAX_ADDRESSES as u32 + 8 {
            let address = std::net::Ipv4Addr::from_bits(0xcb00_0000 + number);
            held.extend(probation.origin(Some(address.into())).penalise("too_many_resets"));
        }
        assert_eq!(held.len(), FLOOD_MAX_HELD);
        assert_eq!(probation.addresses.lock().len(), FLOOD_MAX_ADDRESSES);
    }
}
