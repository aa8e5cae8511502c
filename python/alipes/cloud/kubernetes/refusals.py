"""What an API server refuses, and that it does not answer."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from alipes.errors import CloudError

__all__ = ["NoAnswer", "NotObserved", "Refused", "in_short"]

_WEBHOOK: Final = re.compile(r'^admission webhook "([^"]+)" denied the request: (.*)$', re.DOTALL)
_KSERVE: Final = ".kserve-webhook-server."
"""What the names of KServe's webhooks have."""


def in_short(message: str) -> str:
    """The API server's words; where a webhook refused an object, who it is and its reason."""
    refused = _WEBHOOK.match(message)
    if refused is None:
        return message
    name, reason = refused.groups()
    return f"{'KServe' if _KSERVE in name else f'the webhook {name}'} refuses it: {reason}"


class Refused(CloudError):
    """The API server refused a request.

    Attributes:
        status: The status of its answer, such as 403.
    """

    def __init__(self, message: str, status: int, reason: str = "", causes: Sequence[str] = ()) -> None:
        """Takes the API server's words, the status, its name for the reason, such as `AlreadyExists`, and details."""
        super().__init__(message, reason=reason)
        self.status = status
        self._causes = tuple(causes)

    def is_conflict_with(self, manager: str) -> bool:
        """Whether fields were not changed since one owner alone has them."""
        return self.status == 409 and bool(self._causes) and all(f'"{manager}"' in cause for cause in self._causes)


class NoAnswer(CloudError):
    """The API server does not answer, or not now; it may soon."""


class NotObserved(CloudError, ValueError):
    """No controller works on an object, so that it has no status."""
