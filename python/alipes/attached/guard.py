"""Who may load and unload: the script alone. A load request can bring a configuration and files that run as code."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final

from alipes.config.restrictions import GRPC_PREFIX, parts_of
from alipes.errors import ServeError

__all__ = ["Guard"]

_GROUP: Final = "model-control"
"""Not the index: `alipes models list` shows what `/docs` and `/v1/models` show anybody, and changes nothing."""
_HEADER: Final = "alipes-attached"
_SECRET_BYTES: Final = 32

_FLAGS: Final = ("http-restricted-api", "grpc-restricted-protocol")
"""What restricts groups of requests to those with a header."""


class Guard:
    """A header that requests to load and unload must have, with a value that only this script and its server know.

    Its server is told by variables: other users of the machine can read the words of a command line.
    """

    def __init__(self, header: str = _HEADER, secret: str | None = None, groups: Collection[str] = (_GROUP,)) -> None:
        """Takes what is guarded, and by what.

        Args:
            header: Name of the header.
            secret: Its value; a new one by default.
            groups: Groups of requests that need it; none leaves the server open.
        """
        self._header = header
        self._secret = secret if secret is not None else secrets.token_urlsafe(_SECRET_BYTES)
        self._groups = tuple(groups)
        self._headers = {header: self._secret}

    @property
    def headers(self) -> dict[str, str]:
        """What the script's own clients send, over HTTP or gRPC."""
        return {f"{prefix}{name}": value for name, value in self._headers.items() for prefix in ("", GRPC_PREFIX)}

    def settle(self, words: Sequence[str], environ: Mapping[str, str]) -> tuple[list[str], dict[str, str]]:
        """Adds the guard to what a command line and the environment restrict.

        Args:
            words: The words of a command line.
            environ: The environment that the server will have.

        Returns:
            The words without those that restrict groups, and the variables that do.

        Raises:
            ServeError: If a restriction holds white space, which variables cannot hold.
        """
        rest, named = _split(words)
        variables = {}
        for flag in _FLAGS:
            variable = f"ALIPES_{flag.replace('-', '_').upper()}"
            values = named[flag] or environ.get(variable, "").split()
            spaced = [value for value in values if value.split() != [value]]
            if spaced:
                raise ServeError(f"--{flag}={spaced[0]} cannot be used here: its value has white space, or is empty")
            guarded = self._unrestricted(values)
            own = [f"{','.join(guarded)}:{self._header}={self._secret}"] if guarded else []
            if values or own:
                variables[variable] = " ".join((*values, *own))
        return rest, variables

    def _unrestricted(self, values: Sequence[str]) -> list[str]:
        """The guarded groups that flags do not restrict already; what those ask for is sent, too."""
        covered: set[str] = set()
        for value in values:
            groups, _, rule = value.partition(":")
            parts = {part for group in groups.split(",") for part in parts_of(group)}
            common = parts.intersection(self._groups)
            if common:
                header, _, secret = rule.partition("=")
                self._headers[header] = secret
            covered |= common
        return [group for group in self._groups if group not in covered]


def _split(words: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
    """The words without the flags that restrict groups, and the values of these."""
    rest: list[str] = []
    named: dict[str, list[str]] = {flag: [] for flag in _FLAGS}
    following: Iterator[str] = iter(words)
    for word in following:
        name, equals, value = word.partition("=")
        flag = name.removeprefix("--").replace("_", "-")
        if name.startswith("--") and flag in named:
            named[flag].append(value if equals else next(following, ""))
        else:
            rest.append(word)
    return rest, named
