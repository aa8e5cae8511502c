"""The scenarios that are left for later, each with the feature that it waits for."""

from __future__ import annotations

from collections.abc import Mapping

LATER: Mapping[str, str] = {}
