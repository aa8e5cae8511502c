"""Mode ``poll``: looks at the repositories every few seconds and has loaded what changed, and unloaded what is gone.

A folder that looks different is looked at again a moment later, and again, until it keeps still: a model that is being
copied in is not loaded by halves.
"""

from __future__ import annotations

import threading
from functools import partial
from typing import Final

from alipes.repository.repository import Listing
from alipes.repository.stamp import ABSENT, FolderStamp
from alipes.server.lifecycle import Lifecycle
from alipes.server.loader import LoaderPool
from alipes.server.log import log
from alipes.types import ModelKey

__all__ = ["Watcher"]

# How long a changed folder has to keep still. Copies write without such pauses; after one that stalls for longer a load
# fails, and succeeds when the rest has come.
SETTLE_S: Final = 2.0


class Watcher:
    """Keeps what is served as the repositories are."""

    def __init__(
        self, lifecycle: Lifecycle, pool: LoaderPool, *, interval_s: float, settle_s: float = SETTLE_S
    ) -> None:
        """Prepares the thread.

        Args:
            lifecycle: Loads and unloads.
            pool: Threads on which it does so.
            interval_s: Seconds between two looks.
            settle_s: Seconds that a changed folder has to keep still, at most the interval.
        """
        self._lifecycle = lifecycle
        self._pool = pool
        self._interval_s = interval_s
        self._settle_s = min(settle_s, interval_s)
        # What the loaded models were asked for by, and what a folder looked like that has changed since.
        self._known: dict[ModelKey, FolderStamp] = {}
        self._changing: dict[ModelKey, FolderStamp] = {}
        self._duplicates: frozenset[str] = frozenset()
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="alipes-watcher", daemon=True)

    def take_as_known(self) -> None:
        """Takes the folders as they are for what is loaded. For before the start loads them: later changes show."""
        listing = self._lifecycle.listing()
        if listing is not None:
            self._known = _stamps(listing)

    def start(self) -> None:
        """Begins to look."""
        self._thread.start()

    def stop(self, timeout_s: float) -> bool:
        """Looks no more; true if the thread ended in time."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout_s)
        return not self._thread.is_alive()

    def look(self) -> bool:
        """Looks once, and has done what has to be done.

        Returns:
            Whether a folder has changed that may be changing still.
        """
        listing = self._lifecycle.listing()
        if listing is None:
            return False
        self._tell_duplicates(listing.duplicates)
        stamps = _stamps(listing)
        # Those of which two are found, or which cannot be read now, stay as they are.
        doubtful = {key for key in self._known if key in listing.folders or key.name in listing.duplicates}
        looked_at = {*stamps, *(self._known.keys() - doubtful)}
        for key in self._changing.keys() - looked_at:
            del self._changing[key]  # it came and went
        for key in sorted(looked_at):
            self._compare(key, stamps.get(key, ABSENT))
        return bool(self._changing)

    def _run(self) -> None:
        wait_s = self._interval_s
        while not self._stopping.wait(wait_s):
            try:
                wait_s = self._settle_s if self.look() else self._interval_s
            except Exception:  # ours to mend; the next look may go well, and what is loaded serves
                log.exception("the repositories cannot be looked at")
                wait_s = self._interval_s

    def _compare(self, key: ModelKey, stamp: FolderStamp) -> None:
        if stamp == self._known.get(key, ABSENT):
            self._changing.pop(key, None)
        elif stamp != self._changing.get(key):
            self._changing[key] = stamp
        else:
            del self._changing[key]
            self._act(key, stamp)

    def _act(self, key: ModelKey, stamp: FolderStamp) -> None:
        if stamp is ABSENT:
            del self._known[key]
            self._pool.submit(key.name, partial(self._lifecycle.unload_key, key))
        else:
            self._known[key] = stamp
            self._pool.submit(key.name, partial(self._lifecycle.try_load, key.name))

    def _tell_duplicates(self, duplicates: frozenset[str]) -> None:
        for name in sorted(duplicates - self._duplicates):
            log.error("failed to poll model '%s': not unique across all model repositories", name)
        self._duplicates = duplicates


def _stamps(listing: Listing) -> dict[ModelKey, FolderStamp]:
    """What the folders look like, of those that can be read."""
    stamps = {key: folder.stamp() for key, folder in listing.folders.items()}
    return {key: stamp for key, stamp in stamps.items() if stamp is not ABSENT}
