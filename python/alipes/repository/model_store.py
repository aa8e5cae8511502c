"""A store: a folder of any form that `bare_models` knows, as models of a repository."""

from __future__ import annotations

import secrets
import shutil
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from alipes.config.paths import kind_of
from alipes.errors import RepositoryError
from alipes.repository.arrange import arrange, configured_name
from alipes.repository.bare_models import (
    ACCEPTED,
    CONFIG,
    StoredModel,
    is_marked,
    is_stray,
    model_at,
    models_below,
    name_of,
    visible,
    what_is_in,
)
from alipes.repository.layout import check_model_name, folder_time, subdirectories
from alipes.repository.shared_folder import SharedFolder
from alipes.repository.storage.limits import RETRY_S
from alipes.repository.storage.patterns import EVERYTHING, Patterns
from alipes.repository.storage.selection import Selection
from alipes.repository.storage.source import Source

__all__ = ["ModelStore"]

"""A file of this name is called by its folder."""


class ModelStore:
    """The models of one store. What is not in Triton's layout is arranged so in a folder for temporary files.

    A model is a link to what was arranged last, which is replaced at once where the files have become another model;
    where their contents alone change, the links lead to them. Looks may come from several threads.

    Attributes:
        is_whole: Its models may still be copied when they are first seen.
    """

    is_whole: Final = False

    def __init__(
        self,
        path: Path,
        name: str = "",
        called: str = "",
        source: Source | None = None,
        patterns: Patterns = EVERYTHING,
        folder: SharedFolder | None = None,
    ) -> None:
        """Looks at nothing yet.

        Args:
            path: The store, a folder or a file; where it lies elsewhere, anything that no other store has.
            name: What the model is called, where it is one alone.
            called: What the store was named when it was given; its path where left out.
            source: Where it lies, if that is elsewhere.
            patterns: Which of its files are wanted.
            folder: Where models are arranged; a folder of its own where left out.

        Raises:
            RepositoryError: If no model can have that name.
        """
        if name:
            check_model_name(name)
        self.key = path
        self.path = path
        self.called = called or str(path)
        self._source = source
        # Where the files of a store of this machine lie, whichever of them are wanted.
        self._place_of_files = path
        self._selection = Selection(patterns)
        self._is_begun = source is None
        self._cancelled = threading.Event()
        # When a source that could not be read is asked again, and why it could not.
        self._again_at = 0.0
        self._failure: RepositoryError | None = None
        self._name = name
        self._lock = threading.Lock()
        self._bringing = threading.Lock()
        self._folder = folder or SharedFolder()
        self._owns_folder = folder is None
        self._arranged: Path | None = None
        # By name: what was found, what it looked like, and where it lies as Triton has it.
        self._models: dict[str, tuple[StoredModel, tuple[object, ...], Path]] = {}
        self._others: dict[str, str] = {}
        # Numbers of looks in the order in which they began, and of the one that a model was last taken over by: a look
        # at all of a large store takes long, and must not undo what others have seen since.
        self._looks = 0
        self._last_look: dict[str, int] = {}

    def check(self) -> None:
        """Refuses a store of this machine that is not there, or holds nothing that is served.

        Raises:
            RepositoryError: With what was found, and what would be accepted.
        """
        if self._source is None:
            self._bring()
            self._checked()

    def fetch(self) -> None:
        """Brings a store that lies elsewhere here, and refuses it where it holds nothing that is served.

        Until then it has no models: a server that is being made must not wait for a network.

        Raises:
            RepositoryError: If it cannot be had, or holds nothing.
        """
        self._is_begun = True
        if self._source is not None:
            self._bring()
            self._checked()

    def bring(self) -> None:
        """Brings the store here and takes over what it holds, in one look.

        Raises:
            RepositoryError: If it cannot be had, or holds nothing that is served.
        """
        self._is_begun = True
        self._bring()
        look = self._begin_look()
        self._take(self._checked(), look)

    def cancel(self) -> None:
        """Nobody needs the store any more: what is being fetched is given up."""
        self._cancelled.set()

    def _bring(self) -> None:
        """Asks the source, unless it has failed a moment ago: each look at the index would wait for it."""
        if self._source is None:
            self.path = self._selection.of(self._place_of_files)
            return
        with self._bringing:
            if self._failure is not None and time.monotonic() < self._again_at:
                raise self._failure
            try:
                self.path = self._selection.of(self._source.fetch(self._cancelled))
                self._failure = None
            except RepositoryError as error:
                self._failure, self._again_at = error, time.monotonic() + RETRY_S
                raise

    def _checked(self) -> Mapping[str, StoredModel]:
        if kind_of(self.path) == "nothing":
            raise RepositoryError(f"failed to stat file {self.path}")
        found = self._look()
        if not found:
            raise RepositoryError(self._nothing())
        return found

    def refresh(self, model: str = "") -> None:
        """Looks at the files again.

        Args:
            model: The model to look at; all where left out.

        Raises:
            RepositoryError: If there is something, and it is not served.
        """
        if not self._is_begun:
            return
        self._bring()
        look = self._begin_look()
        if model and self._is_parent():
            self._take(self._child(model), look, only=model)
            return
        found = self._look()
        self._take(found, look)
        if not found and kind_of(self.path) != "nothing" and not self._is_empty():
            raise RepositoryError(self._nothing())

    def names(self) -> list[str]:
        """The names of the models at the last look."""
        with self._lock:
            return sorted(self._models)

    def folder_of(self, name: str) -> Path | None:
        """The folder of a model, as Triton has it; None of one that was not there at the last look."""
        with self._lock:
            found = self._models.get(name)
        return found[2] if found is not None else None

    def stamp(self) -> int:
        """Changes when a folder is added to the store or taken away."""
        return folder_time(self._place_of_files)

    def marked(self) -> list[str]:
        """The folders of the store that KServe's agent has filled, by name.

        It asks for each once: a request that comes before the server, or before its restart, is never repeated.
        """
        try:
            place = self._place_of_files
            return [name for name in subdirectories(place) if is_marked(place / name)]
        except RepositoryError:
            return []

    def is_bare(self, name: str) -> bool:
        """Whether a model came without a configuration."""
        with self._lock:
            found = self._models.get(name)
        return found is not None and not found[0].is_configured

    def failures(self) -> Mapping[str, str]:
        """Nothing: what is no model here has no name."""
        return {}

    def advice(self) -> tuple[str, ...]:
        """One sentence for each folder of the store that is no model, as far as there are models beside it."""
        with self._lock:
            others = dict(self._others) if self._models else {}
        return tuple(f"folder '{name}' of store '{self.called}' is no model: {why}" for name, why in others.items())

    def close(self) -> None:
        """Removes what was arranged. The store itself is left as it was found."""
        if self._source is not None:
            self._source.close()
        self._selection.close()
        if self._owns_folder:
            self._folder.close()
        elif self._arranged is not None:
            shutil.rmtree(self._arranged, ignore_errors=True)

    def _is_parent(self) -> bool:
        """Whether models lie in the folders of the store: one is looked at without the others then.

        An agent loads hundreds, one after the other.
        """
        return kind_of(self.path) == "folder" and model_at(self.path) is None

    def _child(self, name: str) -> Mapping[str, StoredModel]:
        """The model in one of the store's folders; none where there is no such folder."""
        check_model_name(name)
        folder = self.path / name
        if kind_of(folder) != "folder" or is_stray(name):
            return {}
        found = model_at(folder)
        if found is None:
            raise RepositoryError(f"{what_is_in(folder)}; {ACCEPTED}")
        return {name: found}

    def _look(self) -> Mapping[str, StoredModel]:
        """What there is now: the store's one model, or those of its folders."""
        if kind_of(self.path) == "nothing":
            return {}
        single = model_at(self.path)
        if single is not None:
            return {self._name or configured_name(single) or name_of(self.path): single}
        models, others = models_below(self.path)
        with self._lock:
            self._others = others
        return models

    def _begin_look(self) -> int:
        with self._lock:
            self._looks += 1
            return self._looks

    def _take(self, found: Mapping[str, StoredModel], number: int, only: str = "") -> None:
        """Takes over what a look has found, in the place of what was there before it."""
        with self._lock:
            for name in [name for name in self._models if name not in found and only in ("", name)]:
                if self._last_look[name] < number:
                    self._forget(name)
            for name, model in found.items():
                if self._last_look.get(name, 0) > number:
                    continue
                before, look = self._models.get(name), _look_of(model)
                if before is None or before[:2] != (model, look):
                    self._models[name] = (model, look, self._place(name, model))
                self._last_look[name] = number

    def _place(self, name: str, model: StoredModel) -> Path:
        """The model's folder as Triton has it: its own, or one that is arranged now."""
        if model.is_arranged and model.path.name == name and configured_name(model) in ("", name):
            return model.path
        try:
            if self._arranged is None:
                arranged = self._folder.part()
                for part in ("models", "arranged"):
                    (arranged / part).mkdir()
                self._arranged = arranged
            made = self._arranged / "arranged" / secrets.token_hex(8)
            made.mkdir()
            arrange(model, name, made)
            link = self._arranged / "models" / name
            draft = made.with_suffix(".link")
            before = link.readlink() if link.is_symlink() else None
            draft.symlink_to(made, target_is_directory=True)
            draft.replace(link)
        except OSError as error:
            raise RepositoryError(f"cannot arrange model '{name}' of store '{self.called}': {error}") from error
        if before is not None:
            shutil.rmtree(before, ignore_errors=True)
        return link

    def _forget(self, name: str) -> None:
        *_, place = self._models.pop(name)
        del self._last_look[name]
        if self._arranged is not None and place.is_relative_to(self._arranged):
            made = place.readlink()
            place.unlink()
            shutil.rmtree(made, ignore_errors=True)

    def _nothing(self) -> str:
        with self._lock:
            found = next(iter(self._others.values()), what_is_in(self.path))
        hint = self._selection.explain()
        return f"store '{self.called}' holds no model that can be served: {found}; {ACCEPTED}{hint}"

    def _is_empty(self) -> bool:
        return what_is_in(self.path).endswith(" is empty") and not self._selection.left_out


def _look_of(model: StoredModel) -> tuple[object, ...]:
    """What of a model's files its arrangement depends on, beside where they are: the configuration, and the names."""
    try:
        seen = (model.path / CONFIG).stat()
    except OSError:
        return (tuple(visible(model.path)) if model.is_arranged else (),)
    return seen.st_mtime_ns, seen.st_size, seen.st_ino, tuple(visible(model.path))
