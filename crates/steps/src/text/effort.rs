//! A bound on what regular expressions may cost, since those of a file may explode on a text.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

/// Steps back that one search may take: a tenth of a second. Patterns in use take a few hundred on a long word.
const MAX_STEPS: u64 = 5_000_000;

static LIMITED: Once = Once::new();

/// Calls something that searches with regular expressions; none where a search takes too many steps.
///
/// The `onig` crate says so by a panic.
pub fn bounded<T>(call: impl FnOnce() -> T) -> Option<T> {
    LIMITED.call_once(limit);
    catch_unwind(AssertUnwindSafe(call)).ok()
}

fn limit() {
    // SAFETY: each sets one number of the library, which searches read when they begin. No search runs yet: all of this
    // crate's go through `bounded`, which waits for this.
    unsafe {
        onig_sys::onig_set_retry_limit_in_match(MAX_STEPS as _);
        onig_sys::onig_set_retry_limit_in_search(MAX_STEPS as _);
    }
}
