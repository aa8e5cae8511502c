//! What the frames of a client cost, and what pays for them.
//!
//! A frame that brings nothing is honest where the server's own frames give rise to it: window updates and pings
//! acknowledge data, a late reset crosses with an answer. So what is sent earns credit, and only what no credit covers
//! is charged to a budget per time. No credit covers calls that are withdrawn before they could be served, calls that
//! are malformed, empty data, and settings.

use alipes_protocol::limits::{
    HTTP2_BYTES_PER_CREDIT, HTTP2_BYTES_PER_FRAME, HTTP2_CALLS_PER_SETTINGS, HTTP2_CONTROL_BURST_SECONDS,
    HTTP2_CREDIT_PER_DATA, HTTP2_CREDIT_PER_EARLY_ANSWER, HTTP2_CREDIT_PER_HEAD, HTTP2_FRAMES_ON_PROBATION,
    HTTP2_FRAMES_ON_TRUST, HTTP2_MAX_CREDIT, HTTP2_PAYING_DATA_BYTES, HTTP2_SMALL_PIECE_BYTES,
};

use super::frames::{ACK, CONTINUATION, DATA, END_HEADERS, END_STREAM, Frame, HEADERS, PING, RST_STREAM, SETTINGS};
use super::open_calls::{OpenCalls, ResetCall};
use super::small_data::SmallData;
use crate::frame_budget::FrameBudget;
use crate::probation::Origin;

/// A limit that a client exceeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flood {
    /// The client pings too often.
    Pings,
    /// The client sends too many frames that carry nothing.
    Control,
    /// The client withdraws too many calls before they can be served.
    Resets,
}

impl Flood {
    /// The text of the `GOAWAY` frame; gRPC clients know the first and ping less often afterwards.
    pub fn text(self) -> &'static str {
        match self {
            Flood::Pings => "too_many_pings",
            Flood::Control => "too_many_control_frames",
            Flood::Resets => "too_many_resets",
        }
    }
}

/// The account of one connection.
pub struct FrameAccount {
    calls: OpenCalls,
    last_stream: u32,
    small_data: SmallData,
    /// Frames that are paid for.
    credit: u32,
    /// None where nothing is limited.
    budget: Option<FrameBudget>,
    origin: Option<Origin>,
    /// Its address is on probation: it is trusted with next to nothing.
    is_suspect: bool,
    /// What the last charge was for.
    charged_for: Flood,
    flood: Option<Flood>,
}

impl FrameAccount {
    /// An account that may be charged `frames_per_s`; 0 sets no limit.
    pub fn new(frames_per_s: u32, origin: Option<Origin>) -> FrameAccount {
        let now = alipes_clock::now();
        let budget = || FrameBudget::new(frames_per_s, HTTP2_CONTROL_BURST_SECONDS, now);
        let is_suspect = frames_per_s > 0 && origin.as_ref().is_some_and(|origin| origin.is_on_probation(now));
        FrameAccount {
            calls: OpenCalls::default(),
            last_stream: 0,
            small_data: SmallData::default(),
            credit: 0,
            budget: (frames_per_s > 0).then(budget),
            origin,
            is_suspect,
            charged_for: Flood::Control,
            flood: None,
        }
    }

    /// The flood that has overdrawn the account.
    #[inline]
    pub fn flood(&self) -> Option<Flood> {
        self.flood
    }

    /// Where the connection comes from.
    pub fn origin(&self) -> Option<&Origin> {
        self.origin.as_ref()
    }

    /// The last call that the client has begun.
    pub fn last_stream(&self) -> u32 {
        self.last_stream
    }

    /// Whether the connection owes so little that nobody need mind.
    #[inline]
    pub fn is_trusted(&self) -> bool {
        let most = if self.is_suspect { HTTP2_FRAMES_ON_PROBATION } else { HTTP2_FRAMES_ON_TRUST };
        self.budget.as_ref().is_none_or(|budget| budget.debt() <= most)
    }

    /// The same now that time has passed.
    #[inline]
    pub fn is_trusted_by_now(&mut self) -> bool {
        self.is_trusted() || {
            self.settle();
            self.is_trusted()
        }
    }

    /// Enters a frame that was received in a turn of the connection.
    #[inline]
    pub fn receive(&mut self, frame: &Frame, turn: u32) {
        match frame.kind {
            HEADERS => self.receive_head(frame, turn),
            DATA => self.receive_data(frame),
            _ => self.receive_control(frame, turn),
        }
    }

    #[inline]
    fn receive_head(&mut self, frame: &Frame, turn: u32) {
        if frame.stream <= self.last_stream {
            // Trailers, of which a call has one block.
            self.calls.complete_request(frame.stream);
            return self.pay(1);
        }
        self.last_stream = frame.stream;
        self.earn(HTTP2_CREDIT_PER_HEAD);
        if !self.calls.begin(frame.stream, turn, frame.has(END_STREAM)) {
            self.charge(1, Flood::Control);
        }
    }

    #[inline]
    fn receive_data(&mut self, frame: &Frame) {
        if self.calls.contains(frame.stream) {
            if frame.has(END_STREAM) {
                self.calls.complete_request(frame.stream);
            }
            if self.small_data.count(frame) {
                self.charge(1, Flood::Control);
            }
        } else if frame.length < HTTP2_SMALL_PIECE_BYTES {
            self.pay(1);
        }
    }

    fn receive_control(&mut self, frame: &Frame, turn: u32) {
        match frame.kind {
            RST_STREAM => match self.calls.reset(frame.stream, turn) {
                ResetCall::Served => {}
                ResetCall::Unserved => self.charge(1, Flood::Resets),
                ResetCall::Unknown => self.pay(1),
            },
            SETTINGS if !frame.has(ACK) => {
                let calls = u32::try_from(self.calls.count()).unwrap_or(u32::MAX);
                self.charge(1 + calls / HTTP2_CALLS_PER_SETTINGS, Flood::Control);
            }
            CONTINUATION => {
                if !frame.has(END_HEADERS) && frame.length < HTTP2_SMALL_PIECE_BYTES {
                    self.charge(1, Flood::Control);
                }
            }
            // Window updates, pings and their answers, priorities, GOAWAY, and kinds that nobody knows.
            _ => self.pay(1 + u32::try_from(frame.length / HTTP2_BYTES_PER_FRAME).unwrap_or(u32::MAX)),
        }
    }

    /// Enters a frame that was sent.
    #[inline]
    pub fn send(&mut self, frame: &Frame) {
        match frame.kind {
            HEADERS => {
                self.earn(HTTP2_CREDIT_PER_HEAD);
                self.calls.answer(frame.stream);
            }
            DATA if frame.length >= HTTP2_PAYING_DATA_BYTES => {
                let bytes = u32::try_from(frame.length / HTTP2_BYTES_PER_CREDIT).unwrap_or(u32::MAX);
                self.earn(HTTP2_CREDIT_PER_DATA.saturating_add(bytes));
            }
            RST_STREAM => self.send_reset(frame.stream),
            // Their answers.
            PING | SETTINGS if !frame.has(ACK) => self.earn(1),
            _ => {}
        }
        if matches!(frame.kind, HEADERS | DATA) && frame.has(END_STREAM) {
            let ended = self.calls.end(frame.stream);
            self.earn_for_early_answer(ended.is_some_and(|call| !call.request_is_whole));
        }
    }

    /// The server resets calls that it has answered early, and calls that are malformed or one too many.
    fn send_reset(&mut self, stream: u32) {
        match self.calls.end(stream) {
            None => {}
            Some(call) if call.is_answered => self.earn_for_early_answer(!call.request_is_whole),
            Some(_) => self.charge(1, Flood::Control),
        }
    }

    fn earn_for_early_answer(&mut self, is_early: bool) {
        if is_early {
            self.earn(HTTP2_CREDIT_PER_EARLY_ANSWER);
        }
    }

    #[inline]
    fn earn(&mut self, frames: u32) {
        self.credit = self.credit.saturating_add(frames).min(HTTP2_MAX_CREDIT);
    }

    /// Takes frames from the credit, and charges what it does not cover.
    #[inline]
    fn pay(&mut self, frames: u32) {
        let paid = frames.min(self.credit);
        self.credit -= paid;
        if paid < frames {
            self.charge(frames - paid, Flood::Control);
        }
    }

    fn charge(&mut self, frames: u32, flood: Flood) {
        self.charged_for = flood;
        let Some(budget) = &mut self.budget else { return };
        if budget.charge(frames) || (self.is_suspect && budget.unsettled() >= HTTP2_FRAMES_ON_PROBATION) {
            self.settle();
        }
    }

    /// Settles with the connection, and with its address if that is on probation.
    #[cold]
    fn settle(&mut self) {
        let Some(budget) = &mut self.budget else { return };
        let now = alipes_clock::now();
        let frames = budget.settle(now);
        let is_affordable = self.origin.as_ref().is_none_or(|origin| origin.affords(frames, now));
        self.is_suspect = self.origin.as_ref().is_some_and(|origin| origin.is_on_probation(now));
        if self.flood.is_none() && (budget.is_overdrawn() || !is_affordable) {
            self.flood = Some(self.charged_for);
        }
    }
}

impl Drop for FrameAccount {
    /// A client that leaves what it owes leaves it to its address.
    fn drop(&mut self) {
        if let (Some(budget), Some(origin), None) = (&self.budget, &self.origin, self.flood)
            && budget.debt() > HTTP2_FRAMES_ON_TRUST
        {
            origin.leave(budget.debt(), alipes_clock::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use alipes_clock::Held;
    use alipes_protocol::limits::HTTP2_FRAMES_PER_SETTLEMENT;
    use alipes_spec::ConnectionSpec;

    use super::super::frames::{GOAWAY, PRIORITY, WINDOW_UPDATE};
    use super::*;
    use crate::probation::Probation;

    const FRAMES_PER_S: u32 = 1000;
    const BURST: u32 = FRAMES_PER_S * HTTP2_CONTROL_BURST_SECONDS;

    /// A type of frames that nobody knows.
    const UNKNOWN: u8 = 0xf3;
    const PUSH_PROMISE: u8 = 5;

    fn frame(kind: u8, length: usize, flags: u8, stream: u32) -> Frame {
        Frame { length, kind, flags, stream }
    }

    /// A connection whose turns are given by number.
    struct Client {
        account: FrameAccount,
        clock: Held,
        turn: u32,
        _entered: alipes_clock::Entered,
    }

    impl Client {
        fn new() -> Client {
            let clock = Held::new();
            let entered = clock.enter();
            Client { account: FrameAccount::new(FRAMES_PER_S, None), clock, turn: 0, _entered: entered }
        }

        fn says(&mut self, kind: u8, length: usize, flags: u8, stream: u32) {
            self.account.receive(&frame(kind, length, flags, stream), self.turn);
        }

        fn is_sent(&mut self, kind: u8, length: usize, flags: u8, stream: u32) {
            self.account.send(&frame(kind, length, flags, stream));
        }

        /// How often the client can do something until it floods, and which flood it is.
        fn floods(mut self, mut act: impl FnMut(&mut Client, u32)) -> (u32, Flood) {
            for number in 0..1_000_000 {
                act(&mut self, 2 * number + 1);
                if let Some(flood) = self.account.flood() {
                    return (number, flood);
                }
            }
            panic!("it may go on for ever");
        }

        /// Asserts that a client may do something for ever, once in an interval.
        fn may(mut self, interval: Duration, mut act: impl FnMut(&mut Client, u32)) {
            for number in 0..50_000 {
                act(&mut self, 2 * number + 1);
                self.clock.advance(interval);
                assert_eq!(self.account.flood(), None, "after {number}");
            }
        }
    }

    #[test]
    fn frames_of_every_kind_that_bring_nothing_are_bounded() {
        let open = || {
            let mut client = Client::new();
            client.says(HEADERS, 20, END_HEADERS, 1);
            client
        };
        for (kind, length, flags) in [
            (DATA, 0, 0),
            (DATA, 1, 0),
            (PRIORITY, 5, 0),
            (RST_STREAM, 4, 0),
            (SETTINGS, 0, 0),
            (SETTINGS, 6, 0),
            (SETTINGS, 0, ACK),
            (PUSH_PROMISE, 4, 0),
            (PING, 8, 0),
            (PING, 8, ACK),
            (GOAWAY, 8, 0),
            (WINDOW_UPDATE, 4, 0),
            (CONTINUATION, 0, 0),
            (CONTINUATION, 100, 0),
            (UNKNOWN, 0, 0),
            (UNKNOWN, 100, 0),
        ] {
            let (frames, _) = open().floods(|client, _| client.says(kind, length, flags, 1));
            assert!(
                (BURST..BURST + HTTP2_FRAMES_PER_SETTLEMENT + 8).contains(&frames),
                "{frames} of {kind} with {length} bytes"
            );
        }
    }

    #[test]
    fn large_frames_that_bring_nothing_are_bounded_by_their_bytes() {
        let (frames, _) = Client::new().floods(|client, _| client.says(UNKNOWN, 128 << 10, 0, 1));
        assert!(frames < BURST / 32 + 4, "{frames}");
    }

    #[test]
    fn settings_cost_more_where_many_calls_are_open() {
        let mut client = Client::new();
        (1..2001).step_by(2).for_each(|stream| client.says(HEADERS, 20, END_HEADERS, stream));
        let (frames, _) = client.floods(|client, _| client.says(SETTINGS, 6, 0, 0));
        assert!(frames < BURST / 15, "{frames}");
    }

    #[test]
    fn calls_that_are_reset_before_they_are_served_are_a_flood_of_resets() {
        for flags in [0, END_STREAM] {
            let (calls, flood) = Client::new().floods(|client, stream| {
                client.says(HEADERS, 20, flags, stream);
                client.says(RST_STREAM, 4, 0, stream);
            });
            assert!((BURST..BURST + HTTP2_FRAMES_PER_SETTLEMENT).contains(&calls), "{calls}");
            assert_eq!(flood, Flood::Resets);
        }
        // In the next turn, but without a whole request.
        let (_, flood) = Client::new().floods(|client, stream| {
            client.says(HEADERS, 20, 0, stream);
            client.turn += 1;
            client.says(RST_STREAM, 4, 0, stream);
        });
        assert_eq!(flood, Flood::Resets);
    }

    #[test]
    fn calls_that_a_client_makes_the_server_reset_are_bounded() {
        let (calls, _) = Client::new().floods(|client, stream| {
            client.says(HEADERS, 20, END_STREAM, stream);
            client.is_sent(RST_STREAM, 4, 0, stream);
        });
        assert!(calls < BURST + HTTP2_FRAMES_PER_SETTLEMENT, "{calls}");
    }

    #[test]
    fn resets_of_executing_and_answered_calls_cost_nothing() {
        Client::new().may(Duration::ZERO, |client, stream| {
            client.says(HEADERS, 20, END_STREAM, stream);
            client.turn += 1;
            client.says(RST_STREAM, 4, 0, stream);
        });
        Client::new().may(Duration::ZERO, |client, stream| {
            client.says(HEADERS, 20, 0, stream);
            client.is_sent(HEADERS, 20, 0, stream);
            client.says(RST_STREAM, 4, 0, stream);
        });
        // The reset crosses with the end of the answer.
        Client::new().may(Duration::ZERO, |client, stream| {
            client.says(HEADERS, 20, END_STREAM, stream);
            client.is_sent(HEADERS, 20, END_STREAM, stream);
            client.says(RST_STREAM, 4, 0, stream);
        });
    }

    #[test]
    fn a_proxy_may_withdraw_a_thousand_calls_a_second_at_once() {
        Client::new().may(Duration::from_millis(1), |client, stream| {
            client.says(HEADERS, 20, END_STREAM, stream);
            client.says(RST_STREAM, 4, 0, stream);
        });
    }

    #[test]
    fn what_is_still_sent_of_a_call_that_was_answered_early_costs_nothing() {
        Client::new().may(Duration::ZERO, |client, stream| {
            client.says(HEADERS, 20, 0, stream);
            client.is_sent(HEADERS, 20, END_STREAM, stream);
            client.is_sent(RST_STREAM, 4, 0, stream);
            (0..10).for_each(|_| client.says(DATA, 1 << 14, 0, stream));
            (0..4).for_each(|_| client.says(DATA, 50, 0, stream));
            client.says(DATA, 0, END_STREAM, stream);
            client.says(RST_STREAM, 4, 0, stream);
        });
    }

    #[test]
    fn a_client_that_receives_data_may_acknowledge_it() {
        // The window of the call and of the connection after each frame of data, and a ping, as in Go.
        Client::new().may(Duration::ZERO, |client, number| {
            if number == 1 {
                client.says(HEADERS, 20, END_STREAM, 1);
            }
            client.is_sent(DATA, 64, 0, 1);
            client.says(WINDOW_UPDATE, 4, 0, 1);
            client.says(WINDOW_UPDATE, 4, 0, 0);
            client.says(PING, 8, 0, 0);
        });
        // Small answers, each with a ping and a window of the connection.
        Client::new().may(Duration::ZERO, |client, stream| {
            client.says(HEADERS, 20, END_STREAM, stream);
            client.is_sent(HEADERS, 20, 0, stream);
            client.is_sent(DATA, 7, 0, stream);
            client.is_sent(HEADERS, 20, END_STREAM, stream);
            client.says(WINDOW_UPDATE, 4, 0, 0);
            client.says(PING, 8, 0, 0);
        });
        // A kilobyte at a time, late.
        Client::new().may(Duration::ZERO, |client, number| {
            if number % 500 == 1 {
                (0..4).for_each(|_| client.is_sent(DATA, 1 << 18, 0, 1));
                (0..1024).for_each(|_| client.says(WINDOW_UPDATE, 4, 0, 1));
            }
        });
    }

    #[test]
    fn a_client_may_acknowledge_each_small_message_of_a_large_frame() {
        const MESSAGE_BYTES: usize = 80;
        let mut client = Client::new();
        client.says(HEADERS, 20, END_HEADERS, 1);
        for _ in 0..BURST {
            client.is_sent(DATA, 100 * MESSAGE_BYTES, 0, 1);
            (0..100).for_each(|_| client.says(WINDOW_UPDATE, 4, 0, 1));
        }
        assert!(client.account.flood().is_none() && client.account.is_trusted());
    }

    #[test]
    fn a_client_that_opens_its_window_byte_by_byte_pays_for_it() {
        let (updates, _) = Client::new().floods(|client, _| {
            client.says(WINDOW_UPDATE, 4, 0, 1);
            client.is_sent(DATA, 1, 0, 1);
        });
        assert!(updates < BURST + HTTP2_FRAMES_PER_SETTLEMENT, "{updates}");
    }

    #[test]
    fn answers_to_the_servers_pings_cost_nothing() {
        Client::new().may(Duration::ZERO, |client, _| {
            client.is_sent(PING, 8, 0, 0);
            client.says(PING, 8, ACK, 0);
        });
    }

    #[test]
    fn credit_is_limited() {
        let mut client = Client::new();
        (0..10_000).for_each(|_| client.is_sent(DATA, 1 << 18, 0, 1));
        let (updates, _) = client.floods(|client, _| client.says(WINDOW_UPDATE, 4, 0, 0));
        assert!(updates < HTTP2_MAX_CREDIT + BURST + HTTP2_FRAMES_PER_SETTLEMENT, "{updates}");
    }

    #[tokio::test]
    async fn a_client_may_withdraw_calls_now_and_then_while_its_address_floods() {
        let limits = ConnectionSpec { http2_control_frames_per_s: FRAMES_PER_S, ..ConnectionSpec::default() };
        let probation = Probation::new(&limits, Arc::default());
        let origin = || probation.origin("203.0.113.9".parse().ok());
        let client = Client::new();
        let attacked = origin();
        drop(attacked.penalise("too_many_resets"));
        let client = Client { account: FrameAccount::new(FRAMES_PER_S, Some(origin())), ..client };
        let mut calls = 0;
        client.may(Duration::from_millis(120), |client, stream| {
            calls += 1;
            // The address is kept on probation, and its budget overdrawn.
            if calls % 500 == 0 {
                drop(attacked.penalise("too_many_resets"));
            }
            attacked.affords(200, client.clock.now());
            client.says(HEADERS, 20, END_STREAM, stream);
            client.says(RST_STREAM, 4, 0, stream);
        });
    }

    #[test]
    fn without_a_limit_nothing_is_a_flood() {
        let client = Client { account: FrameAccount::new(0, None), ..Client::new() };
        client.may(Duration::ZERO, |client, _| client.says(UNKNOWN, 1 << 14, 0, 0));
    }

    #[test]
    fn a_connection_in_debt_is_trusted_again_once_time_has_forgiven_it() {
        let mut client = Client::new();
        (0..=HTTP2_FRAMES_ON_TRUST).for_each(|_| client.says(SETTINGS, 0, 0, 0));
        assert!(!client.account.is_trusted_by_now());
        client.clock.advance(Duration::from_secs(1));
        assert!(!client.account.is_trusted() && client.account.is_trusted_by_now());
    }
}
