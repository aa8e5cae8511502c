"""Makes `bench` importable: a tool of the project's folder, not a part of the installed package."""

from __future__ import annotations

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[3]))
