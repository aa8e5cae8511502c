"""`InferenceClientFactory`: the clients that all models of a process share."""

from __future__ import annotations

from typing import Any, Self

from alipes.compat.kserve.constants import PredictorProtocol
from alipes.compat.kserve.grpc_client import InferenceGRPCClient
from alipes.compat.kserve.logging import logger
from alipes.compat.kserve.predictor_config import PredictorConfig
from alipes.compat.kserve.rest_client import InferenceRESTClient, RESTConfig
from alipes.compat.kserve.utils import is_v2

__all__ = ["InferenceClientFactory", "is_predictor_ready"]


class InferenceClientFactory:
    """One object, and one client of each kind: what is asked for first says how it asks."""

    _instance: Self | None = None
    _grpc_client: InferenceGRPCClient | None = None
    _rest_v1_client: InferenceRESTClient | None = None
    _rest_v2_client: InferenceRESTClient | None = None

    def __new__(cls) -> Self:
        """The one object."""
        if cls._instance is None:
            cls._instance = super().__new__(cls)
        return cls._instance

    def get_grpc_client(self, url: str, **kwargs: Any) -> InferenceGRPCClient:
        """The client over gRPC."""
        if self._grpc_client is None:
            self._grpc_client = InferenceGRPCClient(url, **kwargs)
        return self._grpc_client

    def get_rest_client(self, config: RESTConfig | None = None) -> InferenceRESTClient:
        """The client over HTTP, for V1 or for V2."""
        if config is not None and is_v2(config.protocol):
            if self._rest_v2_client is None:
                self._rest_v2_client = InferenceRESTClient(config)
            return self._rest_v2_client
        if self._rest_v1_client is None:
            self._rest_v1_client = InferenceRESTClient(config)
        return self._rest_v1_client

    async def close(self) -> None:
        """Closes the clients; new ones are made when they are asked for."""
        clients = (self._grpc_client, self._rest_v1_client, self._rest_v2_client)
        self._grpc_client = self._rest_v1_client = self._rest_v2_client = None
        for client in clients:
            if client is not None:
                await client.close()


async def is_predictor_ready(config: PredictorConfig, model_name: str) -> bool:
    """Whether the predictor has a model that is ready; not where it cannot be asked."""
    clients = InferenceClientFactory()
    try:
        if config.protocol == PredictorProtocol.GRPC_V2.value:
            client = clients.get_grpc_client(
                config.predictor_host or "", use_ssl=config.use_ssl, timeout=config.timeout, retries=config.retries
            )
            return await client.is_model_ready(model_name)
        settings = RESTConfig(protocol=config.protocol, timeout=config.timeout, retries=config.retries)
        return await clients.get_rest_client(settings).is_model_ready(config.predictor_base_url, model_name)
    except Exception as error:
        logger.debug("the predictor cannot be asked whether model %s is ready: %s", model_name, error)
        return False
