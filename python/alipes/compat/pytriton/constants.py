"""PyTriton's constants: ports, time-outs, and where its workspaces are made."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

__all__ = [
    "CREATE_TRITON_CLIENT_TIMEOUT_S",
    "DEFAULT_GRPC_PORT",
    "DEFAULT_HTTP_PORT",
    "DEFAULT_METRICS_PORT",
    "DEFAULT_TRITON_STARTUP_TIMEOUT_S",
    "PYTRITON_HOME",
    "TRITON_CONTEXT_FIELD_NAME",
    "TRITON_LOCAL_IP",
    "TRITON_PYTHON_BACKEND_INTERPRETER_DIRNAME",
]

DEFAULT_HTTP_PORT: Final = 8000
DEFAULT_GRPC_PORT: Final = 8001
DEFAULT_METRICS_PORT: Final = 8002
TRITON_LOCAL_IP: Final = "127.0.0.1"
TRITON_CONTEXT_FIELD_NAME: Final = "triton_context"
TRITON_PYTHON_BACKEND_INTERPRETER_DIRNAME: Final = "python_backend_interpreter"
DEFAULT_TRITON_STARTUP_TIMEOUT_S: Final = 120
CREATE_TRITON_CLIENT_TIMEOUT_S: Final = 10


def _home() -> Path:
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    named = os.environ.get("PYTRITON_HOME") or f"{cache}/pytriton"
    return Path(os.path.expandvars(named)).expanduser().resolve()


PYTRITON_HOME: Final = _home()
