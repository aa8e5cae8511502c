//! The memory that a piece of work takes, exact to the byte.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes that this thread has allocated and not freed, and the most that they were, since `peak` began.
    static HELD: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, counted. A test program that calls [`peak`] says
/// `#[global_allocator] static ALLOCATOR: CountedAllocator = CountedAllocator;`.
pub struct CountedAllocator;

// SAFETY: each call goes on to the system's allocator as it came.
unsafe impl GlobalAlloc for CountedAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize);
        // SAFETY: as the caller promised.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        note(layout.size() as isize);
        // SAFETY: as the caller promised.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both are there for a moment.
        note(size as isize);
        note(-(layout.size() as isize));
        // SAFETY: as the caller promised.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        note(-(layout.size() as isize));
        // SAFETY: as the caller promised.
        unsafe { System.dealloc(old, layout) }
    }
}

fn note(bytes: isize) {
    // Threads allocate while they end, too.
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

/// What work gives, and the most bytes that it held on this thread at a time, its result included.
///
/// Where no [`CountedAllocator`] is installed, the bytes are 0.
pub fn peak<T>(work: impl FnOnce() -> T) -> (T, usize) {
    HELD.set(0);
    PEAK.set(0);
    let result = work();
    (result, usize::try_from(PEAK.get()).unwrap_or(0))
}

/// What work gives, after checking that it held no more bytes than it reserved beforehand and `beside` says of its
/// result. The work calls the function that it is given with all the bytes that it takes from then on.
///
/// # Panics
///
/// If it held more.
pub fn within_reserved<T, E>(
    work: impl FnOnce(&dyn Fn(usize) -> Result<(), E>) -> T,
    beside: impl FnOnce(&T) -> usize,
) -> T {
    let reserved = Cell::new(0);
    let reserve = |bytes: usize| {
        reserved.set(reserved.get().max(bytes));
        Ok(())
    };
    let (result, held) = peak(|| work(&reserve));
    let reserved = reserved.get();
    assert!(held <= reserved + beside(&result), "{held} bytes were held, of which {reserved} were reserved");
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static ALLOCATOR: CountedAllocator = CountedAllocator;

    fn held(bytes: usize, reserved: usize) -> Vec<u8> {
        let work = |reserve: &dyn Fn(usize) -> Result<(), ()>| {
            reserve(reserved).unwrap();
            vec![1; bytes]
        };
        within_reserved(work, Vec::len)
    }

    #[test]
    fn memory_that_was_reserved_or_is_allowed_may_be_held() {
        assert_eq!(held(4096, 0).len() + held(0, 4096).len(), 4096);
    }

    #[test]
    #[should_panic(expected = "4096 bytes were held, of which 100 were reserved")]
    fn memory_that_was_not_reserved_is_found() {
        within_reserved(
            |reserve: &dyn Fn(usize) -> Result<(), ()>| {
                reserve(100).unwrap();
                vec![1_u8; 4096]
            },
            |_| 0,
        );
    }
}
