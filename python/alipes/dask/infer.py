"""`Infer`: what `client.map` calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from alipes.dask.plugin import DEFAULT_NAME, local_server
from alipes.errors import ServeError

__all__ = ["Infer"]


@dataclass(frozen=True)
class Infer:
    """A function of inputs that asks the server beside the worker that calls it; again where that was lost meanwhile.

    Attributes:
        model: The model.
        plugin: Name of the `ServerPlugin`.
        options: Further arguments of `alipes.Client.infer`.
    """

    model: str
    plugin: str = DEFAULT_NAME
    options: dict[str, Any] = field(default_factory=dict)

    def __call__(self, inputs: Any) -> Any:
        """The outputs.

        Raises:
            ConfigError: If the worker has no such plugin.
            AlipesError: Whatever the server says.
        """
        client = local_server(self.plugin).client
        if client is None:
            raise ServeError(f"the server of plugin '{self.plugin}' does not run yet")
        return client.infer(self.model, inputs, **self.options)
