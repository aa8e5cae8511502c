//! One connection, whichever protocol it carries: its bytes, its activity, and its time-outs.

mod activity;
mod drive;
mod ending;
mod paced;
mod refusal;
mod request_body;
mod socket;
mod spelling;
mod stall_timer;
mod timeouts;
mod tracked_body;
mod transport;

pub use self::activity::{Activity, Call, NextActor};
pub use self::drive::{End, drive_call, drive_connection};
pub use self::ending::{CutOff, Ending};
pub use self::refusal::{drop_rest, end_with_answer};
pub use self::request_body::{BodyError, RequestBody};
#[cfg(debug_assertions)]
pub use self::socket::ByteStream;
pub use self::socket::{Accepted, Carrier, Socket};
pub use self::spelling::Spelling;
pub use self::stall_timer::StallTimer;
pub use self::timeouts::{ConnectionTimeouts, Watchdog};
pub use self::tracked_body::TrackedBody;
pub use self::transport::TransportStream;
