"""`Triton` in the process of a test, on ports that are free."""

from __future__ import annotations

from typing import Any

import numpy as np
from alipes.compat.pytriton.server_config import TritonConfig
from alipes.compat.pytriton.settings import ModelConfig, Tensor
from alipes.compat.pytriton.triton import Triton

from support.ports import free_ports

__all__ = ["VALUE", "bind", "http", "make_triton"]

VALUE: dict[str, Any] = {"dtype": np.float32, "shape": (1,)}


def make_triton(config: dict[str, Any] | None = None, **options: Any) -> Triton:
    """A server that has not been started."""
    http_port, grpc_port, metrics_port = free_ports(3)
    ports = {"http_port": http_port, "grpc_port": grpc_port, "metrics_port": metrics_port}
    return Triton(config=TritonConfig(**{**ports, "http_address": "127.0.0.1", **(config or {})}), **options)


def http(triton: Triton) -> str:
    """Its address."""
    return triton._url


def bind(triton: Any, function: Any, name: str = "m", **options: Any) -> None:
    """A model with the input `x` and the output `y`, one number each."""
    settings = options.pop("config", {})
    triton.bind(
        name,
        function,
        inputs=[Tensor(name="x", **VALUE)],
        outputs=[Tensor(name="y", **VALUE)],
        config=ModelConfig(**settings),
        **options,
    )
