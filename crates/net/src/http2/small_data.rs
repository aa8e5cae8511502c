//! Data that a client sends in very small frames.

use alipes_protocol::limits::{HTTP2_DATA_CREDIT_BYTES, HTTP2_SMALL_DATA_BYTES};

use super::frames::{END_STREAM, Frame};

/// Counts data in very small frames.
#[derive(Default)]
pub struct SmallData {
    /// Bytes of larger frames that have not been set off against small ones yet.
    credit: usize,
}

impl SmallData {
    /// Whether a data frame counts as one that carries nothing. The last of a call does not: there is one per call.
    #[inline]
    pub fn count(&mut self, frame: &Frame) -> bool {
        if frame.length >= HTTP2_SMALL_DATA_BYTES {
            self.credit = (self.credit + frame.length).min(HTTP2_DATA_CREDIT_BYTES);
            return false;
        }
        if frame.has(END_STREAM) {
            return false;
        }
        let paid = frame.length > 0 && self.credit >= HTTP2_SMALL_DATA_BYTES;
        self.credit -= if paid { HTTP2_SMALL_DATA_BYTES } else { 0 };
        !paid
    }
}

#[cfg(test)]
mod tests {
    use super::super::frames::DATA;
    use super::*;

    #[test]
    fn small_data_frames_are_counted_unless_larger_ones_set_them_off() {
        let data = |length, flags| Frame { length, kind: DATA, flags, stream: 1 };
        let mut small_data = SmallData::default();
        assert!(small_data.count(&data(0, 0)) && small_data.count(&data(1, 0)));
        assert!(small_data.count(&data(HTTP2_SMALL_DATA_BYTES - 1, 0)));
        assert!(!small_data.count(&data(HTTP2_SMALL_DATA_BYTES - 1, END_STREAM)));
        // A client that sends the prefix of each message by itself.
        for _ in 0..100_000 {
            assert!(!small_data.count(&data(HTTP2_SMALL_DATA_BYTES, 0)));
            assert!(!small_data.count(&data(5, 0)));
        }
        // The credit is limited.
        assert!(!small_data.count(&data(1 << 24, 0)));
        let free = (0..).take_while(|_| !small_data.count(&data(1, 0))).count();
        assert_eq!(free, HTTP2_DATA_CREDIT_BYTES / HTTP2_SMALL_DATA_BYTES);
    }
}
