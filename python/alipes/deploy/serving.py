"""The command line of a deployed server, the same wherever it runs."""

from __future__ import annotations

from typing import Final

from alipes.deploy.description import Description
from alipes.deploy.repository_place import served

__all__ = ["KEY_VARIABLE", "TLS_FOLDER", "arguments", "stop_s"]

TLS_FOLDER: Final = "/etc/alipes/tls"
KEY_VARIABLE: Final = "ALIPES_API_KEY"
"""The server reads its key there, so that no command line shows it."""
_SPARE_S: Final = 10
"""Seconds for the server's last phase, and for a busy machine."""


def arguments(description: Description) -> list[str]:
    """The arguments of `alipes serve`."""
    ports = description.ports
    values = [
        served(description.repository),
        f"--http-port={ports.http}",
        f"--grpc-port={ports.grpc}",
        f"--metrics-port={ports.metrics}",
        f"--exit-timeout-secs={description.exit_timeout_s}",
    ]
    if description.tls.secret:
        for protocol in ("http", "grpc"):
            values += [
                f"--{protocol}-use-ssl",
                f"--{protocol}-server-cert={TLS_FOLDER}/tls.crt",
                f"--{protocol}-server-key={TLS_FOLDER}/tls.key",
            ]
    if description.key.secret:
        values.append(f"--api-key-open={','.join(description.key.open) or 'none'}")
    return [*values, *description.arguments]


def stop_s(description: Description) -> int:
    """Seconds after which a supervisor may kill a server that was asked to stop: more than the server itself needs."""
    return description.pause_s + description.exit_timeout_s + _SPARE_S
