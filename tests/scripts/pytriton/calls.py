"""Prints what PyTriton's clients return and raise for a list of calls to a server, as JSON.

Arguments: the address of the server over HTTP, and over gRPC. The models are those of
`tests/support/pytriton_models.py`. The script imports `pytriton` alone, as those beside it do.
"""

from __future__ import annotations

import asyncio
import sys

import numpy as np
from noting import fact, print_facts
from pytriton.client import (
    AsyncioDecoupledModelClient,
    AsyncioModelClient,
    DecoupledModelClient,
    FuturesModelClient,
    ModelClient,
)

HTTP, GRPC = sys.argv[1:3]
A, B = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
NAMES = np.array([[b"a", b"\xff\x00"], ["ü".encode(), b""]], np.object_)


def sync(scheme, url):
    def client(model, **options):
        return ModelClient(url, model, init_timeout_s=30, **options)

    def call(name, model, verb, *inputs, options=None, **named):
        def run():
            with client(model, **(options or {})) as one:
                return getattr(one, verb)(*inputs, **named)

        fact(f"{scheme}: {name}", run)

    call("a sample", "add_sub", "infer_sample", A, B)
    call("a named sample", "add_sub", "infer_sample", b=B, a=A)
    call("a batch", "add_sub", "infer_batch", np.stack([A, B]), np.stack([B, A]))
    call("an optional input", "add_sub", "infer_sample", A, B, np.array([5], np.float32))
    call("one too many", "add_sub", "infer_sample", A, B, np.array([5], np.float32), A)
    call("one too few", "add_sub", "infer_sample", A)
    call("an unknown input", "add_sub", "infer_sample", a=A, q=B)
    call("another type", "add_sub", "infer_sample", A, B.astype(np.float64))
    call("another shape", "add_sub", "infer_sample", A, np.ones(3, np.float32))
    call("too many rows", "add_sub", "infer_batch", np.ones((9, 2), np.float32), np.ones((9, 2), np.float32))
    call("not in order", "add_sub", "infer_batch", np.ones((2, 4), np.float32)[:, ::2], np.ones((2, 2), np.float32).T)
    call("no batches", "flat", "infer_sample", np.arange(3, dtype=np.int32))
    call("no batches, a batch", "flat", "infer_batch", np.arange(3, dtype=np.int32))
    call("bytes", "bytes", "infer_sample", NAMES[0])
    call("a batch of bytes", "bytes", "infer_batch", NAMES)
    call("fixed bytes", "bytes", "infer_batch", np.array([[b"a", b"bc"]]))
    call("encoded text", "bytes", "infer_batch", np.char.encode([["ü", "x"]], "utf-8"))
    call("no bytes at all", "bytes", "infer_batch", np.empty((1, 0), np.object_))
    call("parameters", "said", "infer_sample", A[:1], parameters={"i": 5, "s": "x", "b": True})
    call("headers", "said", "infer_sample", A[:1], headers={"forwarded-name": "value"})
    call("no inputs", "add_sub", "infer_sample")
    call("both kinds", "add_sub", "infer_sample", A, b=B)
    call("parameters in a list", "said", "infer_sample", A[:1], parameters=[1])
    call("a parameter's name", "said", "infer_sample", A[:1], parameters={1: 2})
    call("a parameter's value", "said", "infer_sample", A[:1], parameters={"x": 2.5})
    call("headers in a list", "said", "infer_batch", A[:1], headers=[1])
    call("unicode", "bytes", "infer_batch", np.array([["a"]]))
    call("a model that raises", "fails", "infer_sample", A[:1])
    call("a decoupled model", "counts", "infer_sample", np.array([2], np.int32))
    call("too slow", "slow", "infer_sample", A[:1], options={"inference_timeout_s": 0.3})
    call("a version", "add_sub", "infer_sample", A, B, options={"model_version": "1"})
    fact(f"{scheme}: no such model, in time", lambda: ModelClient(url, "nothing", init_timeout_s=0.3).model_config)
    fact(f"{scheme}: no such version", lambda: ModelClient(url, "add_sub", "7", init_timeout_s=0.3).infer_sample(A, B))
    for model in ("add_sub", "flat", "counts", "queued"):
        fact(f"{scheme}: config of {model}", lambda m=model: config_of(client(m).model_config))
    fact(f"{scheme}: batches", lambda: [client(model).is_batching_supported for model in ("add_sub", "flat")])
    fact(f"{scheme}: wait", lambda: client("add_sub").wait_for_model(5))
    fact(f"{scheme}: wait for nothing", lambda: client("nothing").wait_for_model(0.2))
    fact(f"{scheme}: wait for the server", lambda: client("nothing").wait_for_server(5))
    fact(f"{scheme}: closed", lambda: closed(client("add_sub")).infer_sample(A, B))
    fact(f"{scheme}: closed, wait", lambda: closed(client("add_sub")).wait_for_model(1))
    fact(f"{scheme}: closed twice", lambda: closed(closed(client("add_sub"))) and None)
    fact(
        f"{scheme}: given config",
        lambda: client(
            "add_sub", model_config=client("add_sub").model_config, ensure_model_is_ready=False
        ).infer_sample(A, B),
    )
    if scheme == "http":
        fact(
            f"{scheme}: from another",
            lambda: ModelClient.from_existing_client(inferred(client("add_sub"))).infer_sample(A, B),
        )


def inferred(client):
    """The client, which knows its model."""
    client.infer_sample(A, B)
    return client


def closed(client):
    """The client, closed."""
    client.close()
    return client


def config_of(config):
    """What a client knows of a model."""
    return {
        "name": config.model_name,
        "rows": config.max_batch_size,
        "batching": config.batching,
        "decoupled": config.decoupled,
        "inputs": config.inputs,
        "outputs": config.outputs,
        "batcher": config.batcher,
        "instances": {kind.value: count for kind, count in config.instance_group.items()},
    }


def futures(scheme, url):
    def run(call):
        with FuturesModelClient(url, "add_sub", init_timeout_s=30) as client:
            return call(client)

    fact(
        f"{scheme} futures: many",
        lambda: run(lambda client: [future.result() for future in [client.infer_sample(A * n, B) for n in range(5)]]),
    )
    fact(f"{scheme} futures: a batch", lambda: run(lambda client: client.infer_batch(np.stack([A]), b=B).result()))
    fact(f"{scheme} futures: config", lambda: run(lambda client: client.model_config().result().model_name))
    fact(f"{scheme} futures: wait", lambda: run(lambda client: client.wait_for_model(5).result()))
    fact(f"{scheme} futures: closed", lambda: closed(FuturesModelClient(url, "add_sub")).infer_sample(A, B))
    fact(f"{scheme} futures: no workers", lambda: FuturesModelClient(url, "add_sub", max_workers=0))
    fact(f"{scheme} futures: no queue", lambda: FuturesModelClient(url, "add_sub", max_queue_size=0))


def awaited(scheme, url):
    def call(name, model, verb, *inputs, options=None, **named):
        async def run():
            async with AsyncioModelClient(url, model, **{"init_timeout_s": 30, **(options or {})}) as client:
                return await getattr(client, verb)(*inputs, **named)

        fact(f"{scheme} asyncio: {name}", lambda: asyncio.run(run()))

    call("a sample", "add_sub", "infer_sample", A, B)
    call("a batch", "add_sub", "infer_batch", a=np.stack([A]), b=np.stack([B]))
    call("not lazy", "add_sub", "infer_sample", A, B, options={"lazy_init": False})
    call("bytes", "bytes", "infer_batch", NAMES)
    call("no batches", "flat", "infer_batch", np.arange(3, dtype=np.int32))
    call("parameters", "said", "infer_sample", A[:1], parameters={"i": 5})
    call("another type", "add_sub", "infer_sample", A, B.astype(np.float64))
    call("no array", "add_sub", "infer_batch", A, [1, 2])
    call("unicode", "bytes", "infer_batch", np.array([["a"]]))
    call("a model that raises", "fails", "infer_sample", A[:1])
    call("a decoupled model", "counts", "infer_sample", np.array([2], np.int32))
    call("too slow", "slow", "infer_sample", A[:1], options={"inference_timeout_s": 0.3})
    call("no inputs", "add_sub", "infer_sample")


def streams():
    def run(url, model, *inputs, verb="infer_sample", **options):
        client = DecoupledModelClient(url, model, init_timeout_s=30)
        try:
            return list(getattr(client, verb)(*inputs, **options))
        finally:
            client.close()

    two = np.array([2], np.int32)
    fact("stream: a sample", lambda: run(GRPC, "counts", two))
    fact("stream: a batch", lambda: run(GRPC, "counts", two[np.newaxis], verb="infer_batch"))
    fact("stream: none", lambda: run(GRPC, "counts", two * 0))
    fact("stream: fails", lambda: run(GRPC, "counts", two - 3))
    fact("stream: over http", lambda: run(HTTP, "counts", two))
    fact("stream: coupled", lambda: run(GRPC, "add_sub", A, B))
    fact("stream: parameters", lambda: run(GRPC, "counts", two, parameters={"a": 1}))
    fact("stream: headers", lambda: run(GRPC, "counts", two, headers={"a": 1}))
    fact("stream: twice at a time", lambda: twice(DecoupledModelClient(GRPC, "counts"), two))

    async def collected(url, model, *inputs, verb="infer_sample"):
        async with AsyncioDecoupledModelClient(url, model, init_timeout_s=30) as client:
            return [response async for response in getattr(client, verb)(*inputs)]

    fact("asyncio stream: a sample", lambda: asyncio.run(collected(GRPC, "counts", two)))
    fact("asyncio stream: a batch", lambda: asyncio.run(collected(GRPC, "counts", two[np.newaxis], verb="infer_batch")))
    fact("asyncio stream: fails", lambda: asyncio.run(collected(GRPC, "counts", two - 3)))
    fact("asyncio stream: coupled", lambda: asyncio.run(collected(GRPC, "add_sub", A, B)))
    fact("asyncio stream: over http", lambda: asyncio.run(collected(HTTP, "counts", two)))


def twice(client, two):
    """A second request while the first is under way."""
    first = client.infer_sample(two)
    try:
        return list(client.infer_sample(two))
    finally:
        list(first)
        client.close()


for scheme, url in (("http", HTTP), ("grpc", GRPC)):
    sync(scheme, url)
    futures(scheme, url)
    awaited(scheme, url)
streams()
print_facts()
