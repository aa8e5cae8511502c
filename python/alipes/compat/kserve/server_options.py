"""The command line of the SDK's servers: `parser`, which scripts take as a parent of their own."""

from __future__ import annotations

import argparse
import os
from typing import Any, Final

from alipes.compat.kserve.constants import (
    DEFAULT_GRPC_PORT,
    DEFAULT_HTTP_PORT,
    KSERVE_TLS_CERT_FILE_ENV,
    KSERVE_TLS_KEY_FILE_ENV,
    MAX_GRPC_MESSAGE_LENGTH,
)
from alipes.compat.kserve.utils import strtobool

__all__ = ["args", "parser"]

_PROTOCOLS: Final = ["v1", "v2", "grpc-v2"]

parser: Final = argparse.ArgumentParser(add_help=False, formatter_class=argparse.ArgumentDefaultsHelpFormatter)
"""Its options are those of the SDK, with their defaults."""


def _add(name: str, kind: Any, default: Any, help_text: str, **more: Any) -> None:
    parser.add_argument(name, type=kind, default=default, help=help_text, **more)


_add("--http_port", int, DEFAULT_HTTP_PORT, "Port of HTTP.")
_add("--grpc_port", int, DEFAULT_GRPC_PORT, "Port of gRPC.")
_add("--workers", int, 1, "Plain handlers of a model that run at the same time.")
_add("--max_threads", int, 4, "Not needed here: gRPC has no threads of its own.")
_add("--max_asyncio_workers", int, None, "Requests that a model with async handlers answers at the same time.")
_add("--enable_grpc", strtobool, True, "Offer gRPC.")
_add("--enable_docs_url", strtobool, False, "Offer a page about the API at /docs.")
_add("--enable_latency_logging", strtobool, True, "Log how long the handlers of each request took.")
_add("--configure_logging", strtobool, True, "Set up the loggers.")
_add("--log_config_file", str, None, "File with the set-up of the loggers, as JSON or YAML.")
_add("--access_log_format", str, None, "Not offered here: the server has a log of its own.")
_add(
    "--event-loop",
    str,
    "auto",
    "Event loop of the handlers: auto takes uvloop where it is installed.",
    dest="event_loop",
    choices=["auto", "asyncio", "uvloop"],
)
_add(
    "--timeout-keep-alive",
    int,
    65,
    "Seconds that a connection is kept without a request; longer than the proxy in front keeps it.",
    dest="timeout_keep_alive",
)
_add("--model_name", str, "model", "The model's name in paths.")
_add("--predictor_host", str, None, "Host and port of the predictor that a transformer or explainer asks.")
_add("--protocol", str, "v1", "Former name of --predictor_protocol.", choices=_PROTOCOLS)
_add("--predictor_protocol", str, "v1", "How the predictor is asked.", choices=_PROTOCOLS)
_add("--predictor_use_ssl", strtobool, False, "Use TLS for the predictor.")
_add("--predictor_request_timeout_seconds", int, 600, "Longest wait for the predictor.")
_add("--grpc_max_send_message_length", int, MAX_GRPC_MESSAGE_LENGTH, "Not needed here: answers have no limit.")
_add("--grpc_max_receive_message_length", int, MAX_GRPC_MESSAGE_LENGTH, "Largest request over gRPC in bytes.")
_add("--predictor_request_retries", int, 0, "How often a predictor that cannot be reached is asked again.")
parser.add_argument(
    "--enable_predictor_health_check",
    action="store_true",
    help="Count as ready only where the predictor is ready too.",
)
_add("--ssl_certfile", str, os.environ.get(KSERVE_TLS_CERT_FILE_ENV), "Certificate of HTTPS.")
_add("--ssl_keyfile", str, os.environ.get(KSERVE_TLS_KEY_FILE_ENV), "Key of HTTPS.")

args: Final = parser.parse_known_args()[0]
"""What this process was started with."""
