"""The keys that clients must show."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes.client.api_key import keyed_headers
from alipes.config.api_keys import OPEN_GROUPS, read_key_file
from alipes.config.listener_options import ApiKeyOptions
from alipes.config.load import parse_flags
from alipes.config.unguarded import reached_by_anybody
from alipes.errors import ConfigError
from alipes.serve.server_key import key_among
from alipes.server.key_file import KeyFile, all_keys


def keys(*flags: str, **variables: str) -> ApiKeyOptions | None:
    return parse_flags(["models", *flags], variables).api_keys


def test_without_keys_a_server_asks_for_none() -> None:
    assert keys() is None


def test_keys_come_from_flags_or_else_from_the_variable() -> None:
    assert keys("--api-key=a", "--api-key=b", ALIPES_API_KEY="c") == ApiKeyOptions(
        keys=("a", "b"), file="", open_groups=("health",)
    )
    from_variable = keys(ALIPES_API_KEY="c d")
    assert from_variable is not None
    assert from_variable.keys == ("c", "d")


@pytest.mark.parametrize(
    ("flags", "groups"),
    [
        ((), ("health",)),
        (("--api-key-open=none",), ()),
        (("--api-key-open=health,metrics", "--api-key-open=openapi"), ("health", "metrics", "openapi")),
        ((f"--api-key-open={','.join(OPEN_GROUPS)}",), OPEN_GROUPS),
    ],
)
def test_groups_stay_open_on_purpose(flags: tuple[str, ...], groups: tuple[str, ...]) -> None:
    options = keys("--api-key=a", *flags)
    assert options is not None
    assert options.open_groups == groups


@pytest.mark.parametrize(
    ("flags", "text"),
    [
        (("--api-key=",), "a key of 0 characters is empty, too long, or has white space in it"),
        (("--api-key=two words",), "a key of 9 characters is empty"),
        (("--api-key=schlüssel",), "a key of 9 characters is empty"),
        (("--api-key=a", "--api-key-open=helth"), "unknown group 'helth'; did you mean 'health'?"),
        (("--api-key=a", "--api-key-open=everything"), "unknown group 'everything'; the groups are health, metadata,"),
        (("--api-key-open=metrics",), "there is none: give --api-key, too"),
        (("--api-key-file=missing",), "missing cannot be read: No such file or directory"),
    ],
)
def test_what_is_no_key_is_refused_with_the_reason_and_without_the_key(flags: tuple[str, ...], text: str) -> None:
    with pytest.raises(ConfigError) as caught:
        keys(*flags)
    assert text in str(caught.value)
    assert "words" not in str(caught.value)


def test_a_file_has_a_key_on_each_line(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("# of the team\n first \n\nsecond\nfirst\n")
    assert read_key_file(str(file)) == ("first", "second")
    options = keys("--api-key=zero", f"--api-key-file={file}")
    assert options is not None
    assert all_keys(options) == ["zero", "first", "second"]


@pytest.mark.parametrize(
    ("content", "text"),
    [
        (b"# nothing\n", "has no key: write one on each line"),
        (b"one\ntwo words\n", "line 2 of"),
        (b"\xff\n", "line 1 of"),
        (b"k" * ((1 << 20) + 1), "so it is no file of keys"),
    ],
)
def test_a_file_that_has_no_keys_is_refused(tmp_path: Path, content: bytes, text: str) -> None:
    file = tmp_path / "keys"
    file.write_bytes(content)
    with pytest.raises(ConfigError) as caught:
        read_key_file(str(file))
    assert text in str(caught.value)


def test_a_changed_file_is_read_again_and_a_broken_one_changes_nothing(tmp_path: Path) -> None:
    file, taken = tmp_path / "keys", list[list[str]]()
    file.write_text("first\n")
    watch = KeyFile(ApiKeyOptions(keys=("zero",), file=str(file), open_groups=()), taken.append)
    watch.look()
    assert taken == []
    (tmp_path / "next").write_text("second\n")
    (tmp_path / "next").replace(file)
    watch.look()
    assert taken == [["zero", "second"]]
    file.unlink()
    watch.look()
    (tmp_path / "next").write_text("\n")
    (tmp_path / "next").replace(file)
    watch.look()
    assert taken == [["zero", "second"]]


def test_no_text_of_the_options_shows_a_key() -> None:
    assert "secret" not in repr(parse_flags(["models", "--api-key=secret"], {}))


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        ((), "anybody who reaches http://0.0.0.0 and grpc://0.0.0.0 can ask its models: --api-key asks"),
        (("--model-control-mode=explicit",), "can ask its models and load and unload them: "),
        (
            (
                "--model-control-mode=explicit",
                "--http-restricted-api=model-control:k=v",
                "--grpc-restricted-protocol=model-repository:k=v",
            ),
            "can ask its models: ",
        ),
        (("--allow-grpc=false",), "anybody who reaches http://0.0.0.0 can ask its models: "),
        (
            ("--http-use-ssl", "--http-server-cert=a", "--http-server-key=b"),
            "anybody who reaches https://0.0.0.0 and grpc://0.0.0.0 can",
        ),
        (
            ("--grpc-use-ssl", "--grpc-server-cert=a", "--grpc-server-key=b", "--allow-http=false"),
            "anybody who reaches grpcs://0.0.0.0 can",
        ),
        (("--http-address=127.0.0.1", "--grpc-address=::1"), None),
        (("--http-address=127.0.0.1", "--grpc-address=192.0.2.1"), "anybody who reaches grpc://192.0.2.1 can"),
        (("--http-address=unix:socket", "--allow-grpc=false"), None),
        (("--api-key=a",), None),
        (("--http-restricted-api=inference:k=v", "--grpc-restricted-protocol=inference:k=v"), None),
        (("--http-restricted-api=inference:k=v",), "can ask its models: "),
    ],
)
def test_what_anybody_can_do_is_one_line(flags: tuple[str, ...], line: str | None) -> None:
    found = reached_by_anybody(parse_flags(["models", *flags], {}))
    if line is None:
        assert found is None
    else:
        assert found is not None
        assert line in found


@pytest.mark.parametrize(
    ("headers", "key", "variable", "expected"),
    [
        (None, None, "", []),
        (None, None, "first second", [("authorization", "Bearer first")]),
        (None, "mine", "first", [("authorization", "Bearer mine")]),
        (None, "", "first", []),
        ({"X-Api-Key": "own"}, None, "first", [("X-Api-Key", "own")]),
        ({"Authorization": "Basic x"}, None, "first", [("Authorization", "Basic x")]),
        ({"Authorization": "Basic x"}, "mine", "", [("Authorization", "Basic x"), ("x-api-key", "mine")]),
    ],
)
def test_a_client_shows_its_key_once(
    headers: dict[str, str] | None,
    key: str | None,
    variable: str,
    expected: list[tuple[str, str]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ALIPES_API_KEY", variable)
    assert keyed_headers(headers, key) == expected


@pytest.mark.parametrize("key", ["two words", "line\n", "ü", 7])
def test_a_client_refuses_what_is_no_key_without_showing_it(key: str) -> None:
    with pytest.raises(ConfigError) as caught:
        keyed_headers(None, key)
    assert str(key) not in str(caught.value)


def test_a_started_server_has_the_key_of_its_flags(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    file.write_text("of-file\n")
    assert key_among(["--http-port=0", "--api-key=a"]) == "a"
    assert key_among(["--api-key", "b", "--http-port=0"]) == "b"
    assert key_among([f"--api-key-file={file}"]) == "of-file"
    assert key_among([f"--api-key-file={tmp_path / 'missing'}"]) is None
    assert key_among(["--http-port=0"]) is None
