"""Every request of the ledger is written down once, with what became of it."""

from __future__ import annotations

import itertools

import pytest
from support.fake_http import fake_http

from bench.load.ledger import Ledger
from bench.load.tool import LoadFailed
from bench.work import BINARY, work

MORTAL = work("mortal", BINARY)


def test_answers_errors_and_silence_are_distinguished() -> None:
    numbers = itertools.count()
    fates = [(200, [7.0, 0.5]), (500, []), None]
    with fake_http(lambda: fates[next(numbers) % 3]) as port, Ledger(port, MORTAL, 1) as ledger:
        ledger.wait_for(lambda entry: entry.status is None)
        ledger.wait_for(lambda entry: entry.status == 500)
    first, second, third = ledger.entries[:3]
    assert (first.succeeded, first.status, first.values) == (True, 200, (7.0, 0.5))
    assert (second.succeeded, second.status, second.text) == (False, 500, "no")
    assert (third.succeeded, third.status) == (False, None)
    assert third.text


def test_each_request_that_was_answered_is_in_the_ledger() -> None:
    numbers = itertools.count()
    with fake_http(lambda: (200, [float(next(numbers)), 0])) as port, Ledger(port, MORTAL, 4) as ledger:
        ledger.wait_for(lambda entry: entry.values[0] > 20)
    answered = sorted(entry.values[0] for entry in ledger.entries)
    assert answered == list(range(next(numbers)))


def test_a_wait_for_what_never_comes_fails() -> None:
    with fake_http(lambda: (503, [])) as port, Ledger(port, MORTAL, 1) as ledger:
        ledger.wait_for(lambda entry: entry.status == 503)
        with pytest.raises(LoadFailed, match=r"others: \{\(503, 'no'\)\}"):
            ledger.wait_for(lambda entry: entry.succeeded, timeout_s=0.1)
