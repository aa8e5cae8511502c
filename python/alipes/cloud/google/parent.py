"""What makes clusters and node pools: with what they will cost, and found again where they exist."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar

from alipes.cloud.google.costs import estimate
from alipes.cloud.google.ledger import Ledger
from alipes.cloud.google.refusals import Busy, Exists
from alipes.cloud.google.resource import Resource
from alipes.cloud.google.session import Session
from alipes.cloud.kubernetes.waiting import Look, Wait

__all__ = ["Parent"]

_Child = TypeVar("_Child", bound=Resource)


class Parent(Generic[_Child]):
    """Makes and removes resources of one kind.

    Attributes:
        resources: Those that are known, by name.
    """

    _session: Session
    _ledger: Ledger
    resources: dict[str, _Child]

    def _request(self, config: Any) -> dict[str, Any]:
        """What names the parent and the description in a request."""
        raise NotImplementedError

    def _child(self, config: Any) -> _Child:
        """The resource of a description.

        Raises:
            TypeError: If it describes something else.
        """
        raise NotImplementedError

    def add(self, config: Any) -> _Child:
        """Have a resource made, and return at once; one of that name that exists is found instead.

        What it will cost is written to the error output first.

        Args:
            config: Its description.

        Raises:
            TypeError: If it describes something else.
            CloudError: If Google refuses it.
        """
        child = self._child(config)
        sys.stderr.write(f"{child} will cost:\n{estimate(config)}\n")

        def accepted() -> Look[bool]:
            try:
                self._session.call(f"create_{child.noun.replace(' ', '_')}", **self._request(config))
            except Exists:
                return Look(True)
            except Busy as error:
                return Look(None, str(error))
            self._ledger.add(child.path)
            return Look(True)

        with self._ledger.interruptible():
            Wait(f"Google to accept {child}", None, 0.0, self._session.clock, self._session.pause).until(
                accepted, self._session.pause
            )
        self.resources[child.name] = child
        return child

    def create_resource(self, config: Any) -> _Child:
        """Have a resource made, and wait until it can be used; see `add`.

        Raises:
            TypeError: If it describes something else.
            CloudError: If Google refuses it, or it never can be used, with the reason.
        """
        return self.add(config).wait_for_ready()

    def delete_resource(self, resource: _Child) -> None:
        """Remove a resource, once Google accepts that, and wait until it is gone."""
        resource.remove()
        self.resources.pop(resource.name, None)

    @contextmanager
    def manage(self, config: Any, keep: bool = False) -> Iterator[_Child]:
        """A resource for a `with` block, removed at its end unless it is to be kept."""
        child = self.add(config)
        if keep:
            yield child.wait_for_ready()
            return
        with child:
            yield child
        with suppress(KeyError):
            del self.resources[child.name]
