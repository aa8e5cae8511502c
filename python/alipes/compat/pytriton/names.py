"""Which module names of PyTriton are answered to, and with what: those of release 0.7.

`alipes.compat.rows` says how a row is written. A home without a name behind its colon is the module itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from alipes.compat.rows import Absent, Row, homes, without

__all__ = ["MODULES", "ROOT"]

ROOT: Final = "pytriton"

_HERE: Final = "compat.pytriton"
_INSIDE: Final = (
    "it was a part of how requests came from Triton into the script there; here the script's own threads are the "
    "workers: see alipes.attached"
)
_TRACES: Final = "the server makes the traces itself: see the options --trace-config of `alipes serve`"
_CHECK: Final = "there is no environment to check: `alipes serve` and its tests need none of Triton's files"

_CONFIG: Final = homes(f"{_HERE}.settings", "DeviceKind", "DynamicBatcher", "QueuePolicy", "TimeoutAction")
_WARMUP: Final = {
    **homes(f"{_HERE}.settings", "ModelWarmup", "WarmupInput"),
    **homes(f"{_HERE}.warmup", "generate_warmup_data", "generate_warmup_requests"),
}
_TRITON_CONFIG: Final = homes(f"{_HERE}.triton_model_config", "ResponseCache", "TensorSpec", "TritonModelConfig")

_MODEL_CONFIG: Final[dict[str, Row]] = {
    "": {**_CONFIG, **homes(f"{_HERE}.settings", "ModelConfig", "Tensor")},
    ".common": {**_CONFIG, **_WARMUP},
    ".generator": homes(f"{_HERE}.generator", "ModelConfigGenerator"),
    ".model_config": homes(f"{_HERE}.settings", "DynamicBatcher", "ModelConfig", "ModelWarmup"),
    ".parser": homes(f"{_HERE}.parser", "ModelConfigParser"),
    ".tensor": homes(f"{_HERE}.settings", "Tensor"),
    ".triton_model_config": {
        **_TRITON_CONFIG,
        **homes(f"{_HERE}.settings", "DeviceKind", "DynamicBatcher", "ModelWarmup"),
    },
}

_CLIENTS: Final = homes(
    f"{_HERE}.client",
    "AsyncioDecoupledModelClient",
    "AsyncioModelClient",
    "DecoupledModelClient",
    "FuturesModelClient",
    "ModelClient",
)
_CLIENT_ERRORS: Final = homes(
    f"{_HERE}.client.exceptions",
    "PyTritonClientClosedError",
    "PyTritonClientError",
    "PyTritonClientInferenceServerError",
    "PyTritonClientInvalidUrlError",
    "PyTritonClientModelDoesntSupportBatchingError",
    "PyTritonClientModelUnavailableError",
    "PyTritonClientQueueFullError",
    "PyTritonClientTimeoutError",
    "PyTritonClientValueError",
)
_CLIENT: Final[dict[str, Row]] = {
    "": _CLIENTS,
    ".asyncio_utils": {
        **homes(
            f"{_HERE}.client.async_waiting",
            "asyncio_get_model_config",
            "asyncio_get_model_state",
            "asyncio_wait_for_model_ready",
            "asyncio_wait_for_model_status_loaded",
            "asyncio_wait_for_server_ready",
            aio_clients="AwaitedServer",
        ),
        **homes(f"{_HERE}.client.states", "ModelState", "parse_grpc_response", "parse_http_response"),
        **homes(f"{_HERE}.client.waiting", "LATEST_MODEL_VERSION"),
    },
    ".auth": homes(
        f"{_HERE}.client.auth",
        "TRITON_ACCESS_HEADER",
        "create_auth_headers",
        "extract_access_token_from_headers",
    ),
    ".client": {
        **_CLIENTS,
        **homes(f"{_HERE}.client.base", "BaseModelClient", "DEFAULT_INFERENCE_TIMEOUT_S"),
        **_CLIENT_ERRORS,
    },
    ".exceptions": _CLIENT_ERRORS,
    ".utils": {
        **homes(f"{_HERE}.client.url", "TritonUrl"),
        **homes(
            f"{_HERE}.client.states", "ModelState", "get_model_state", "parse_grpc_response", "parse_http_response"
        ),
        **homes(
            f"{_HERE}.client.waiting",
            "LATEST_MODEL_VERSION",
            "create_client_from_url",
            "get_model_config",
            "wait_for_model_ready",
            "wait_for_server_ready",
        ),
    },
    ".warnings": homes(f"{_HERE}.client.warnings", "NotSupportedTimeoutWarning", "PyTritonWarning"),
}

_DECORATORS: Final = homes(
    f"{_HERE}.decorators",
    "ConstantPadder",
    "InferenceRequest",
    "InferenceRequests",
    "InferenceResult",
    "InferenceResults",
    "InputNames",
    "ModelConfigDict",
    "TritonContext",
    "batch",
    "convert_output",
    "fill_optionals",
    "first_value",
    "get_inference_request_batch_size",
    "get_model_config",
    "get_triton_context",
    "group_by_keys",
    "group_by_values",
    "pad_batch",
    "sample",
    "triton_context",
)

_TRITON: Final = {
    **homes(f"{_HERE}.triton", "Triton"),
    **homes(f"{_HERE}.remote", "RemoteTriton"),
    **homes(f"{_HERE}.base", "MONITORING_PERIOD_S", "TritonBase"),
    **homes(f"{_HERE}.server_config", "TritonConfig"),
    **homes(f"{_HERE}.client.auth", "TRITON_ACCESS_HEADER"),
    **homes(
        f"{_HERE}.policy",
        "DEFAULT_PROTECTED_ENDPOINTS",
        "DefaultTritonLifecyclePolicy",
        "TritonLifecyclePolicy",
        "TritonSecurityConfig",
        "VALID_TRITON_ENDPOINTS",
        "VertextAILifecyclePolicy",
    ),
    **homes(f"{_HERE}.settings", "ModelConfig", "Tensor"),
    **homes(f"{_HERE}.client", "ModelClient"),
}

_MODULES: Final[dict[str, Row]] = {
    "": {
        "__version__": f"alipes.{_HERE}.release:VERSION",
        "client": f"{ROOT}.client:",
        "model_config": f"{ROOT}.model_config:",
        "triton": f"{ROOT}.triton:",
    },
    ".triton": _TRITON,
    ".decorators": _DECORATORS,
    ".exceptions": homes(
        f"{_HERE}.exceptions",
        "PyTritonBadParameterError",
        "PyTritonError",
        "PyTritonInvalidOperationError",
        "PyTritonModelConfigError",
        "PyTritonRuntimeError",
        "PyTritonUnrecoverableError",
        "PyTritonValidationError",
    ),
    ".constants": homes(
        f"{_HERE}.constants",
        "CREATE_TRITON_CLIENT_TIMEOUT_S",
        "DEFAULT_GRPC_PORT",
        "DEFAULT_HTTP_PORT",
        "DEFAULT_METRICS_PORT",
        "DEFAULT_TRITON_STARTUP_TIMEOUT_S",
        "PYTRITON_HOME",
        "TRITON_CONTEXT_FIELD_NAME",
        "TRITON_LOCAL_IP",
        "TRITON_PYTHON_BACKEND_INTERPRETER_DIRNAME",
    ),
    ".models": {},
    ".models.model": without(_INSIDE, "Model", "ModelEvent"),
    ".models.manager": without(_INSIDE, "ModelManager"),
    ".proxy": {},
    ".proxy.types": homes(f"{_HERE}.request", "Request", "Requests", "Response", "Responses"),
    ".proxy.validators": homes(f"{_HERE}.validator", "TritonResultsValidator"),
    ".proxy.communication": Absent(("RequestsServer", "RequestsServerClient"), _INSIDE),
    ".proxy.data": Absent(("TensorStore",), _INSIDE),
    ".proxy.inference": Absent(("InferenceHandler",), _INSIDE),
    ".proxy.telemetry": Absent(
        ("build_proxy_tracer_from_triton_config", "get_telemetry_tracer", "set_telemetry_tracer"), _TRACES
    ),
    ".server": Absent(("TritonServer", "TritonServerConfig"), _INSIDE),
    ".utils": {},
    ".utils.workspace": homes(f"{_HERE}.workspace", "CleanupWarning", "Workspace"),
    ".check": Absent(("add_sub",), _CHECK),
}

MODULES: Final[Mapping[str, Row]] = MappingProxyType(
    {
        f"{ROOT}{above}{name}": row
        for above, rows in (("", _MODULES), (".model_config", _MODEL_CONFIG), (".client", _CLIENT))
        for name, row in rows.items()
    }
)
