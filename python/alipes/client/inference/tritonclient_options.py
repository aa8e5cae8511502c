"""What scripts say to `tritonclient`, on which hermes is built, and what it means here."""

from __future__ import annotations

import warnings
from typing import Any, Final

from alipes.client.tls import Tls
from alipes.errors import ConfigError

__all__ = ["read_options"]

_OPTIONS: Final = frozenset(
    {
        "certificate_chain",
        "channel_args",
        "creds",
        "keepalive_options",
        "private_key",
        "root_certificates",
        "ssl",
        "verbose",
    }
)

_OF_TLS: Final = frozenset({"certificate_chain", "private_key", "root_certificates", "ssl"})


def read_options(options: dict[str, Any], tls: Tls | None) -> Tls | None:
    """How connections are encrypted, by what a script says to `tritonclient` or to this client.

    Options without effect are named in a warning.

    Raises:
        TypeError: If an option is one of neither.
        ConfigError: If encryption is asked for in a way that cannot be followed.
    """
    if unknown := options.keys() - _OPTIONS:
        raise TypeError(f"InferenceClient takes no argument {', '.join(sorted(unknown))}")
    if options.get("creds") is not None:
        raise ConfigError(
            "creds are an object of the library grpc, which this client is not built on",
            key="creds",
            hint="give the files behind them as tls=Tls(roots=..., certificate=..., key=...)",
        )
    if options.get("ssl"):
        if tls is not None:
            raise ConfigError("ssl and tls say the same in two ways", key="ssl", hint="leave one of them out")
        tls = Tls(options.get("root_certificates"), options.get("certificate_chain"), options.get("private_key"))
        options = {name: value for name, value in options.items() if name not in _OF_TLS}
    if ignored := sorted(name for name, value in options.items() if value):
        warnings.warn(f"{', '.join(ignored)}: options of tritonclient, without effect here", stacklevel=4)
    return tls
