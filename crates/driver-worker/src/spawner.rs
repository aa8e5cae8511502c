//! One thread that starts every worker process.
//!
//! A worker asks the kernel to be killed when the *thread* that started it ends. Loader and network threads come and
//! go, so all workers are started by one thread that lives as long as the process.

use std::process::{Child, Command};
use std::sync::{LazyLock, mpsc};
use std::{io, thread};

use tokio::sync::oneshot;

type Spawn = (Command, oneshot::Sender<io::Result<Child>>);

static SPAWNER: LazyLock<io::Result<mpsc::Sender<Spawn>>> = LazyLock::new(|| {
    let (sender, spawns) = mpsc::channel::<Spawn>();
    thread::Builder::new().name("alipes-spawner".into()).spawn(move || {
        for (mut command, parent) in spawns {
            if let Err(Ok(mut child)) = parent.send(command.spawn()) {
                // Nobody waits for it any more.
                let _ = child.kill();
                let _ = child.wait();
            }
        }
    })?;
    Ok(sender)
});

/// Starts a process whose parent thread lives as long as this process.
///
/// # Errors
///
/// The system refuses the thread or the process.
pub async fn spawn(command: Command) -> io::Result<Child> {
    let spawner = SPAWNER.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))?;
    let (parent, child) = oneshot::channel();
    let gone = || io::Error::other("the thread that starts workers has ended");
    spawner.send((command, parent)).map_err(|_| gone())?;
    child.await.map_err(|_| gone())?
}
