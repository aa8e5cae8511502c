"""`Model`: what scripts of the KServe SDK derive their predictors, transformers and explainers from."""

from __future__ import annotations

import asyncio
import inspect
import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from concurrent.futures import Executor
from contextvars import copy_context
from enum import Enum
from functools import lru_cache
from time import time
from types import FunctionType
from typing import Any, Final

from alipes.compat.kserve import context, latency_log
from alipes.compat.kserve.client_factory import InferenceClientFactory
from alipes.compat.kserve.constants import EXPLAINER_BASE_URL_FORMAT, PredictorProtocol
from alipes.compat.kserve.errors import InvalidInput
from alipes.compat.kserve.grpc_client import InferenceGRPCClient
from alipes.compat.kserve.infer_request import InferRequest
from alipes.compat.kserve.infer_response import InferResponse
from alipes.compat.kserve.latency_log import get_latency_ms
from alipes.compat.kserve.predictor_config import PredictorConfig
from alipes.compat.kserve.rest_client import InferenceRESTClient, RESTConfig

__all__ = [
    "BaseKServeModel",
    "InferenceModel",
    "InferenceVerb",
    "Model",
    "PredictorProtocol",
    "append_forwardable_headers",
    "get_latency_ms",
    "is_v2",
]

_FORWARDED: Final = ("x-request-id", "x-b3-traceid", "authorization", "traceparent", "tracestate")
"""Headers of a request that the predictor gets too. The last two, of W3C's trace context, are not the SDK's."""


class InferenceVerb(Enum):
    """What is asked of a model."""

    EXPLAIN = 1
    PREDICT = 2


def append_forwardable_headers(headers: Mapping[str, str] | None, base: Mapping[str, str] | None = None) -> Any:
    """Headers for the predictor: these, and what it gets of a request's."""
    found = headers or {}
    return {**(base or {}), **{name: found[name] for name in _FORWARDED if name in found}}


def is_v2(protocol: PredictorProtocol) -> bool:
    """Whether a protocol is another than V1."""
    return protocol != PredictorProtocol.REST_V1


def _is_async(handler: Callable[..., Any]) -> bool:
    function = getattr(handler, "__func__", handler)
    return _is_async_function(function) if type(function) is FunctionType else inspect.iscoroutinefunction(handler)


# To look costs a microsecond, for each of three handlers.
_is_async_function = lru_cache(1024)(inspect.iscoroutinefunction)


class BaseKServeModel(ABC):
    """What a repository of models holds."""

    enable_latency_logging: bool = False

    @abstractmethod
    def __init__(self, name: str) -> None:
        """Takes the name; the model is not ready."""
        self.name = name
        self.ready = False
        self.engine = False

    async def healthy(self) -> bool:
        """Whether the model can answer: whether it is ready, unless a class says otherwise."""
        return self.ready

    def load(self) -> bool:
        """Load the model; gives whether it is ready."""
        self.ready = True
        return self.ready

    def start(self) -> None:
        """Prepares the model when its server starts."""
        self.ready = True

    async def start_engine(self) -> None:
        """Starts an engine, for models that have one."""
        self.ready = True

    def stop(self) -> None:
        """Cleans up when the server stops, or the model is unloaded."""
        self.ready = False

    def stop_engine(self) -> None:
        """Stops the engine."""
        self.ready = False


class InferenceModel(BaseKServeModel):
    """A model that can be asked."""

    @abstractmethod
    def __call__(
        self, body: Any, headers: dict[str, str] | None = None, verb: InferenceVerb = InferenceVerb.PREDICT
    ) -> Any:
        """The answer to a request."""

    def get_input_types(self) -> list[dict[str, Any]]:
        """Name, datatype and shape of each input, for the model's metadata."""
        return []

    def get_output_types(self) -> list[dict[str, Any]]:
        """Name, datatype and shape of each output, for the model's metadata."""
        return []


class Model(InferenceModel):
    """A predictor, a transformer or an explainer: its handlers are for classes to replace, plain or `async`."""

    use_ssl: bool = False
    _threads: Executor | None = None
    """Where plain handlers run, so that they keep no other request waiting; on the caller's thread where None."""

    def __init__(self, name: str, return_response_headers: bool = False) -> None:
        """Takes the name.

        Args:
            name: By which clients ask for it.
            return_response_headers: Whether `predict` and `postprocess` get a third argument, a dictionary that takes
                headers of the answer.
        """
        super().__init__(name)
        self.explainer_host: str | None = None
        self._http_client_instance: InferenceRESTClient | None = None
        self._grpc_client_stub: InferenceGRPCClient | None = None
        self.enable_latency_logging = False
        self.required_response_headers = return_response_headers

    @property
    def predictor_config(self) -> PredictorConfig | None:
        """Where the predictor is; None before there is a server."""
        return context.get_predictor_config()

    async def __call__(
        self, body: Any, headers: dict[str, str] | None = None, verb: InferenceVerb = InferenceVerb.PREDICT
    ) -> Any:
        """The answer to a request, and headers for it: preprocess, predict or explain, postprocess.

        Args:
            body: The request: the object of V1, or an `InferRequest`.
            headers: Its headers, with names in small letters.
            verb: What is asked.
        """
        response_headers: dict[str, str] = {}
        more = (response_headers,) if self.required_response_headers else ()
        moments = [time()]
        payload = await self._handle(self.preprocess, body, headers)
        moments.append(time())
        payload = self.validate(payload)
        if verb == InferenceVerb.EXPLAIN:
            response = await self._handle(self.explain, payload, headers)
        elif verb == InferenceVerb.PREDICT:
            response = await self._handle(self.predict, payload, headers, *more)
        else:
            raise NotImplementedError
        moments.append(time())
        response = await self._handle(self.postprocess, response, headers, *more)
        moments.append(time())
        if self.enable_latency_logging is True:
            request_id = headers.get("x-request-id", "N.A.") if headers else "N.A."
            latency_log.log(request_id, verb == InferenceVerb.EXPLAIN, moments)
        return response, response_headers

    async def _handle(self, handler: Callable[..., Any], *arguments: Any) -> Any:
        if _is_async(handler):
            return await handler(*arguments)
        if self._threads is None:
            return handler(*arguments)
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, copy_context().run, handler, *arguments)

    @property
    def _http_client(self) -> InferenceRESTClient:
        config = self.predictor_config
        if config is None:
            raise RuntimeError("PredictorConfig is required to create HTTP client but is None.")
        if self._http_client_instance is None:
            bundle = os.environ.get("REQUESTS_CA_BUNDLE") or os.environ.get("CURL_CA_BUNDLE")
            settings = RESTConfig(
                protocol=config.protocol, timeout=config.timeout, retries=config.retries, verify=bundle or True
            )
            self._http_client_instance = InferenceClientFactory().get_rest_client(settings)
        return self._http_client_instance

    @property
    def _grpc_client(self) -> InferenceGRPCClient:
        config = self.predictor_config
        if config is None:
            raise RuntimeError("PredictorConfig is required to create GRPC client but is None.")
        if self._grpc_client_stub is None:
            self._grpc_client_stub = InferenceClientFactory().get_grpc_client(
                url=config.predictor_host or "",
                use_ssl=config.use_ssl,
                timeout=config.timeout,
                retries=config.retries,
            )
        return self._grpc_client_stub

    def validate(self, payload: Any) -> Any:
        """Refuse what the predictor's protocol does not have.

        Raises:
            InvalidInput: If `instances` of V1, or `inputs` of V2, are no list.
        """
        config = self.predictor_config
        if config is None or not isinstance(payload, dict):
            return payload
        name = {PredictorProtocol.REST_V2.value: "inputs", PredictorProtocol.REST_V1.value: "instances"}.get(
            config.protocol
        )
        if name in payload and not isinstance(payload[name], list):
            raise InvalidInput(f'Expected "{name}" to be a list')
        return payload

    async def preprocess(self, payload: Any, headers: dict[str, str] | None = None) -> Any:
        """What is done to a request first; a class may replace it."""
        return payload

    async def postprocess(
        self, result: Any, headers: dict[str, str] | None = None, response_headers: dict[str, str] | None = None
    ) -> Any:
        """What is done to a result last; a class may replace it."""
        return result

    async def predict(
        self, payload: Any, headers: dict[str, str] | None = None, response_headers: dict[str, str] | None = None
    ) -> Any:
        """The prediction: that of the predictor, unless a class replaces it.

        Raises:
            NotImplementedError: If no predictor is named.
            HTTPStatusError: If the predictor answers with another status than 2xx.
        """
        config = self.predictor_config
        if config is None:
            raise NotImplementedError("Could not find PredictorConfig.")
        if not config.predictor_host:
            raise NotImplementedError("Could not find predictor_host.")
        if config.protocol == PredictorProtocol.GRPC_V2.value:
            return await self._grpc_predict(payload, headers)
        return await self._http_predict(payload, headers, response_headers)

    async def _http_predict(
        self, payload: Any, headers: dict[str, str] | None = None, response_headers: dict[str, str] | None = None
    ) -> Any:
        config = self.predictor_config
        assert config is not None
        return await self._http_client.infer(
            config.predictor_base_url,
            model_name=self.name,
            data=payload,
            headers=append_forwardable_headers(headers, {"Content-Type": "application/json"}),
            response_headers=response_headers,
        )

    async def _grpc_predict(self, payload: Any, headers: dict[str, str] | None = None) -> InferResponse:
        if not isinstance(payload, InferRequest) and hasattr(payload, "raw_input_contents"):
            payload = InferRequest.from_grpc(payload)
        metadata = [("request_type", "grpc_v2"), ("response_type", "grpc_v2")]
        metadata.extend(append_forwardable_headers(headers).items())
        return await self._grpc_client.infer(infer_request=payload, headers=tuple(metadata))

    async def explain(self, payload: Any, headers: dict[str, str] | None = None) -> Any:
        """The explanation: that of another explainer, unless a class replaces it.

        Raises:
            NotImplementedError: If no explainer is named.
            HTTPStatusError: If the explainer answers with another status than 2xx.
        """
        if self.explainer_host is None:
            raise NotImplementedError("Could not find explainer_host.")
        content_type = (headers or {}).get("content-type", "application/json")
        scheme = "https" if self.use_ssl else "http"
        return await self._http_client.explain(
            EXPLAINER_BASE_URL_FORMAT.format(scheme, self.explainer_host),
            model_name=self.name,
            data=payload,
            headers=append_forwardable_headers(headers, {"content-type": content_type}),
        )
