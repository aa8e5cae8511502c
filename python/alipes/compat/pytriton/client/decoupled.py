"""The client of decoupled models that waits for each response."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
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

    Each request has a stream of its own: several may be under way, and an iterator that is let go ends its request.
    """

    def _open(self) -> None:
        self._sources: set[ResponseSource] = set()
        if self._triton_url.scheme == "http":
            raise PyTritonClientValueError("DecoupledModelClient is only supported for grpc protocol")
        super()._open()

    def close(self) -> None:
        """Close the connections; what is under way is cancelled."""
        while self._sources:
            with suppress(KeyError):  # another thread has ended the last one
                self._sources.pop().close()
        super().close()

    def _infer(self, inputs: Inputs, parameters: Parameters | None, headers: Parameters | None) -> Any:
        if parameters is not None:
            raise PyTritonClientValueError("DecoupledModelClient does not support parameters")
        if headers is not None:
            raise PyTritonClientValueError("DecoupledModelClient does not support headers")
        if not self.model_config.decoupled:
            raise PyTritonClientInferenceServerError("Model config is coupled. Use ModelClient instead.")
        named, wanted = self._request(inputs)
        client, options = self._client(), read_options(self._options(None))
        try:
            source = client.begin(self._model_name, named, wanted, self._inference_timeout_s, options)
        except AlipesError as error:
            raise of_call(error, "grpc", self._inference_timeout_s) from error
        self._sources.add(source)
        return _Responses(self, source)

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
        self._sources.discard(source)
        source.close()

    def _debatch_result(self, result: Any) -> Any:
        return ({name: data[0] for name, data in response.items()} for response in result)


class _Responses(Iterator[Any]):
    """The responses to one request, which ends with the last one, or when the iterator is gone."""

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
