"""The guard of load requests: what it makes of the words of a command line."""

from __future__ import annotations

import pytest
from alipes import ServeError
from alipes.attached.guard import Guard

HTTP, GRPC = "ALIPES_HTTP_RESTRICTED_API", "ALIPES_GRPC_RESTRICTED_PROTOCOL"


def test_the_secret_is_in_variables_and_not_in_words() -> None:
    guard = Guard()
    words, variables = guard.settle(["--log-verbose=1", "-q"], {})
    assert words == ["--log-verbose=1", "-q"]
    secret = guard.headers["alipes-attached"]
    assert variables == dict.fromkeys((HTTP, GRPC), f"model-control:alipes-attached={secret}")
    assert len(secret) >= 40
    assert Guard().headers != guard.headers


@pytest.mark.parametrize(
    "words",
    [
        ["--http-restricted-api=trace:a=b", "--http-port=0"],
        ["--http_restricted_api", "trace:a=b", "--http-port=0"],
    ],
)
def test_restrictions_of_a_command_line_move_to_the_variable(words: list[str]) -> None:
    rest, variables = Guard().settle(words, {HTTP: "logging:weaker=source", GRPC: "statistics:c=d"})
    assert rest == ["--http-port=0"]
    assert variables[HTTP].startswith("trace:a=b model-control:")
    assert variables[GRPC].startswith("statistics:c=d model-control:")


def test_a_guard_may_have_another_header_and_other_groups() -> None:
    guard = Guard("token", "secret", ["trace", "model-repository"])
    assert guard.headers == {"token": "secret", "triton-grpc-protocol-token": "secret"}
    _, variables = guard.settle([], {})
    assert variables == dict.fromkeys((HTTP, GRPC), "trace,model-repository:token=secret")
    assert Guard(groups=()).settle([], {}) == ([], {})


def test_what_flags_restrict_already_keeps_their_header() -> None:
    guard = Guard("token", "secret", ["trace", "model-repository"])
    _, variables = guard.settle(["--http-restricted-api=model-repository,logging:a=b"], {})
    assert variables == {
        HTTP: "model-repository,logging:a=b trace:token=secret",
        GRPC: "trace,model-repository:token=secret",
    }
    assert guard.headers["a"] == "b"
    assert guard.headers["token"] == "secret"


def test_a_restricted_repository_includes_its_control() -> None:
    guard = Guard(secret="secret")
    _, variables = guard.settle(["--http-restricted-api=model-repository:a=b"], {})
    assert variables == {HTTP: "model-repository:a=b", GRPC: "model-control:alipes-attached=secret"}
    assert guard.headers["a"] == "b"


@pytest.mark.parametrize("words", [["--http-restricted-api=trace:a=b c"], ["--http-restricted-api"]])
def test_a_restriction_that_no_variable_can_hold_is_refused(words: list[str]) -> None:
    with pytest.raises(ServeError, match="white space, or is empty"):
        Guard().settle(words, {})
