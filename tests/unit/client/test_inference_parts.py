"""The parts of the inference client that talk to nobody: lines, windows, answers, pace and pauses."""

from __future__ import annotations

import gc
import threading
import weakref
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any

import numpy as np
import pytest
from alipes.client.inference.answer_source import AnswerSource
from alipes.client.inference.answers import Answers, Raised
from alipes.client.inference.backoff import Backoff
from alipes.client.inference.failures import may_repeat, of_status, of_text
from alipes.client.inference.pace import Pace
from alipes.client.inference.sequence_queue import PendingRequest, SequenceQueue
from alipes.client.inference.splitting import cut, spans
from alipes.client.inference.unread import AnswerFuture, UnreadFailures
from alipes.client.inference.window import Window
from alipes.errors import DeadlineExceeded, Internal, InvalidArgument, NotReady, Overloaded, TransportError


class Sized:
    """Says of itself what no number is."""

    nbytes = "many"


def waiting(queue: SequenceQueue, count: int) -> list[PendingRequest]:
    queue.waiting.extend(PendingRequest(number, queue, ()) for number in range(count))
    return list(queue.waiting)


def leave(queue: SequenceQueue, request: PendingRequest) -> list[object]:
    request.done = True
    return [one.request_id for one in queue.leave(request)]


def test_answers_leave_a_line_in_the_order_of_its_requests() -> None:
    queue = SequenceQueue(None)
    first, second, third = waiting(queue, 3)
    assert leave(queue, third) == []
    assert leave(queue, first) == [0]
    assert leave(queue, second) == [1, 2]


def test_answers_leave_as_they_come_in_an_unordered_queue() -> None:
    queue = SequenceQueue(None, ordered=False)
    first, second = waiting(queue, 2)
    assert leave(queue, second) == [1]
    assert leave(queue, first) == [0]


def test_a_queue_replays_the_last_updates_of_its_sequence() -> None:
    queue = SequenceQueue(7, checkpoint_size=2)
    for number in range(5):
        queue.note_answered(PendingRequest(number, queue, ((f"{number}", "FP32", (), None),), start=number == 1))  # type: ignore[arg-type]
    replay = queue.replay()
    assert [request.tensors[0][0] for request in replay] == ["3", "4"]
    assert [request.start for request in replay] == [True, False]
    assert queue.answered == 4


def test_a_full_window_lets_the_next_in_when_one_has_left() -> None:
    window, entered = Window(2), threading.Event()
    window.enter()
    window.enter()
    window.enter(wait=False)  # who must not wait is let in beyond
    thread = threading.Thread(target=lambda: (window.enter(), entered.set()))
    thread.start()
    window.leave(1)
    assert not entered.is_set()
    window.leave(1)
    assert entered.wait(60)
    thread.join()
    assert window.count == 2


def test_an_empty_window_is_waited_for() -> None:
    window = Window(None)
    window.wait_empty(0)
    window.enter()
    with pytest.raises(DeadlineExceeded, match="1 requests are not answered"):
        window.wait_empty(0)


def test_requests_keep_their_distance_and_lost_time_is_not_made_up_for() -> None:
    now = [0.0]
    slept: list[float] = []

    def sleep(seconds: float) -> None:
        slept.append(round(seconds, 6))
        now[0] += seconds

    pace = Pace(10, lambda: now[0], sleep)
    for _ in range(3):
        pace.wait()
    assert slept == [0.1, 0.1]
    now[0] += 10
    for _ in range(4):
        pace.wait()
    assert slept == [0.1, 0.1, 0.1, 0.1]


def test_a_rate_that_is_none_is_refused() -> None:
    with pytest.raises(ValueError, match="rate must be a positive number"):
        Pace(0)


def test_pauses_double_and_respect_retry_after() -> None:
    backoff = Backoff(0.1, 1.0, jitter=0)
    assert [backoff.pause_s(attempt) for attempt in (1, 2, 3, 9, 5000)] == [0.1, 0.2, 0.4, 1.0, 1.0]
    assert backoff.pause_s(1, 5) == 5


def test_an_exception_is_raised_after_the_answers_before_it() -> None:
    answers = Answers()
    for one in (1, 2, Raised(KeyError("x")), 3):
        answers.put(one)
    assert answers.take_all() == [1, 2]
    with pytest.raises(KeyError):
        answers.take_all()
    assert answers.take_all() == [3]
    assert answers.take_all() == []
    assert answers.take() is None


class SlowLook(deque[Any]):
    """Lets another thread run between the look at the first and its removal."""

    def __init__(self) -> None:
        super().__init__()
        self.look = threading.Barrier(2)

    def __getitem__(self, at: Any) -> Any:
        found = super().__getitem__(at)
        with suppress(threading.BrokenBarrierError):
            self.look.wait(0.2)
        return found


def test_answers_in_hand_come_before_an_exception() -> None:
    answers = Answers()
    for one in (2, Raised(KeyError("x")), 3):
        answers.put(one)
    assert answers.take_all([1]) == [1, 2]
    with pytest.raises(KeyError):
        answers.take_all()
    assert answers.take_all([]) == [3]


def test_an_exception_stays_behind_what_get_has_waited_for() -> None:
    source = AnswerSource(None, None, None, True, UnreadFailures("m"))
    for one in ("first", Raised(KeyError("x"))):
        source.callback_q.put(one)
    assert source.get(until_empty=True, timeout_s=60) == ["first"]
    with pytest.raises(KeyError):
        source.get(until_empty=True, timeout_s=60)


def test_two_takers_lose_no_answer_before_an_exception() -> None:
    answers = Answers()
    answers._waiting = SlowLook()
    for one in (2, Raised(KeyError("x"))):
        answers.put(one)

    def take() -> list[Any]:
        return answers.take_all([1])

    with ThreadPoolExecutor(2) as pool:
        lists = [one.result() for one in [pool.submit(take), pool.submit(take)]]
    assert sorted(lists) == [[1], [1, 2]]
    assert len(answers) == 1


def test_an_answer_that_is_changed_after_it_came_leaves_no_bytes_behind() -> None:
    answers, kept = Answers(), {"y": np.zeros(1000), "n": Sized()}
    answers.put(kept)
    assert 8000 <= answers.unread_bytes < 9000
    kept.clear()
    assert answers.take() is kept
    assert answers.unread_bytes == 0


def test_a_failed_future_is_gone_with_the_last_look_at_it() -> None:
    future = AnswerFuture(UnreadFailures("m"))
    future.set_exception(KeyError("x"))
    with suppress(KeyError):
        future.result()
    gone = weakref.ref(future)
    gc.disable()
    try:
        del future
        assert gone() is None
    finally:
        gc.enable()


def test_a_forked_process_has_failures_of_its_own(caplog: pytest.LogCaptureFixture) -> None:
    failures = UnreadFailures("m")
    failures.drop(KeyError("dropped"))
    future = AnswerFuture(failures)
    future.set_exception(KeyError("x"))
    held = failures._lock
    with held:  # by a thread that the child does not have
        failures.forget()
        with ThreadPoolExecutor(1) as pool:
            pool.submit(failures.report_all, ()).result(60)
    del future
    assert caplog.messages == []


def test_a_tuple_with_an_exception_is_an_ordinary_answer() -> None:
    answers = Answers()
    answers.put((1, ValueError(), 2))
    assert answers.take()[0] == 1


def test_an_answer_wakes_who_waits_for_it() -> None:
    answers = Answers()
    with ThreadPoolExecutor(1) as pool:
        waits = pool.submit(answers.wait, 60)
        answers.put("here")
        assert waits.result() == "here"


def test_who_waits_for_nothing_that_can_come_is_let_go() -> None:
    answers, over = Answers(), threading.Event()
    with ThreadPoolExecutor(1) as pool:
        waits = pool.submit(answers.wait, None, over.is_set)
        over.set()
        answers.wake()
        assert waits.result() is None


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("[request id: 1] Exceeds maximum queue size", Overloaded),
        ("Request timeout expired", DeadlineExceeded),
        ("Request for unknown model: 'm' is not found", "NotFound"),
        ("Request for unknown model: 'm' version 1 is not at ready state", "NotReady"),
        ("Request for unknown model: 'm' has no available versions", "NotFound"),
        (
            "inference request for sequence 5 to model 'm' must specify the START flag on the first request",
            "InvalidArg",
        ),
        ("onnx runtime error 2: something broke", Internal),
    ],
)
def test_the_text_of_an_error_tells_its_kind(text: str, kind: type | str) -> None:
    error = of_text(text, "m", "1")
    assert type(error).__name__.startswith(kind if isinstance(kind, str) else kind.__name__)
    assert (str(error), error.model, error.request_id) == (text, "m", "1")
    assert isinstance(error, RuntimeError)


def test_busy_and_vanished_servers_may_be_tried_again() -> None:
    assert may_repeat(Overloaded("x"))
    assert may_repeat(NotReady("x"))
    assert may_repeat(of_status("UNAVAILABLE", "x"))
    assert not may_repeat(InvalidArgument("x"))
    assert not may_repeat(of_status("INVALID_ARGUMENT", "x"))
    assert isinstance(of_status("UNAVAILABLE", "x"), TransportError)


@pytest.mark.parametrize(("count", "sequences", "overlap"), [(10, 1, 3), (10, 3, 3), (2, 5, 0), (7, 7, 100)])
def test_spans_cover_each_update_once_with_overlap(count: int, sequences: int, overlap: int) -> None:
    divided = spans(count, sequences, overlap)
    assert [number for span in divided for number in range(span.start, span.stop)] == list(range(count))
    assert all(span.first == max(0, span.start - overlap) for span in divided)


def test_a_stream_is_cut_into_updates_and_its_end_may_be_short() -> None:
    assert [piece.shape for piece in cut(np.zeros((2, 10)), 4)] == [(2, 4), (2, 4), (2, 2)]
    with pytest.raises(InvalidArgument, match="needs samples"):
        cut(np.zeros((2, 0)), 4)
