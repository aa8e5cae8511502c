//! Calls over HTTP to servers of others.

pub mod post;

use crate::net::tls;
