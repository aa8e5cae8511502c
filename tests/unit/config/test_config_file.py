"""`alipes.toml`: every flag as a key, below the environment and the command line."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes.config.file import read_file
from alipes.config.flags import SERVE_FLAGS
from alipes.config.load import parse_flags
from alipes.errors import ConfigError


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "alipes.toml"


def read(file: Path, text: str) -> list[tuple[str, str]]:
    file.write_text(text, encoding="utf-8")
    return [(one.flag.name, one.text) for one in read_file(file)]


def refusal(file: Path, text: str) -> str:
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError) as caught:
        parse_flags(["models"], {}, folder=file.parent)
    return str(caught.value).replace(f"{file.parent}/", "")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("http-port = 9000", [("http-port", "9000")]),
        ("http_port = 9000", [("http-port", "9000")]),
        ("[http]\nport = 9000", [("http-port", "9000")]),
        ("[model]\ncontrol_mode = 'poll'", [("model-control-mode", "poll")]),
        ("http.port = 9000", [("http-port", "9000")]),
        ("strict-readiness = false", [("strict-readiness", "false")]),
        ("exit-grace-secs = 0.5", [("exit-grace-secs", "0.5")]),
        ("load-model = ['a', 'b']", [("load-model", "a"), ("load-model", "b")]),
        ("load-model = 'a'", [("load-model", "a")]),
        ("port = 9000\nhost = '::1'", [("port", "9000"), ("host", "::1")]),
        ("", []),
    ],
)
def test_a_key_is_a_flag_with_dashes_underscores_or_its_table(
    file: Path, text: str, expected: list[tuple[str, str]]
) -> None:
    assert read(file, text) == expected


def test_every_flag_but_the_files_own_is_a_key(file: Path) -> None:
    flags = [flag for flag in SERVE_FLAGS if flag.name != "config"]
    names = [name for name, _ in read(file, "\n".join(f"{flag.name} = 'x'" for flag in flags))]
    assert names == [flag.name for flag in flags]
    assert "no key 'config'" in refusal(file, "config = 'x'")


def test_paths_are_relative_to_the_file(file: Path) -> None:
    folder = file.parent
    text = "repository = ['models', '/srv/models', 's3://bucket/models']\nlog-file = 'logs/server.log'"
    assert read(file, text) == [
        ("model-repository", f"{folder}/models"),
        ("model-repository", "/srv/models"),
        ("model-repository", "s3://bucket/models"),
        ("log-file", f"{folder}/logs/server.log"),
    ]


def test_the_home_folder_is_written_as_in_a_shell(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert read(file, "repository = '~/models'") == [("model-repository", "/home/ada/models")]


def test_flags_win_over_the_environment_and_that_over_the_file(file: Path) -> None:
    file.write_text("http-port = 1\ngrpc-port = 2\nmetrics-port = 3\nrepository = 'filed'", encoding="utf-8")
    options = parse_flags(["models", "--http-port=7"], {"ALIPES_GRPC_PORT": "8"}, folder=file.parent)
    assert (options.http.port, options.grpc.port, options.metrics.port) == (7, 8, 3)
    origins = [options.origins[name] for name in ("http-port", "grpc-port", "metrics-port", "log-format")]
    assert origins == ["flag", "environment", "file", "default"]
    assert options.repository.paths == ("models",)
    assert options.config_file == str(file)


def test_a_file_that_names_the_repository_needs_no_arguments(file: Path) -> None:
    file.write_text('repository = ["models"]', encoding="utf-8")
    assert parse_flags([], {}, folder=file.parent).repository.paths == (f"{file.parent}/models",)


def test_a_flag_or_a_variable_names_the_file_or_none(file: Path) -> None:
    file.write_text("id = 'found'", encoding="utf-8")
    other = file.with_name("other.toml")
    other.write_text("id = 'named'", encoding="utf-8")
    found = {"environ": {}, "folder": file.parent}
    assert parse_flags(["models"], **found).id == "found"  # type: ignore[arg-type]
    assert parse_flags(["models", f"--config={other}"], **found).id == "named"  # type: ignore[arg-type]
    assert parse_flags(["models", "--config="], **found).id == "triton"  # type: ignore[arg-type]
    assert parse_flags(["models"], {"ALIPES_CONFIG": str(other)}, folder=file.parent).id == "named"
    assert parse_flags(["models"], {}).id == "triton"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("\nprot = 1", "alipes.toml:2: did you mean port? There is no key 'prot'; alipes serve --help-all lists them"),
        (
            "port = 1\n[http]\n\nprot = 1",
            "alipes.toml:4: did you mean http-port? There is no key 'http-prot'; alipes serve --help-all lists them",
        ),
        ("zzzz = 1", "alipes.toml:1: there is no key 'zzzz'; alipes serve --help-all lists them"),
        ("[server]\nport = 1", "alipes.toml:2: write port above all tables: there is no table [server]; those that "
         "there are begin the names of flags, such as [http] or [log]"),
        ("[server]\nrepository = 'm'", "alipes.toml:2: write repository above all tables: there is no table [server]; "
         "those that there are begin the names of flags, such as [http] or [log]"),
        ("[server]\nzzzz = 1", "alipes.toml:2: there is no key 'server-zzzz'; alipes serve --help-all lists them"),
        ("http-port = 'abc'", "alipes.toml:1: http-port takes a number from 0 to 65535, not 'abc'"),
        ("[http]\nport = true", "alipes.toml:2: http-port takes a number from 0 to 65535, not 'true'"),
        ("http-port = [1]", "alipes.toml:1: http-port takes one value, not a list"),
        ("id = 2024-01-01", "alipes.toml:1: id takes a text, a number, true or false; not a date or a time"),
        ("[http.port]\nx = 1", "alipes.toml: http-port takes a text, a number, true or false; not a table"),
        ("port == 1", "alipes.toml:1: this is no TOML: Invalid value"),
        ("log-format = 'jsno'", "alipes.toml:1: log-format takes one of default, ISO8601, JSON, not 'jsno'; "
         "did you mean JSON?"),
    ],
)  # fmt: skip
def test_a_mistake_is_named_with_its_line_and_the_nearest_key(file: Path, text: str, expected: str) -> None:
    assert refusal(file, text) == expected


def test_a_file_that_is_absent_or_not_text_is_named(file: Path) -> None:
    with pytest.raises(ConfigError, match=r"nope\.toml cannot be read: No such file"):
        parse_flags(["models", "--config=nope.toml"], {})
    file.write_bytes(b"id = '\xff'")
    with pytest.raises(ConfigError, match="it is not encoded in UTF-8"):
        read_file(file)
