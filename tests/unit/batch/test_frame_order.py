"""Which frame of a stream is next, with a clock that the test moves."""

from __future__ import annotations

import pytest
from alipes.batch.frames.names import FrameName, frame_name
from alipes.batch.frames.order import Back, Due, FrameOrder, Gap, Late

WAIT_S = 2.0


def frame(number: int, seen_s: float = 0.0, step: int = 1) -> Due:
    return Due(FrameName(number, step, f"{number}.npy"), seen_s)


def order_with(*numbers: int, due: int | None = None) -> FrameOrder:
    order = FrameOrder(WAIT_S, due)
    for number in numbers:
        order.add(frame(number))
    return order


@pytest.mark.parametrize(
    ("file", "number", "step"),
    [
        ("000123.npy", 123, 1),
        ("strain-17.h5", 17, 1),
        ("H-H1_STRAIN-1262304000-1.npy", 1262304000, 1),
        ("L1-1262304000-64.npz", 1262304000, 64),
        ("run2_frame7_raw.npy", 7, 1),
        ("1262304000-4.npy", 1262304000, 4),
    ],
)
def test_the_name_of_a_frame_says_its_place(file: str, number: int, step: int) -> None:
    assert frame_name(file) == FrameName(number, step, file)


def test_a_name_without_a_number_has_no_place() -> None:
    assert frame_name("latest.npy") is None


def test_frames_are_due_by_their_numbers_however_they_come() -> None:
    order = order_with(3, 1, 2)
    found = []
    while (due := order.next(0.0)) is not None:
        assert isinstance(due, Due)
        found.append(due.name.number)
        assert order.done(due, 0.0) == []
    assert found == [1, 2, 3]


def test_a_missing_frame_is_waited_for_and_is_a_gap_then() -> None:
    order = order_with(4, 6, due=4)
    first = order.next(0.0)
    assert isinstance(first, Due)
    order.done(first, 1.0)
    assert order.next(1.0 + WAIT_S - 0.01) is None
    assert order.next(1.0 + WAIT_S) == Gap(5, 6, 1, "did not arrive")
    assert order.next(1.0 + WAIT_S) == frame(6)


def test_a_frame_that_comes_within_the_wait_is_no_gap() -> None:
    order = order_with(6, due=5)
    assert order.next(1.0) is None
    order.add(frame(5, 1.5))
    assert order.next(1.5) == frame(5, 1.5)


def test_gaps_have_the_step_of_their_frames() -> None:
    order = FrameOrder(WAIT_S, 64)
    order.add(frame(192, 0.0, 64))
    assert order.next(WAIT_S) == Gap(64, 192, 64, "did not arrive")


def test_a_late_frame_is_named_once_the_next_one_is_done() -> None:
    order = order_with(7, due=7)
    order.add(frame(5))
    due = order.next(0.0)
    assert isinstance(due, Due)
    assert order.done(due, 0.0) == [Late(frame(5).name)]
    assert order.next(100.0) is None


def test_a_number_far_ahead_waits_while_the_others_come() -> None:
    order = order_with(1, due=1)
    order.add(frame(10**9))
    for number in range(1, 20):
        due = order.next(float(number))
        assert due == frame(number)
        assert isinstance(due, Due)
        order.done(due, float(number))
        order.add(frame(number + 1))
    last = order.next(20.0)
    assert isinstance(last, Due)
    order.done(last, 20.0)
    assert order.next(20.0 + WAIT_S) == Gap(21, 10**9, 1, "did not arrive")


def test_numbers_that_go_back_are_followed_when_nothing_else_comes() -> None:
    order = order_with(1000, due=1000)
    due = order.next(0.0)
    assert isinstance(due, Due)
    order.done(due, 0.0)
    for number in (10, 11, 12):
        order.add(frame(number))
    assert order.next(WAIT_S - 0.1) is None
    assert order.next(WAIT_S) == Back(1001, 10)
    assert order.next(WAIT_S) == frame(10)


def test_a_burst_of_late_frames_is_no_clock_that_was_set_back() -> None:
    order = order_with(*range(20, 23), due=20)
    for number in (10, 11, 12):
        order.add(frame(number))
    late = []
    for number in range(20, 23):
        due = order.next(100.0)
        assert due == frame(number)
        assert isinstance(due, Due)
        late += order.done(due, 100.0)
    assert [one.name.number for one in late] == [10, 11, 12]


def test_a_frame_that_cannot_be_read_is_tried_again_until_it_is_a_gap() -> None:
    order = order_with(1, 2)
    due = order.next(0.0)
    assert isinstance(due, Due)
    assert order.put_off(due, "torn", 0.0, 0.5) is None
    assert order.next(0.4) is None
    assert order.next(0.5) == due
    assert order.put_off(due, "torn", WAIT_S, 0.5) == Gap(1, 2, 1, "torn", "1.npy")
    assert order.next(WAIT_S + 0.5) == frame(2)


def test_what_waits_can_be_left_out() -> None:
    order = order_with(1, 2, 3)
    order.skip_waiting()
    assert order.next(100.0) is None
    order.add(frame(4))
    assert order.next(100.0) == frame(4)
