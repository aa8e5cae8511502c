"""Reads which groups of requests need a header: `--http-restricted-api` and `--grpc-restricted-protocol`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from alipes.config.listener_options import Restriction
from alipes.config.nearest import nearest
from alipes.errors import ConfigError

__all__ = ["GROUPS", "GRPC_PREFIX", "parts_of", "read_restrictions"]

GRPC_PREFIX: Final = "triton-grpc-protocol-"
"""What the header's name begins with in the metadata of gRPC calls. Source: Triton."""

GROUPS: Final = (
    "health",
    "metadata",
    "inference",
    "shared-memory",
    "model-config",
    "model-repository",
    "model-control",
    "statistics",
    "trace",
    "logging",
    "endpoint",
    "openapi",
)
"""The groups of requests. Source: Triton's `--http-restricted-api`; `model-control` and the last two are ours."""

# What may be the name of a header. Source: RFC 9110, section 5.6.2.
_HEADER: Final = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


def parts_of(group: str) -> tuple[str, ...]:
    """The groups that the name of one restricts: itself, and those that are a part of it."""
    return (group, "model-control") if group == "model-repository" else (group,)


def read_restrictions(flag: str, word: str, texts: Sequence[str]) -> tuple[Restriction, ...]:
    """Take the values of a flag apart.

    Args:
        flag: The flag without its dashes.
        word: What Triton calls a group there: `api` or `protocol`.
        texts: The values, each `<group,...>:<header>=<value>`.

    Raises:
        ConfigError: If a value has another form, names no group, or names one that stands elsewhere already.
    """
    restrictions: list[Restriction] = []
    seen: set[str] = set()
    for text in texts:
        names, colon, rest = text.partition(":")
        header, equals, value = rest.partition("=")
        if not (names and colon and header and equals and value):
            raise _bad(flag, f"--{flag} option format is '<config name>:<setting>=<value>'. Got {text}")
        if not (_HEADER.fullmatch(header) and value.isprintable()):
            raise _bad(
                flag, f"expected <{word},...>:<key>=<value> with the name and the value of a header, got '{text}'"
            )
        groups = tuple(names.split(","))
        for group in groups:
            if group not in GROUPS:
                close = nearest(group, GROUPS)
                hint = f"; did you mean '{close}'?" if close else ""
                raise _bad(flag, f"unknown restricted {word} '{group}'{hint}")
            parts = parts_of(group)
            if not seen.isdisjoint(parts):
                raise _bad(flag, f"restricted {word} '{group}' can not be specified in multiple config groups")
            seen.update(parts)
        restrictions.append(Restriction(groups=groups, header=header, value=value))
    return tuple(restrictions)


def _bad(flag: str, text: str) -> ConfigError:
    return ConfigError(f'Bad option: "--{flag}".\n{text}', key=flag)
