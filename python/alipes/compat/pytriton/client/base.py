"""What the clients of PyTriton have in common: address, model, time-outs, token and the numbers of their requests."""

from __future__ import annotations

import itertools
from typing import Any, Final, Self

from alipes.compat.pytriton.client.auth import create_auth_headers, extract_access_token_from_headers
from alipes.compat.pytriton.client.url import TritonUrl
from alipes.compat.pytriton.client.waiting import DEFAULT_WAIT_FOR_MODEL_TIMEOUT_S
from alipes.compat.pytriton.triton_model_config import TritonModelConfig

__all__ = ["DEFAULT_INFERENCE_TIMEOUT_S", "BaseModelClient"]

DEFAULT_INFERENCE_TIMEOUT_S: Final = 60.0


class BaseModelClient:
    """A client for one model of one server."""

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
        access_token: str | None = None,
    ) -> None:
        """Connects with the first call, unless `lazy_init` is false.

        Args:
            url: Address of the server: `grpc://host:port` or `http://host:port`; HTTP where no protocol is named, and
                the port 8000 or 8001 where none is.
            model_name: The model.
            model_version: Its version; the latest by default.
            lazy_init: Whether the server is asked with the first call only.
            init_timeout_s: Longest wait for the server and the model; 300 s by default.
            inference_timeout_s: Longest time of a request; 60 s by default.
            model_config: The model's configuration; fetched by default.
            ensure_model_is_ready: Whether the model is waited for although its configuration was given.
            access_token: The token of a server that restricts some of its verbs.

        Raises:
            PyTritonClientInvalidUrlError: If the address cannot be read.
            PyTritonClientTimeoutError: If `lazy_init` is false, and the model is not ready in time.
        """
        self._triton_url = TritonUrl.from_url(url)
        self._url = self._triton_url.with_scheme
        self._model_name = model_name
        self._model_version = model_version
        self._lazy_init = lazy_init
        self._init_timeout_s = DEFAULT_WAIT_FOR_MODEL_TIMEOUT_S if init_timeout_s is None else init_timeout_s
        self._inference_timeout_s = DEFAULT_INFERENCE_TIMEOUT_S if inference_timeout_s is None else inference_timeout_s
        self._headers = None if access_token is None else create_auth_headers(access_token, self._triton_url.scheme)
        self._model_config = model_config
        self._model_ready = model_config is not None and not ensure_model_is_ready
        self._numbers = itertools.count()
        self._open()

    def _open(self) -> None:
        """What a kind of client does beside."""

    @classmethod
    def from_existing_client(cls, existing_client: BaseModelClient) -> Self:
        """A client for the same model, which need not ask for what the other one knows."""
        known: dict[str, Any] = {}
        if existing_client._model_config is not None:
            known = {"model_config": existing_client._model_config, "ensure_model_is_ready": False}
        token = extract_access_token_from_headers(existing_client._headers)
        if token is not None:
            known["access_token"] = token
        return cls(
            url=existing_client._url,
            model_name=existing_client._model_name,
            model_version=existing_client._model_version,
            init_timeout_s=existing_client._init_timeout_s,
            inference_timeout_s=existing_client._inference_timeout_s,
            **known,
        )

    @property
    def _next_request_id(self) -> str:
        return str(next(self._numbers))

    def _options(self, parameters: Any) -> dict[str, Any]:
        """A request's fields beside its tensors."""
        return {
            "version": self._model_version or None,
            "request_id": self._next_request_id,
            "parameters": parameters or None,
        }
