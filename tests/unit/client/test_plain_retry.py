"""What is asked again, and what is not."""

from __future__ import annotations

import time

import pytest
from alipes.client.endpoint import Endpoint
from alipes.client.plain.operations import HTTP
from alipes.client.plain.operations_grpc import GRPC
from alipes.client.plain.retry import Attempts, Failure, Retry
from alipes.client.tls import Tls
from alipes.errors import (
    AlipesError,
    ConfigError,
    DeadlineExceeded,
    Internal,
    InvalidArgument,
    NotReady,
    Overloaded,
    TlsError,
    TransportError,
)


def unreached() -> TransportError:
    error = TransportError("nobody there")
    error.reached = False
    return error


def is_repeated(error: AlipesError, *, repeatable: bool = True, timeout_s: float | None = None) -> bool:
    attempts = Attempts(Retry(times=1, first_s=0.5), timeout_s, repeatable=repeatable)
    try:
        attempts.after(error)
    except AlipesError as raised:
        assert raised is error
        return False
    return True


def test_refusals_and_broken_connections_are_repeated_and_answers_are_not() -> None:
    assert is_repeated(NotReady("loading"))
    assert is_repeated(TransportError("broken"))
    assert not is_repeated(InvalidArgument("wrong"))
    assert not is_repeated(DeadlineExceeded("late"))
    assert not is_repeated(TlsError("whoever that is"))


def test_memory_is_forgotten_as_soon_as_the_server_has_let_go_of_it() -> None:
    assert is_repeated(Internal("Cannot unregister shared memory region 'a', it is currently in use."))
    assert not is_repeated(Internal("Cannot unregister shared memory region 'a'"))
    for unshare in (HTTP.unshare("a"), GRPC.unshare("a")):
        assert unshare.retry is not None
        assert sum(unshare.retry.wait_s(attempt, 0.5) for attempt in range(unshare.retry.times)) > 10


def test_what_may_have_begun_is_repeated_only_where_that_does_no_harm() -> None:
    assert not is_repeated(TransportError("broken"), repeatable=False)
    assert is_repeated(unreached(), repeatable=False)
    assert is_repeated(Overloaded("full"), repeatable=False)


def test_no_attempt_begins_that_cannot_end_in_time() -> None:
    assert not is_repeated(NotReady("loading"), timeout_s=0.2)


def test_a_first_attempt_recorded_later_counts_with_its_time() -> None:
    attempts = Attempts(Retry(times=1, first_s=0.001), 60.0, repeatable=True)
    attempts.after_first(Failure(NotReady("1"), time.monotonic() - 20))
    left_s = attempts.left_s()
    assert left_s is not None
    assert left_s < 40
    with pytest.raises(NotReady, match="2"):
        attempts.after(NotReady("2"))
    with pytest.raises(NotReady, match="3"):
        Attempts(Retry(), 60.0, repeatable=True).after_first(Failure(NotReady("3"), time.monotonic() - 60))


def test_there_are_as_many_attempts_as_the_policy_allows() -> None:
    attempts = Attempts(Retry(times=2), None, repeatable=True)
    attempts.after(NotReady("1"))
    attempts.after(NotReady("2"))
    with pytest.raises(NotReady, match="3"):
        attempts.after(NotReady("3"))


def test_waits_double_up_to_the_longest_and_differ_by_chance() -> None:
    retry = Retry(first_s=1.0, most_s=4.0)
    assert [retry.wait_s(attempt, 0.5) for attempt in range(4)] == [1.0, 2.0, 4.0, 4.0]
    assert (retry.wait_s(0, 0.0), retry.wait_s(0, 1.0)) == (0.5, 1.5)


def test_a_server_that_says_when_to_come_back_is_believed() -> None:
    assert Attempts(Retry(), None, repeatable=True).after(Overloaded("full", retry_after_s=7.0)) >= 7.0


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("h:1", Endpoint("grpc", "h:1")),
        ("grpc://h:1", Endpoint("grpc", "h:1")),
        ("1", Endpoint("grpc", "localhost:1")),
        ("http://1", Endpoint("http", "localhost:1")),
        ("http://h:1/prefix", Endpoint("http", "h:1/prefix")),
        ("https://h:1/prefix", Endpoint("http", "h:1/prefix", Tls())),
        ("grpcs://h:1", Endpoint("grpc", "h:1", Tls())),
        ("unix:/a/b", Endpoint("grpc", "unix:/a/b")),
        ("unix:///a/b", Endpoint("grpc", "unix:/a/b")),
        ("http://unix:/a/b", Endpoint("http", "unix:/a/b")),
    ],
)
def test_an_address_chooses_protocol_and_encryption(address: str, expected: Endpoint) -> None:
    assert Endpoint.parse(address) == expected


@pytest.mark.parametrize("address", ["httpx://h:1", "ftp://h:1"])
def test_an_unknown_kind_of_address_is_refused(address: str) -> None:
    with pytest.raises(ConfigError, match=address):
        Endpoint.parse(address)
