"""`InferenceRESTClient` and `RESTConfig`: a client over HTTP whose calls are awaited, as the KServe SDK has it."""

from __future__ import annotations

import ssl
import sys
from collections.abc import Mapping
from typing import Any, Final, Self

from alipes.compat.kserve.constants import INFERENCE_CONTENT_LENGTH_HEADER, PredictorProtocol
from alipes.compat.kserve.documents import dump, parse
from alipes.compat.kserve.errors import UnsupportedProtocol
from alipes.compat.kserve.http_link import HttpAnswer, HttpLink
from alipes.compat.kserve.infer_request import InferRequest
from alipes.compat.kserve.infer_response import InferResponse
from alipes.compat.kserve.logging import trace_logger
from alipes.compat.kserve.utils import is_v1, is_v2
from alipes.errors import NotOffered

__all__ = ["USE_CLIENT_DEFAULT", "HTTPStatusError", "InferenceRESTClient", "RESTConfig"]

_UNAVAILABLE: Final = 503


class _UseClientDefault:
    """Stands for the time-out of the client, where None stands for none."""


USE_CLIENT_DEFAULT: Final = _UseClientDefault()


class HTTPStatusError(Exception):
    """A server answered with a status other than 2xx. Where a script has imported httpx, httpx's own is raised."""

    def __init__(self, message: str, answer: HttpAnswer) -> None:
        """Takes the text, and the answer, which is `response`."""
        super().__init__(message)
        self.response = answer


class RESTConfig:
    """How a client asks."""

    def __init__(  # noqa: PLR0913, PLR0917  # the names and the order are those that scripts use
        self,
        transport: Any = None,
        protocol: str | PredictorProtocol = "v1",
        retries: int = 3,
        http2: bool = False,
        timeout: Any = 60,
        cert: Any = None,
        verify: str | bool | ssl.SSLContext = True,
        auth: Any = None,
        verbose: bool = False,
    ) -> None:
        """Takes it.

        Args:
            transport: A transport of httpx, which is not offered here.
            protocol: `v1` or `v2`.
            retries: How often a connection that cannot be made is tried again.
            http2: Not needed: requests share kept connections of HTTP/1.1.
            timeout: Longest wait in seconds; None is without end.
            cert: What the client shows: a file, or certificate, key and password.
            verify: Certificates to believe: the system's, those of a file, a context, or any at all for False.
            auth: Name and password for each request.
            verbose: Whether to log requests and answers.
        """
        self.transport = transport
        self.protocol = protocol.value if isinstance(protocol, PredictorProtocol) else protocol
        self.retries = retries
        self.http2 = http2
        self.timeout = timeout
        self.cert = cert
        self.verify = verify
        self.auth = auth
        self.verbose = verbose


class InferenceRESTClient:
    """A client for servers of V1 and V2 over HTTP."""

    def __init__(self, config: RESTConfig | None = None) -> None:
        """Connects to nothing yet.

        Raises:
            NotOffered: If the configuration has a transport of httpx.
        """
        self._config = RESTConfig() if config is None else config
        if self._config.transport is not None:
            raise NotOffered("RESTConfig(transport=...) is not offered: clients have connections of their own here")
        self._link = HttpLink(self._config.retries, self._config.verify, self._config.cert)

    async def infer(  # noqa: PLR0913, PLR0917  # the names and the order are those that scripts use
        self,
        base_url: Any,
        data: InferRequest | dict[str, Any],
        model_name: str | None = None,
        headers: Mapping[str, str] | None = None,
        response_headers: dict[str, str] | None = None,
        is_graph_endpoint: bool = False,
        timeout: Any = USE_CLIENT_DEFAULT,
    ) -> InferResponse | dict[str, Any]:
        """The answer of a model: a response for V2, an object otherwise.

        Args:
            base_url: The address of the server, perhaps with the beginning of a path.
            data: The request.
            model_name: The model.
            headers: Headers of the request.
            response_headers: Takes up the headers of the answer.
            is_graph_endpoint: Whether the address is that of an InferenceGraph, and is used as it is.
            timeout: Longest wait in seconds; None is without end.

        Raises:
            HTTPStatusError: If the server answers with a status other than 2xx.
            UnsupportedProtocol: If the protocol is neither V1 nor V2.
            ValueError: If no model is named.
        """
        if is_graph_endpoint:
            url = str(base_url)
        elif model_name is None:
            raise ValueError("model_name should not be 'None'")
        else:
            path = f"models/{model_name}:predict" if self._is_v1() else f"models/{model_name}/infer"
            url = self._url(base_url, path)
        sent = dict(headers) if headers else {}
        body: Any = data
        if isinstance(data, InferRequest):
            body, json_length = data.to_rest()
            if json_length:
                sent[INFERENCE_CONTENT_LENGTH_HEADER] = str(json_length)
                sent = {name: value for name, value in sent.items() if name.lower() != "content-type"}
                sent["content-type"] = "application/octet-stream"
        answer = await self._post(url, body, sent, timeout)
        if response_headers is not None:
            response_headers.update(answer.headers)
        if is_graph_endpoint or self._is_v1():
            result: dict[str, Any] = parse(answer.content)
            return result
        length = answer.headers.get(INFERENCE_CONTENT_LENGTH_HEADER, len(answer.content))
        return InferResponse.from_bytes(answer.content, int(length))

    async def explain(
        self,
        base_url: Any,
        model_name: str,
        data: dict[str, Any],
        headers: Mapping[str, str] | None = None,
        timeout: Any = USE_CLIENT_DEFAULT,
    ) -> dict[str, Any]:
        """The explanation of a model, over V1.

        Raises:
            HTTPStatusError: If the server answers with a status other than 2xx.
            UnsupportedProtocol: If the protocol is another.
        """
        if not is_v1(self._config.protocol):
            raise UnsupportedProtocol(self._config.protocol)
        url = self._url(base_url, f"models/{model_name}:explain")
        answer = await self._post(url, data, dict(headers) if headers else {}, timeout)
        result: dict[str, Any] = parse(answer.content)
        return result

    async def is_server_ready(
        self, base_url: Any, headers: Mapping[str, str] | None = None, timeout: Any = USE_CLIENT_DEFAULT
    ) -> bool:
        """Whether a server is ready; over V2.

        Raises:
            HTTPStatusError: If the server answers with a status other than 2xx.
            UnsupportedProtocol: If the protocol is another.
        """
        if not is_v2(self._config.protocol):
            raise UnsupportedProtocol(self._config.protocol)
        return self._says(await self._get(self._url(base_url, "health/ready"), headers, timeout), "ready")

    async def is_server_live(
        self, base_url: Any, headers: Mapping[str, str] | None = None, timeout: Any = USE_CLIENT_DEFAULT
    ) -> bool:
        """Whether a server is live.

        Raises:
            HTTPStatusError: If the server answers with a status other than 2xx.
        """
        if not self._is_v1():
            return self._says(await self._get(self._url(base_url, "health/live"), headers, timeout), "live")
        answer = await self._get(f"{str(base_url).rstrip('/')}/", headers, timeout)
        if not answer.is_success:
            raise self._refused(answer)
        status: str = parse(answer.content).get("status", "")
        return status.lower() == "alive"

    async def is_model_ready(
        self,
        base_url: Any,
        model_name: str,
        headers: Mapping[str, str] | None = None,
        timeout: Any = USE_CLIENT_DEFAULT,
    ) -> bool:
        """Whether a model is ready.

        Raises:
            HTTPStatusError: If the server knows no such model; over V1.
        """
        is_first = self._is_v1()
        url = self._url(base_url, f"models/{model_name}" + ("" if is_first else "/ready"))
        answer = await self._get(url, headers, timeout)
        if not is_first:
            return answer.is_success
        return answer.status != _UNAVAILABLE and self._says(answer, "ready")

    async def close(self) -> None:
        """Closes the connections."""
        self._link.close()

    async def __aenter__(self) -> Self:
        """The client itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Closes the connections."""
        await self.close()

    def _is_v1(self) -> bool:
        """Whether the protocol is V1, and not V2.

        Raises:
            UnsupportedProtocol: If it is neither.
        """
        if is_v1(self._config.protocol):
            return True
        if is_v2(self._config.protocol):
            return False
        raise UnsupportedProtocol(self._config.protocol)

    def _url(self, base_url: Any, path: str) -> str:
        return f"{str(base_url).rstrip('/')}/{self._config.protocol}/{path}"

    def _says(self, answer: HttpAnswer, name: str) -> bool:
        """What an answer says of readiness. One without a body says it by its status, as Triton does."""
        if not answer.is_success:
            raise self._refused(answer)
        return bool(parse(answer.content).get(name)) if answer.content else True

    async def _post(self, url: str, data: Any, headers: dict[str, str], timeout: Any) -> HttpAnswer:
        body = data if isinstance(data, bytes) else dump(data)
        if not any(name.lower() == "content-type" for name in headers):
            headers["content-type"] = "application/json"
        answer = await self._send("POST", url, body, headers, timeout)
        if not answer.is_success:
            raise self._refused(answer)
        return answer

    async def _get(self, url: str, headers: Mapping[str, str] | None, timeout: Any) -> HttpAnswer:
        return await self._send("GET", url, None, dict(headers or {}), timeout)

    async def _send(
        self, method: str, url: str, body: bytes | None, headers: dict[str, str], timeout: Any
    ) -> HttpAnswer:
        config = self._config
        if config.verbose:
            trace_logger.info("url: %s, request data: %s", url, body)
        if isinstance(config.auth, tuple):
            import base64

            headers["authorization"] = "Basic " + base64.b64encode(":".join(config.auth).encode()).decode()
        limit = config.timeout if isinstance(timeout, _UseClientDefault) else timeout
        answer = await self._link.ask(method, url, body, headers, _seconds(limit))
        if config.verbose:
            trace_logger.info("response code: %s, content: %s", answer.status, answer.content)
        return answer

    def _refused(self, answer: HttpAnswer) -> Exception:
        """The exception after a status other than 2xx."""
        reason: Any = ""
        if answer.headers.get("content-type") == "application/json":
            reason = parse(answer.content)
            reason = reason["error"] if isinstance(reason, dict) and "error" in reason else reason
        text = f"{reason}, '{answer.status} {answer.reason}' for url '{answer.url}'"
        httpx: Any = sys.modules.get("httpx")
        if httpx is None:
            return HTTPStatusError(text, answer)
        request = httpx.Request("POST", answer.url)
        response = httpx.Response(answer.status, headers=answer.headers, content=answer.content, request=request)
        error: Exception = httpx.HTTPStatusError(text, request=request, response=response)
        return error


def _seconds(timeout: Any) -> float | None:
    """A time-out in seconds; of several, the longest. httpx has one for each part of a request."""
    if isinstance(timeout, (int, float)) or timeout is None:
        return timeout
    parts = timeout if isinstance(timeout, tuple) else (timeout.connect, timeout.read, timeout.write, timeout.pool)
    return None if None in parts else max(parts)
