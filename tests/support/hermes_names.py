"""The import names of hermes, answered to by ours while a test runs."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from importlib import import_module

import pytest


@pytest.fixture
def hermes() -> Iterator[None]:
    """Installs the names whether or not an earlier test of this process imported the module, and removes them."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compat = import_module("alipes.compat.hermes")
        compat.install()
    try:
        yield
    finally:
        compat.uninstall()
