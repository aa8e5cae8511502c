"""CloudEvents of version 1.0 over HTTP, as requests and as answers to them.

Source: CloudEvents, HTTP protocol binding 1.0.2: binary and structured mode.
"""

from __future__ import annotations

import base64
import json
import os
import uuid
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any, Final

from alipes.compat.kserve.documents import dump, parse
from alipes.compat.kserve.errors import InvalidInput

__all__ = [
    "STRUCTURED",
    "create_response_cloudevent",
    "is_binary",
    "is_structured_cloudevent",
    "read_binary",
    "read_structured",
]

STRUCTURED: Final = "application/cloudevents+json"
"""The content type of an event that is a JSON object."""

_PREFIX: Final = "ce-"
_REQUIRED: Final = ("id", "source", "specversion", "type")
_VERSIONS: Final = ("1.0", "0.3")
_JSON: Final = (STRUCTURED, "application/json")


def is_structured_cloudevent(body: Mapping[str, Any]) -> bool:
    """Whether the object of a body is an event."""
    return all(name in body for name in (*_REQUIRED, "time", "data"))


def is_binary(headers: Mapping[str, str]) -> bool:
    """Whether headers, with names in small letters, are those of an event."""
    return all(_PREFIX + name in headers for name in _REQUIRED)


def read_binary(body: bytes, headers: Mapping[str, str]) -> tuple[Any, dict[str, Any]]:
    """The data of an event whose attributes are headers, and the attributes.

    Data that is no JSON stays bytes, unless the event says that it is JSON.

    Raises:
        InvalidInput: If the event is of another version, or its data is not the JSON that it says.
    """
    if headers[f"{_PREFIX}specversion"] not in _VERSIONS:
        raise InvalidInput(f"Cloud Event Exceptions: Found invalid specversion {headers[f'{_PREFIX}specversion']}")
    attributes: dict[str, Any] = {
        name.removeprefix(_PREFIX): value for name, value in headers.items() if name.startswith(_PREFIX)
    }
    if "content-type" in headers:
        attributes.setdefault("datacontenttype", headers["content-type"])
    try:
        return json.loads(body.decode()), attributes
    except (ValueError, RecursionError) as error:
        if attributes.get("content-type") in _JSON:
            raise InvalidInput(f"Failed to decode or parse binary json cloudevent: {error}") from None
        return body, attributes


def read_structured(document: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """The data of an event that is an object, and its attributes."""
    return document["data"], {name: value for name, value in document.items() if name != "data"}


def create_response_cloudevent(
    model_name: str, response: Any, req_attributes: Mapping[str, Any], binary_event: bool = False
) -> tuple[dict[str, str], bytes]:
    """The headers and the body of the event that answers another.

    Args:
        model_name: The model that answers.
        response: The data: what JSON can say, or bytes.
        req_attributes: Attributes of the request; they are the answer's too where `CE_MERGE` is `true`.
        binary_event: Whether attributes are headers, and the body is the data.

    The environment variables `CE_TYPE` and `CE_SOURCE` replace type and source.
    """
    merged = os.getenv("CE_MERGE", "false").lower() == "true"
    attributes = {
        "specversion": "1.0",
        **({name: value for name, value in req_attributes.items() if name not in ("id", "time")} if merged else {}),
        "id": str(uuid.uuid4()),
        "time": datetime.now(UTC).isoformat(),
        "type": os.getenv("CE_TYPE", "io.kserve.inference.response"),
        "source": os.getenv("CE_SOURCE", f"io.kserve.inference.{model_name}"),
    }
    if binary_event:
        attributes.pop("datacontenttype", None)
        attributes.pop("content-type", None)
        headers = {_PREFIX + name: str(value) for name, value in attributes.items()}
        return headers, response if isinstance(response, bytes) else dump(response)
    data = {"data_base64": base64.b64encode(response).decode()} if isinstance(response, bytes) else {"data": response}
    return {"content-type": STRUCTURED}, dump(attributes | data)


def read_json(body: bytes) -> tuple[Any, dict[str, Any]]:
    """What a JSON body says, and the attributes where it is an event.

    Raises:
        InvalidInput: If it is no JSON.
    """
    document = parse(body)
    if isinstance(document, dict) and is_structured_cloudevent(document):
        return read_structured(document)
    return document, {}
