"""The models of a list: each a store of its own, fetched side by side and followed as the list changes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor, wait
from pathlib import Path
from typing import Final

from alipes.errors import RepositoryError
from alipes.repository.model_list_file import Listed, read_model_list
from alipes.repository.model_store import ModelStore
from alipes.repository.storage.limits import RETRY_S

__all__ = ["ModelList"]

_FETCHED_AT_ONCE: Final = 8
"""Downloads side by side: enough to fill a connection, few enough for the place that they come from."""
_FILES_STAY_S: Final = 600.0
"""How long the files of a model that left the list stay: what still serves it may read them."""
_COMES: Final = "model is being fetched"


class _Model:
    """One model of the list."""

    def __init__(self, address: str, store: ModelStore) -> None:
        self.address = address
        self.store = store
        self.failure = _COMES
        self.fetch: Future[None] | None = None
        self.tried_at = 0.0


class ModelList:
    """Models that a file lists. Looks may come from several threads."""

    def __init__(self, file: Path, opened: Callable[[str, str], ModelStore]) -> None:
        """Reads nothing yet.

        Args:
            file: The list.
            opened: Opens the store of an address for a model of a name.
        """
        self.key = file
        self.called = str(file)
        self._opened = opened
        self._lock = threading.Lock()
        self._pool = ThreadPoolExecutor(_FETCHED_AT_ONCE, thread_name_prefix="alipes-fetch")
        self._listed: Listed | None = None
        self._models: dict[str, _Model] = {}
        self._left: list[tuple[float, ModelStore]] = []
        self._is_begun = False
        self._is_over = False

    def check(self) -> None:
        """A list may come later than the server."""

    def fetch(self) -> None:
        """Brings the models here that the list has at the start, so that they serve once the server is ready.

        Raises:
            RepositoryError: If the list is there and cannot be read.
        """
        self._is_begun = True
        if self.key.exists():
            self.refresh()
            with self._lock:
                fetches = [model.fetch for model in self._models.values() if model.fetch is not None]
            wait(fetches)
            self.refresh()

    def cancel(self) -> None:
        """Nobody needs the models any more: what is being fetched is given up."""
        with self._lock:
            self._is_over = True
            stores = [model.store for model in self._models.values()]
        for store in stores:
            store.cancel()
        self._pool.shutdown(wait=False, cancel_futures=True)

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
        listed = read_model_list(self.key)
        with self._lock:
            self._listed = listed
            if not self._is_over:
                self._follow(listed)
            self._let_go(time.monotonic())
        if model and (reason := self.failures().get(model)):
            raise RepositoryError(reason)

    def names(self) -> list[str]:
        """The models that are here."""
        with self._lock:
            return sorted(name for name, model in self._models.items() if not model.failure)

    def folder_of(self, name: str) -> Path | None:
        """The folder of a model, as Triton has it; None of one that is not here."""
        with self._lock:
            found = self._models.get(name)
        return found.store.folder_of(name) if found is not None and not found.failure else None

    def failures(self) -> Mapping[str, str]:
        """Why models of the list are not here, by their names."""
        with self._lock:
            refused = dict(self._listed.refused) if self._listed is not None else {}
            return refused | {name: model.failure for name, model in self._models.items() if model.failure}

    def advice(self) -> tuple[str, ...]:
        """Nothing: what is not served has its reason in the index."""
        return ()

    def close(self) -> None:
        """Removes what was fetched and arranged."""
        self.cancel()
        self._pool.shutdown(wait=True)
        for store in [*(model.store for model in self._models.values()), *(store for _, store in self._left)]:
            store.close()

    def _follow(self, listed: Listed) -> None:
        """Takes over a list: what left it goes, what is new or lies elsewhere now is fetched."""
        now = time.monotonic()
        for name in [name for name, model in self._models.items() if listed.addresses.get(name) != model.address]:
            store = self._models.pop(name).store
            store.cancel()
            self._left.append((now + _FILES_STAY_S, store))
        for name, address in listed.addresses.items():
            known = self._models.get(name)
            if known is None or (known.failure and known.fetch is None and now >= known.tried_at + RETRY_S):
                self._models[name] = self._begun(name, address, known)

    def _begun(self, name: str, address: str, before: _Model | None) -> _Model:
        """A model whose fetch has begun, or that could not be opened."""
        try:
            model = before or _Model(address, self._opened(address, name))
        except RepositoryError as error:
            model = _Model(address, ModelStore(self.key / name, name))
            model.failure, model.tried_at = str(error), float("inf")  # the address itself is wrong
            return model
        model.fetch = self._pool.submit(self._fetch, name, model)
        return model

    def _fetch(self, name: str, model: _Model) -> None:
        """Brings one model here; on a thread of the pool."""
        failure = ""
        try:
            model.store.check()
            model.store.fetch()
            model.store.refresh()
            if model.store.folder_of(name) is None:
                failure = f"{model.address} holds {', '.join(model.store.names()) or 'nothing'}, and no single model"
        except RepositoryError as error:
            failure = str(error)
        except Exception as error:  # a model that cannot be fetched must not keep others from it
            failure = f"{type(error).__name__}: {error}"
        with self._lock:
            model.failure, model.fetch, model.tried_at = failure, None, time.monotonic()

    def _let_go(self, now: float) -> None:
        for _, store in [one for one in self._left if one[0] <= now]:
            store.close()
        self._left = [one for one in self._left if one[0] > now]
