"""What a person sees once the server is ready: where it answers, what it serves, and what to type next.

A terminal gets a short block in the place of the log's lines about addresses; a log gets one line more.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from alipes.types import IndexEntry, ModelState

__all__ = ["Greeting", "address_of"]

# Most models that the line of the log names.
_WIDTH: Final = 80
_NAMED: Final = 10

_EVERYWHERE: Final = ("0.0.0.0", "[::]", "::")


@dataclass(frozen=True, slots=True)
class Greeting:
    """A server that is ready.

    Attributes:
        version: The version of alipes.
        http: Address of the HTTP endpoint, as `address_of` writes it; None where there is none.
        grpc: The same for gRPC.
        metrics: The same for the metrics.
        entries: The models of which a load was tried, and folders that are no models yet.
        loads_on_request: Whether clients load models.
        has_docs: Whether `/docs` shows the requests in a browser.
    """

    version: str
    http: str | None
    grpc: str | None
    metrics: str | None
    entries: Sequence[IndexEntry]
    loads_on_request: bool = False
    has_docs: bool = False

    def block(self, strangers: str = "") -> str:
        """The block for a terminal, without the models, which have a table.

        Args:
            strangers: What anybody can do who reaches the server; empty where none can.
        """
        lines = [f"alipes {self.version} is ready", ""]
        is_link = self.metrics is not None and "://" in self.metrics
        metrics = f"{self.metrics}/metrics" if is_link else self.metrics
        services = (("HTTP", self.http), ("gRPC", self.grpc), ("metrics", metrics), ("docs", self._docs()))
        for service, address in services:
            if address is not None:
                lines.append(f"  {service:<8} {address}")
        lines.append("")
        lines += [f"  Try it:  {command}" for command in self._next()]
        if not any(map(_serves, self.entries)):
            lines.append("  No model is served yet.")
        lines.append("  Ctrl-C stops the server.")
        if strangers:
            import textwrap  # a log needs none of it

            text = strangers[:1].upper() + strangers[1:] + "."
            indent = "  "
            wrapped = textwrap.wrap(
                text, _WIDTH, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
            )
            lines += ["", *wrapped]
        return "\n".join(lines)

    def line(self) -> str:
        """The line for a log."""
        ready = [f"{entry.name}:{entry.version}" for entry in self.entries if _serves(entry)]
        shown = ", ".join(ready[:_NAMED]) or "none"
        more = f" and {len(ready) - _NAMED} more" if len(ready) > _NAMED else ""
        rest = len(self.entries) - len(ready)
        missing = f"; not served: {rest}" if rest else ""
        docs = self._docs()
        page = f"; requests to try out: {docs}" if docs is not None else ""
        return f"alipes {self.version} is ready; models: {shown}{more}{missing}{page}"

    def _docs(self) -> str | None:
        """Where a browser shows the requests; None where it cannot."""
        can_show = self.has_docs and self.http is not None and "://" in self.http
        return f"{self.http}/docs" if can_show else None

    def _next(self) -> Iterable[str]:
        """What to type next; nothing where HTTP is not spoken, or there is no model."""
        if self.http is None:
            return
        from urllib.parse import quote

        curl = _curl(self.http)
        model = next((entry.name for entry in self.entries if _serves(entry)), None)
        if model is not None:
            yield f"{curl}/v2/models/{quote(model)}"
        elif self.loads_on_request:
            yield f"{curl}/v2/repository/models/NAME/load -d '{{}}'"


def address_of(address: str | None, scheme: str) -> str | None:
    """The address of an endpoint as a terminal makes a link of it: this machine's name for all of its addresses.

    Args:
        address: `host:port`, or `unix:` and a path; None where there is no endpoint.
        scheme: `http`, say.
    """
    if address is None or address.startswith("unix:"):
        return address
    host, _, port = address.rpartition(":")
    return f"{scheme}://{'localhost' if host in _EVERYWHERE else host}:{port}"


def _curl(address: str) -> str:
    """A command up to the path that it asks for."""
    if address.startswith("unix:"):
        return f"curl --unix-socket {address.removeprefix('unix:')} http://localhost"
    return f"curl {address.removeprefix('http://')}"


def _serves(entry: IndexEntry) -> bool:
    return entry.state is ModelState.READY
