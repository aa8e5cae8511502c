//! Elements of `BYTES` tensors: a 32-bit little-endian length, then that many bytes. Source: binary tensor extension.

/// Bytes of the length in front of an element.
pub const PREFIX_BYTES: usize = 4;

/// A tensor whose last element is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Broken {
    /// Length that the element announces; none where not even the length is there.
    pub announced: Option<usize>,
    /// Bytes that are left.
    pub available: usize,
}

impl Broken {
    /// Triton's words for it.
    pub fn text(&self, input: &str) -> String {
        match self.announced {
            Some(announced) => format!(
                "incomplete string data for inference input '{input}', expecting string of length {announced} but only {} \
                 bytes available",
                self.available
            ),
            None => format!(
                "incomplete string length indicator for inference input '{input}', expecting 4 bytes but only {} bytes \
                 available",
                self.available
            ),
        }
    }
}

/// Splits the first element off.
fn split_first(data: &[u8]) -> Result<(&[u8], &[u8]), Broken> {
    let Some((length, rest)) = data.split_first_chunk::<4>() else {
        return Err(Broken { announced: None, available: data.len() });
    };
    let length = u32::from_le_bytes(*length) as usize;
    rest.split_at_checked(length).ok_or(Broken { announced: Some(length), available: rest.len() })
}

/// Number of elements.
///
/// # Errors
///
/// The last element is cut off.
pub fn count(mut data: &[u8]) -> Result<usize, Broken> {
    let mut elements = 0;
    while !data.is_empty() {
        data = split_first(data)?.1;
        elements += 1;
    }
    Ok(elements)
}

/// The elements, up to the first that is cut off.
pub fn iter(mut data: &[u8]) -> impl Iterator<Item = &[u8]> {
    std::iter::from_fn(move || {
        let (element, rest) = split_first(data).ok()?;
        data = rest;
        Some(element)
    })
}

/// Appends an element.
///
/// # Panics
///
/// If it is longer than 4 GiB, which no message can carry.
pub fn push(data: &mut Vec<u8>, element: &[u8]) {
    let length = u32::try_from(element.len()).expect("an element is shorter than 4 GiB");
    data.extend_from_slice(&length.to_le_bytes());
    data.extend_from_slice(element);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pushed_elements_come_back() {
        let mut data = Vec::new();
        push(&mut data, b"one");
        push(&mut data, b"");
        assert_eq!(count(&data), Ok(2));
        assert_eq!(iter(&data).collect::<Vec<_>>(), [&b"one"[..], b""]);
    }

    #[test]
    fn a_cut_element_is_an_error() {
        let broken = count(&[9, 0, 0, 0, b'a', b'b']).unwrap_err();
        assert_eq!(broken, Broken { announced: Some(9), available: 2 });
        assert!(broken.text("X").contains("length 9 but only 2 bytes"));
        assert_eq!(count(&[1, 0]).unwrap_err().announced, None);
    }
}
