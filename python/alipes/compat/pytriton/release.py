"""The release of PyTriton whose names are answered to."""

from __future__ import annotations

from typing import Final

__all__ = ["VERSION"]

VERSION: Final = "0.7.0"
