"""A predictor at another server, over gRPC or over HTTP with binary tensors: never as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from alipes.client.plain.aio import AsyncClient
from alipes.client.plain.retry import Retry
from alipes.client.tls import Tls
from alipes.errors import NotFound, Unsupported
from alipes.predictor.link import PredictorCall
from alipes.worker.apps.predictor_flags import PredictorFlags

__all__ = ["RemoteLink", "address_of"]

_PORTS: Final = {False: 80, True: 443}
"""The ports of KServe's services, encrypted or not."""
_SCHEMES: Final = {"v2": "http", "grpc-v2": "grpc"}


class RemoteLink:
    """The connections to one server."""

    def __init__(self, address: str, headers: Mapping[str, str] | None, api_key: str | None, tls: Tls | None) -> None:
        """Connects with the first call.

        Args:
            address: As `alipes.Client` takes it.
            headers: Headers of each request.
            api_key: The key that each request shows.
            tls: How encrypted connections are checked.

        Raises:
            ConfigError: If the address is none.
        """
        # The caller of `infer` has the retries, which it counts against a budget.
        once = Retry(times=0)
        self._client = AsyncClient(address, timeout_s=None, retry=once, headers=headers, api_key=api_key, tls=tls)
        self._address = address

    async def infer(self, call: PredictorCall, limit_s: float | None) -> Any:
        """One attempt at a call; cancelling it withdraws the call.

        Args:
            call: The call.
            limit_s: Time for it in seconds; None is no limit.

        Raises:
            AlipesError: If it is not answered.
        """
        options = call.options
        if call.headers:
            options = {**options, "headers": {**call.headers, **(options.get("headers") or {})}}
        return await self._client.infer(call.model, call.inputs, outputs=call.outputs, timeout_s=limit_s, **options)

    async def is_ready(self, model: str, limit_s: float | None) -> bool:
        """Whether a model can be called."""
        return await self._client.is_ready(model, timeout_s=limit_s)

    async def max_batch_size(self, model: str, limit_s: float) -> int:
        """Rows that a call may have; 0 where the model names none, or its server has no configurations."""
        try:
            config = await self._client.config(model, timeout_s=limit_s)
        except (NotFound, Unsupported):
            return 0
        return int(config.get("max_batch_size", 0))

    async def input_axes(self, model: str, name: str, limit_s: float) -> int | None:
        """Axes of an input, that of the batch among them; None where the server declares none."""
        inputs = (await self._client.signature(model, timeout_s=limit_s)).inputs
        spec = inputs.get(name) if name else next(iter(inputs.values()), None)
        return None if spec is None else len(spec.shape)

    def close(self) -> None:
        """Closes the connections that no call uses now."""
        self._client.close()

    def __str__(self) -> str:
        """The place of the server, for people."""
        return self._address


def address_of(flags: PredictorFlags) -> str | None:
    """The address that the server's flags name; None where they name no predictor."""
    if not flags.host:
        return None
    host = flags.host
    if host.startswith("unix:"):
        return f"{_SCHEMES[flags.protocol]}://{host}"
    bare = host.rpartition("]")[2]  # the colons of an IPv6 address stand in brackets
    port = "" if ":" in bare else f":{_PORTS[flags.use_ssl]}"
    return f"{_SCHEMES[flags.protocol]}{'s' if flags.use_ssl else ''}://{host}{port}"
