"""Where a file of objects comes from: this machine, or a repository on GitHub."""

from __future__ import annotations

from http import HTTPStatus
from pathlib import Path
from typing import Final
from urllib.error import HTTPError, URLError
from urllib.parse import quote
from urllib.request import urlopen

from alipes.errors import CloudError, ConfigError

__all__ = ["MAX_FILE_BYTES", "read"]

MAX_FILE_BYTES: Final = 4 * 1024 * 1024
"""Largest file of objects: the API server takes 3 MiB for one."""

_GITHUB: Final = "https://raw.githubusercontent.com"
_BRANCHES: Final = ("main", "master")
_TIMEOUT_S: Final = 30.0


def read(file: str | Path, repo: str | None = None, branch: str | None = None) -> str:
    """The text of a file.

    Args:
        file: A path on this machine; with `repo` a path in that repository.
        repo: A repository on GitHub, `owner/name`.
        branch: Its branch; otherwise `main`, or `master` where there is no such file.

    Raises:
        ConfigError: If there is no such file, or it is too large.
        CloudError: If GitHub does not answer.
    """
    if repo is None:
        if branch is not None:
            raise ConfigError("a branch needs the repository that has it", key="branch")
        return _text(_local(Path(file)), str(file))
    branches = _BRANCHES if branch is None else (branch,)
    for one in branches:
        content = _fetched(f"{_GITHUB}/{quote(repo)}/{quote(one)}/{quote(str(file))}")
        if content is not None:
            return _text(content, f"{repo}/{file}")
    raise ConfigError(f"GitHub's repository {repo} has no file {file} on {' or '.join(branches)}", path=str(file))


def _local(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}", path=path) from error


def _fetched(url: str) -> bytes | None:
    """The content of a page; None where there is none."""
    try:
        with urlopen(url, timeout=_TIMEOUT_S) as response:
            content: bytes = response.read(MAX_FILE_BYTES + 1)
            return content
    except HTTPError as error:
        if error.code == HTTPStatus.NOT_FOUND:
            return None
        raise CloudError(f"{url}: {error.code} {error.reason}") from error
    except (URLError, OSError) as error:
        raise CloudError(f"{url}: {getattr(error, 'reason', error)}") from error


def _text(content: bytes, name: str) -> str:
    if len(content) > MAX_FILE_BYTES:
        raise ConfigError(f"{name}: more than {MAX_FILE_BYTES} bytes")
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        raise ConfigError(f"{name}: not UTF-8: {error}") from error
