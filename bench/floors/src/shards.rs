//! One acceptor, and network threads with a single-threaded runtime each, fed in turn.

use std::{future::Future, io::Write, net::TcpListener as StdListener, thread};

use tokio::{
    net::{TcpListener, TcpStream},
    runtime::{Builder, Runtime},
    sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel},
    task::LocalSet,
};

/// Binds, prints the real port as the only line on standard output, and hands connections round to `threads` shards
/// for as long as the process lives.
///
/// # Panics
///
/// Where the socket cannot be bound or a thread cannot be started: nothing can be measured then.
pub fn serve<F, Fut>(port: u16, threads: usize, shard: F)
where
    F: Fn(UnboundedReceiver<TcpStream>) -> Fut + Clone + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    let listener = StdListener::bind(("127.0.0.1", port)).expect("the port can be bound");
    listener.set_nonblocking(true).expect("a socket can be made non-blocking");
    println!("{}", listener.local_addr().expect("a bound socket has an address").port());
    std::io::stdout().flush().expect("standard output is open");
    let shards: Vec<_> = (0..threads).map(|_| start_shard(shard.clone())).collect();
    runtime().block_on(accept(listener, shards));
}

fn start_shard<F, Fut>(shard: F) -> UnboundedSender<std::net::TcpStream>
where
    F: FnOnce(UnboundedReceiver<TcpStream>) -> Fut + Send + 'static,
    Fut: Future<Output = ()> + 'static,
{
    let (sender, mut receiver) = unbounded_channel::<std::net::TcpStream>();
    thread::spawn(move || {
        LocalSet::new().block_on(&runtime(), async move {
            let (adopted, connections) = unbounded_channel();
            tokio::task::spawn_local(shard(connections));
            while let Some(stream) = receiver.recv().await {
                // A socket belongs to the reactor that registers it, so each shard registers its own.
                if let Ok(stream) = TcpStream::from_std(stream) {
                    let _ = adopted.send(stream);
                }
            }
        });
    });
    sender
}

async fn accept(listener: StdListener, shards: Vec<UnboundedSender<std::net::TcpStream>>) {
    let listener = TcpListener::from_std(listener).expect("a listening socket can be registered");
    for shard in shards.iter().cycle() {
        let stream = loop {
            if let Ok((stream, _)) = listener.accept().await {
                break stream;
            }
        };
        if stream.set_nodelay(true).is_ok()
            && let Ok(stream) = stream.into_std()
        {
            let _ = shard.send(stream);
        }
    }
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_io().enable_time().build().expect("a runtime can be built")
}
