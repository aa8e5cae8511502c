//! The phases of the network, from its first connection to its last.

/// How far the network has come with stopping.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd)]
pub enum Phase {
    /// Connections are accepted and requests served.
    Open,
    /// Nothing is accepted; connections end after the request they are in. Metrics stay up.
    Draining,
    /// Everything ends now.
    Closed,
}
