"""Origins of web pages, and names of the server, on the command line."""

from __future__ import annotations

import pytest
from alipes.config.load import parse_flags
from alipes.errors import ConfigError


def origins(*values: str) -> tuple[str, ...]:
    return parse_flags(["models", *(f"--cors-origins={value}" for value in values)], {}).http_cors_origins


def test_origins_are_written_as_browsers_write_them() -> None:
    assert origins() == ()
    assert origins("HTTPS://App.Example.org, http://localhost:3000", "https://app.example.org") == (
        "https://app.example.org",
        "http://localhost:3000",
    )
    assert origins("https://a:443", "http://a:80", "http://a:443", "http://[::1]:5173", "tauri://localhost") == (
        "https://a",
        "http://a",
        "http://a:443",
        "http://[::1]:5173",
        "tauri://localhost",
    )
    assert origins("https://a", "*") == ("*",)


@pytest.mark.parametrize(
    "value", ["", "null", "app.example.org", "https://", "https://a/b", "https://a b", "https://*.a"]
)
def test_what_is_no_origin_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match=r"expected \* or an origin such as https://app.example.org, got"):
        origins(value)


def test_an_origin_with_a_slash_is_put_right() -> None:
    with pytest.raises(ConfigError, match=r"got 'https://a/'; did you mean https://a\?$"):
        origins("https://a/")


def hosts(*values: str) -> tuple[str, ...]:
    return parse_flags(["models", *(f"--allowed-hosts={value}" for value in values)], {}).http_allowed_hosts


def test_hosts_are_names_without_ports() -> None:
    assert hosts() == ()
    assert hosts("Models.Example.org, models", "models.example.org.") == ("models.example.org", "models")
    assert hosts("models", "*") == ("*",)


@pytest.mark.parametrize("value", ["", "a:80", "http://a", "a/b", "*.a", ".a", "a b", "[::1]"])
def test_what_is_no_host_is_refused(value: str) -> None:
    with pytest.raises(ConfigError, match=r"expected \* or a name such as models.example.org, without scheme and port"):
        hosts(value)


def test_json_names_the_form_of_the_log_in_either_case() -> None:
    assert {parse_flags(["models", f"--log-format={name}"], {}).log.format for name in ("json", "JSON")} == {"JSON"}
