"""The environment variables of a server: `ALIPES_HTTP_PORT` stands for `--http-port`, and so on."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from alipes.config.flag_text import FlagText
from alipes.config.flags import SERVE_FLAGS, environment_name
from alipes.config.nearest import nearest

__all__ = ["read_environment", "unused_variables"]

_PREFIX: Final = "ALIPES_"
_OTHERS: Final = frozenset({"ALIPES_LOCAL_PORTS", "ALIPES_PROGRESS", "ALIPES_SERVE_IMAGE", "ALIPES_TARGET_DIR"})
"""Variables that scripts and builds are told by, and that a server which they start inherits."""

_KNOWN: Final = {environment_name(flag): flag for flag in SERVE_FLAGS}

_LINK: Final = re.compile(r"(tcp|udp|sctp)://")
_OF_LINKS: Final = re.compile(
    r"ALIPES_(\w+?_)??(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_[0-9]+_(TCP|UDP|SCTP)(_\w+)?)?)"
)
"""Variables that Kubernetes sets for each service: one that is called `alipes` gives `ALIPES_PORT=tcp://10.0.0.1:8000`
to every container beside it."""


def read_environment(environ: Mapping[str, str]) -> list[FlagText]:
    """The flags that variables stand for. A flag that may be repeated takes words separated by white space."""
    found = [(flag, name) for name, flag in _KNOWN.items() if name in environ and not _is_link(name, environ[name])]
    return [
        FlagText(flag, text, f"{name} (--{flag.name})")
        for flag, name in found
        for text in (environ[name].split() if flag.kind == "list" else [environ[name]])
    ]


def unused_variables(environ: Mapping[str, str]) -> list[str]:
    """A notice for each variable that looks like a flag and is none."""
    notices = []
    for name in sorted(environ):
        known = name in _KNOWN or name in _OTHERS or _of_links(name, environ)
        if name.startswith(_PREFIX) and not known:
            hint = _guess(name)
            notices.append(f"environment variable {name} stands for no flag" + (f"; {hint}" if hint else ""))
    links = sorted(name for name in _KNOWN if name in environ and _is_link(name, environ[name]))
    return notices + [
        f"environment variable {name} is ignored: '{environ[name]}' is how Kubernetes tells of a service of that name"
        for name in links
    ]


def _guess(name: str) -> str:
    """What is meant by a variable that there is not."""
    from alipes.synonyms import synonym  # right variables need no guesses

    if row := synonym("alipes serve", name.removeprefix(_PREFIX)):
        return row.hint
    close = nearest(name, _KNOWN)
    return f"did you mean {close}?" if close else ""


def _is_link(name: str, text: str) -> bool:
    return name.endswith("_PORT") and _LINK.match(text) is not None


def _of_links(name: str, environ: Mapping[str, str]) -> bool:
    """Whether a variable is one of those that Kubernetes sets for a service."""
    match = _OF_LINKS.fullmatch(name)
    if match is None:
        return False
    service = f"ALIPES_{match[1] or ''}PORT"
    return _is_link(service, environ.get(service, ""))
