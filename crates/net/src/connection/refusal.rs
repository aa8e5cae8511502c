//! The end of a connection whose request is refused. What the client still sends is read: a socket that closes over
//! unread bytes withdraws the answer.

use std::io;

use alipes_protocol::limits::REFUSAL_TIME;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

/// Sends the last answer of a connection, and closes it once the client has, or its time is over.
pub async fn end_with_answer<S: AsyncRead + AsyncWrite + Unpin>(mut stream: S, answer: &[u8]) {
    let _ = timeout(REFUSAL_TIME, async {
        stream.write_all(answer).await?;
        stream.shutdown().await?;
        read_rest(&mut stream).await
    })
    .await;
}

/// Reads what a client still sends of a request that is answered already, until it has closed or its time is over.
pub async fn drop_rest<S: AsyncRead + Unpin>(mut stream: S) {
    let _ = timeout(REFUSAL_TIME, read_rest(&mut stream)).await;
}

async fn read_rest<S: AsyncRead + Unpin>(stream: &mut S) -> io::Result<()> {
    let mut rest = [0; 4096];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}
