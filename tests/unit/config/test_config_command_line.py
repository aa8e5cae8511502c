from __future__ import annotations

import pytest
from alipes.config.command_line import split_arguments, usage
from alipes.config.flags import FLAGS
from alipes.errors import ConfigError


def names(argv: list[str]) -> tuple[list[tuple[str, str]], list[str]]:
    pairs, positional = split_arguments(argv)
    return [(flag.name, text) for flag, text in pairs], positional


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--http-port=1"], [("http-port", "1")]),
        (["--http-port", "1"], [("http-port", "1")]),
        (["--id="], [("id", "")]),
        (["--id=a=b"], [("id", "a=b")]),
        (["--trace-count", "-1"], [("trace-count", "-1")]),
        (["--strict-readiness"], [("strict-readiness", "true")]),
        (["--strict-readiness", "off"], [("strict-readiness", "off")]),
        (["--strict-readiness", "--id", "x"], [("strict-readiness", "true"), ("id", "x")]),
        (["--log-verbose", "3"], [("log-verbose", "3")]),
    ],
)
def test_flags_are_written_in_either_form(argv: list[str], expected: list[tuple[str, str]]) -> None:
    assert names(argv) == (expected, [])


def test_a_switch_leaves_the_repository_behind_it_alone() -> None:
    assert names(["--strict-readiness", "models"]) == ([("strict-readiness", "true")], ["models"])
    assert names(["--log-verbose", "models"]) == ([("log-verbose", "true")], ["models"])


def test_everything_after_two_dashes_is_positional() -> None:
    assert names(["a", "--", "--id", "b"]) == ([], ["a", "--id", "b"])


def test_an_unknown_flag_is_named_with_the_nearest_one() -> None:
    with pytest.raises(ConfigError) as caught:
        split_arguments(["--http_prot=1"])
    assert str(caught.value) == 'Bad option: "--http_prot".\nunrecognized option; did you mean --http-port?'
    assert caught.value.key == "--http_prot"


@pytest.mark.parametrize("word", ["--no-such-flag", "-x", "---id", "--"[:1] + "id"])
def test_what_is_no_flag_is_refused(word: str) -> None:
    with pytest.raises(ConfigError, match="unrecognized option") as caught:
        split_arguments([word])
    assert f'"{word}"' in str(caught.value)


def test_a_flag_without_its_value_says_so() -> None:
    with pytest.raises(ConfigError, match="option requires an argument"):
        split_arguments(["--http-port"])


def test_the_usage_lists_every_flag() -> None:
    first, *lines = usage("it").splitlines()
    assert first == "Usage: it"
    for flag in FLAGS:
        assert any(line.startswith(f"  --{flag.name} <") for line in lines), flag.name
