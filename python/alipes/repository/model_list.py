"""The models of a list: each a store of its own, fetched side by side and followed as the list changes."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from alipes.errors import RepositoryError
from alipes.repository.fetch_queue import FetchQueue
from alipes.repository.model_list_file import Listed, read_model_list
from alipes.repository.model_store import ModelStore
from alipes.repository.shared_folder import SharedFolder
from alipes.repository.storage.limits import RETRY_S

__all__ = ["ModelList"]

_FILES_STAY_S: Final = 600.0
"""How long the files of a model that left the list stay: what still serves it may read them."""
LONGEST_GAP_S: Final = 10.0
"""The start waits for models as long as one comes within this time; the others come later, beside requests."""
_RACY_NS: Final = 50_000_000
"""A file that changed so shortly before it was read may change again within one tick of its time."""
_COMES: Final = "model is being fetched"

Look = tuple[int, int, int]
"""The time, the size and the number of a file."""


class _Model:
    """One model of the list."""

    def __init__(self, address: str, store: ModelStore, before: ModelStore | None = None) -> None:
        self.address = address
        self.store = store
        # What it was until it lay elsewhere: it serves until this one is here.
        self.before = before
        self.failure = _COMES
        self.is_fetched_now = False
        self.again_at = 0.0

    @property
    def here(self) -> ModelStore | None:
        """The store that it is served from; None where it is not here."""
        return self.store if not self.failure else self.before


class ModelList:
    """Models that a file lists. Looks may come from several threads.

    A look at a list that has not changed costs one system call, however many models it has.

    Attributes:
        is_whole: Its models come as a whole: nobody has to wait until their folders no longer change.
    """

    is_whole: Final = True

    def __init__(
        self,
        file: Path,
        opened: Callable[[str, str, SharedFolder], ModelStore],
        *,
        queue: FetchQueue | None = None,
        longest_gap_s: float = LONGEST_GAP_S,
    ) -> None:
        """Reads nothing yet.

        Args:
            file: The list.
            opened: Opens the store of an address for a model of a name, which may arrange it in a folder.
            queue: Runs fetches.
            longest_gap_s: How long the start waits for a next model.
        """
        self.key = file
        self.called = str(file)
        self._opened = opened
        self._lock = threading.Lock()
        self._queue = queue or FetchQueue()
        self._longest_gap_s = longest_gap_s
        self._folder = SharedFolder()
        self._look: Look | None = None
        self._listed = Listed({}, {})
        self._models: dict[str, _Model] = {}
        self._left: list[tuple[float, ModelStore]] = []
        # When the list is to be followed again though it has not changed, and how many fetches have ended.
        self._again_at = math.inf
        self._ended = 0
        self._is_begun = False
        self._is_over = False

    def check(self) -> None:
        """A list may come later than the server."""

    def fetch(self) -> None:
        """Brings the models here that the list has at the start, so that they serve once the server is ready.

        One that does not come holds up the others for a moment, and comes later.

        Raises:
            RepositoryError: If the list is there and cannot be read.
        """
        self._is_begun = True
        if self.key.exists():
            self.refresh()
            self._queue.wait(self._longest_gap_s)

    def cancel(self) -> None:
        """Nobody needs the models any more: what is being fetched is given up."""
        with self._lock:
            self._is_over = True
            stores = [model.store for model in self._models.values()]
        for store in stores:
            store.cancel()
        self._queue.stop()

    def refresh(self, model: str = "") -> None:
        """Looks at the list again, and begins to fetch what is new in it.

        Args:
            model: The model that is asked for; any where left out.

        Raises:
            RepositoryError: If the list cannot be read, in which case what it had stays; or if the model is listed and
                not there.
        """
        if not self._is_begun:
            return
        look = self._seen()
        now = time.monotonic()
        if look is None or look != self._look or now >= self._again_at:
            self._read(look)
        with self._lock:
            self._let_go(now)
            reason = self._reason(model) if model else ""
        if reason:
            raise RepositoryError(reason)

    def stamp(self) -> int:
        """Changes when the list does, and when a model has come or could not."""
        return hash((self._seen(), self._ended))

    def names(self) -> list[str]:
        """The models that are here."""
        with self._lock:
            return sorted(name for name, model in self._models.items() if model.here is not None)

    def folder_of(self, name: str) -> Path | None:
        """The folder of a model, as Triton has it; None of one that is not here."""
        with self._lock:
            found = self._models.get(name)
            here = found.here if found is not None else None
        return here.folder_of(name) if here is not None else None

    def is_bare(self, name: str) -> bool:
        """Whether a model came without a configuration."""
        with self._lock:
            found = self._models.get(name)
        return found is not None and found.store.is_bare(name)

    def failures(self) -> Mapping[str, str]:
        """Why models of the list are not here, by their names."""
        with self._lock:
            absent = {name: model.failure for name, model in self._models.items() if model.failure}
            return {**self._listed.refused, **absent}

    def marked(self) -> list[str]:
        """Nothing: no agent puts models into a list."""
        return []

    def advice(self) -> tuple[str, ...]:
        """Nothing: what is not served has its reason in the index."""
        return ()

    def close(self) -> None:
        """Removes what was fetched and arranged."""
        self.cancel()
        self._queue.close()
        stores = [store for model in self._models.values() for store in (model.store, model.before)]
        for store in [*stores, *(store for _, store in self._left)]:
            if store is not None:
                store.close()
        self._folder.close()

    def _seen(self) -> Look | None:
        """What the file looks like; None where it cannot be told from another."""
        try:
            found = self.key.stat()
        except OSError:
            return None
        racy = time.time_ns() - found.st_mtime_ns < _RACY_NS
        return None if racy else (found.st_mtime_ns, found.st_size, found.st_ino)

    def _read(self, look: Look | None) -> None:
        """Reads the list that looked so, and follows it."""
        self._look = None
        listed = read_model_list(self.key)
        with self._lock:
            self._listed, self._look = listed, look
            if not self._is_over:
                self._follow(listed)

    def _reason(self, name: str) -> str:
        """Why a model is not here; empty where it is, or nobody lists it."""
        known = self._models.get(name)
        if known is None:
            return self._listed.refused.get(name, "")
        return known.failure if known.here is None else ""

    def _follow(self, listed: Listed) -> None:
        """Takes over a list: what left it goes, what is new or lies elsewhere now is fetched."""
        now = time.monotonic()
        for name in [name for name in self._models if name not in listed.addresses]:
            model = self._models.pop(name)
            self._leave(model.store, model.before)
        for name, address in listed.addresses.items():
            known = self._models.get(name)
            if known is None or known.address != address:
                known = self._models[name] = self._made(name, address, known)
            if known.failure and not known.is_fetched_now and now >= known.again_at:
                self._begin(name, known)
        self._again_at = min((one.again_at for one in self._models.values() if one.again_at > now), default=math.inf)

    def _made(self, name: str, address: str, known: _Model | None) -> _Model:
        """A model to be fetched, or one whose address is wrong, in the place of what it was."""
        before = known.here if known is not None else None
        if known is not None and before is not known.store:
            self._leave(known.store)
        try:
            return _Model(address, self._opened(address, name, self._folder), before)
        except RepositoryError as error:
            model = _Model(address, ModelStore(self.key / name, name), before)
            model.failure, model.again_at = str(error), math.inf
            return model

    def _leave(self, *stores: ModelStore | None) -> None:
        for store in stores:
            if store is not None:
                store.cancel()
                self._left.append((time.monotonic() + _FILES_STAY_S, store))

    def _begin(self, name: str, model: _Model) -> None:
        model.is_fetched_now = True
        self._queue.submit(lambda: self._fetch(name, model))

    def _fetch(self, name: str, model: _Model) -> None:
        """Brings one model here; on a thread of the queue."""
        failure = ""
        try:
            model.store.bring()
            if model.store.folder_of(name) is None:
                failure = f"{model.address} holds {', '.join(model.store.names()) or 'nothing'}, and no single model"
        except RepositoryError as error:
            failure = str(error)
        except Exception as error:  # a model that cannot be fetched must not keep others from it
            failure = f"{type(error).__name__}: {error}"
        with self._lock:
            model.failure, model.is_fetched_now = failure, False
            if not failure:
                self._leave(model.before)
                model.before = None
            else:
                model.again_at = time.monotonic() + RETRY_S
                self._again_at = min(self._again_at, model.again_at)
            self._ended += 1

    def _let_go(self, now: float) -> None:
        for _, store in [one for one in self._left if one[0] <= now]:
            store.close()
        self._left = [one for one in self._left if one[0] > now]
