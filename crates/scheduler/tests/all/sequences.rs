//! The rules of sequences, on a moved clock.

use std::time::Duration;

use crate::common::hall::{Hall, Step, direct, oldest, policy};
use crate::common::ms;
use alipes_scheduler::sequence::{SequencePolicy, Strategy};
use alipes_scheduler::{DynamicPolicy, Queue, Reason, SequenceId, SlotId};

const COMPUTE: Duration = Duration::from_millis(10);

fn hall(policy: SequencePolicy) -> Hall {
    Hall::new(policy, 1, COMPUTE)
}

fn begin(hall: &mut Hall, sequences: &[u64]) {
    for &sequence in sequences {
        hall.submit(sequence, true, false).expect("it starts");
    }
}

fn go_on(hall: &mut Hall, sequence: u64, requests: usize) {
    for _ in 0..requests {
        hall.submit(sequence, false, false).expect("it goes on");
    }
}

fn slots(hall: &Hall) -> Vec<Vec<(u64, u32)>> {
    let row = |step: &Step| (step.sequence, step.slot_id.slot);
    hall.executed.iter().map(|(_, _, batch)| batch.iter().map(row).collect()).collect()
}

#[test]
fn a_sequence_that_was_not_started_is_refused() {
    for policy in [direct(2), oldest(2, 2)] {
        let mut hall = hall(policy);
        assert_eq!(hall.submit(7, false, false), Err(Reason::NotStarted));
        begin(&mut hall, &[7]);
        assert_eq!(hall.submit(7, false, true), Ok(2));
        assert_eq!(hall.submit(7, false, false), Err(Reason::NotStarted), "its end was taken in");
    }
}

#[test]
fn requests_of_a_sequence_run_one_after_the_other() {
    for policy in [direct(4), oldest(4, 4)] {
        let mut hall = hall(policy);
        begin(&mut hall, &[1]);
        hall.submit(1, false, false).unwrap();
        hall.submit(1, false, true).unwrap();
        hall.run_until(ms(100));
        assert_eq!(hall.batches(), [vec![0], vec![1], vec![2]]);
        assert_eq!(hall.queue.live(), 0);
    }
}

#[test]
fn sequences_have_rows_of_their_own_which_stay_theirs() {
    let mut hall = hall(direct(4));
    begin(&mut hall, &[11, 12, 13]);
    hall.run_until(ms(20));
    hall.submit(13, false, false).unwrap();
    hall.submit(11, false, false).unwrap();
    hall.run_until(ms(100));
    // The first began alone, as nothing was waited for.
    assert_eq!(slots(&hall).concat(), [(11, 0), (12, 1), (13, 2), (11, 0), (13, 2)]);
}

#[test]
fn a_slot_is_free_when_the_end_was_executed_and_goes_to_the_backlog_first() {
    for policy in [direct(1), oldest(1, 1)] {
        let mut hall = hall(policy);
        begin(&mut hall, &[1, 2, 3]);
        hall.submit(2, false, true).unwrap();
        hall.run_until(ms(50));
        assert_eq!(hall.batches(), [vec![0]], "the others wait for the slot");
        hall.submit(1, false, true).unwrap();
        hall.run_until(ms(100));
        assert_eq!(hall.batches(), [vec![0], vec![4], vec![1], vec![3], vec![2]]);
    }
}

#[test]
fn an_id_may_begin_again_behind_its_end() {
    let mut hall = hall(direct(1));
    begin(&mut hall, &[1]);
    hall.submit(1, false, true).unwrap();
    hall.submit(1, true, true).unwrap();
    assert_eq!(hall.queue.live(), 2);
    hall.run_until(ms(100));
    assert_eq!(hall.batches(), [vec![0], vec![1], vec![2]]);
    assert_eq!(hall.queue.live(), 0);
}

#[test]
fn a_start_without_an_end_before_it_goes_on_in_the_same_slot() {
    let mut hall = hall(oldest(4, 4));
    begin(&mut hall, &[1, 2]);
    hall.run_until(ms(50));
    begin(&mut hall, &[1]);
    hall.run_until(ms(100));
    assert_eq!(hall.queue.live(), 2);
    assert_eq!(slots(&hall).concat().last(), Some(&(1, 0)));
}

#[test]
fn slots_spread_over_the_instances() {
    let mut hall = Hall::new(direct(2), 2, COMPUTE);
    begin(&mut hall, &[1, 2]);
    hall.settle();
    begin(&mut hall, &[3, 4]);
    hall.run_until(ms(100));
    let slot_ids: Vec<SlotId> =
        hall.executed.iter().flat_map(|(_, _, batch)| batch.iter().map(|step| step.slot_id)).collect();
    assert!(slot_ids[..2].iter().all(|slot_id| slot_id.slot == 0), "one each");
    assert!(slot_ids[2..].iter().all(|slot_id| slot_id.slot == 1));
}

#[test]
fn rows_that_do_not_agree_wait_for_the_next_batch() {
    let mut hall = hall(direct(4));
    let step = |sequence, key| Step { sequence, start: true, key, ..Step::default() };
    hall.submit_step(step(9, 0)).unwrap();
    hall.settle();
    for (sequence, key) in [(1, 5), (2, 6), (3, 5)] {
        hall.submit_step(step(sequence, key)).unwrap();
    }
    hall.run_until(ms(100));
    assert_eq!(hall.batches(), [vec![0], vec![1, 3], vec![2]]);
}

#[test]
fn silence_ends_a_sequence_and_what_runs_or_waits_is_no_silence() {
    for policy in [direct(1), oldest(1, 1)] {
        let mut hall = Hall::new(policy, 1, ms(3000));
        begin(&mut hall, &[1]);
        hall.run_until(ms(2500));
        assert_eq!(hall.queue.live(), 1, "it has been running for longer than it may be silent");
        begin(&mut hall, &[2]);
        hall.run_until(ms(3999));
        assert_eq!(hall.queue.live(), 2);
        assert_eq!(hall.executed.len(), 1);
        hall.run_until(ms(4000));
        assert_eq!(hall.queue.live(), 1);
        assert_eq!(hall.executed.len(), 2, "its slot went to the one that waited");
        assert_eq!(hall.submit(1, false, false), Err(Reason::NotStarted));
    }
}

#[test]
fn each_request_and_not_the_first_counts_for_silence() {
    let mut hall = hall(direct(4));
    begin(&mut hall, &[1, 2]);
    for round in 1..10 {
        hall.run_until(ms(500 * round));
        assert!(hall.submit(1, false, false).is_ok());
    }
    hall.run_until(ms(5000));
    assert_eq!(hall.submit(2, false, false), Err(Reason::NotStarted));
    assert!(hall.submit(1, false, false).is_ok());
}

#[test]
fn a_sequence_that_expires_in_the_backlog_is_refused_whole() {
    let mut hall = hall(direct(1));
    begin(&mut hall, &[1]);
    let step = |start, timeout| Step { sequence: 2, start, timeout, ..Step::default() };
    hall.submit_step(step(true, ms(300))).unwrap();
    hall.submit_step(step(false, Duration::ZERO)).unwrap();
    hall.submit_step(step(false, ms(100))).unwrap();
    hall.run_until(ms(99));
    assert!(hall.dropped.is_empty());
    hall.run_until(ms(100));
    let reason = Some(Reason::BacklogExpired);
    assert_eq!(hall.dropped, [(1, reason), (2, reason), (3, reason)]);
    assert_eq!(hall.submit(2, false, false), Err(Reason::NotStarted));
}

#[test]
fn a_time_out_says_nothing_about_a_sequence_that_has_a_slot() {
    let mut hall = hall(direct(1));
    let step = Step { sequence: 1, start: true, timeout: ms(5), ..Step::default() };
    hall.submit_step(step).unwrap();
    hall.submit_step(Step { start: false, ..step }).unwrap();
    hall.run_until(ms(100));
    assert_eq!(hall.batches(), [vec![0], vec![1]]);
}

#[test]
fn a_cancelled_request_takes_those_behind_it_along_and_frees_the_slot() {
    for policy in [direct(1), oldest(1, 1)] {
        let mut hall = hall(policy);
        begin(&mut hall, &[1]);
        go_on(&mut hall, 1, 3);
        begin(&mut hall, &[2]);
        hall.settle();
        hall.cancel(2);
        hall.run_until(ms(100));
        assert_eq!(hall.batches(), [vec![0], vec![1], vec![4]], "what came before it was still right");
        assert_eq!(hall.dropped.iter().map(|(id, _)| *id).collect::<Vec<_>>(), [2, 3]);
        assert_eq!(hall.submit(1, false, false), Err(Reason::NotStarted));
    }
}

#[test]
fn requests_behind_a_cancelled_one_are_refused_as_interrupted() {
    for policy in [direct(1), oldest(1, 1)] {
        let mut hall = hall(policy);
        begin(&mut hall, &[1]);
        go_on(&mut hall, 1, 3);
        hall.settle();
        hall.leave(1);
        hall.run_until(ms(100));
        let interrupted = Some(Reason::Interrupted);
        assert_eq!(hall.dropped, [(1, Some(Reason::Cancelled)), (2, interrupted), (3, interrupted)]);
    }
}

#[test]
fn a_caller_who_has_gone_is_seen_before_the_next_batch_however_many_wait() {
    let mut hall = hall(direct(1));
    begin(&mut hall, &[1]);
    go_on(&mut hall, 1, 20);
    hall.settle();
    hall.leave(1);
    assert!(hall.dropped.is_empty());
    hall.run_until(ms(100));
    assert_eq!((hall.batches().len(), hall.dropped.len()), (1, 20));
}

#[test]
fn a_cancelled_request_in_the_backlog_takes_its_sequence_along() {
    let mut hall = hall(direct(1));
    begin(&mut hall, &[1, 2]);
    hall.submit(2, false, false).unwrap();
    hall.cancel(1);
    assert_eq!(hall.dropped, [(1, None), (2, None)]);
    assert_eq!((hall.queue.live(), hall.queue.waiting()), (1, 1));
}

#[test]
fn a_batch_waits_for_enough_ready_slots_or_the_delay() {
    let strategy = Strategy::Direct { slots: 4, max_queue_delay: ms(100), minimum_slot_utilization: 0.5 };
    let mut hall = hall(policy(strategy));
    begin(&mut hall, &[1]);
    hall.run_until(ms(50));
    assert!(hall.executed.is_empty());
    begin(&mut hall, &[2]);
    hall.run_until(ms(60));
    assert_eq!(hall.batches(), [vec![0, 1]]);
    hall.submit(2, false, false).unwrap();
    hall.run_until(ms(300));
    assert_eq!(hall.executed[1].0, ms(160));
}

#[test]
fn the_oldest_strategy_batches_next_requests_dynamically() {
    let batching = crate::common::policy(4, &[2], ms(30));
    let mut hall = hall(policy(Strategy::Oldest { max_candidate_sequences: 8, batching }));
    begin(&mut hall, &[1]);
    hall.run_until(ms(20));
    assert!(hall.executed.is_empty());
    begin(&mut hall, &[2, 3]);
    hall.submit(1, false, false).unwrap();
    hall.run_until(ms(100));
    assert_eq!(hall.batches(), [vec![0, 1], vec![2, 3]]);
}

#[test]
fn more_candidates_than_rows_take_turns_in_order_of_arrival() {
    let mut hall = hall(oldest(4, 2));
    begin(&mut hall, &[1, 2, 3, 4]);
    (1..=4).for_each(|sequence| go_on(&mut hall, sequence, 1));
    hall.run_until(ms(100));
    let order: Vec<u64> = slots(&hall).concat().iter().map(|(sequence, _)| *sequence).collect();
    assert_eq!(order, [1, 2, 3, 4, 1, 2, 3, 4]);
    assert!(hall.executed.iter().all(|(_, _, batch)| batch.len() <= 2));
}

#[test]
fn what_an_instance_forgot_is_over_and_what_is_yet_to_begin_begins() {
    for policy in [direct(2), oldest(2, 2)] {
        let mut hall = hall(policy);
        begin(&mut hall, &[1]);
        hall.run_until(ms(50));
        hall.submit(1, false, false).unwrap();
        begin(&mut hall, &[2]);
        hall.lose(0);
        assert_eq!(hall.dropped, [(1, None)]);
        hall.run_until(ms(100));
        assert_eq!(hall.batches(), [vec![0], vec![2]]);
        assert_eq!(hall.submit(1, false, false), Err(Reason::NotStarted));
        assert!(hall.submit(2, false, false).is_ok());
    }
}

#[test]
fn what_was_put_back_is_next_again() {
    for policy in [direct(2), oldest(2, 2)] {
        let mut hall = hall(policy);
        begin(&mut hall, &[1]);
        hall.submit(1, false, true).unwrap();
        hall.settle();
        hall.put_back(0);
        hall.run_until(ms(100));
        assert_eq!(hall.batches(), [vec![0], vec![0], vec![1]]);
        assert_eq!(hall.queue.live(), 0);
    }
}

#[test]
fn sequences_of_an_instance_that_goes_are_over_and_new_ones_go_elsewhere() {
    let mut hall = Hall::new(direct(1), 2, COMPUTE);
    begin(&mut hall, &[1, 2]);
    hall.run_until(ms(50));
    hall.submit(2, false, false).unwrap();
    hall.rearrange(&[0]);
    hall.run_until(ms(100));
    let gone: Vec<u64> = [1, 2].into_iter().filter(|&id| hall.submit(id, false, false).is_err()).collect();
    assert_eq!(gone.len(), 1);
    begin(&mut hall, &[3]);
    hall.run_until(ms(200));
    assert!(hall.executed.iter().all(|(_, _, batch)| batch[0].sequence != 3), "there is one slot");
    hall.rearrange(&[0, 1]);
    hall.run_until(ms(300));
    assert_eq!(hall.executed.last().map(|(_, instance, _)| *instance), Some(1));
}

#[test]
fn a_stopped_queue_lets_sequences_go_on_and_none_begin() {
    let mut hall = hall(direct(2));
    begin(&mut hall, &[1]);
    let _ = hall.queue.stop(hall.now);
    assert_eq!(hall.submit(2, true, false), Err(Reason::Stopping));
    assert!(hall.submit(1, false, true).is_ok());
}

#[test]
fn nothing_runs_before_as_much_waits_as_a_test_asks_for() {
    let mut policy = direct(2);
    policy.hold.in_slots = 3;
    let mut hall = hall(policy);
    begin(&mut hall, &[1, 2]);
    hall.run_until(ms(50));
    assert!(hall.executed.is_empty());
    hall.submit(1, false, false).unwrap();
    hall.run_until(ms(100));
    assert_eq!(hall.batches(), [vec![0, 1], vec![2]]);
}

#[test]
fn what_is_held_for_a_test_runs_when_the_queue_is_stopped() {
    let mut policy = direct(2);
    policy.hold.in_slots = 3;
    let mut hall = hall(policy);
    begin(&mut hall, &[1]);
    hall.stop();
    hall.run_until(ms(50));
    assert_eq!(hall.batches(), [[0]]);
}

#[test]
fn with_oldest_those_that_are_next_are_held_until_enough_of_them_wait() {
    let batching = DynamicPolicy { max_batch_size: 4, held_until: 3, ..DynamicPolicy::default() };
    let mut hall = hall(policy(Strategy::Oldest { max_candidate_sequences: 4, batching }));
    begin(&mut hall, &[1, 2]);
    go_on(&mut hall, 1, 5);
    hall.run_until(ms(50));
    assert!(hall.executed.is_empty());
    begin(&mut hall, &[3]);
    hall.run_until(ms(100));
    assert_eq!(hall.batches()[0], [0, 1, 7]);
}

#[test]
fn a_sequence_restarted_before_its_end_is_reported() {
    let mut hall = hall(direct(2));
    begin(&mut hall, &[1, 2, 1]);
    assert_eq!(hall.conflicts, [SequenceId::Number(1)]);
    hall.submit(2, false, true).unwrap();
    begin(&mut hall, &[2, 0, 0]);
    assert_eq!(hall.conflicts.len(), 1, "{:?}", hall.conflicts);
}

#[test]
fn a_caller_who_has_gone_is_seen_within_a_microsecond_for_each_that_waits() {
    let mut hall = hall(direct(1));
    begin(&mut hall, &[1]);
    hall.settle();
    go_on(&mut hall, 1, 20);
    hall.leave(5);
    assert!(hall.dropped.is_empty());
    assert_eq!(hall.alarm, Some(hall.now + Duration::from_micros(20)));
    hall.run_until(ms(1));
    assert_eq!((hall.dropped.len(), hall.executed.len()), (16, 1));
}

#[test]
fn what_came_before_a_cancelled_request_is_the_last_of_its_sequence() {
    for policy in [direct(1), oldest(1, 1)] {
        for cancelled in [1, 3] {
            let mut hall = hall(policy.clone());
            begin(&mut hall, &[1]);
            hall.settle();
            go_on(&mut hall, 1, 3);
            begin(&mut hall, &[2]);
            hall.cancel(cancelled);
            assert_eq!(hall.submit(1, false, false), Err(Reason::NotStarted));
            hall.run_until(ms(100));
            let ran: Vec<usize> = (0..cancelled).chain([4]).collect();
            assert_eq!(hall.batches().concat(), ran);
            assert_eq!(hall.queue.live(), 1, "only the second one may go on");
        }
    }
}

#[test]
fn a_request_without_a_sequence_is_one_of_its_own() {
    let mut hall = hall(oldest(2, 2));
    begin(&mut hall, &[0, 0, 0]);
    hall.run_until(ms(100));
    assert_eq!(hall.executed.iter().map(|(_, _, batch)| batch.len()).sum::<usize>(), 3);
    assert_eq!(hall.queue.live(), 0);
}
