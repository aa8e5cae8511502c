"""Clients of model servers: `Client` and `AsyncClient` for single calls, `StreamClient` for streams of requests.

`InferenceClient` is for streams, too, in the words of hermes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from alipes.lazily import lazily

if TYPE_CHECKING:
    from alipes.client.fake_server import FakeModel, FakeServer
    from alipes.client.inference.client import InferenceClient
    from alipes.client.inference.stream_client import StreamClient
    from alipes.client.plain.aio import AsyncClient
    from alipes.client.plain.options import Options
    from alipes.client.plain.request import Answer
    from alipes.client.plain.retry import Retry
    from alipes.client.plain.shared import SharedMemory
    from alipes.client.plain.sync import Client
    from alipes.client.plain.transport import Transport, TransportCall
    from alipes.client.region_tensor import RegionTensor
    from alipes.client.signature import Signature
    from alipes.client.tls import Tls
    from alipes.types import Shadow

__all__ = [
    "Answer",
    "AsyncClient",
    "Client",
    "FakeModel",
    "FakeServer",
    "InferenceClient",
    "Options",
    "RegionTensor",
    "Retry",
    "Shadow",
    "SharedMemory",
    "Signature",
    "StreamClient",
    "Tls",
    "Transport",
    "TransportCall",
]

# Public name -> module that defines it. Imported on first use: a client is quick to import.
_HOMES = {
    "Answer": "alipes.client.plain.request",
    "AsyncClient": "alipes.client.plain.aio",
    "Client": "alipes.client.plain.sync",
    "FakeModel": "alipes.client.fake_server",
    "FakeServer": "alipes.client.fake_server",
    "InferenceClient": "alipes.client.inference.client",
    "Options": "alipes.client.plain.options",
    "Retry": "alipes.client.plain.retry",
    "Shadow": "alipes.types",
    "RegionTensor": "alipes.client.region_tensor",
    "SharedMemory": "alipes.client.plain.shared",
    "Signature": "alipes.client.signature",
    "StreamClient": "alipes.client.inference.stream_client",
    "Tls": "alipes.client.tls",
    "Transport": "alipes.client.plain.transport",
    "TransportCall": "alipes.client.plain.transport",
}

__getattr__, __dir__ = lazily(__name__, _HOMES)
