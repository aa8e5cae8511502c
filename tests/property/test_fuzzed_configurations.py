"""Fuzzers of what Python reads from outside, replayed: former failures, seeds, and some damaged seeds."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.fuzzing.fuzzers import FUZZERS, Fuzzer, vectors

by_name = pytest.mark.parametrize("fuzzer", FUZZERS, ids=lambda fuzzer: fuzzer.name)


@st.composite
def damaged(draw: st.DrawFn, seeds: tuple[bytes, ...]) -> bytes:
    """One of the seeds with up to six pieces taken out, repeated, written over or taken from another."""
    data = draw(st.sampled_from(seeds))
    for _ in range(draw(st.integers(0, 6))):
        at, length = draw(st.integers(0, len(data))), draw(st.integers(0, 12))
        front, piece, behind = data[:at], data[at : at + length], data[at + length :]
        other = draw(st.sampled_from(seeds))
        start = draw(st.integers(0, len(other)))
        inserted = (b"", piece * 3, draw(st.binary(max_size=4)), other[start : start + 40])
        data = front + draw(st.sampled_from(inserted)) + behind
    return data


@by_name
def test_what_failed_once_and_every_seed_is_read_or_refused(fuzzer: Fuzzer) -> None:
    for data in (*vectors(fuzzer.name), *fuzzer.seeds()):
        fuzzer.check(data)


@by_name
def test_damaged_seeds_are_read_or_refused(fuzzer: Fuzzer) -> None:
    @settings(max_examples=200, derandomize=True)
    @given(damaged(tuple(fuzzer.seeds())))
    def check(data: bytes) -> None:
        fuzzer.check(data)

    check()
