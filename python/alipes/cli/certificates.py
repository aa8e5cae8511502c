"""`--tls-cert` and `--tls-key` for every command that asks servers: added in one place, read where a client is made."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

if TYPE_CHECKING:
    from alipes.client import Tls

__all__ = ["tls_of", "with_certificate"]

_Files = tuple[Path | None, Path | None]

_own: Final[ContextVar[_Files]] = ContextVar("own", default=(None, None))
"""The certificate and the key of this command's client."""

_CERTIFICATE: Final = Annotated[
    Path | None,
    typer.Option(
        "--tls-cert",
        metavar="FILE",
        show_default=False,
        help="The client's own certificate, for servers that ask.",
    ),
]
_KEY: Final = Annotated[
    Path | None, typer.Option("--tls-key", metavar="FILE", show_default=False, help="The key to --tls-cert.")
]
_ADDED: Final = {"tls_cert": _CERTIFICATE, "tls_key": _KEY}


def with_certificate(command: Callable[..., Any]) -> Callable[..., Any]:
    """The same command with both options, behind `--tls-roots`."""

    @wraps(command)
    def run(*arguments: Any, tls_cert: Path | None = None, tls_key: Path | None = None, **options: Any) -> Any:
        with _certificate(tls_cert, tls_key):
            return command(*arguments, **options)

    signature = inspect.signature(command, eval_str=True)
    kind = inspect.Parameter.KEYWORD_ONLY
    added = [inspect.Parameter(name, kind, default=None, annotation=what) for name, what in _ADDED.items()]
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *added])  # type: ignore[attr-defined]
    run.__annotations__ = {**command.__annotations__, **_ADDED}
    return run


def tls_of(roots: Path | None, *, always: bool = False) -> Tls | None:
    """What is known of encryption, by the options of the command; None where they say nothing of it.

    Args:
        roots: What `--tls-roots` says.
        always: Whether connections are encrypted in any case.

    Raises:
        ConfigError: If a certificate comes without its key, or the other way round.
    """
    from alipes.client import Tls

    certificate, key = _own.get()
    if not (always or roots or certificate or key):
        return None
    return Tls(roots=roots, certificate=certificate, key=key)


@contextmanager
def _certificate(certificate: Path | None, key: Path | None) -> Iterator[None]:
    before = _own.set((certificate, key))
    try:
        yield
    finally:
        _own.reset(before)
