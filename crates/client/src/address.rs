//! Where a server is.

use crate::{ClientError, Kind};

/// A host and a port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Address {
    /// Name or number of the host; without the brackets of IPv6.
    pub host: String,
    /// The port.
    pub port: u16,
}

impl Address {
    /// Reads `host:port`, `[::1]:port`.
    ///
    /// # Errors
    /// What is neither.
    pub fn parse(text: &str) -> Result<Address, ClientError> {
        let wrong = || ClientError::new(Kind::Connect, format!("'{text}' is no address: expected host:port"));
        let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let port = port.parse().map_err(|_| wrong())?;
        let host = match host.strip_prefix('[') {
            Some(rest) => rest.strip_suffix(']').ok_or_else(wrong)?,
            None if host.contains(':') => return Err(wrong()),
            None => host,
        };
        if host.is_empty() || !host.bytes().all(|byte| byte.is_ascii_graphic()) {
            return Err(wrong());
        }
        Ok(Address { host: host.to_owned(), port })
    }

    /// As requests name it.
    pub fn authority(&self) -> String {
        if self.host.contains(':') {
            format!("[{}]:{}", self.host, self.port)
        } else {
            format!("{}:{}", self.host, self.port)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_and_numbers_of_both_kinds() {
        for text in ["localhost:8001", "127.0.0.1:1", "[::1]:8001"] {
            assert_eq!(Address::parse(text).unwrap().authority(), text);
        }
        assert_eq!(Address::parse("[::1]:8001").unwrap().host, "::1");
    }

    #[test]
    fn what_is_no_address_is_named() {
        for text in ["localhost", ":8001", "a:b", "::1:8001", "a b:1", "h:70000"] {
            assert!(Address::parse(text).unwrap_err().message.contains(text), "{text}");
        }
    }
}
