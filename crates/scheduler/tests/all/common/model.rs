//! The slow model of dynamic batching: the rules in words, from scratch for each question.

use std::time::Instant;

use alipes_scheduler::DynamicPolicy;

use super::Request;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    Take(usize),
    WaitUntil(Instant),
    Nothing,
}

/// What is to happen at `now` with `waiting`, oldest first, each with the moment of its entry.
pub fn answer(waiting: &[(Instant, Request)], policy: &DynamicPolicy, stopping: bool, now: Instant) -> Answer {
    let Some((entered, first)) = waiting.first() else { return Answer::Nothing };
    let rows = |count: usize| waiting[..count].iter().map(|(_, request)| request.rows.max(1)).sum::<u32>();
    let together = |&count: &usize| rows(count) <= policy.max_batch_size && waiting[count - 1].1.key == first.key;
    let fits = 1 + (2..=waiting.len()).take_while(together).count();
    let preferred = (1..=fits).rev().find(|&count| policy.preferred_batch_sizes.contains(&rows(count)));
    let largest = *policy.preferred_batch_sizes.iter().max().expect("the test gives preferred sizes");
    let overshot = (1..=fits).find(|&count| count < waiting.len() && rows(count + 1) > largest);
    let until = *entered + policy.max_queue_delay;
    match preferred.or(overshot) {
        Some(count) if policy.max_queue_delay.is_zero() || (now < until && !stopping) => Answer::Take(count),
        _ if now >= until || stopping || fits < waiting.len() || rows(fits) >= largest => Answer::Take(fits),
        _ => Answer::WaitUntil(until),
    }
}
