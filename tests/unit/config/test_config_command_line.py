from __future__ import annotations

from pathlib import Path

import pytest
from alipes.config.command_line import serve_command, split_arguments
from alipes.config.flags import SERVE_FLAGS
from alipes.errors import ConfigError

WORKERS = (
    "a function says @alipes.model(instances=4), and a folder's config.pbtxt instance_group { count: 4 }; "
    "alipes repo add models iris.onnx makes a folder of one file"
)


def names(argv: list[str]) -> tuple[list[tuple[str, str]], list[str]]:
    pairs, positional = split_arguments(argv)
    return [(flag.name, text) for flag, text in pairs], positional


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (["--http-port=1"], [("http-port", "1")]),
        (["--http-port", "1"], [("http-port", "1")]),
        (["--http_port", "1"], [("http-port", "1")]),
        (["--http_port=1"], [("http-port", "1")]),
        (["--id="], [("id", "")]),
        (["--id", ""], [("id", "")]),
        (["--id=a=b"], [("id", "a=b")]),
        (["--trace-count", "-1"], [("trace-count", "-1")]),
        (["--strict-readiness"], [("strict-readiness", "true")]),
        (["--strict_readiness", "off"], [("strict-readiness", "off")]),
        (["--strict-readiness", "--id", "x"], [("strict-readiness", "true"), ("id", "x")]),
        (["--log-verbose", "3"], [("log-verbose", "3")]),
        (["-v"], [("verbose", "1")]),
        (["-vv"], [("verbose", "2")]),
        (["-v", "--verbose"], [("verbose", "2")]),
        (["-q"], [("quiet", "true")]),
        (["--port", "9000", "--host=::1"], [("host", "::1"), ("port", "9000")]),
        (["--load-model=a", "--load-model", "b"], [("load-model", "a"), ("load-model", "b")]),
        (["--strict-model-config"], [("disable-auto-complete-config", "true")]),
        (["--model-store=a", "--model_dir=b"], [("model-store", "a"), ("model-store", "b")]),
    ],
)
def test_flags_are_written_in_either_form(argv: list[str], expected: list[tuple[str, str]]) -> None:
    assert names(argv) == (expected, [])


def test_a_switch_leaves_the_repository_behind_it_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "models").mkdir()
    monkeypatch.chdir(tmp_path)
    assert names(["--strict-readiness", "models"]) == ([("strict-readiness", "true")], ["models"])
    assert names(["--log-verbose", "models"]) == ([("log-verbose", "true")], ["models"])
    assert names(["-v", "models"]) == ([("verbose", "1")], ["models"])


def test_everything_after_two_dashes_is_positional() -> None:
    assert names(["a", "--", "--id", "b"]) == ([], ["a", "--id", "b"])


def test_a_dash_alone_is_positional() -> None:
    assert names(["-"]) == ([], ["-"])


def test_the_workers_that_kserve_adds_for_its_sdk_are_left_out() -> None:
    for workers in (["--workers", "5"], ["--workers=5"]):
        pairs, repositories = split_arguments(["app.py", "--predictor_host", "iris", *workers, "--http_port", "8080"])
        assert [(flag.name, text) for flag, text in pairs] == [("predictor-host", "iris"), ("http-port", "8080")]
        assert repositories == ["app.py"]


@pytest.mark.parametrize(
    ("word", "mend"),
    [
        ("--prot", "did you mean --port / --http-port?"),
        ("--hots", "did you mean --host / --http-address?"),
        ("--http_prot=1", "did you mean --http-port?"),
        ("-http-port", "did you mean --http-port?"),
        ("-id", "did you mean --id?"),
        ("-p", "did you mean --port?"),
        ("--no-allow-grpc", "say --allow-grpc=false"),
        ("--model-path", "name the folder of models by itself: alipes serve FOLDER"),
        ("--log-level=debug", "-v says more, -vv still more, -q less"),
        ("--workers", WORKERS),
        ("--workrs", WORKERS),
    ],
)
def test_an_unknown_flag_is_answered_with_what_to_type_instead(word: str, mend: str) -> None:
    with pytest.raises(ConfigError) as caught:
        split_arguments([word])
    typed = word.partition("=")[0]
    assert str(caught.value) == f"{mend}\nthere is no flag {typed}; alipes serve --help-all lists them"
    assert caught.value.key == typed


@pytest.mark.parametrize("word", ["--no-such-flag", "-x", "---"])
def test_what_is_no_flag_is_refused(word: str) -> None:
    with pytest.raises(ConfigError, match=f"there is no flag {word}"):
        split_arguments([word])


@pytest.mark.parametrize("behind", [[], ["--log-info"], ["--grpc-port=1"]])
def test_a_flag_without_its_value_says_so_with_an_example(behind: list[str]) -> None:
    with pytest.raises(ConfigError, match=r"^--http-port takes a value, such as --http-port 8000$"):
        split_arguments(["--http-port", *behind])


def test_an_empty_repository_is_no_folder() -> None:
    with pytest.raises(ConfigError, match="empty"):
        split_arguments([""])


@pytest.mark.parametrize("word", ["--quiet=true", "--verbose=2"])
def test_a_flag_that_takes_no_value_says_so(word: str) -> None:
    with pytest.raises(ConfigError, match=f"behind {word.partition('=')[0]}=: it takes no value"):
        split_arguments([word])


def test_every_flag_of_the_table_is_one_of_the_command() -> None:
    options = {name for parameter in serve_command().params for name in parameter.opts}
    assert {f"--{flag.name}" for flag in SERVE_FLAGS} <= options
