//! Which server is asked, and how.

use std::time::Duration;

use crate::address::Address;
use crate::error::ClientError;
use crate::socket::security::{Seal, Security};

/// How requests travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// gRPC over HTTP/2.
    Grpc,
    /// HTTP/1.1: JSON, with binary tensors behind it.
    Http,
}

/// How messages of gRPC are compressed by who prepares them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// As gzip does.
    Gzip,
    /// As zlib does.
    Deflate,
}

impl Compression {
    /// Its name in gRPC.
    pub fn name(self) -> &'static str {
        match self {
            Compression::Gzip => "gzip",
            Compression::Deflate => "deflate",
        }
    }
}

/// A server.
#[derive(Clone, Debug)]
pub struct Target {
    /// Where it is.
    pub address: Address,
    /// How it is asked.
    pub wire: Wire,
    /// What stands in front of each path over HTTP, for servers behind a proxy: empty, or `/prefix`.
    pub prefix: String,
    /// Headers of each request.
    pub headers: Vec<(String, String)>,
    /// Longest time for a connection.
    pub connect_limit: Duration,
    /// How connections are encrypted, where they are.
    pub seal: Option<Seal>,
    /// gRPC: how prepared messages are compressed, where they are.
    pub compression: Option<Compression>,
    /// Whether connections over TCP note when the system had what they read.
    pub timed: bool,
}

impl Target {
    /// A server at `host:port`, `host:port/prefix` or `unix:path`.
    ///
    /// # Errors
    /// What is no address.
    pub fn new(
        text: &str,
        wire: Wire,
        headers: Vec<(String, String)>,
        connect_limit: Duration,
    ) -> Result<Target, ClientError> {
        let (address, prefix) = match text.split_once('/') {
            _ if text.starts_with("unix:") => (text, ""),
            Some((address, prefix)) => (address, prefix.trim_end_matches('/')),
            None => (text, ""),
        };
        let prefix = if prefix.is_empty() { String::new() } else { format!("/{prefix}") };
        let known = |byte: u8| byte.is_ascii_graphic() && byte != b'?' && byte != b'#';
        if !prefix.bytes().all(known) {
            let text = format!("'{prefix}' cannot stand in front of a path");
            return Err(ClientError::new(crate::error::Kind::Connect, text));
        }
        Ok(Target {
            address: Address::parse(address)?,
            wire,
            prefix,
            headers,
            connect_limit,
            seal: None,
            compression: None,
            timed: false,
        })
    }

    /// Whether each request has a header of this name from the caller.
    pub fn names(&self, header: &str) -> bool {
        self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(header))
    }

    /// The same server over encrypted connections.
    ///
    /// # Errors
    /// If no certificate can bear its name.
    pub fn encrypted(mut self, security: &Security) -> Result<Target, ClientError> {
        self.seal = Some(security.seal(self.address.host(), self.wire)?);
        Ok(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_stands_in_front_of_paths() {
        let target = |text| Target::new(text, Wire::Http, Vec::new(), Duration::ZERO).map(|target| target.prefix);
        assert_eq!(target("h:1"), Ok(String::new()));
        assert_eq!(target("h:1/"), Ok(String::new()));
        assert_eq!(target("h:1/a/b/"), Ok("/a/b".to_owned()));
        assert!(target("h:1/a b").is_err());
        assert_eq!(target("unix:/a/b"), Ok(String::new()));
    }
}
