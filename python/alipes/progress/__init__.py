"""How far long work has come: one line on a terminal or in a notebook, and nothing anywhere else.

`track` counts what a loop goes through; `task` is for work with steps of its own. Both show nothing where the error
output is no terminal, where `ALIPES_PROGRESS=0` is set, or where `show=False` is said, and import nothing then. The
line is gone when the work is done. Names are imported on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alipes.lazily import lazily

__all__ = ["Task", "current", "task", "track"]

if TYPE_CHECKING:
    from alipes.progress.loop import track
    from alipes.progress.work import Task, current, task

_HOMES = {
    "Task": "alipes.progress.work",
    "current": "alipes.progress.work",
    "task": "alipes.progress.work",
    "track": "alipes.progress.loop",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
