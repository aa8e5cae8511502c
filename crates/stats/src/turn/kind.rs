//! The kinds of tasks that run on network threads.

/// What a network thread runs a task for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// The thread's own: it is given connections.
    Thread,
    /// Accepts connections.
    Acceptor,
    /// Tells a client that it is not served.
    Rejection,
    /// Looks at certificates.
    Certificates,
    /// A connection. Over HTTP/1 its requests are part of it.
    Connection,
    /// A call over HTTP/2.
    Call,
    /// Lets connections that owe frames take turns.
    Debtors,
    /// Reads and drops a body.
    Discard,
    /// Runs quick models, and hands answers out.
    RunQueue,
    /// Starts a worker process and hears what it says.
    Worker,
    /// Answers a worker that asks something of the server.
    WorkerCall,
    /// Ends sequences that have been silent for too long.
    Reaper,
    /// Has a shadow answer a copy of a request.
    Shadow,
    /// A connection to a server of a graph's steps.
    StepConnection,
}

impl Task {
    /// Each at the place of its number.
    const ALL: [Task; 14] = [
        Task::Thread,
        Task::Acceptor,
        Task::Rejection,
        Task::Certificates,
        Task::Connection,
        Task::Call,
        Task::Debtors,
        Task::Discard,
        Task::RunQueue,
        Task::Worker,
        Task::WorkerCall,
        Task::Reaper,
        Task::Shadow,
        Task::StepConnection,
    ];

    /// The task with this number.
    pub(super) fn numbered(number: u8) -> Task {
        Task::ALL[usize::from(number) % Task::ALL.len()]
    }

    /// Its words in the log.
    pub(super) fn words(self) -> &'static str {
        match self {
            Task::Thread => "the assignment of connections",
            Task::Acceptor => "new connections",
            Task::Rejection => "a rejected connection",
            Task::Certificates => "the reload of certificates",
            Task::Connection => "a connection",
            Task::Call => "a call of HTTP/2",
            Task::Debtors => "connections that flood",
            Task::Discard => "a body that is discarded",
            Task::RunQueue => "the run-to-completion queue",
            Task::Worker => "a worker process",
            Task::WorkerCall => "a call of a worker process",
            Task::Reaper => "idle sequences",
            Task::Shadow => "a copy for a shadow",
            Task::StepConnection => "a connection to a step of the graph",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_task_stands_at_the_place_of_its_number() {
        for (number, task) in (0..).zip(Task::ALL) {
            assert_eq!((task as u8, Task::numbered(number)), (number, task));
        }
    }
}
