"""Reads what is said of the payload log."""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from alipes.errors import ConfigError

__all__ = ["SECRET_HEADERS", "read_payloads"]

SECRET_HEADERS: Final = ("authorization", "cookie", "proxy-authorization", "set-cookie", "x-api-key")
"""Headers whose values are never logged: who has one gets access."""


def read_payloads(fields: Mapping[str, Any], keys: Sequence[str], environ: Mapping[str, str]) -> dict[str, Any]:
    """The fields of the payload log, read.

    Args:
        fields: What was given, by the name of the option.
        keys: Headers by which clients of this server show that they may.
        environ: The environment, in which Kubernetes and KServe say what the server belongs to.

    Raises:
        ConfigError: For a share that is none, or an address that nothing can be sent to.
    """
    url: str = fields["payloads.url"]
    is_files = _check(url)
    if url and not is_files and fields["payloads.format"] != "json":
        raise ConfigError(f"'{url}' takes events, and no files", key="payload-log-format")
    headers = [name.lower() for name in fields["payloads.headers"]]
    redacted = {name.lower() for name in (*SECRET_HEADERS, *keys)} | set(fields["payloads.redacted"])
    redacted |= {name.lower() for name in fields["payloads.redacted"]}
    return {
        "payloads.is_files": is_files,
        "payloads.sample": _share(fields["payloads.sample"]),
        "payloads.headers": tuple(dict.fromkeys(headers)),
        "payloads.redacted": tuple(sorted(redacted)),
        "payloads.source": _source(environ),
    }


def _check(url: str) -> bool:
    """Refuses an address that nothing can be sent to; true for one of files."""
    parts = urlsplit(url)
    is_files = "://" in url and parts.scheme not in {"http", "https"}
    if url and not (parts.hostname or (is_files and url.partition("://")[2])):
        text = f"'{url}' is no address, such as http://sink:8080/, file:///var/log/models or s3://bucket/folder"
        raise ConfigError(text, key="payload-log-url")
    # Of a folder in Azure the container stands in front of an @.
    if parts.password is not None or (parts.username is not None and not is_files):
        raise ConfigError("a URL with a password would be in logs: the sink must do without", key="payload-log-url")
    return is_files


def _source(environ: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """The attributes by which KServe's logger says whose events they are."""
    service = environ.get("INFERENCE_SERVICE_NAME", "")
    attributes = {
        "source": environ.get("POD_NAME") or socket.gethostname(),
        "inferenceservicename": service,
        "namespace": environ.get("POD_NAMESPACE", ""),
        "component": "predictor" if service else "",
    }
    return tuple((name, value) for name, value in attributes.items() if value)


def _share(text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        share = -1.0
    if not 0 <= share <= 1:
        raise ConfigError(f"'{text}' is no share from 0 to 1", key="payload-log-sample")
    return share
