//! Sends what waits on a stream, as fast as the server takes it.

use std::future::poll_fn;

use bytes::Bytes;
use h2::SendStream;

use super::outbox::Outbox;

/// Runs until nothing follows or the stream is broken, which the reader reports.
pub async fn write(mut body: SendStream<Bytes>, outbox: &Outbox) {
    while let Some(bytes) = outbox.take().await {
        if send(&mut body, bytes).await.is_err() {
            return;
        }
    }
    let _ = body.send_data(Bytes::new(), true);
}

/// Sends bytes in as many frames as the server's windows want.
///
/// # Errors
/// If the call or the connection is over.
pub async fn send(body: &mut SendStream<Bytes>, mut bytes: Bytes) -> Result<(), h2::Error> {
    while !bytes.is_empty() {
        body.reserve_capacity(bytes.len());
        let mut room = body.capacity();
        while room == 0 {
            match poll_fn(|context| body.poll_capacity(context)).await {
                Some(granted) => room = granted?,
                None => return Err(h2::Reason::STREAM_CLOSED.into()),
            }
        }
        body.send_data(bytes.split_to(room.min(bytes.len())), false)?;
    }
    Ok(())
}
