"""gRPC unary calls."""

from __future__ import annotations

import base64
import time
from collections.abc import Mapping
from typing import Any

import grpc
from google.protobuf import json_format

from . import messages

_TIMEOUT_MS = 60_000
OPTIONS = [
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # A connection of its own: nothing of an earlier server at this address is reused.
    ("grpc.use_local_subchannel_pool", 1),
]


def exchange(address: str, step: Mapping[str, Any]) -> dict[str, Any]:
    """The answer to an `rpc` step: a response in protobuf's JSON form, or an error."""
    method = messages.find(step["rpc"])
    path = method.path if method else messages.unknown_path(step["rpc"])
    request = _encode(method, step.get("request", {})) if method else b""
    metadata = tuple(step.get("metadata", {}).items())
    timeout_s = step.get("timeout_ms", _TIMEOUT_MS) / 1000
    with grpc.insecure_channel(address, options=OPTIONS) as channel:
        call = channel.unary_unary(path).future(request, timeout=timeout_s, metadata=metadata)
        if "cancel_after_ms" in step:
            time.sleep(step["cancel_after_ms"] / 1000)
            call.cancel()
        try:
            wire = call.result()
        except grpc.FutureCancelledError:
            return {"error": {"code": "CANCELLED", "message": ""}}
        except grpc.RpcError as error:
            return {"error": {"code": error.code().name, "message": error.details()}}
    if method is None:
        return {"response": {"wire_base64": base64.b64encode(wire).decode()}}
    response = method.response.FromString(wire)
    return {"response": json_format.MessageToDict(response, preserving_proto_field_name=True)}


def _encode(method: messages.Method, request: dict[str, Any]) -> bytes:
    if "wire_base64" in request:
        return base64.b64decode(request["wire_base64"])
    wire: bytes = json_format.ParseDict(request, method.request()).SerializeToString()
    return wire
