//! The network: listeners, connections, HTTP/2, encryption and limits. It knows neither HTTP's routes nor gRPC's methods.

pub mod aligned;
pub mod beside;
pub mod bind;
mod capacity;
pub mod connection;
pub mod door;
pub mod http2;
pub mod listener;
pub mod network;
mod restricted;
pub mod tls;
