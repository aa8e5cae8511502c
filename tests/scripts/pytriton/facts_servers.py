"""Prints PyTriton's addresses, options and signatures, as JSON.

The script imports `pytriton` alone. Run by an interpreter that has PyTriton, it prints the facts that
`tests/vectors/pytriton` keeps; run by `python -m alipes.compat pytriton`, what alipes makes of the same calls.
"""

from __future__ import annotations

import inspect
from importlib import import_module

import numpy as np
from noting import fact, print_facts
from pytriton.client import ModelClient
from pytriton.client.auth import create_auth_headers, extract_access_token_from_headers
from pytriton.client.utils import TritonUrl
from pytriton.triton import TritonConfig, TritonLifecyclePolicy, TritonSecurityConfig


def servers():
    fact("security: endpoints", lambda: TritonSecurityConfig().restricted_endpoints)
    fact("security: token", lambda: len(TritonSecurityConfig().access_token))
    fact("security: none", lambda: TritonSecurityConfig(restricted_endpoints=[]))
    fact("security: given", lambda: TritonSecurityConfig("t", ["health"]))
    fact("security: unknown", lambda: TritonSecurityConfig(restricted_endpoints=["q", "health", "a"]))
    fact("policy", TritonLifecyclePolicy)
    fact("config", lambda: TritonConfig().to_dict())
    fact("config: neither protocol", lambda: TritonConfig(allow_http=False, allow_grpc=False))
    fact("config: positional", lambda: TritonConfig("x"))
    fact("config: unknown field", lambda: TritonConfig(q=1))
    read = {
        "numbers": {"http_port": "80", "log_verbose": "1", "id": 5},
        "files": {"log_file": "a/b"},
        "lists": {"trace_config": ["a", "b"], "cache_config": ("c",)},
        "unknown": {"q": 5, "http_port": 1},
    }
    for name, one in read.items():
        fact(f"config: from {name}", lambda d=one: used(TritonConfig.from_dict(d)))


def addresses():
    for url in (
        "localhost",
        "localhost:5",
        "http://a",
        "grpc://a",
        "GRPC://a:9",
        "grpc://a:x",
        "https://a",
        5,
        "127.0.0.1:81",
        "ftp://a:1",
        "http://a:99999",
        "a/b",
    ):
        fact(f"url: {url}", lambda u=url: TritonUrl.from_url(u).with_scheme)
    fact("auth: http", lambda: create_auth_headers("t", "HTTP"))
    fact("auth: grpc", lambda: create_auth_headers("t", "grpc"))
    fact("auth: none", lambda: create_auth_headers("", "grpc"))
    fact("auth: protocol", lambda: create_auth_headers("t", "ftp"))
    both = {**create_auth_headers("t", "http"), **create_auth_headers("u", "grpc")}
    fact("auth: out of none", lambda: extract_access_token_from_headers(None))
    fact("auth: out of grpc", lambda: extract_access_token_from_headers(create_auth_headers("t", "grpc")))
    fact("auth: out of two", lambda: extract_access_token_from_headers(both))


def nobody_there():
    nobody = {"init_timeout_s": 0.2, "inference_timeout_s": 0.2}
    fact("client: nothing there", lambda: ModelClient("localhost:9", "m", **nobody).infer_sample(np.ones(1)))
    fact("client: not lazy", lambda: ModelClient("localhost:9", "m", lazy_init=False, **nobody))
    fact("client: wrong url", lambda: ModelClient("ftp://x", "m"))


def used(settings):
    """The fields that are set."""
    return {name: repr(value) for name, value in settings.to_dict().items() if value is not None}


SIGNATURES = {
    "pytriton.triton": [
        "Triton",
        "Triton.bind",
        "Triton.run",
        "Triton.serve",
        "Triton.stop",
        "Triton.connect",
        "Triton.is_alive",
        "Triton.is_connected",
        "Triton.get_access_token",
        "RemoteTriton",
        "TritonLifecyclePolicy",
        "TritonSecurityConfig",
    ],
    "pytriton.model_config": ["ModelConfig", "DynamicBatcher", "QueuePolicy", "Tensor"],
    "pytriton.model_config.common": ["ModelWarmup", "WarmupInput"],
    "pytriton.model_config.triton_model_config": ["TritonModelConfig", "TensorSpec", "ResponseCache"],
    "pytriton.client": [
        "ModelClient",
        "ModelClient.infer_sample",
        "ModelClient.infer_batch",
        "ModelClient.wait_for_model",
        "ModelClient.load_model",
        "ModelClient.close",
        "FuturesModelClient",
        "FuturesModelClient.close",
        "FuturesModelClient.infer_batch",
        "FuturesModelClient.wait_for_model",
        "AsyncioModelClient",
        "AsyncioModelClient.infer_sample",
        "AsyncioDecoupledModelClient",
        "AsyncioDecoupledModelClient.infer_batch",
    ],
    "pytriton.decorators": ["first_value", "group_by_values", "fill_optionals", "ConstantPadder", "convert_output"],
    "pytriton.utils.workspace": ["Workspace"],
}


def signatures():
    for module, names in SIGNATURES.items():
        for name in names:
            found = import_module(module)
            for part in name.split("."):
                found = getattr(found, part)
            fact(
                f"signature: {module}.{name}",
                lambda f=found: [
                    [one.name, str(one.kind), "" if one.default is one.empty else repr(one.default).split(" at 0x")[0]]
                    for one in inspect.signature(f).parameters.values()
                ],
            )
    for module in ("pytriton.exceptions", "pytriton.client.exceptions", "pytriton.client.warnings"):
        for name in dir(import_module(module)):
            found = getattr(import_module(module), name)
            if inspect.isclass(found) and name.startswith("PyTriton"):
                above = [one.__name__ for one in found.__mro__ if one.__name__.startswith("PyTriton")]
                fact(f"exception: {module}.{name}", lambda a=above: a)


for part in (servers, addresses, nobody_there, signatures):
    part()
print_facts()
