//! One call: a request sent and its answer received, on an open connection or a new one.

use std::time::Duration;

use crate::connection::Connection;
use crate::driver::Driver;
use crate::error::{ClientError, Kind};
use crate::message::{Incoming, Outgoing};
use crate::target::Target;

/// Asks over a connection, or over a new one where there is none, within the limit.
///
/// # Returns
/// The answer, and the connection if it can be used again.
pub async fn exchange(
    target: &Target,
    driver: Driver,
    connection: Option<Connection>,
    request: Outgoing,
    limit: Option<Duration>,
) -> (Result<Incoming, ClientError>, Option<Connection>) {
    let work = attempt(target, driver, connection, request, limit);
    let Some(limit) = limit else { return work.await };
    match tokio::time::timeout(limit, work).await {
        Ok(outcome) => outcome,
        Err(_) => (Err(late(target, limit)), None),
    }
}

async fn attempt(
    target: &Target,
    driver: Driver,
    connection: Option<Connection>,
    request: Outgoing,
    limit: Option<Duration>,
) -> (Result<Incoming, ClientError>, Option<Connection>) {
    let mut usable = connection;
    if let Some(connection) = &mut usable
        && !connection.is_alive().await
    {
        usable = None;
    }
    let mut connection = match usable {
        Some(connection) => connection,
        None => match Connection::open(target, driver).await {
            Ok(connection) => connection,
            Err(error) => return (Err(error), None),
        },
    };
    let (outcome, reusable) = connection.ask(target, request, limit).await;
    (outcome, reusable.then_some(connection))
}

/// The error of a call whose time is up.
pub fn late(target: &Target, limit: Duration) -> ClientError {
    let text = format!("no answer from {} within {} s", target.address, limit.as_secs_f64());
    ClientError::new(Kind::Timeout, text)
}
