"""Flags of the server as keywords of Python."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes.config.flags import FLAGS
from alipes.config.load import parse_flags
from alipes.errors import ServeError
from alipes.serve.endpoints import flag_words, requested_endpoints
from alipes.serve.flags import keyword_words

CORRECT: list[tuple[dict[str, object], list[str]]] = [
    ({}, []),
    ({"http_port": 9000}, ["--http-port=9000"]),
    ({"http_port": "9000"}, ["--http-port=9000"]),
    ({"http_port": None}, []),
    ({"model_control_mode": "explicit"}, ["--model-control-mode=explicit"]),
    ({"log_format": "json"}, ["--log-format=JSON"]),
    ({"log_verbose": 1}, ["--log-verbose=1"]),
    ({"log_verbose": True}, ["--log-verbose=true"]),
    ({"exit_on_error": False}, ["--exit-on-error=false"]),
    ({"exit_grace_secs": 0.5}, ["--exit-grace-secs=0.5"]),
    ({"load_model": "a"}, ["--load-model=a"]),
    ({"load_model": ["a", "b"]}, ["--load-model=a", "--load-model=b"]),
    ({"load_model": []}, []),
    ({"http_address": "unix:/a"}, ["--http-address=unix:/a"]),
    ({"port": 0}, ["--http-port=0", "--grpc-port=0", "--metrics-port=0"]),
    ({"port": 9000}, ["--http-port=9000", "--grpc-port=9001", "--metrics-port=9002"]),
    ({"port": 9000, "grpc_port": 7}, ["--http-port=9000", "--grpc-port=7", "--metrics-port=9002"]),
    ({"host": "::1"}, ["--http-address=::1", "--grpc-address=::1", "--metrics-address=::1"]),
]


@pytest.mark.parametrize(("keywords", "words"), CORRECT, ids=str)
def test_keywords_are_flags_with_another_dash(keywords: dict[str, object], words: list[str]) -> None:
    assert keyword_words(keywords) == words


def test_a_path_is_a_text(tmp_path: Path) -> None:
    assert keyword_words({"trace_file": tmp_path}) == [f"--trace-file={tmp_path}"]


@pytest.mark.parametrize("flag", [flag for flag in FLAGS if flag.kind in ("bool", "int", "seconds") and not flag.note])
def test_the_default_of_a_flag_is_a_value_of_its_keyword(flag: object) -> None:
    name, default = flag.name, flag.default  # type: ignore[attr-defined]
    words = keyword_words({name.replace("-", "_"): default})
    assert parse_flags(["models", *words], {}).repository.paths


WRONG: list[tuple[dict[str, object], str]] = [
    ({"http_prot": 1}, "http_prot= is no flag of the server: did you mean http_port=?"),
    ({"prot": 1}, "prot= is no flag of the server: did you mean port=?"),
    ({"imgae": "a.sif"}, "imgae= is no flag of the server: did you mean image=?"),
    ({"xyzzy": 1}, "xyzzy= is no flag of the server: `alipes serve --help-all` lists the flags, here with _ for -"),
    ({"timeout": 3}, "timeout= is no argument of this call: in a block write `instance.wait(timeout=...)`"),
    ({"wait": True}, "wait= is no argument of this call: `launch` waits until the server is ready"),
    ({"http_port": "abc"}, "http_port='abc' cannot be used: it takes an integer from 0 to 65535"),
    ({"http_port": True}, "http_port=True cannot be used: it takes an integer from 0 to 65535"),
    ({"http_port": 70000}, "http_port=70000 cannot be used: it takes an integer from 0 to 65535"),
    ({"http_port": [1, 2]}, "http_port=[1, 2] cannot be used: it takes an integer from 0 to 65535"),
    ({"port": "9000"}, "port='9000' cannot be used: it takes an integer from 0 to 65535"),
    ({"port": -1}, "port=-1 cannot be used: it takes an integer from 0 to 65535"),
    ({"model_control_mode": "on"}, "cannot be used: it takes one of 'none', 'poll', 'explicit'"),
    ({"exit_on_error": "maybe"}, "exit_on_error='maybe' cannot be used: it takes True or False"),
    ({"load_model": 3.5j}, "load_model=3.5j cannot be used: it takes a text, or a list of texts"),
]


@pytest.mark.parametrize(("keywords", "told"), WRONG, ids=lambda value: str(value)[:40])
def test_a_wrong_keyword_is_refused_with_the_right_one(keywords: dict[str, object], told: str) -> None:
    with pytest.raises(ServeError) as caught:
        keyword_words(keywords)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("words", [{"http_port": 1}, [1], 3, [None]])
def test_words_that_are_none_are_refused_with_both_ways_to_write_them(words: object) -> None:
    with pytest.raises(ServeError, match=r'it takes words, as in \["--http-port=9000"\]; keywords do the same'):
        flag_words(words)  # type: ignore[arg-type]


def test_the_endpoints_of_a_script_follow_its_keywords() -> None:
    endpoints = requested_endpoints(keyword_words({"port": 9000, "host": "127.0.0.1", "allow_metrics": False}))
    assert {name: endpoint.address for name, endpoint in endpoints.items()} == {
        "http": "127.0.0.1:9000",
        "grpc": "127.0.0.1:9001",
    }
