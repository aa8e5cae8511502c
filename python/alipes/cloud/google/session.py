"""Requests to Google's API for clusters: paced, with credentials that are renewed, and errors that say what to do."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from alipes.cloud.google.refusals import Busy, Exists, Missing
from alipes.cloud.kubernetes.refusals import NoAnswer
from alipes.errors import CloudError, NotOffered

if TYPE_CHECKING:
    from google.auth.credentials import Credentials
    from google.cloud.container_v1 import ClusterManagerClient

__all__ = ["Session", "open_session"]

_SCOPES: Final = ("https://www.googleapis.com/auth/cloud-platform",)
_SIGN_IN: Final = "sign in with `gcloud auth application-default login`, or name a service account's file"


class Session:
    """A connection to Google's API.

    Attributes:
        credentials: What requests are signed with, here and at the API servers of clusters.
        project: The project that the credentials name; None if they name none.
        clock: The time in seconds.
        pause: What sleeps.
    """

    def __init__(
        self,
        client: ClusterManagerClient,
        credentials: Credentials,
        project: str | None = None,
        *,
        throttle_s: float = 1.0,
        clock: Callable[[], float] = time.monotonic,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """Takes a client of `google.cloud.container_v1`, and how far apart requests are at least."""
        self.credentials = credentials
        self.project = project
        self.clock = clock
        self.pause = pause
        self._client = client
        self._throttle_s = throttle_s
        self._last_s: float | None = None

    def call(self, method: str, **request: Any) -> Any:
        """The answer to a request.

        Raises:
            CloudError: If it is refused, by `Missing`, `Exists` and `Busy` where that is why; `NoAnswer` if there is
                none.
        """
        from google.api_core import exceptions

        try:
            return self._paced(method, request)
        except exceptions.Unauthenticated:
            self.renew()
        try:
            return self._paced(method, request)
        except exceptions.Unauthenticated as error:
            raise CloudError(f"Google does not accept the credentials: {error.message}; {_SIGN_IN}") from error

    def renew(self) -> None:
        """Get a new token.

        Raises:
            CloudError: If the credentials allow none.
        """
        from google.auth.exceptions import GoogleAuthError
        from google.auth.transport.requests import Request

        try:
            self.credentials.refresh(Request())
        except GoogleAuthError as error:
            raise CloudError(f"no token for Google's API: {error}; {_SIGN_IN}", reason="UNAUTHENTICATED") from error

    def _paced(self, method: str, request: dict[str, Any]) -> Any:
        from google.api_core import exceptions
        from google.auth.exceptions import GoogleAuthError

        if self._last_s is not None and (wait_s := self._last_s + self._throttle_s - self.clock()) > 0:
            self.pause(wait_s)
        self._last_s = self.clock()
        try:
            return getattr(self._client, method)(request=request)
        except exceptions.Unauthenticated:
            raise
        except exceptions.NotFound as error:
            raise Missing(error.message, reason="NOT_FOUND") from error
        except exceptions.AlreadyExists as error:
            raise Exists(error.message, reason="ALREADY_EXISTS") from error
        except exceptions.GoogleAPICallError as error:
            raise _other(error) from error
        except GoogleAuthError as error:
            raise CloudError(f"no token for Google's API: {error}; {_SIGN_IN}", reason="UNAUTHENTICATED") from error


def open_session(credentials: Credentials | str | Path | None, throttle_s: float = 1.0) -> Session:
    """A connection with somebody's credentials.

    Args:
        credentials: They, or the file of a service account; otherwise those of the environment: the file that
            `GOOGLE_APPLICATION_CREDENTIALS` names, those of `gcloud`, or those of the machine.
        throttle_s: How far apart requests are at least.

    Raises:
        CloudError: If there are none.
        NotOffered: If Google's client is not installed.
    """
    try:
        import google.auth
        from google.auth.exceptions import GoogleAuthError
        from google.cloud import container_v1
        from google.oauth2 import service_account
    except ImportError as error:
        raise NotOffered(
            "clusters of Google Cloud need google-cloud-container: pip install 'alipes[google]'"
        ) from error
    project = None
    try:
        if credentials is None:
            credentials, project = google.auth.default(scopes=_SCOPES)
        elif isinstance(credentials, str | Path):
            signed = service_account.Credentials.from_service_account_file(str(credentials), scopes=_SCOPES)
            credentials, project = signed, signed.project_id
    except (GoogleAuthError, OSError, ValueError) as error:
        raise CloudError(f"no credentials for Google Cloud: {error}; {_SIGN_IN}", reason="UNAUTHENTICATED") from error
    client = container_v1.ClusterManagerClient(credentials=credentials)
    return Session(client, credentials, project, throttle_s=throttle_s)


def _other(error: Any) -> CloudError:
    """A refusal by its kind: the cluster is busy, Google is away, or it says no."""
    from google.api_core import exceptions

    name = error.grpc_status_code.name if error.grpc_status_code is not None else ""
    busy = isinstance(error, exceptions.Aborted) or (
        isinstance(error, exceptions.FailedPrecondition) and "operation" in error.message
    )
    if busy:
        return Busy(error.message, reason=name)
    if isinstance(error, exceptions.ServerError):
        return NoAnswer(f"Google's API is not available: {error.message}", reason=name)
    return CloudError(error.message, reason=name)
