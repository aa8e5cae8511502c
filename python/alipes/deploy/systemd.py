"""A unit of systemd: one server on one machine, with nothing but the models to read."""

from __future__ import annotations

import re
from typing import Final

from alipes.deploy.description import Description, Resources
from alipes.deploy.quantities import bytes_of, cores_of
from alipes.deploy.repository_place import BUCKETS, check_machine
from alipes.deploy.serving import TLS_FOLDER, arguments, stop_s
from alipes.errors import ConfigError

__all__ = ["PROGRAM", "socket_unit", "systemd_unit"]

PROGRAM: Final = "/opt/alipes/bin/alipes"
"""Where the documentation installs alipes."""

_UNIT: Final = """\
[Unit]
Description=alipes model server
Wants=network-online.target
After=network-online.target

[Service]
Type=exec
ExecStart={command}
# Certificates and keys are read again, and the log file is opened again.
ExecReload=/bin/kill -HUP $MAINPID

# SIGTERM finishes what is in. The server tells the processes of its Python models itself.
KillSignal=SIGTERM
KillMode=mixed
# More than --exit-timeout-secs and --exit-grace-secs together.
TimeoutStopSec={stop_s}

Restart=on-failure
RestartSec=2
# 2: the command line is wrong, and stays wrong.
RestartPreventExitStatus=2

# A user of its own, which exists while the server runs.
DynamicUser=yes
LimitNOFILE=65536
{own}
# Nothing but the models is needed, and they are read.
ProtectSystem=strict
ProtectHome=yes
PrivateTmp=yes
{devices}ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
ProtectClock=yes
ProtectHostname=yes
NoNewPrivileges=yes
CapabilityBoundingSet=
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX AF_NETLINK
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
SystemCallFilter=@system-service

[Install]
{install}
"""

_SOCKET_UNIT: Final = """\
[Unit]
Description=Ports of the alipes model server

[Socket]
# The first connection starts the service of the same name. The server knows each socket by its port.
ListenStream=0.0.0.0:{http}
ListenStream=0.0.0.0:{grpc}
Backlog=1024

[Install]
WantedBy=sockets.target
"""


def systemd_unit(description: Description, program: str = PROGRAM, idle_exit_s: float = 0.0) -> str:
    """The text of the unit.

    Args:
        description: What is deployed. `tls.secret` is a folder with `tls.crt` and `tls.key`, `key.secret` and `secrets`
            are files of variables; the first holds `ALIPES_API_KEY`.
        program: The command `alipes`.
        idle_exit_s: Seconds without a request after which the server ends; its sockets, which `socket_unit` describes,
            start it again. 0 has it run all the time.

    Raises:
        ConfigError: If the description says what one machine does not have, or a path is not a whole one.
    """
    _check(description)
    idle = [f"--idle-exit={idle_exit_s:g}"] if idle_exit_s else []
    return _UNIT.format(
        command=" ".join(_word(word) for word in [program, "serve", *_arguments(description), *idle]),
        install="# Its sockets start it.\nAlso=%p.socket" if idle_exit_s else "WantedBy=multi-user.target",
        stop_s=stop_s(description),
        own="".join(f"{line}\n" for line in _own(description)),
        devices="" if description.resources.gpus else "PrivateDevices=yes\n",
    )


def socket_unit(description: Description) -> str:
    """The text of the unit of the sockets, for a file of the service's name that ends in `.socket`.

    Metrics are left to the server: a monitor that reads them every few seconds would start it each time.
    """
    return _SOCKET_UNIT.format(http=description.ports.http, grpc=description.ports.grpc)


def _check(description: Description) -> None:
    if description.replicas != 1 or description.scaling.kind != "none":
        raise ConfigError("a unit is one server: leave out replicas and scaling", key="replicas")
    check_machine(description.repository)
    for key, path in (("repository", description.repository), ("tls.secret", description.tls.secret)):
        if path and not path.startswith(("/", *BUCKETS)):
            raise ConfigError(f"{key}: systemd needs the whole path of '{path}'", key=key)


def _arguments(description: Description) -> list[str]:
    """The arguments. Certificates are where systemd puts credentials, which the unit's user may read."""
    own = {"$": "$$", f"{TLS_FOLDER}/": "${CREDENTIALS_DIRECTORY}/"}
    words = arguments(description)
    for written, read in own.items():
        words = [word.replace(written, read) for word in words]
    return words


def _own(description: Description) -> list[str]:
    """Lines for what this server has and others do not."""
    resources = description.resources
    lines = [f"MemoryMax={bytes_of(resources.memory)}"] if resources.memory != Resources().memory else []
    if resources.cpu_limit:
        lines.append(f"CPUQuota={round(100 * cores_of(resources.cpu_limit))}%")
    lines += [f"Environment={_word(f'{name}={value}')}" for name, value in description.environment.items()]
    files = [*description.secrets, *([description.key.secret] if description.key.secret else [])]
    lines += [f"EnvironmentFile={file}" for file in files]
    if description.tls.secret:
        lines += [f"LoadCredential={name}:{description.tls.secret}/{name}" for name in ("tls.crt", "tls.key")]
    return lines


def _word(word: str) -> str:
    """A word as systemd reads it: quoted where it has to be, with `%` doubled."""
    text = word.replace("%", "%%")
    if re.fullmatch(r"[\w@%+=:,./${}-]+", text):
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
