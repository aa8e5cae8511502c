"""Mode ``poll``: polls the repositories every few seconds, loads models that changed and unloads removed ones.

A changed folder is polled again after a short pause until two stamps are equal, so that a model that is still being
copied is not loaded in part. Models of a list come as a whole: what the list brings is loaded at once.
"""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path
from typing import Final

from alipes.repository.repository import Listing
from alipes.repository.stamp import ABSENT, FolderStamp
from alipes.server.lifecycle import Lifecycle
from alipes.server.loader import LoaderPool
from alipes.server.log import log
from alipes.server.service_thread import ServiceThread
from alipes.types import ModelKey

__all__ = ["Watcher"]

# A changed folder must stay unchanged for this long. A copy that pauses for longer is loaded too early: that load fails
# and the next one succeeds.
SETTLE_S: Final = 2.0

# How late a list of models is followed, as long as nothing else is due: a look at it costs one system call.
FOLLOW_S: Final = 0.1


class Watcher(ServiceThread):
    """Loads and unloads models so that the server follows its repositories."""

    def __init__(
        self, lifecycle: Lifecycle, pool: LoaderPool, *, interval_s: float, settle_s: float = SETTLE_S
    ) -> None:
        """Prepares the thread.

        Args:
            lifecycle: Loads and unloads.
            pool: Threads on which it does so.
            interval_s: Seconds between two polls.
            settle_s: Seconds for which a changed folder must stay unchanged, at most the interval.
        """
        super().__init__("alipes-watcher")
        self._lifecycle = lifecycle
        self._pool = pool
        self._interval_s = interval_s
        self._settle_s = min(settle_s, interval_s)
        # The stamp under which each model was loaded, and the last stamp of each folder that has changed since.
        self._known: dict[ModelKey, FolderStamp] = {}
        self._changing: dict[ModelKey, FolderStamp] = {}
        self._duplicates: frozenset[str] = frozenset()
        # Where models of lists lay when they were last loaded, and what the lists looked like then.
        self._listed: dict[ModelKey, Path] = {}
        self._list_stamp: tuple[int, ...] = ()

    def take_as_known(self) -> None:
        """Records the folders as loaded. Call it before the start loads them, so that later changes are noticed."""
        self._list_stamp = self._lifecycle.list_stamp()
        listing = self._lifecycle.listing()
        self._known = _stamps(listing)
        self._listed = {key: folder.path for key, folder in listing.folders.items() if folder.is_whole}

    def poll(self) -> bool:
        """Polls the repositories once and submits the loads and unloads that follow.

        Returns:
            Whether a changed folder may still be changing.
        """
        listing = self._lifecycle.listing()
        self._log_duplicates(listing.duplicates)
        stamps = _stamps(listing)
        # Folders that cannot be read stay as they are. A name found twice is nobody's, as in Triton: what had it goes.
        polled = {*stamps, *(self._known.keys() - listing.folders.keys())}
        for key in self._changing.keys() - polled:
            del self._changing[key]  # appeared and vanished between two polls
        for key in sorted(polled):
            self._compare(key, stamps.get(key, ABSENT))
        return bool(self._changing)

    def follow(self) -> None:
        """Loads what lists of models have brought since the last look, and unloads what has left them."""
        stamp = self._lifecycle.list_stamp()
        if stamp == self._list_stamp:
            return
        folders = self._lifecycle.listing().folders
        self._list_stamp = stamp
        listed = {key: folder for key, folder in folders.items() if folder.is_whole}
        for key in self._listed.keys() - listed.keys():
            del self._listed[key]
            self._changing.pop(key, None)
            if key in self._known:
                self._act(key, ABSENT)
        for key, folder in listed.items():
            if self._listed.get(key) != folder.path and (now := folder.stamp()) is not ABSENT:
                self._listed[key] = folder.path
                self._changing.pop(key, None)
                self._act(key, now)

    def _run(self) -> None:
        due = time.monotonic() + self._interval_s
        follows = bool(self._lifecycle.list_stamp())
        while not self._stopping.wait(min(FOLLOW_S, self._until(due)) if follows else self._until(due)):
            wait_s = self._interval_s
            try:
                if follows:
                    self.follow()
                if time.monotonic() < due:
                    continue
                wait_s = self._settle_s if self.poll() else self._interval_s
            except Exception:  # loaded models keep serving; the next poll may succeed
                log.exception("the repositories cannot be looked at")
            due = time.monotonic() + wait_s

    @staticmethod
    def _until(due: float) -> float:
        return max(0.0, due - time.monotonic())

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
            self._lifecycle.supersede(key)
            self._pool.submit(key.name, partial(self._lifecycle.unload_key, key), unloads=True)
        else:
            self._known[key] = stamp
            self._pool.submit(key.name, partial(self._lifecycle.try_load, key.name))

    def _log_duplicates(self, duplicates: frozenset[str]) -> None:
        for name in sorted(duplicates - self._duplicates):
            log.error("failed to poll model '%s': not unique across all model repositories", name)
        self._duplicates = duplicates


def _stamps(listing: Listing) -> dict[ModelKey, FolderStamp]:
    """The stamps of all readable folders."""
    stamps = {key: folder.stamp() for key, folder in listing.folders.items()}
    return {key: stamp for key, stamp in stamps.items() if stamp is not ABSENT}
