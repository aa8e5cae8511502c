"""`KFModel` and `KFServer`: names and handlers of the SDK when it was called kfserving, with one argument each."""

from __future__ import annotations

from typing import Any

from alipes.compat.kserve.constants import PredictorProtocol
from alipes.compat.kserve.infer_request import InferRequest
from alipes.compat.kserve.infer_response import InferResponse
from alipes.compat.kserve.model import InferenceVerb, Model
from alipes.compat.kserve.model_repository import ModelRepository
from alipes.compat.kserve.model_server import ModelServer, args
from alipes.compat.kserve.rest_client import InferenceRESTClient, RESTConfig

__all__ = ["KFModel", "KFModelRepository", "KFServer"]

KFModelRepository = ModelRepository


class KFModel(Model):
    """A model whose handlers take the object of a request alone, of V1 or of V2."""

    def __init__(self, name: str) -> None:
        """Takes the name; the predictor's host is an attribute."""
        super().__init__(name)
        self.protocol = PredictorProtocol.REST_V1.value
        self.predictor_host: str | None = args.predictor_host
        self.timeout = 600

    async def __call__(
        self, body: Any, headers: dict[str, str] | None = None, verb: InferenceVerb = InferenceVerb.PREDICT
    ) -> Any:
        """The answer to a request: preprocess, predict or explain, postprocess."""
        if isinstance(body, InferRequest):
            body = body.to_rest()[0]
        payload = self.validate(await self._handle(self.preprocess, body))
        handler = self.explain if verb == InferenceVerb.EXPLAIN else self.predict
        return await self._handle(self.postprocess, await self._handle(handler, payload)), {}

    async def preprocess(self, payload: Any, headers: Any = None) -> Any:
        """What is done to a request first; a class may replace it."""
        return payload

    async def postprocess(self, result: Any, headers: Any = None, response_headers: Any = None) -> Any:
        """What is done to a result last; a class may replace it."""
        return result

    async def predict(self, payload: Any, headers: Any = None, response_headers: Any = None) -> Any:
        """The prediction: that of the predictor, unless a class replaces it.

        Raises:
            NotImplementedError: If no predictor is named.
        """
        if not self.predictor_host:
            raise NotImplementedError
        async with InferenceRESTClient(RESTConfig(protocol=self.protocol, timeout=self.timeout)) as client:
            answer = await client.infer(f"http://{self.predictor_host}", payload, self.name)
        return answer.to_rest()[0] if isinstance(answer, InferResponse) else answer

    async def explain(self, payload: Any, headers: Any = None) -> Any:
        """The explanation: that of another explainer, unless a class replaces it.

        Raises:
            NotImplementedError: If no explainer is named.
        """
        if self.explainer_host is None:
            raise NotImplementedError
        async with InferenceRESTClient(RESTConfig(timeout=self.timeout)) as client:
            return await client.explain(f"http://{self.explainer_host}", self.name, payload)


class KFServer(ModelServer):
    """A server that starts with models whether or not they are ready."""

    def __init__(
        self,
        http_port: int = args.http_port,
        grpc_port: int = args.grpc_port,
        max_buffer_size: int = 100 << 20,
        workers: int = args.workers,
        registered_models: ModelRepository | None = None,
    ) -> None:
        """Starts nothing yet.

        Args:
            http_port: Port of HTTP.
            grpc_port: Port of gRPC.
            max_buffer_size: Largest body, which is the server's own limit here.
            workers: Plain handlers of a model that run at the same time.
            registered_models: The models by name.
        """
        super().__init__(http_port, grpc_port, workers, registered_models=registered_models)
        self.max_buffer_size = max_buffer_size

    def start(self, models: Any, nest_asyncio: bool = False) -> None:
        """Serve models until SIGTERM, SIGINT or `stop`; as `ModelServer.start`."""
        for model in models:
            self.register_model(model)
        super().start([model for model in models if model.ready])
