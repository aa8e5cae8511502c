//! Where a server is.

use std::fmt;
use std::path::PathBuf;

use crate::error::{ClientError, Kind};

/// What stands in front of the path of a Unix socket.
const UNIX: &str = "unix:";

/// Longest path of a Unix socket, in bytes. Source: `sockaddr_un`, whose last byte ends the path.
const MAX_PATH_BYTES: usize = 107;

/// The address of an endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// Over TCP.
    Tcp {
        /// Name or number of the host; without the brackets of IPv6.
        host: String,
        /// The port.
        port: u16,
    },
    /// A Unix socket.
    Unix(PathBuf),
}

impl Address {
    /// Reads `host:port`, `[::1]:port`, `unix:path`.
    ///
    /// # Errors
    /// What is none of them.
    pub fn parse(text: &str) -> Result<Address, ClientError> {
        match text.strip_prefix(UNIX) {
            Some(path) => unix(path),
            None => tcp(text),
        }
    }

    /// As requests name it.
    pub fn authority(&self) -> String {
        match self {
            Address::Unix(_) => "localhost".to_owned(),
            Address::Tcp { host, port } if host.contains(':') => format!("[{host}]:{port}"),
            Address::Tcp { host, port } => format!("{host}:{port}"),
        }
    }

    /// The name that a certificate has to bear.
    pub fn host(&self) -> &str {
        match self {
            Address::Unix(_) => "localhost",
            Address::Tcp { host, .. } => host,
        }
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Address::Unix(path) => write!(f, "{UNIX}{}", path.display()),
            Address::Tcp { .. } => f.write_str(&self.authority()),
        }
    }
}

fn unix(path: &str) -> Result<Address, ClientError> {
    let wrong = |why: String| ClientError::new(Kind::Connect, format!("'{UNIX}{path}' is no address: {why}"));
    match path {
        "" => Err(wrong("expected a path behind unix:".to_owned())),
        _ if path.contains('\0') => Err(wrong("a path has no zero bytes".to_owned())),
        _ if path.len() > MAX_PATH_BYTES => {
            Err(wrong(format!("the path has {} bytes, a socket's has {MAX_PATH_BYTES} at most", path.len())))
        }
        _ => Ok(Address::Unix(path.into())),
    }
}

fn tcp(text: &str) -> Result<Address, ClientError> {
    let wrong = || ClientError::new(Kind::Connect, format!("'{text}' is no address: expected host:port or unix:path"));
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
    Ok(Address::Tcp { host: host.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_names_and_numbers_of_both_kinds() {
        for text in ["localhost:8001", "127.0.0.1:1", "[::1]:8001"] {
            let address = Address::parse(text).unwrap();
            assert_eq!((address.authority(), address.to_string()), (text.to_owned(), text.to_owned()));
        }
        assert_eq!(Address::parse("[::1]:8001").unwrap().host(), "::1");
    }

    #[test]
    fn a_unix_socket_has_the_authority_localhost() {
        let address = Address::parse("unix:/run/a b.sock").unwrap();
        assert_eq!(address, Address::Unix("/run/a b.sock".into()));
        assert_eq!((address.authority(), address.to_string()), ("localhost".into(), "unix:/run/a b.sock".into()));
    }

    #[test]
    fn what_is_no_address_is_named() {
        let long = format!("unix:{}", "x".repeat(MAX_PATH_BYTES + 1));
        for text in ["localhost", ":8001", "a:b", "::1:8001", "a b:1", "h:70000", "unix:", "unix:a\0b", &long] {
            assert!(Address::parse(text).unwrap_err().message.contains(text), "{text}");
        }
    }
}
