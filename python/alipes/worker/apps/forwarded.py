"""The HTTP request as the steps of a model see it: the model in front of them sends it along, without its body.

It is a parameter of the call. Clients can send parameters as well, so it holds a secret that only the processes of one
server know; without it, a step sees an empty request, as one that came over V2 does.
"""

from __future__ import annotations

import hmac
import json
from typing import Any, Final

from alipes.worker.apps.exchange import Request

__all__ = ["parameters_of", "request_of", "set_secret"]

_PARAMETER: Final = "alipes.request"

_secret: list[str] = []


def set_secret(secret: str) -> None:
    """Takes the secret of this server's app; empty for none, and then no request is believed."""
    _secret[:] = [secret] if secret else []


def parameters_of(request: Request) -> dict[str, str]:
    """A request as parameters of a call."""
    document = {
        "secret": _secret[0] if _secret else "",
        "headers": request.headers,
        "query": request.query_string,
        "method": request.method,
        "content_type": request.content_type,
    }
    return {_PARAMETER: json.dumps(document)}


def request_of(parameters: str) -> Request:
    """The request that came along with a call; an empty one where none did.

    Args:
        parameters: Those of the call, as the text of a JSON object.
    """
    if _PARAMETER not in parameters or not _secret:
        return Request()
    try:
        document: dict[str, Any] = json.loads(json.loads(parameters)[_PARAMETER])
        if not hmac.compare_digest(str(document.pop("secret")).encode(), _secret[0].encode()):
            return Request()
        return Request(**document)
    except (KeyError, TypeError, ValueError, RecursionError):  # a client's parameter of this name
        return Request()
