"""Objects sent to an API server: all of them, with all that it refuses said at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, Final, TypeVar

from alipes.cloud.kubernetes.api import MANAGER, Api, Document
from alipes.cloud.kubernetes.made import Change, Made
from alipes.cloud.kubernetes.refusals import NoAnswer, Refused
from alipes.cloud.kubernetes.resources import Kind, Kinds, item_path
from alipes.errors import CloudError

__all__ = ["Sender"]

_Result = TypeVar("_Result")

_AGAIN_S: Final = 10.0
"""How long an API server that does not answer is asked again: one that has just been made is not up yet."""

_PAUSE_S: Final = 0.5

_OF_THE_SERVER: Final = frozenset({"resourceVersion", "managedFields", "generation"})
_OF_CONTROLLERS: Final = "deployment.kubernetes.io/"


class Sender:
    """Sends objects, and remembers what it made."""

    def __init__(self, api: Api, made: list[Made]) -> None:
        """Takes the API server, and the list that grows by what is made."""
        self._api = api
        self._kinds = Kinds(api)
        self._made = made

    def apply(self, documents: Iterable[Document], namespace: str, *, dry_run: bool = False) -> list[Made]:
        """Make objects, or change them to what documents say; see `Api.apply`.

        Raises:
            CloudError: With everything that was refused; the rest is done.
        """
        query = {"fieldValidation": "Strict", "dryRun": "All" if dry_run else None}
        return self._each(documents, namespace, lambda kind, one: self._applied(kind, one, query), keep=not dry_run)

    def create(self, documents: Iterable[Document], namespace: str, *, ignore_if_exists: bool) -> list[Made]:
        """Make objects; those that exist stay as they are, or are refused.

        Raises:
            CloudError: With everything that was refused; the rest is done.
        """

        def created(kind: Kind, document: Document) -> Change:
            try:
                collection = kind.collection(_namespace(document))
                self._api.create(collection, document, fieldValidation="Strict")
            except Refused as error:
                if error.reason != "AlreadyExists" or not ignore_if_exists:
                    raise
                return Change.UNCHANGED
            return Change.CREATED

        return self._each(documents, namespace, created)

    def located(self, document: Document, namespace: str) -> Made:
        """An object as it is named in a document, whether it is there or not."""
        kind = self._kinds.of(document)
        document = _placed(document, kind, namespace)
        return _made(document, kind, Change.UNCHANGED)

    def _each(
        self,
        documents: Iterable[Document],
        namespace: str,
        send: Callable[[Kind, Document], Change],
        *,
        keep: bool = True,
    ) -> list[Made]:
        sent: list[Made] = []
        failures: list[tuple[str, CloudError]] = []
        for document in documents:
            try:
                kind = _repeated(partial(self._kinds.of, document))
                placed = _placed(document, kind, namespace)
                change = _repeated(partial(send, kind, placed))
            except CloudError as error:
                failures.append((f"{document['kind']} {document['metadata']['name']}", error))
                continue
            sent.append(_made(placed, kind, change))
            if keep:
                self._made.append(sent[-1])
        if failures:
            raise _together(failures, len(sent) + len(failures))
        return sent

    def _applied(self, kind: Kind, document: Document, query: Mapping[str, object]) -> Change:
        path = item_path(kind, _namespace(document), document["metadata"]["name"])
        before = self._present(path)
        try:
            after = self._api.apply(path, document, **query)
        except Refused as error:
            if not error.is_conflict_with(MANAGER):
                raise
            # What was scaled or rolled back from here is ours as well, by another kind of request.
            after = self._api.apply(path, document, force=True, **query)
        if before is None:
            return Change.CREATED
        return Change.UNCHANGED if _wanted(after) == _wanted(before) else Change.CHANGED

    def _present(self, path: str) -> Document | None:
        """An object as it is; None where there is none."""
        try:
            return self._api.get(path)
        except Refused as error:
            if error.status == 404:
                return None
            raise


def _wanted(one: Document) -> Document:
    """An object without what controllers write into it, which they may do at any moment."""
    metadata = {key: value for key, value in one["metadata"].items() if key not in _OF_THE_SERVER}
    annotations = metadata.pop("annotations", {}).items()
    notes = {key: value for key, value in annotations if not key.startswith(_OF_CONTROLLERS)}
    return {**{key: value for key, value in one.items() if key != "status"}, "metadata": metadata | {"notes": notes}}


def _namespace(document: Mapping[str, Any]) -> str:
    return str(document["metadata"].get("namespace", ""))


def _placed(document: Document, kind: Kind, namespace: str) -> Document:
    """The document with the namespace that it is sent to."""
    if not kind.is_namespaced or document["metadata"].get("namespace"):
        return document
    return {**document, "metadata": {**document["metadata"], "namespace": namespace}}


def _made(document: Document, kind: Kind, change: Change) -> Made:
    name, namespace = document["metadata"]["name"], _namespace(document) if kind.is_namespaced else ""
    return Made(document["kind"], name, namespace, item_path(kind, namespace, name), change)


def _repeated(send: Callable[[], _Result]) -> _Result:
    """The result of a request that may be repeated while nothing answers."""
    end_s = time.monotonic() + _AGAIN_S
    while True:
        try:
            return send()
        except NoAnswer:
            if time.monotonic() >= end_s:
                raise
        time.sleep(_PAUSE_S)


def _together(failures: list[tuple[str, CloudError]], count: int) -> CloudError:
    """One error of all that was refused."""
    reasons = {error.reason for _, error in failures}
    reason = reasons.pop() if len(reasons) == 1 else ""
    lines = [f"{name}: {error}" for name, error in failures]
    if len(lines) == 1:
        return CloudError(lines[0], reason=reason)
    text = "\n".join([f"{len(lines)} of {count} objects were refused:", *(f"  {line}" for line in lines)])
    return CloudError(text, reason=reason)
