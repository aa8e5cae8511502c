"""The client of decoupled models that waits for each response."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Lock
from typing import Any

from alipes.client.plain.options import read_options
from alipes.client.plain.responses import ResponseSource
from alipes.compat.pytriton.client.arguments import Inputs, Parameters
from alipes.compat.pytriton.client.exceptions import (
    PyTritonClientInferenceServerError,
    PyTritonClientTimeoutError,
    PyTritonClientValueError,
)
from alipes.compat.pytriton.client.failures import is_timeout, of_call
from alipes.compat.pytriton.client.sync import ModelClient
from alipes.errors import AlipesError

__all__ = ["DecoupledModelClient"]


class DecoupledModelClient(ModelClient):
    """A client for one decoupled model, over gRPC: `infer_sample` and `infer_batch` give an iterator over responses.

    One request is under way at a time.
    """

    def _open(self) -> None:
        self._lock = Lock()
        self._source: ResponseSource | None = None
        if self._triton_url.scheme == "http":
            raise PyTritonClientValueError("DecoupledModelClient is only supported for grpc protocol")
        super()._open()

    def close(self) -> None:
        """Close the connections; what is under way is cancelled."""
        source, self._source = self._source, None
        if source is not None:
            source.close()
        super().close()

    def _infer(self, inputs: Inputs, parameters: Parameters | None, headers: Parameters | None) -> Any:
        if parameters is not None:
            raise PyTritonClientValueError("DecoupledModelClient does not support parameters")
        if headers is not None:
            raise PyTritonClientValueError("DecoupledModelClient does not support headers")
        if not self.model_config.decoupled:
            raise PyTritonClientInferenceServerError("Model config is coupled. Use ModelClient instead.")
        named, wanted = self._request(inputs)
        if not self._lock.acquire(blocking=False):
            raise PyTritonClientInferenceServerError("Inference is already in progress")
        try:
            options = read_options(self._options(None))
            self._source = self._client().begin(self._model_name, named, wanted, self._inference_timeout_s, options)
        except BaseException as error:
            self._lock.release()
            if isinstance(error, AlipesError):
                raise of_call(error, "grpc", self._inference_timeout_s) from error
            raise
        return _Responses(self, self._source)

    def _next(self, source: ResponseSource) -> Any:
        try:
            return dict(next(source))
        except AlipesError as error:
            limit_s = self._inference_timeout_s
            if is_timeout(error):
                raise PyTritonClientTimeoutError(
                    f"Timeout occurred during inference request. Timeout: {limit_s} s"
                ) from error
            raise of_call(error, "grpc", limit_s) from error

    def _end(self, source: ResponseSource) -> None:
        """Let the next request in."""
        source.close()
        if self._source is source:
            self._source = None
        self._lock.release()

    def _debatch_result(self, result: Any) -> Any:
        return ({name: data[0] for name, data in response.items()} for response in result)


class _Responses(Iterator[Any]):
    """The responses to one request. The next request may be sent after the last one, or when the iterator is gone."""

    def __init__(self, client: DecoupledModelClient, source: ResponseSource) -> None:
        self._client = client
        self._source: ResponseSource | None = source

    def __next__(self) -> Any:
        if self._source is None:
            raise StopIteration
        try:
            return self._client._next(self._source)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the request."""
        source, self._source = self._source, None
        if source is not None:
            self._client._end(source)

    def __del__(self) -> None:
        self.close()
