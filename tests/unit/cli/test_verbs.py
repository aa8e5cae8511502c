"""The verbs about servers and repositories: they are listed, take --url first, and know their mistakes."""

from __future__ import annotations

import pytest
from support.command import alipes

_VERBS = ("infer", "ask", "models", "stats", "status", "repo", "explain", "monitor")
_WITH_SERVER = (
    ("infer",),
    ("ask",),
    ("models", "list"),
    ("models", "load"),
    ("models", "unload"),
    ("stats",),
    ("status",),
    ("explain",),
    ("monitor",),
)


def test_every_verb_is_on_the_help_page() -> None:
    words = alipes("--help").out.split()
    assert [verb for verb in _VERBS if verb not in words] == []


@pytest.mark.parametrize("verb", _WITH_SERVER, ids=" ".join)
def test_a_verb_about_a_server_takes_its_address(verb: tuple[str, ...]) -> None:
    done = alipes(*verb, "--help")
    assert done.code == 0
    assert "--url" in done.out
    assert max(map(len, done.out.splitlines())) <= 80


@pytest.mark.parametrize("verb", ["models", "repo"])
def test_a_group_of_verbs_alone_lists_them(verb: str) -> None:
    done = alipes(verb)
    assert "list" in done.out + done.err


def test_a_header_without_its_colon_is_wrong_usage() -> None:
    done = alipes("stats", "--url=http://127.0.0.1:1", "--header=word")
    assert (done.code, done.err) == (2, "error: write --header NAME:VALUE, not 'word'\n")


def test_a_traceback_of_a_server_leaves_its_first_and_its_last_line() -> None:
    from alipes.cli.failures import fold

    lines = fold("\n".join(["model 'm' failed", *(f"  line {number}" for number in range(20)), "ValueError: x"]))
    assert lines.splitlines() == ["model 'm' failed", "  line 0", "  ...", "ValueError: x"]
