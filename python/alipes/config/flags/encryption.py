"""The five flags with which an endpoint is encrypted."""

from __future__ import annotations

from typing import Final

from alipes.config.flags.flag import Flag

__all__ = ["NOT_TRITONS", "encryption"]

NOT_TRITONS: Final = "Not a flag of Triton."


def encryption(prefix: str, name: str, *, note: str = "") -> tuple[Flag, ...]:
    """The flags of one endpoint.

    Args:
        prefix: What its flags and its options begin with.
        name: What people call it.
        note: A last sentence for each.
    """
    end = f" {note}" if note else ""
    return (
        Flag(
            f"{prefix}-use-ssl",
            "bool",
            False,
            f"Encrypt {name} connections; needs --{prefix}-server-cert and --{prefix}-server-key.{end}",
            option=f"{prefix}.tls.enabled",
        ),
        Flag(
            f"{prefix}-use-ssl-mutual",
            "bool",
            False,
            f"Encrypt {name} connections and ask clients for a certificate that leads to --{prefix}-root-cert.{end}",
            option=f"{prefix}.tls.mutual",
        ),
        Flag(
            f"{prefix}-server-cert",
            "str",
            "",
            f"File of the server's certificate and those between it and a root, as PEM.{end}",
            option=f"{prefix}.tls.certificate",
            path="file",
        ),
        Flag(
            f"{prefix}-server-key",
            "str",
            "",
            f"File of the server's key, as PEM, without a password.{end}",
            option=f"{prefix}.tls.key",
            path="file",
        ),
        Flag(
            f"{prefix}-root-cert",
            "str",
            "",
            f"File of the roots that certificates of clients lead to, as PEM.{end}",
            option=f"{prefix}.tls.roots",
            path="file",
        ),
    )
