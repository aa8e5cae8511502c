"""What a cluster or a node pool does, from the message that Google's API has of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from alipes.cloud.kubernetes.findings import Finding

if TYPE_CHECKING:
    pass

__all__ = ["STOCK_OUT", "findings_of", "is_ready", "words_of"]

STOCK_OUT: Final = "GCE_STOCKOUT"
"""Google's name for a zone that has none of the machines left."""

_READY: Final = frozenset({"RUNNING"})
_FAILED: Final = frozenset({"ERROR", "DEGRADED", "RUNNING_WITH_ERROR"})

Message = "container.Cluster | container.NodePool"


def is_ready(message: Any) -> bool:
    """Whether it can be used."""
    return message.status.name in _READY


def words_of(message: Any) -> str:
    """Its state in a few words."""
    words: str = message.status.name.lower().replace("_", " ")
    return words


def findings_of(message: Any) -> list[Finding]:
    """Why it is not ready and will not be; a stock-out may pass, and is judged by its age."""
    if message.status.name == "STOPPING":
        return [Finding("STOPPING", "it is being removed", is_final=True)]
    if message.status.name not in _FAILED:
        return []
    conditions = [(one.code.name, one.message) for one in message.conditions]
    for code, text in conditions:
        if code == STOCK_OUT:
            return [Finding(STOCK_OUT, text or "the zone has no such machines left")]
    texts = [text for _, text in conditions if text] or [message.status_message or "Google gives no reason"]
    reason = next((code for code, _ in conditions if code != "UNKNOWN"), message.status.name)
    return [Finding(reason, "; ".join(texts), is_final=True)]
