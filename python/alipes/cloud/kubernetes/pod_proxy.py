"""The servers of pods, reached through the API server: no address of a pod has to be reachable from here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Final

from alipes.cloud.kubernetes.api import Api
from alipes.cloud.kubernetes.resources import PODS, item_path

__all__ = ["PodProxy"]

_CALL_S: Final = 5.0
"""The longest wait for one pod: one that hangs must not keep the others from being read."""


class PodProxy:
    """The servers of a namespace's pods, at one port over HTTP. It needs the right to get and create `pods/proxy`."""

    def __init__(self, api: Api, namespace: str, port: int, headers: Mapping[str, str] | None = None) -> None:
        """Takes where they are, and asks nothing yet.

        Args:
            api: The API server.
            namespace: Of the pods.
            port: Of HTTP.
            headers: Headers of each request, such as one with a key.
        """
        self._api = api
        self._namespace = namespace
        self._port = port
        self._headers = dict(_passed_on(name, value) for name, value in (headers or {}).items())

    def call(self, pod: str, path: str, body: bytes | None = None) -> bytes:
        """The answer of a pod's server.

        Args:
            pod: The name of the pod.
            path: What is asked for, such as `/v2/models/m/traffic`.
            body: The JSON document of a POST; None is a GET.

        Raises:
            NoAnswer: If it does not answer, or not now.
            Refused: If it refuses, or the API server does; with the reason `NotFound` where the pod is gone.
        """
        place = f"{item_path(PODS, self._namespace, f'{pod}:{self._port}')}/proxy{path}"
        document = None if body is None else json.loads(body)
        return self._api.proxied(place, document, self._headers, f"pod {pod}", _CALL_S)


def _passed_on(name: str, value: str) -> tuple[str, str]:
    """A header as it reaches a pod: `Authorization` is for the API server, so a key is sent as `X-Api-Key`."""
    is_key = name.lower() == "authorization" and value.startswith("Bearer ")
    return ("X-Api-Key", value.removeprefix("Bearer ")) if is_key else (name, value)
