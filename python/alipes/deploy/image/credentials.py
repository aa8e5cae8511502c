"""Who is logged in at a registry: as `docker login` and `podman login` note it."""

from __future__ import annotations

import base64
import json
import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from alipes.deploy.image.refusal import PushError

__all__ = ["Credentials", "find_credentials"]

_DOCKER_HUB: Final = "docker.io"
_DOCKER_HUB_KEY: Final = "https://index.docker.io/v1/"
_TIMEOUT_S: Final = 60.0
_TOKEN: Final = "<token>"
"""What stands in place of a user where the rest is a token of an identity provider."""


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user and a password, which no message shows."""

    user: str
    password: str = field(repr=False)

    @property
    def basic(self) -> str:
        """The header `Authorization` for them."""
        return f"Basic {base64.b64encode(f'{self.user}:{self.password}'.encode()).decode()}"


def find_credentials(host: str) -> Credentials | None:
    """Who is logged in at a registry; None where nobody is.

    Raises:
        PushError: If the note of it cannot be read, or the program that has the password fails.
    """
    for path in _files():
        if path.is_file():
            found = _of_file(path, host)
            if found is not None:
                return found
    return None


def _files() -> Iterator[Path]:
    """Where such notes are, those first that somebody names."""
    if named := os.environ.get("REGISTRY_AUTH_FILE"):
        yield Path(named)
    docker = os.environ.get("DOCKER_CONFIG")
    yield (Path(docker) if docker else Path.home() / ".docker") / "config.json"
    if running := os.environ.get("XDG_RUNTIME_DIR"):
        yield Path(running) / "containers" / "auth.json"
    yield Path.home() / ".config" / "containers" / "auth.json"


def _of_file(path: Path, host: str) -> Credentials | None:
    try:
        document: dict[str, Any] = json.loads(path.read_bytes())
        helper = document.get("credHelpers", {}).get(host) or document.get("credsStore")
        entries: dict[str, Any] = document.get("auths", {})
        noted = [entries[key] for key in _keys(host) if key in entries]
        text = next((one["auth"] for one in noted if one.get("auth")), "")
        user, _, password = base64.b64decode(text, validate=True).decode().partition(":")
    except (OSError, ValueError, AttributeError, TypeError) as error:
        raise PushError(f"{path}, which says who is logged in, cannot be read: log in at {host} again") from error
    if user:
        return Credentials(user, password.rstrip("\0"))
    return _of_program(str(helper), host) if helper else None


def _keys(host: str) -> tuple[str, ...]:
    if host == _DOCKER_HUB:
        return (_DOCKER_HUB_KEY, host)
    return (host, f"https://{host}", f"https://{host}/v1/", f"https://{host}/v2/")


def _of_program(name: str, host: str) -> Credentials | None:
    """What the program says that has the passwords.

    Source: docker-credential-helpers, the command `get`.
    """
    program = f"docker-credential-{name}"
    key = _DOCKER_HUB_KEY if host == _DOCKER_HUB else host
    try:
        done = subprocess.run(
            [program, "get"], input=key, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False
        )
        if done.returncode != 0:
            return None  # it knows nobody there
        document = json.loads(done.stdout)
        user, password = str(document["Username"]), str(document["Secret"])
    except (OSError, subprocess.TimeoutExpired, ValueError, KeyError, TypeError) as error:
        raise PushError(f"{program}, which has the password for {host}, cannot be asked") from error
    if user == _TOKEN:
        raise PushError(f"{program} has an identity token for {host}: log in there with a user and a password")
    return Credentials(user, password)
