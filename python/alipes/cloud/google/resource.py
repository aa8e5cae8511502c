"""What clusters and node pools have in common: they are made, waited for and removed."""

from __future__ import annotations

from collections.abc import Callable
from types import TracebackType
from typing import Any, ClassVar, Self

from alipes.cloud.google.ledger import Ledger
from alipes.cloud.google.refusals import Busy, Missing
from alipes.cloud.google.session import Session
from alipes.cloud.google.states import findings_of, is_ready, words_of
from alipes.cloud.kubernetes.waiting import Look, Wait
from alipes.errors import CloudError

__all__ = ["Resource"]


class Resource:
    """Something that exists in Google Cloud, or soon will.

    In a `with` block it is waited for at the beginning and removed at the end, also where the block fails.

    Attributes:
        name: Its name.
        path: Its full name, with project and zone.
        config: The message that describes it as it was asked for.
        wait: Seconds for which a zone may be out of machines before a wait ends.
    """

    wait: float = 0.0
    noun: ClassVar[str]

    def __init__(self, session: Session, ledger: Ledger, path: str, config: Any) -> None:
        """Takes the connection, the list of what was made, its full name and its description."""
        self.name: str = config.name
        self.path = path
        self.config = config
        self._session = session
        self._ledger = ledger

    def get(self, timeout: float | None = None) -> Any:
        """The message that Google's API has of it now.

        Raises:
            Missing: If there is none; it is a `ValueError`, too.
        """
        return self._session.call(f"get_{self._kind}", name=self.path)

    def is_ready(self) -> bool:
        """Whether it can be used.

        Raises:
            CloudError: If it never will be.
        """
        message = self.get()
        findings = findings_of(message)
        if findings and findings[0].is_final:
            raise CloudError(f"{self}: {findings[0].text}", reason=findings[0].reason)
        return is_ready(message)

    def is_deleted(self) -> bool:
        """Whether it is gone."""
        try:
            self.get()
        except Missing:
            return True
        return False

    def wait_for_ready(self, timeout: float | None = None) -> Self:
        """Wait until it can be used.

        Args:
            timeout: The longest wait in seconds; None sets no limit.

        Raises:
            CloudError: If it never will be, such as for want of quota, or of machines for longer than `wait`.
            CloudTimeout: If it is not in time.
        """
        with self._ledger.interruptible():
            self._wait(str(self), timeout, self.wait).until(self._look, self._pause, self._explained)
        return self

    def remove(self, timeout: float | None = None) -> None:
        """Remove it, once Google accepts that, and wait until it is gone.

        Raises:
            CloudError: If Google refuses it.
            CloudTimeout: If it is not gone in time.
        """
        with self._ledger.interruptible():
            self._wait(f"the removal of {self}", timeout).until(self._look_accepted, self._pause)
            self._wait(f"the end of {self}", timeout).until(self._look_gone, self._pause)
        self._ledger.forget(self.path)

    def __enter__(self) -> Self:
        """Waits until it can be used; if it never will, it is removed."""
        try:
            return self.wait_for_ready()
        except BaseException:
            self.remove()
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Removes it."""
        self.remove()

    def __str__(self) -> str:
        """Kind and name, as messages have them."""
        return f"{self.noun} {self.name}"

    @property
    def _kind(self) -> str:
        """How requests name its kind."""
        return self.noun.replace(" ", "_")

    def _wait(self, what: str, timeout_s: float | None, settle_s: float = 0.0) -> Wait:
        return Wait(what, timeout_s, settle_s, self._session.clock, self._session.pause)

    def _look(self) -> Look[Any]:
        message = self.get()
        if is_ready(message):
            return Look(message)
        return Look(None, words_of(message), tuple(findings_of(message)))

    def _look_accepted(self) -> Look[bool]:
        """Google refuses to remove what it is working on."""
        try:
            self._session.call(f"delete_{self._kind}", name=self.path)
        except Missing:
            return Look(True)
        except Busy as error:
            return Look(None, str(error))
        return Look(True)

    def _look_gone(self) -> Look[bool]:
        return Look(True) if self.is_deleted() else Look(None, "it is still there")

    def _explained(self, finding: Any) -> str:
        return str(finding.text)

    @property
    def _pause(self) -> Callable[[int], None]:
        return self._session.pause
