"""Small programs that stand in for container engines: they run our server where an image would have Triton."""

from __future__ import annotations

import sys
from pathlib import Path

from alipes.serve.recipe import TRITONSERVER

LOOPBACK = tuple(
    f"--{endpoint}-{what}" for endpoint in ("http", "grpc", "metrics") for what in ("address=127.0.0.1", "port=0")
)
"""Flags of a server that only this machine can reach, at ports that the system picks."""

# Records its arguments, drops those before the server's name, and becomes our server.
_SERVES = f"""\
#!/bin/bash
printf '%s\\n' "$*" >> "$(dirname "$0")/calls"
[ "$1" = rm ] && exit 0
{{before}}
while [ "$1" != {TRITONSERVER} ]; do shift; done
shift
exec "{sys.executable}" -m alipes serve "$@"
"""


def stand_in(folder: Path, name: str, before: str = "") -> Path:
    """Puts a stand-in into a folder, which is then to be first on the PATH.

    Args:
        folder: Where to; it is made.
        name: The engine's name.
        before: Lines of shell that come before the server.

    Returns:
        The file to which each call is written, a line each.
    """
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(_SERVES.format(before=before))
    program.chmod(0o755)
    return folder / "calls"
