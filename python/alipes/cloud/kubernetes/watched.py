"""Objects of a cluster that are waited for: read, watched, and understood."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing, suppress
from typing import Final

from alipes.cloud.kubernetes.api import Api, Document
from alipes.cloud.kubernetes.findings import Finding, in_events
from alipes.cloud.kubernetes.made import Made
from alipes.cloud.kubernetes.pods import events_about, findings_in, last_line, owned, selector_of
from alipes.cloud.kubernetes.readiness import address_of, daemon_set_ready, is_observed
from alipes.cloud.kubernetes.refusals import NoAnswer, NotObserved, Refused
from alipes.cloud.kubernetes.resources import PODS, Kind, item_path
from alipes.cloud.kubernetes.waiting import Look, Wait
from alipes.errors import CloudError

__all__ = ["Watched", "look_at_daemon_set", "look_at_service", "look_for_none"]

_OBSERVED_S: Final = 10.0
"""How long a controller may take to notice an object; one that is not there never does."""

_LOAD_BALANCER_FAILED: Final = frozenset({"SyncLoadBalancerFailed", "CreatingLoadBalancerFailed"})


class Watched:
    """One object of a cluster."""

    def __init__(self, api: Api, kind: Kind, namespace: str, name: str, what: str) -> None:
        """Takes where it is, and how messages name it; nothing is asked yet."""
        self._api = api
        self._kind = kind
        self._namespace = namespace
        self._name = name
        self.what = what
        self.path = item_path(kind, namespace, name)
        self._last: Document | None = None

    def read(self) -> Document:
        """The object as it is.

        Raises:
            CloudError: If it is not there.
        """
        try:
            self._last = self._api.get(self.path)
        except Refused as error:
            if error.status != 404:
                raise
            what = f"there is no {self.what}" if self._last is None else f"{self.what} was removed meanwhile"
            raise CloudError(what, reason="NotFound") from error
        return self._last

    def is_there(self) -> bool:
        """Whether it is there, and the caller may know it."""
        try:
            self.read()
        except CloudError:
            return False
        return True

    def changed(self, for_s: int) -> None:
        """Returns once the object is another one than was read last, or after so many seconds."""
        if self._last is None:
            return
        metadata = self._last["metadata"]
        changes = self._api.watch(
            self._kind.collection(self._namespace),
            for_s,
            fieldSelector=f"metadata.name={self._name}",
            resourceVersion=metadata["resourceVersion"],
        )
        with closing(changes), suppress(NoAnswer):
            next(changes, None)

    def wait(self, wait: Wait, judge: Callable[[Api, Document], Look[Document]]) -> Document:
        """The object, once it is as it should be.

        Raises:
            CloudError: If it cannot become so.
            CloudTimeout: If it does not in time.
        """

        def look() -> Look[Document]:
            one = self.read()
            self._check_observed(wait, one)
            return judge(self._api, one)

        return wait.until(look, self.changed, self._explained)

    def _check_observed(self, wait: Wait, one: Document) -> None:
        """A status that nobody writes will not come."""
        if self._kind.has_controller and not is_observed(one) and wait.lasts_s >= _OBSERVED_S:
            raise NotObserved(f"{self.what} has no status after {_OBSERVED_S:g} s: no controller works on it")

    def _explained(self, finding: Finding) -> str:
        """The reason in words, with the last ones of a container that ended."""
        if finding.crashed is None:
            return finding.text
        with suppress(NoAnswer):
            if line := last_line(self._api, self._namespace, *finding.crashed):
                return f"{finding.text}; its last line: {line}"
        return finding.text


def look_at_daemon_set(api: Api, one: Document) -> Look[Document]:
    """What a wait for a daemon set sees."""
    if daemon_set_ready(one):
        return Look(one)
    status = one.get("status", {})
    pods = api.get(PODS.collection(one["metadata"]["namespace"]), labelSelector=selector_of(one))["items"]
    words = f"{status.get('numberReady', 0)} of {status.get('desiredNumberScheduled', 0)} nodes ready"
    return Look(None, words, tuple(findings_in(api, owned(pods, one))))


def look_at_service(api: Api, one: Document) -> Look[Document]:
    """What a wait for a service sees."""
    if address_of(one):
        return Look(one)
    found = in_events(events_about(api, one), f"service {one['metadata']['name']}", _LOAD_BALANCER_FAILED)
    # Without a larger quota no attempt will do better; anything else may pass.
    findings = [Finding(one.reason, one.text, may_pass="quota" not in one.text.lower()) for one in found]
    return Look(None, "its load balancer has no address yet", tuple(findings))


def look_for_none(api: Api, one: Made) -> Look[Made]:
    """What a wait for a removal sees."""
    try:
        api.get(one.path)
    except Refused as error:
        if error.status == 404:
            return Look(one)
        raise
    return Look(None, "it is still there")
