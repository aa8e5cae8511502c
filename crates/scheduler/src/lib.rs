//! Who runs when.
