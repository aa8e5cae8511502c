//! The network: listeners, connections, HTTP/2, encryption and limits. It knows neither HTTP's routes nor gRPC's
//! methods.

#![forbid(unsafe_code)]

pub mod accept_pause;
mod acceptor;
pub mod aligned;
pub mod api_keys;
pub mod bind;
mod capacity;
pub mod connection;
mod frame_budget;
pub mod http2;
pub mod idle;
pub mod listener;
pub mod network;
mod notices;
pub mod opening;
pub mod phase;
pub mod phases;
pub mod policy;
pub mod probation;
pub mod protocol;
pub mod restricted;
mod spare;
mod steps;
pub mod tls;
mod turnover;
mod wakeup;
