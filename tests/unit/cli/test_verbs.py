"""The verbs about servers and repositories: they are listed, take --url first, and know their mistakes."""

from __future__ import annotations

import pytest
from alipes.cli.failures import CommandFailed, UsageFailed, abridged, perform
from alipes.errors import ConfigError, DeadlineExceeded, NotFound, PermissionDenied, Unauthenticated
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


@pytest.mark.parametrize(
    ("error", "code", "printed"),
    [
        (DeadlineExceeded("no answer within 1 s"), 1, "allow more time, with --timeout where the verb has it"),
        (
            Unauthenticated("a key is missing"),
            1,
            "give the key that the server asks for with --api-key, or in\n  ALIPES_API_KEY",
        ),
        (PermissionDenied("a group is closed"), 1, "add what the server asks for with --header NAME:VALUE"),
        (NotFound("'m' is not found; the server has 'n'"), 1, "the server has 'n'\n  'm' is not found"),
        (ConfigError("that is wrong", hint="do this"), 1, "that is wrong (do this)"),
        (CommandFailed("do this", "that is wrong"), 1, "do this\n  that is wrong"),
        (UsageFailed("write this"), 2, "write this"),
        (KeyboardInterrupt(), 130, ""),
    ],
)
def test_an_error_begins_with_its_mend(
    error: BaseException, code: int, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def action() -> int:
        raise error

    assert perform(action) == code
    assert capsys.readouterr().err.startswith(f"error: {printed}" if printed else "")


def test_a_traceback_of_a_server_leaves_its_first_and_its_last_line() -> None:
    lines = abridged("\n".join(["model 'm' failed", *(f"  line {number}" for number in range(20)), "ValueError: x"]))
    assert lines.splitlines() == ["model 'm' failed", "  line 0", "  ...", "ValueError: x"]
