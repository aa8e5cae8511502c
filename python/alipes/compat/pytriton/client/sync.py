"""The client that waits for its answers."""

from __future__ import annotations

from typing import Any, Self

from alipes.client.plain.request import Array
from alipes.compat.pytriton.client.arguments import Inputs, Parameters, check_call, name_inputs, with_batch_dimension
from alipes.compat.pytriton.client.base import BaseModelClient
from alipes.compat.pytriton.client.exceptions import (
    PyTritonClientClosedError,
    PyTritonClientInferenceServerError,
    PyTritonClientModelDoesntSupportBatchingError,
)
from alipes.compat.pytriton.client.failures import of_call
from alipes.compat.pytriton.client.transport import ByHeaders, PlainSyncClient, not_repeated
from alipes.compat.pytriton.client.waiting import get_model_config, wait_for_model_ready, wait_for_server_ready
from alipes.compat.pytriton.triton_model_config import TritonModelConfig
from alipes.errors import AlipesError

__all__ = ["ModelClient"]


class ModelClient(BaseModelClient):
    """A client for one model, whose calls wait for their answers. A context manager."""

    def _open(self) -> None:
        limit_s = self._inference_timeout_s
        self._clients: ByHeaders[PlainSyncClient] | None = ByHeaders(
            lambda headers: PlainSyncClient(
                self._url, timeout_s=limit_s, connect_timeout_s=limit_s, retry=not_repeated(), headers=headers
            ),
            self._headers or {},
        )
        if not self._lazy_init:
            self._wait_and_init_model_config()

    def __enter__(self) -> Self:
        """The client itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the connections."""
        self.close()

    def load_model(self, config: str | None = None, files: dict[str, bytes] | None = None) -> None:
        """Load the model, perhaps with a configuration as JSON and with files in the place of the repository's."""
        self._client().load_model(self._model_name, config=config, files=files)

    def unload_model(self) -> None:
        """Unload the model."""
        self._client().unload_model(self._model_name)

    def close(self) -> None:
        """Close the connections; the client cannot be used afterwards."""
        if self._clients is not None:
            clients, self._clients = self._clients, None
            clients.close()

    def wait_for_model(self, timeout_s: float) -> None:
        """Wait for the server and the model.

        Raises:
            PyTritonClientTimeoutError: If they are not ready in time.
            PyTritonClientClosedError: If the client is closed.
        """
        wait_for_model_ready(self._client(), self._model_name, self._model_version, timeout_s)

    def wait_for_server(self, timeout_s: float) -> None:
        """Wait for the server; the same errors."""
        wait_for_server_ready(self._client(), timeout_s)

    @property
    def is_batching_supported(self) -> bool:
        """Whether requests have a batch dimension; waits for the model."""
        return self.model_config.max_batch_size > 0

    @property
    def model_config(self) -> TritonModelConfig:
        """The model's configuration; waits for the model.

        Raises:
            PyTritonClientTimeoutError: If it is not ready in time.
            PyTritonClientClosedError: If the client is closed.
        """
        if self._model_config is None:
            self._model_config = self._fetched_config()
        return self._model_config

    def infer_sample(
        self,
        *inputs: Array,
        parameters: Parameters | None = None,
        headers: Parameters | None = None,
        **named_inputs: Array,
    ) -> Any:
        """Sends one row, without a batch dimension.

        Args:
            inputs: Arrays in the order of the declaration, or
            named_inputs: arrays by the name of their input.
            parameters: Parameters of the request.
            headers: Headers of the request; metadata, over gRPC.

        Returns:
            Arrays by the name of their output.

        Raises:
            PyTritonClientValueError: If the arguments cannot be sent.
            PyTritonClientTimeoutError: If the model is not ready, or the answer not there, in time.
            PyTritonClientInferenceServerError: If the inference function or the server fails.
            PyTritonClientClosedError: If the client is closed.
        """
        check_call(inputs, named_inputs, parameters, headers)
        if not self.is_batching_supported:
            return self._infer(inputs or named_inputs, parameters, headers)
        return self._debatch_result(self._infer(with_batch_dimension(inputs, named_inputs), parameters, headers))

    def infer_batch(
        self,
        *inputs: Array,
        parameters: Parameters | None = None,
        headers: Parameters | None = None,
        **named_inputs: Array,
    ) -> Any:
        """Sends a batch; as `infer_sample`, with a batch dimension.

        Raises:
            PyTritonClientModelDoesntSupportBatchingError: If the model has no batch dimension.
        """
        check_call(inputs, named_inputs, parameters, headers)
        if not self.is_batching_supported:
            raise PyTritonClientModelDoesntSupportBatchingError(
                f"Model {self.model_config.model_name} doesn't support batching - use infer_sample method instead"
            )
        return self._infer(inputs or named_inputs, parameters, headers)

    def _infer(self, inputs: Inputs, parameters: Parameters | None, headers: Parameters | None) -> Any:
        if self.model_config.decoupled:
            raise PyTritonClientInferenceServerError("Model config is decoupled. Use DecoupledModelClient instead.")
        named, wanted = self._request(inputs)
        client = self._client(headers)
        try:
            return dict(client.infer(self._model_name, named, outputs=wanted, **self._options(parameters)))
        except AlipesError as error:
            raise of_call(error, self._triton_url.scheme, self._inference_timeout_s) from error

    def _request(self, inputs: Inputs) -> tuple[dict[str, Array], list[str]]:
        """Inputs by name, and the names of all outputs; waits for the model before the first request."""
        if not self._model_ready:
            self._wait_and_init_model_config()
        config = self.model_config
        return name_inputs(inputs, config), [spec.name for spec in config.outputs or ()]

    def _debatch_result(self, result: Any) -> Any:
        return {name: data[0] for name, data in result.items()}

    def _wait_and_init_model_config(self) -> None:
        self._model_config = self._fetched_config()
        self._model_ready = True

    def _fetched_config(self) -> TritonModelConfig:
        return get_model_config(self._client(), self._model_name, self._model_version, self._init_timeout_s)

    def _client(self, headers: Parameters | None = None) -> PlainSyncClient:
        if self._clients is None:
            raise PyTritonClientClosedError("ModelClient is closed")
        return self._clients.get(headers)
