"""What `alipes serve` says where a server does not start: the mend first, where the reason is a mistake of a person.

`alipes tritonserver` says these things in Triton's words, which scripts look for.
"""

from __future__ import annotations

import re
import socket
from pathlib import Path
from typing import Final

from alipes.cli.mistakes import fold
from alipes.cli.port_holder import port_holder
from alipes.config.options import ServerOptions
from alipes.errors import AlipesError

__all__ = ["start_mistake"]

_IN_USE: Final = re.compile(
    r"failed to start (?P<what>\w+) service: \w+ - Socket '(?P<address>.+):(?P<port>\d+)' already"
)
_NO_REPOSITORY: Final = re.compile(
    r"(?P<mend>.+) \((?P<seen>(?:failed to stat file|repository path is not a valid directory:) .+)\)"
)
_NO_PACKAGE: Final = re.compile(r"(?P<seen>.+ need the package \S+): (?P<mend>pip install .+)")
_NOT_HERE: Final = re.compile(
    r"failed to start (?P<what>\w+) service: \w+ - cannot listen on '(?P<address>.+):\d+': "
    r"(?P<seen>failed to lookup address.*|Cannot assign requested address.*)",
    re.DOTALL,
)
_ERROR: Final = "error: "
"""What the text stands behind."""

_FIRST_PORT: Final = 9000
_STEP: Final = 10
_LAST_PORT: Final = 9990
_ENDPOINTS: Final = ("http", "grpc", "metrics")


def start_mistake(options: ServerOptions, error: AlipesError) -> str:
    """The text for a server that did not start; the error's own where nobody typed something wrong."""
    mend = _mend(options, str(error))
    return fold(f"{_ERROR}{mend}").removeprefix(_ERROR) if mend else str(error)


def _mend(options: ServerOptions, text: str) -> str:
    if match := _IN_USE.search(text):
        return _port_in_use(options, match["what"], match["address"], int(match["port"]))
    if match := _NO_REPOSITORY.fullmatch(text):
        return _from_here(f"{match['mend']}\n{match['seen']}")
    if match := _NOT_HERE.fullmatch(text):
        address, seen = match["address"], match["seen"]
        return (
            "say an address of this machine, such as --host 127.0.0.1\n"
            f"{match['what']} cannot listen at {address}: {seen}"
        )
    if match := _NO_PACKAGE.fullmatch(text):
        return f"{match['mend']}\n{match['seen']}"
    return text if "is not offered" in text else ""


def _port_in_use(options: ServerOptions, what: str, address: str, port: int) -> str:
    endpoint = what.lower()
    flags = [f"{name}-port" for name in _ENDPOINTS]
    alone = any(options.origins.get(flag) != options.origins.get(flags[0]) for flag in flags)
    ports = range(port + 1, port + 1 + _STEP) if alone else range(_FIRST_PORT, _LAST_PORT, _STEP)
    needed = 1 if alone else len(_ENDPOINTS)
    free = next((one for one in ports if all(_is_free(address, one + more) for more in range(needed))), None)
    mends = [f"say --{f'{endpoint}-port' if alone else 'port'} {free}"] if free is not None else []
    holder = port_holder(port)
    if holder is not None:
        mends.append(f"stop process {holder.pid} ({holder.name})")
    else:
        mends.append(f"stop what listens there: sudo ss -ltnp 'sport = :{port}' shows it")
    follow = "" if alone or free is None else f"; gRPC and metrics follow at {free + 1} and {free + 2}"
    return f"{', or '.join(mends)}\nport {port} of {address} is already in use, and {what} needs it{follow}"


def _is_free(address: str, port: int) -> bool:
    try:
        found = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)
        with socket.socket(found[0][0], socket.SOCK_STREAM) as probe:
            probe.bind(found[0][4])
    except OSError:
        return False
    return True


def _from_here(text: str) -> str:
    """Paths as a person would type them in the current folder."""
    here = Path.cwd()
    return text if here == here.parent else text.replace(f"{here}/", "")
