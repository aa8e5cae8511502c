"""`InferenceGRPCClient`: a client over gRPC whose calls are awaited, as the KServe SDK has it."""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final, Self

from alipes.compat.kserve.errors import InvalidInput
from alipes.compat.kserve.infer_request import InferRequest
from alipes.compat.kserve.infer_response import InferResponse
from alipes.compat.kserve.logging import trace_logger
from alipes.compat.kserve.messages import message_class
from alipes.compat.kserve.rest_client import USE_CLIENT_DEFAULT
from alipes.errors import DeadlineExceeded, InferError, NotOffered, NotReady, TransportError

__all__ = ["InferenceGRPCClient"]

_THREADS: Final = 64
"""Most calls of a client that wait at the same time; further ones wait for their turn."""

_LINKS: Final = 16
"""Sets of headers whose connections are kept."""

_PORTS: Final = {False: 80, True: 443}


class InferenceGRPCClient:
    """A client for servers of V2 over gRPC."""

    def __init__(  # noqa: PLR0913, PLR0917  # the names and the order are those that scripts use
        self,
        url: str,
        verbose: bool = False,
        use_ssl: bool = False,
        root_certificates: str | None = None,
        private_key: str | None = None,
        certificate_chain: str | None = None,
        creds: Any = None,
        channel_args: Any = None,
        timeout: float | None = 60,
        retries: int | None = 3,
    ) -> None:
        """Connects to nothing yet.

        Args:
            url: Host and port; without a port that of HTTP or HTTPS.
            verbose: Whether to log requests and answers.
            use_ssl: Whether to use TLS.
            root_certificates: File with the certificates to believe; the system's by default.
            private_key: File with the key that belongs to `certificate_chain`.
            certificate_chain: File with what this client shows.
            creds: Credentials of grpcio, which are not offered here.
            channel_args: Options of grpcio's channels. They say nothing here.
            timeout: Longest wait in seconds; None is without end.
            retries: How often a server that cannot be reached is asked, at most.

        Raises:
            NotOffered: If there are credentials of grpcio.
        """
        if creds is not None:
            raise NotOffered("InferenceGRPCClient(creds=...) is not offered: name the files of certificates and key")
        self._address = url if ":" in url else f"{url}:{_PORTS[use_ssl]}"
        self._tls = (root_certificates, certificate_chain, private_key) if use_ssl else None
        self._verbose, self._timeout, self._attempts = verbose, timeout, max(1, retries or 0)
        self._links: OrderedDict[tuple[tuple[str, str], ...], Any] = OrderedDict()
        self._taking = threading.Lock()
        self._threads = ThreadPoolExecutor(_THREADS, "alipes-predictor")

    async def __aenter__(self) -> Self:
        """The client itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Closes the connections."""
        await self.close()

    async def close(self) -> None:
        """Closes the connections."""
        with self._taking:
            links, self._links = self._links, OrderedDict()
        for link in links.values():
            link.close()
        self._threads.shutdown(wait=False)

    async def infer(
        self,
        infer_request: InferRequest,
        timeout: Any = USE_CLIENT_DEFAULT,
        headers: Sequence[tuple[str, str]] | None = None,
    ) -> InferResponse:
        """The response of a model.

        Raises:
            InvalidInput: If it is another kind of request.
            InferError: If the server refuses or fails it; grpcio's `AioRpcError` where the script has imported grpc.
        """
        if not isinstance(infer_request, InferRequest):
            raise InvalidInput("Invalid input format")
        answer = await self._call("ModelInfer", infer_request.to_grpc(), timeout, headers)
        return InferResponse.from_grpc(answer)

    async def is_server_ready(
        self, timeout: Any = USE_CLIENT_DEFAULT, headers: Sequence[tuple[str, str]] | None = None
    ) -> bool:
        """Whether the server is ready; raises as `infer` does."""
        answer = await self._call("ServerReady", message_class("ServerReadyRequest")(), timeout, headers)
        return bool(answer.ready)

    async def is_server_live(
        self, timeout: Any = USE_CLIENT_DEFAULT, headers: Sequence[tuple[str, str]] | None = None
    ) -> bool:
        """Whether the server is live; raises as `infer` does."""
        answer = await self._call("ServerLive", message_class("ServerLiveRequest")(), timeout, headers)
        return bool(answer.live)

    async def is_model_ready(
        self, model_name: str, timeout: Any = USE_CLIENT_DEFAULT, headers: Sequence[tuple[str, str]] | None = None
    ) -> bool:
        """Whether a model is ready; raises as `infer` does."""
        request = message_class("ModelReadyRequest")(name=model_name)
        answer = await self._call("ModelReady", request, timeout, headers)
        return bool(answer.ready)

    async def _call(self, method: str, request: Any, timeout: Any, headers: Iterable[Any] | None) -> Any:
        limit_s = self._timeout if timeout is USE_CLIENT_DEFAULT else timeout
        link = self._link(tuple((str(name), str(value)) for name, value in headers or ()))
        if self._verbose:
            trace_logger.info("metadata: %s\n infer_request: %s", headers, request)
        loop = asyncio.get_running_loop()
        body = request.SerializeToString()
        try:
            answer = await loop.run_in_executor(self._threads, self._ask, link, method, body, limit_s)
        except (InferError, TransportError) as error:
            trace_logger.error("Failed to call %s: %s", method, error)
            raise _as_grpc(error) from error
        response = message_class(f"{method}Response").FromString(answer)
        if self._verbose:
            trace_logger.info("response: %s", response)
        return response

    def _ask(self, link: Any, method: str, body: bytes, limit_s: float | None) -> bytes:
        for left in range(self._attempts - 1, -1, -1):
            try:
                answer: bytes = link.call(method, body, limit_s)
                return answer
            except (NotReady, TransportError) as error:
                if left == 0 or isinstance(error, DeadlineExceeded):
                    raise
        raise AssertionError

    def _link(self, headers: tuple[tuple[str, str], ...]) -> Any:
        """The connections of calls with these headers: a link has the same for all of its calls."""
        from alipes._core import ClientLink, ClientTls

        with self._taking:
            link = self._links.pop(headers, None)
            if link is None:
                tls = ClientTls(*(None if one is None else str(Path(one)) for one in self._tls)) if self._tls else None
                link = ClientLink(self._address, "grpc", headers=headers, tls=tls)
            self._links[headers] = link
            if len(self._links) > _LINKS:
                self._links.popitem(last=False)  # its calls go on; its connections end with them
            return link


def _as_grpc(error: Exception) -> Exception:
    """An exception as scripts catch it that have imported grpcio."""
    aio: Any = sys.modules.get("grpc.aio")
    if aio is None:
        return error
    grpc: Any = sys.modules["grpc"]
    code = getattr(grpc.StatusCode, _status(error))
    made: Exception = aio.AioRpcError(code, aio.Metadata(), aio.Metadata(), details=str(error))
    return made


def _status(error: Exception) -> str:
    """The name of a status of gRPC."""
    if isinstance(error, DeadlineExceeded):
        return "DEADLINE_EXCEEDED"
    if not isinstance(error, InferError):
        return "UNAVAILABLE"
    from alipes import _core

    code = str(error.code)
    return next((row.grpc_name for row in _core.error_codes() if code in (row.name, row.triton_name)), "INTERNAL")
