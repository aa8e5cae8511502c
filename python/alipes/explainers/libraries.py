"""SHAP and captum, imported when the first explanation needs them."""

from __future__ import annotations

import random
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import ModuleType
from typing import Any

import numpy as np

from alipes.errors import ConfigError

__all__ = ["captum_methods", "seeded", "shap_library"]

_MEND = "pip install 'alipes[explain]'"


@cache
def shap_library() -> ModuleType:
    """SHAP.

    Its loops over masks are compiled by numba with their first use, which takes seconds in each process and gains less
    than a millisecond for each explanation of 100 columns: 15 s against 4 ms (two busy cores, 11/2026). They are left
    as Python here. What else the process compiles with numba stays compiled.

    Raises:
        ConfigError: If it is not installed.
    """
    try:
        if "shap" in sys.modules:
            return sys.modules["shap"]
        from numba import config

        before = config.DISABLE_JIT
        config.DISABLE_JIT = True
        try:
            import shap
        finally:
            config.DISABLE_JIT = before
    except ImportError as error:
        raise ConfigError(f"explanations of rows and texts need SHAP: {_MEND} ({error})") from error
    library: ModuleType = shap
    return library


@cache
def captum_methods() -> tuple[Any, Any, Any]:
    """PyTorch, and captum's `ShapleyValueSampling` and `IntegratedGradients`.

    Raises:
        ConfigError: If they are not installed.
    """
    try:
        import torch
        from captum.attr import IntegratedGradients, ShapleyValueSampling
    except ImportError as error:
        mend = "pip install 'alipes[explain,torch]'"
        raise ConfigError(f"explanations of pictures need captum and PyTorch: {mend} ({error})") from error
    return torch, ShapleyValueSampling, IntegratedGradients


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Has numpy and Python draw the same numbers each time within; what they draw elsewhere stays as it is."""
    numpy_state, python_state = np.random.get_state(), random.getstate()
    np.random.seed(seed)
    random.seed(seed)
    try:
        yield
    finally:
        np.random.set_state(numpy_state)
        random.setstate(python_state)
