//! How many bytes of tensors are copied in this process.
//!
//! Each line that copies a tensor's bytes on purpose says so here. Debug builds count, and a test compares the count
//! with what the explanation of memory and copies promises; release builds know nothing of it.

/// Takes note that so many bytes are copied.
#[inline(always)]
pub fn note(bytes: usize) {
    #[cfg(debug_assertions)]
    COUNT.fetch_add(bytes as u64, std::sync::atomic::Ordering::Relaxed);
    #[cfg(not(debug_assertions))]
    let _ = bytes;
}

#[cfg(debug_assertions)]
static COUNT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);

/// Bytes that were copied since the process began.
#[cfg(debug_assertions)]
pub fn copied_bytes() -> u64 {
    COUNT.load(std::sync::atomic::Ordering::Relaxed)
}
