"""What keeps a model from answering sooner, in one sentence with one thing to do."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from alipes.cli.amounts import count, span

__all__ = ["verdict"]

_BUSY: Final = frozenset(("instances_busy", "coming"))
_MORE_INSTANCES: Final = "add an instance: instance_group [{ count: N }], or @alipes.model(instances=N)"


def verdict(model: Mapping[str, Any]) -> str:
    """One sentence about a model's queue as the server describes it now.

    Args:
        model: The model with its `queue` and its `scheduling`.
    """
    queue = model["queue"]
    hold = queue["hold"]
    if hold == "no_instance":
        return "no instance is in service: the server's log says why"
    if not queue["waiting"]:
        return "nothing waits: the time is spent in the model itself, or on the way"
    if hold == "no_slot":
        return "every slot belongs to another sequence: add an instance, or a larger max_batch_size"
    if hold == "company":
        delay = span(model["scheduling"].get("max_queue_delay_us", 0))
        return f"requests wait up to {delay} for company: lower max_queue_delay_microseconds"
    if hold not in _BUSY:
        return "requests wait until more have arrived"
    return f"{_limit(queue)}; {_MORE_INSTANCES}"


def _limit(queue: Mapping[str, Any]) -> str:
    number = count(queue["instances"], "instance")
    if "execution_us" not in queue:
        return f"{number} cannot keep up"
    return f"{number} cannot keep up, since an execution takes up to {span(queue['execution_us'])}"
