//! How an attached instance and its server learn of each other's end, whatever ends either.

use std::io::{self, ErrorKind, Read};
use std::net::Shutdown;
use std::sync::Arc;
use std::thread;

use super::link::Link;

/// Has a link abandoned once the server lets go of its lifeline. The thread needs no interpreter, which a model may
/// hold for long.
///
/// # Errors
///
/// The system refuses a thread.
pub fn watch(link: &Arc<Link>) -> io::Result<()> {
    if link.lifeline().is_none() {
        return Ok(());
    }
    let link = Arc::clone(link);
    thread::Builder::new().name("alipes-lifeline".into()).spawn(move || {
        if let Some(mut lifeline) = link.lifeline() {
            // Nothing is ever sent: whatever there is to read is the end.
            while lifeline.read(&mut [0]).is_err_and(|error| error.kind() == ErrorKind::Interrupted) {}
        }
        link.end.abandon();
    })?;
    Ok(())
}

/// Lets go of the server, and has the watching thread end.
pub fn end(link: &Link) {
    if let Some(lifeline) = link.lifeline().filter(|_| !link.is_forked()) {
        let _ = lifeline.shutdown(Shutdown::Both);
    }
}
