"""perf_analyzer's command line, report, files and exit statuses, on the load engine of alipes."""

from __future__ import annotations

from alipes.compat.perf_analyzer.command import main
from alipes.compat.perf_analyzer.failures import Exit

__all__ = ["Exit", "main"]
