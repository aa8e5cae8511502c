//! An input for people to see.

use std::fmt;

/// An input, shown as text and as the digits of a vector.
pub(super) struct Input(pub Vec<u8>);

impl fmt::Debug for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "b\"{}\"", self.0.escape_ascii())?;
        write!(f, "hex: ")?;
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
