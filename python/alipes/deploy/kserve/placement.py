"""Which trained model is in which service: decided by their memory."""

from __future__ import annotations

from alipes.deploy.kserve.description import Models
from alipes.deploy.quantities import bytes_of

__all__ = ["placed", "unplaced"]


def placed(models: Models, room_bytes: int) -> list[int | None]:
    """The number of the service of each model; None where it fits into none.

    Each goes into the first service with room for it. So where a model is depends on those before it alone, and one
    that is added at the end has no other loaded again.

    Args:
        models: The models.
        room_bytes: Of each service.
    """
    free: list[int] = []
    numbers: list[int | None] = []
    for model in models.items:
        memory = bytes_of(model.memory)
        number = next((number for number, room in enumerate(free) if room >= memory), None)
        if number is None and memory <= room_bytes and len(free) < models.shards:
            number = len(free)
            free.append(room_bytes)
        if number is not None:
            free[number] -= memory
        numbers.append(number)
    return numbers


def unplaced(models: Models, room_bytes: int) -> list[int]:
    """The places in the list of those models that fit into no service."""
    return [place for place, number in enumerate(placed(models, room_bytes)) if number is None]
