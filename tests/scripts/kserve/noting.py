"""What a list of calls returns and raises, as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from enum import Enum
from typing import Any

import numpy as np

_FACTS: dict[str, Any] = {}


def shown(value: Any) -> Any:
    """A value as JSON has it, with types of arrays."""
    if isinstance(value, (np.ndarray, np.generic)):
        return {"dtype": str(value.dtype), "shape": list(value.shape), "values": repr(value.tolist())}
    if isinstance(value, dict):
        return {str(name): shown(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [shown(one) for one in value]
    if isinstance(value, Enum):
        return str(value)
    if isinstance(value, (str, int, float, bool)) or value is None:
        return value
    return repr(value)


def fact(name: str, call: Callable[[], Any]) -> None:
    """Notes what a call returns, or the exception that it raises."""
    try:
        _FACTS[name] = {"returns": shown(call())}
    except Exception as error:
        _FACTS[name] = {"raises": type(error).__name__, "text": str(error)}


def print_facts() -> None:
    """Prints what was noted."""
    json.dump(_FACTS, sys.stdout, indent=1, sort_keys=True)
