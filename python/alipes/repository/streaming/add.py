"""Adds a model with sequences to a repository, or leaves nothing of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from alipes.config.streaming_states import STREAM_IDLE_US
from alipes.repository.platform import Platform

if TYPE_CHECKING:
    from alipes.repository.model import Model
    from alipes.repository.model_repository import ModelRepository

__all__ = ["add_prepared"]


def add_prepared(
    repository: ModelRepository, name: str, platform: Platform, streams: int, source: Any, **options: Any
) -> Model:
    """Add a model with sequences and export its first version.

    No kind of device is set: such a model runs where there is no GPU, too.

    Args:
        repository: Where to add it.
        name: Its name. One that is taken gets a number.
        platform: What it is.
        streams: Instances.
        source: What to export.
        options: What `export_version` takes.
    """
    model = repository.add(name, platform, force=True)
    try:
        model.config.add_instance_group("auto", count=streams)
        model.config.sequence_batching = {"direct": {}, "max_sequence_idle_microseconds": STREAM_IDLE_US}
        model.export_version(source, **options)
    except BaseException:
        repository.remove(model)
        raise
    return model
