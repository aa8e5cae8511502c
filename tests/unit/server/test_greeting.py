"""What a person sees once the server is ready."""

from __future__ import annotations

import dataclasses

import pytest
from alipes.server.greeting import Greeting, address_of
from alipes.types import IndexEntry, ModelState

READY = IndexEntry("digits", "1", ModelState.READY)
FAILED = IndexEntry("x", "2", ModelState.UNAVAILABLE, "no file")


def greeting(*entries: IndexEntry, http: str | None = "http://localhost:8000", explicit: bool = False) -> Greeting:
    return Greeting("0.1.0", http, "grpc://localhost:8001", "http://localhost:8002", entries, loads_on_request=explicit)


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("0.0.0.0:8000", "http://localhost:8000"),
        ("[::]:8000", "http://localhost:8000"),
        ("127.0.0.1:8000", "http://127.0.0.1:8000"),
        ("[::1]:8000", "http://[::1]:8000"),
        ("gpu7:8000", "http://gpu7:8000"),
        ("unix:/run/alipes.sock", "unix:/run/alipes.sock"),
        (None, None),
    ],
)
def test_an_address_is_one_that_this_machine_can_open(address: str | None, shown: str | None) -> None:
    assert address_of(address, "http") == shown


def test_the_block_has_addresses_a_command_and_the_way_out() -> None:
    assert greeting(FAILED, READY).block().splitlines() == [
        "alipes 0.1.0 is ready",
        "",
        "  HTTP     http://localhost:8000",
        "  gRPC     grpc://localhost:8001",
        "  metrics  http://localhost:8002/metrics",
        "",
        "  Try it:  curl localhost:8000/v2/models/digits",
        "  Ctrl-C stops the server.",
    ]


def test_the_page_of_requests_is_named_where_a_browser_can_open_it() -> None:
    has_docs = dataclasses.replace(greeting(READY), has_docs=True)
    assert "  docs     http://localhost:8000/docs" in has_docs.block().splitlines()
    assert has_docs.line().endswith("models: digits:1; requests to try out: http://localhost:8000/docs")
    for http in ("unix:/run/a.sock", None):
        assert "docs" not in dataclasses.replace(has_docs, http=http).line()


def test_the_block_of_a_server_without_models_says_so() -> None:
    *_, said, end = greeting(FAILED).block().splitlines()
    assert (said, end) == ("  No model is served yet.", "  Ctrl-C stops the server.")


def test_a_server_that_loads_on_request_shows_the_request() -> None:
    assert "  Try it:  curl localhost:8000/v2/repository/models/NAME/load -d '{}'" in greeting(explicit=True).block()


def test_a_socket_file_and_a_strange_name_make_a_command_that_works() -> None:
    model = IndexEntry("two words", "1", ModelState.READY)
    block = greeting(model, http="unix:/run/a.sock").block()
    assert "curl --unix-socket /run/a.sock http://localhost/v2/models/two%20words" in block
    assert "Try it" not in greeting(READY, http=None).block()


def test_the_line_of_a_log_counts_what_is_not_served() -> None:
    assert greeting(READY).line() == "alipes 0.1.0 is ready; models: digits:1"
    assert greeting(READY, FAILED).line() == "alipes 0.1.0 is ready; models: digits:1; not served: 1"
    assert greeting().line() == "alipes 0.1.0 is ready; models: none"
    many = [IndexEntry(f"m{number}", "1", ModelState.READY) for number in range(12)]
    assert greeting(*many).line().endswith("m9:1 and 2 more")
