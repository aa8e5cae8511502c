"""Several kinds of requests in one load, for one server or for several."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, TypeAlias

from alipes.errors import ConfigError
from alipes.loadtest.check import Check

if TYPE_CHECKING:
    from alipes.loadtest.measure import Requests

__all__ = ["Mixed", "Share", "labels", "read_shares", "spread_over"]


@dataclass(frozen=True)
class Share:
    """One kind of requests of a load, and how often they are sent beside the others.

    Attributes:
        requests: What is sent; a model's name stands for random inputs of one row.
        weight: Its share is this divided by all weights.
        address: The server; that of the load where it is empty.
        name: What it is called in results; the model's name where it is empty.
        check: How its answers are checked; as those of the whole load where it is `None`.
    """

    requests: Requests | str
    weight: float = 1.0
    address: str = ""
    name: str = ""
    check: Check | None = None

    def __post_init__(self) -> None:
        """Checks the weight."""
        if not self.weight > 0:
            raise ConfigError(f"the weight is {self.weight}: expected a number above 0", key="weight")


Mixed: TypeAlias = "Requests | str | Sequence[Share | tuple[Requests | str, float]]"
"""What is sent: one kind of requests, or several with their weights."""


def read_shares(requests: Mixed) -> list[Share]:
    """The kinds of requests of a load.

    Raises:
        ConfigError: If there is none, or a weight is none.
    """
    if isinstance(requests, str) or not isinstance(requests, Sequence):
        return [Share(requests)]
    if not requests:
        raise ConfigError("a load needs requests: the list of them is empty")
    return [share if isinstance(share, Share) else Share(*share) for share in requests]


def spread_over(shares: Sequence[Share], addresses: Sequence[str]) -> list[Share]:
    """The shares for several servers: one that names no server becomes one for each, with an equal part of its weight.

    Args:
        shares: The kinds of requests.
        addresses: The servers; where there is one, nothing changes.
    """
    if len(addresses) == 1:
        return list(shares)
    spread: list[Share] = []
    for share, label in zip(shares, labels(shares), strict=True):
        if share.address:
            spread.append(share)
            continue
        part = share.weight / len(addresses)
        names = {one: one if len(shares) == 1 else f"{label}@{one}" for one in addresses}
        spread += [replace(share, weight=part, address=one, name=name) for one, name in names.items()]
    return spread


def labels(shares: Sequence[Share]) -> list[str]:
    """What each is called in results: no two have the same name."""
    names: list[str] = []
    for number, share in enumerate(shares, start=1):
        model = share.requests if isinstance(share.requests, str) else getattr(share.requests, "model", "")
        name = share.name or model or "requests"
        names.append(name if name not in names else f"{name} {number}")
    return names
