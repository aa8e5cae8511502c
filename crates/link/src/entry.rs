//! A request on its way into the ring.

/// A request to be handed to the worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// A slot that no request is in.
    pub slot: u32,
    /// Below 2^48, not 0, and new with each publication: a request that was revoked gets another when it is placed
    /// again.
    pub ticket: u64,
    /// Its batch size.
    pub rows: u32,
    /// Only requests with the same key are claimed together.
    pub key: u64,
    /// 0: claimed with whatever fits. Else: claimed together with all of the same group, exactly, whatever their rows
    /// and key; they are to be published together.
    pub group: u64,
    /// Offset and length of the frame, see [`crate::request_arena::Placed`].
    pub frame: (u64, u32),
}
