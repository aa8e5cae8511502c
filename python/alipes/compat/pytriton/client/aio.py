"""The clients whose calls are awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Self

from alipes.client.plain.request import Array
from alipes.compat.pytriton.client.arguments import Inputs, Parameters, check_call, name_inputs, with_batch_dimension
from alipes.compat.pytriton.client.base import BaseModelClient
from alipes.compat.pytriton.client.exceptions import (
    PyTritonClientInferenceServerError,
    PyTritonClientModelDoesntSupportBatchingError,
    PyTritonClientTimeoutError,
    PyTritonClientValueError,
)
from alipes.compat.pytriton.client.failures import is_timeout, of_async_call
from alipes.compat.pytriton.client.transport import ByHeaders, PlainAsyncClient, not_repeated
from alipes.compat.pytriton.client.waiting import await_config, await_model
from alipes.compat.pytriton.triton_model_config import TritonModelConfig
from alipes.errors import AlipesError

__all__ = ["AsyncioDecoupledModelClient", "AsyncioModelClient"]


class _AwaitedClient(BaseModelClient):
    """A client for one model whose calls are awaited. An asynchronous context manager."""

    def __init__(  # noqa: PLR0913 - the signature is PyTriton's
        self,
        url: str,
        model_name: str,
        model_version: str | None = None,
        *,
        lazy_init: bool = True,
        init_timeout_s: float | None = None,
        inference_timeout_s: float | None = None,
        model_config: TritonModelConfig | None = None,
        ensure_model_is_ready: bool = True,
    ) -> None:
        """Takes the arguments of `BaseModelClient`; what is not lazy happens when its context is entered."""
        super().__init__(
            url,
            model_name,
            model_version,
            lazy_init=lazy_init,
            init_timeout_s=init_timeout_s,
            inference_timeout_s=inference_timeout_s,
            model_config=model_config,
            ensure_model_is_ready=ensure_model_is_ready,
        )

    def _open(self) -> None:
        limit_s = self._inference_timeout_s
        self._clients: ByHeaders[PlainAsyncClient] = ByHeaders(
            lambda headers: PlainAsyncClient(
                self._url, timeout_s=limit_s, connect_timeout_s=limit_s, retry=not_repeated(), headers=headers
            ),
            {},
        )

    async def __aenter__(self) -> Self:
        """The client itself; the model has been waited for, unless `lazy_init` is true."""
        if not self._lazy_init:
            try:
                self._model_config = await self._fetched_config()
            except BaseException:
                await self.close()
                raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """Closes the connections."""
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        self._clients.close()

    async def wait_for_model(self, timeout_s: float) -> None:
        """Wait for the server and the model.

        Raises:
            PyTritonClientTimeoutError: If they are not ready in time.
        """
        await await_model(self._clients.get(), self._model_name, self._model_version, timeout_s)

    @property
    async def model_config(self) -> TritonModelConfig:
        """The model's configuration, to be awaited; waits for the model.

        Raises:
            PyTritonClientTimeoutError: If it is not ready in time.
        """
        if self._model_config is None:
            self._model_config = await self._fetched_config()
        return self._model_config

    async def _fetched_config(self) -> TritonModelConfig:
        return await await_config(self._clients.get(), self._model_name, self._model_version, self._init_timeout_s)

    def _refuse_batch(self, config: TritonModelConfig) -> None:
        if config.max_batch_size <= 0:
            raise PyTritonClientModelDoesntSupportBatchingError(
                f"Model {config.model_name} doesn't support batching - use infer_sample method instead"
            )


class AsyncioModelClient(_AwaitedClient):
    """A client for one model whose calls are awaited. An asynchronous context manager."""

    async def infer_sample(
        self,
        *inputs: Array,
        parameters: Parameters | None = None,
        headers: Parameters | None = None,
        **named_inputs: Array,
    ) -> dict[str, Array]:
        """Sends one row, without a batch dimension; arguments, result and errors are those of `ModelClient`."""
        check_call(inputs, named_inputs, parameters, headers)
        if (await self.model_config).max_batch_size <= 0:
            return await self._infer(inputs or named_inputs, parameters, headers)
        result = await self._infer(with_batch_dimension(inputs, named_inputs), parameters, headers)
        return {name: data[0] for name, data in result.items()}

    async def infer_batch(
        self,
        *inputs: Array,
        parameters: Parameters | None = None,
        headers: Parameters | None = None,
        **named_inputs: Array,
    ) -> dict[str, Array]:
        """Sends a batch; arguments, result and errors are those of `ModelClient`."""
        check_call(inputs, named_inputs, parameters, headers)
        self._refuse_batch(await self.model_config)
        return await self._infer(inputs or named_inputs, parameters, headers)

    async def _infer(
        self, inputs: Inputs, parameters: Parameters | None, headers: Parameters | None
    ) -> dict[str, Array]:
        config = await self.model_config
        if config.decoupled:
            raise PyTritonClientInferenceServerError(
                "Model config is decoupled. Use DecouploedAsyncioModelClient instead."
            )
        named = name_inputs(inputs, config)
        wanted = [spec.name for spec in config.outputs or ()]
        client = self._clients.get(headers)
        try:
            return dict(await client.infer(self._model_name, named, outputs=wanted, **self._options(parameters)))
        except AlipesError as error:
            raise of_async_call(error, self._triton_url.scheme, self._model_name) from error


class AsyncioDecoupledModelClient(_AwaitedClient):
    """A client for one decoupled model, over gRPC: its calls are asynchronous iterators over responses."""

    async def infer_sample(
        self,
        *inputs: Array,
        parameters: Parameters | None = None,
        headers: Parameters | None = None,
        **named_inputs: Array,
    ) -> AsyncIterator[dict[str, Array]]:
        """Yields the responses to one row; arguments and errors are those of `ModelClient`."""
        check_call(inputs, named_inputs, parameters, headers)
        if (await self.model_config).max_batch_size <= 0:
            async for response in self._infer(inputs or named_inputs, parameters, headers):
                yield response
            return
        async for response in self._infer(with_batch_dimension(inputs, named_inputs), parameters, headers):
            yield {name: data[0] for name, data in response.items()}

    async def infer_batch(
        self,
        *inputs: Array,
        parameters: Parameters | None = None,
        headers: Parameters | None = None,
        **named_inputs: Array,
    ) -> AsyncIterator[dict[str, Array]]:
        """Yields the responses to a batch; arguments and errors are those of `ModelClient`."""
        check_call(inputs, named_inputs, parameters, headers)
        self._refuse_batch(await self.model_config)
        async for response in self._infer(inputs or named_inputs, parameters, headers):
            yield response

    async def _infer(
        self, inputs: Inputs, parameters: Parameters | None, headers: Parameters | None
    ) -> AsyncIterator[dict[str, Array]]:
        config = await self.model_config
        if not config.decoupled:
            raise PyTritonClientInferenceServerError("Model config is coupled. Use AsyncioModelClient instead.")
        if self._triton_url.scheme == "http":
            raise PyTritonClientValueError("AsyncioDecoupledModelClient is only supported for grpc protocol")
        named = name_inputs(inputs, config)
        wanted = [spec.name for spec in config.outputs or ()]
        client = self._clients.get(headers)
        try:
            async with client.stream(self._model_name, named, outputs=wanted, **self._options(parameters)) as responses:
                async for response in responses:
                    yield dict(response)
        except AlipesError as error:
            if is_timeout(error):
                limit_s = self._inference_timeout_s
                raise PyTritonClientTimeoutError(
                    f"Timeout while waiting for model {self._model_name} to return next response {limit_s}s"
                ) from error
            raise of_async_call(error, self._triton_url.scheme, self._model_name) from error
