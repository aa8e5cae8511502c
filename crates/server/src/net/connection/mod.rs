//! One connection, whatever is spoken on it: its bytes, what they show of its client, and how long it is kept.

mod answering;
mod attend;
mod blocked;
mod incoming;
mod line;
mod patience;
mod pulse;
mod socket;
mod spelling;

pub use self::answering::Answering;
pub use self::attend::{End, attend};
pub use self::blocked::Blocked;
pub use self::incoming::Incoming;
pub use self::line::Line;
pub use self::patience::{Patience, Watch};
pub use self::pulse::{Call, Pulse, Turn};
pub use self::socket::{Accepted, Carrier, Socket};
pub use self::spelling::Spelling;
