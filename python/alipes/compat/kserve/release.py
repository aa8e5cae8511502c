"""Which release of the KServe SDK these names and texts are of."""

from __future__ import annotations

from typing import Final

__all__ = ["VERSION"]

VERSION: Final = "0.21.0"
