"""Helpers for tests of a lifecycle: states of its data plane, and loads that fail."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from alipes.errors import ModelLoadError
from alipes.server.failures import LoadFailed

from support.data_plane import DataPlane


def states(data_plane: DataPlane, model: str = "m") -> dict[str, tuple[str, str]]:
    """State and reason of each version of a model in the index."""
    return {e["version"]: (e["state"], e["reason"]) for e in data_plane.index if e["name"] == model}


def served(data_plane: DataPlane, model: str = "m") -> list[int]:
    """The published versions of a model."""
    return [version.version for version in data_plane.published.get(model, [])]


def failure_of(call: Callable[[], object]) -> tuple[str, str]:
    """Code and text of the failure of a load."""
    with pytest.raises(LoadFailed) as failure:
        call()
    return failure.value.code, str(failure.value)


def refuse(
    data_plane: DataPlane, version: int, text: str = "it broke", code: str = "INVALID_ARG", model: str = "m"
) -> None:
    """Makes each build of a version of a model fail."""
    data_plane.refused[model, version] = ModelLoadError(text, code=code)
