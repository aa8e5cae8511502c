//! Whether a model is ready, as all its processes say.

use std::sync::Arc;

use alipes_stats::events::WorkerState;
use tokio::time;

use super::Workers;
use super::checks::{Answer, CHECK_TIMEOUT};
use super::worker::Worker;

/// Asks a worker, or joins those who did.
fn ask(worker: &Worker) -> Answer {
    if !worker.checks.is_offered() {
        return Answer::Known(true);
    }
    let (answer, number) = worker.checks.join();
    if let Some(number) = number {
        match &worker.state.lock().link {
            Some(link) => link.ask(number),
            None => return Answer::Known(false),
        }
    }
    answer
}

async fn wait(worker: &Worker, answer: Answer) -> bool {
    let (until, answer) = match answer {
        Answer::Known(ready) => return ready,
        Answer::Coming { until, answer } => (until, answer),
    };
    match time::timeout_at(until.into(), answer).await {
        // An error: the process has ended without an answer.
        Ok(answered) => answered.unwrap_or(false),
        Err(_) => {
            if worker.checks.is_news() {
                let limit = CHECK_TIMEOUT.as_secs();
                worker.log(WorkerState::Unready, format!("has not said within {limit} s whether its model is ready"));
            }
            false
        }
    }
}

/// Asks all processes of a model that take requests; the future is true where all of them are ready. `None` where the
/// model does not answer such checks.
pub fn ask_all(workers: &Workers) -> Option<impl Future<Output = bool> + use<>> {
    let set = workers.set();
    if !set.list.iter().any(|worker| worker.checks.is_offered()) {
        return None;
    }
    let up = set.list.iter().filter(|worker| worker.is_up());
    // All are asked before the first answer is waited for.
    let answers: Vec<_> = up.map(|worker| (Arc::clone(worker), ask(worker))).collect();
    Some(async move {
        for (worker, answer) in answers {
            if !wait(&worker, answer).await {
                return false;
            }
        }
        true
    })
}
