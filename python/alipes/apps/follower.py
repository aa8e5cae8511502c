"""`--reload`: looks at the files of apps, and has what has changed loaded again.

A changed app is described by a new process first. Where its source cannot be imported, or a model of it cannot start,
the old one goes on serving. Where it can, the server swaps the models as in any reload: a request keeps what it found.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final

from alipes.apps.description import Description, Inquiry
from alipes.apps.serving import Apps, check_names, new_process
from alipes.apps.target import Target
from alipes.errors import ConfigError
from alipes.server.log import log
from alipes.server.server import InProcessServer
from alipes.server.service_thread import ServiceThread

__all__ = ["Follower"]

LOOK_S: Final = 0.2
"""Seconds between two looks at the files; a change is taken up when two looks see the same."""

Stamps = Mapping[str, tuple[int, int]]
"""Time of the last change, and size, of each file; a file that is gone has none."""


class Follower(ServiceThread):
    """Follows the files of apps."""

    def __init__(
        self, apps: Apps, server: InProcessServer, changed: Callable[[], None], look_s: float = LOOK_S
    ) -> None:
        """Records the files as they are now.

        Args:
            apps: The apps, described.
            server: Loads and unloads their models.
            changed: Called once a changed app has been described.
            look_s: Seconds between two looks.
        """
        super().__init__("alipes-follower")
        self._apps = apps
        self._server = server
        self._changed = changed
        self._look_s = look_s
        self._files = {target: found.files for target, found in apps.descriptions.items()}
        self._known = {target: stamps(files) for target, files in self._files.items()}
        self._changing: dict[Target, Stamps] = {}
        # Workers end with the thread that has started them, and must drain when this one has ended.
        self._starter = ThreadPoolExecutor(1, "alipes-app-starter")

    def look(self) -> None:
        """Looks at all files once, and takes up what has changed and changes no more."""
        for target in self._apps.targets:
            now = stamps(self._files[target])
            if now == self._known[target]:
                self._changing.pop(target, None)
            elif now != self._changing.get(target):
                self._changing[target] = now
            else:
                del self._changing[target]
                self._known[target] = now
                self._take_up(target)

    def _run(self) -> None:
        while not self._stopping.wait(self._look_s):
            try:
                self.look()
            except Exception:  # what serves goes on; the next change may be readable
                log.exception("the source of the apps cannot be followed")

    def _take_up(self, target: Target) -> None:
        old = self._apps.descriptions[target]
        inquiry = Inquiry(target, self._starter.submit(new_process).result())
        try:
            new = inquiry.result()
            others = [one for other, one in self._apps.descriptions.items() if other != target]
            check_names([*others, new])
        except ConfigError as error:
            inquiry.process.close()
            log.error("%s; what it was before goes on serving", error)
            self._watch(target, {*old.files, *inquiry.files})
            return
        self._apps.descriptions[target] = new
        self._watch(target, new.files)
        gone = _names(old) - _names(new)
        log.info("%s has changed: loading %s", target.text, ", ".join(sorted(_names(new))))
        self._apps.write(new, inquiry.process)
        for name in sorted(_names(new)):
            self._server.load_soon(name)
        self._changed()
        for name in sorted(gone):
            shutil.rmtree(self._apps.repository / name, ignore_errors=True)
            self._server.unload_soon(name)

    def _watch(self, target: Target, files: Iterable[str]) -> None:
        """Looks at these files from now on; those that were looked at before count as they were seen then."""
        self._files[target] = tuple(sorted(files))
        self._known[target] = {**stamps(self._files[target]), **self._seen(target)}

    def _seen(self, target: Target) -> Stamps:
        return {file: stamp for file, stamp in self._known[target].items() if file in self._files[target]}


def stamps(files: Iterable[str]) -> Stamps:
    """The stamps of files."""
    found = {}
    for file in files:
        try:
            status = Path(file).stat()
        except OSError:
            continue
        found[file] = (status.st_mtime_ns, status.st_size)
    return found


def _names(description: Description) -> set[str]:
    return {model["name"] for model in description.models}
