"""Calls the program of a framework, whose errors all become one."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from alipes.worker.failure import describe
from alipes.worker.frameworks.opened import OpenedModel, Opening
from alipes.worker.loading import LoadError

__all__ = ["checked", "opened"]

T = TypeVar("T")


def opened(program: Any, opening: Opening) -> OpenedModel:
    """The model of an opening.

    Raises:
        LoadError: If it keeps a state from one call to the next, and its configuration has no sequences.
    """
    found: OpenedModel = program.open_model(opening)
    if found.hidden and not (found.steps and opening.config.get("sequence_batching")):
        advice = "add sequence_batching to config.pbtxt, and each sequence has a state of its own; or " * found.steps
        raise opening.refuse(
            f"it keeps a state from one call to the next ({found.hidden}), so the answer to one client would depend on "
            f"what others sent: {advice}export it with the state as one more input and output, which "
            "sequence_batching.state connects"
        )
    return found


def checked(framework: Mapping[str, Any], opening: Opening, ask: Callable[[Any, Opening], T]) -> T:
    """What a framework's program answers; whatever it raises becomes one error."""
    try:
        return ask(importlib.import_module(framework["program"]), opening)
    except LoadError:
        raise
    except ModuleNotFoundError as error:
        raise LoadError(_missing(framework, opening, error)) from None
    except BaseException as error:
        raise LoadError(describe(error)) from error


def _missing(framework: Mapping[str, Any], opening: Opening, error: ModuleNotFoundError) -> str:
    version = ".".join(str(part) for part in sys.version_info[:3])
    return (
        f"model '{opening.model_name}' needs the package '{error.name}', which {Path(sys.executable).name} (Python "
        f"{version}) does not have: install it with: pip install '{framework['extra']}'"
    )
