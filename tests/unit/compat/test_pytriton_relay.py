"""What goes between a stand-in and its script arrives as it was, and what is no message is refused."""

from __future__ import annotations

from multiprocessing import Pipe
from typing import Any

import numpy as np
import pytest
from alipes.compat.pytriton import relay

ARRAYS = [
    {"a": np.arange(6, dtype=np.int16).reshape(2, 3), "b": np.array([[b"x", b""], [b"\x00", b"yz"]], np.object_)},
    {},
    {"none": np.zeros((0, 4), np.float64), "flag": np.array(True), "t": np.arange(6).reshape(2, 3).T},
]


def test_arrays_arrive_as_they_were() -> None:
    ours, theirs = Pipe()
    relay.send(ours, {"number": 5}, ARRAYS)
    document, arrays = relay.receive(theirs)
    assert document == {"number": 5}
    assert [list(one) for one in arrays] == [list(one) for one in ARRAYS]
    for sent, got in zip(ARRAYS, arrays, strict=True):
        for name, value in sent.items():
            assert got[name].dtype == value.dtype
            assert got[name].shape == value.shape
            np.testing.assert_array_equal(got[name], value)


def test_the_end_of_the_other_side_is_noticed() -> None:
    ours, theirs = Pipe()
    ours.close()
    with pytest.raises(EOFError):
        relay.receive(theirs)


@pytest.mark.parametrize("message", [b"x", b"\x05\x00\x00\x00{}", b"\x02\x00\x00\x00[]"], ids=["short", "cut", "list"])
def test_what_is_no_message_is_refused(message: bytes) -> None:
    ours, theirs = Pipe()
    ours.send_bytes(message)
    with pytest.raises(ValueError, match=r"are no message|Expecting"):
        relay.receive(theirs)


def test_a_message_that_is_too_large_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    ours: Any
    ours, _ = Pipe()
    monkeypatch.setattr(relay, "MOST_BYTES", 100)
    with pytest.raises(ValueError, match=r"a message of \d+ bytes cannot go to the other process: at most 100 can"):
        relay.send(ours, {}, [{"a": np.zeros(200, np.int8)}])
