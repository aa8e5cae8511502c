"""Takes the states of a live sequence out of a server and puts them into another, so that a stream goes on there."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection, HTTPException
from typing import Any, Final
from urllib.parse import quote

from alipes.errors import (
    AlipesError,
    InferError,
    Internal,
    InvalidArgument,
    NotFound,
    NotReady,
    TransportError,
    Unsupported,
)
from alipes.local_ports import resolve

__all__ = ["put_states", "take_states"]

_TIMEOUT_S: Final = 60.0
"""Longest wait for a server that has nothing to compute."""

_MAX_STEPS: Final = 1024
"""Most models of an ensemble, and of those within it: a server that names more is no server of ours."""

_MAX_ANSWER_BYTES: Final = 2**31 - 1
"""Largest answer that is read: no state is larger, since no tensor is."""

_NATIVE: Final = frozenset({"snapshotter", "averager"})
"""Backends that are states and nothing else."""

_STATES_IN_CONFIG: Final = "onnxruntime"
"""The backend whose models may have states in their configuration, which the server keeps beside their instances."""

_ERRORS: Final[Mapping[int, type[InferError]]] = {
    400: InvalidArgument,
    404: NotFound,
    501: Unsupported,
    503: NotReady,
}


def take_states(address: str, model: str, sequence: int | str, *, timeout_s: float = _TIMEOUT_S) -> dict[str, bytes]:
    """Take what a live sequence has left in a model, or in all models of an ensemble that keep states.

    Call it between the requests of the sequence: while one is under way the server refuses.

    Args:
        address: The server's HTTP endpoint, `host:port`.
        model: A snapshotter, an averager, an ONNX model with states in its configuration, or an ensemble of such among
            others.
        sequence: The sequence, by the number or text that its requests carry.
        timeout_s: Longest wait for an answer.

    Returns:
        States by model, as bytes that are written to a file as they are. The sequence lives on in the server.

    Raises:
        NotFound: If there is no such model or sequence.
        NotReady: If a request of the sequence is under way.
        Unsupported: If a model keeps states that no server gives away.
        TransportError: If the server cannot be reached.
    """
    endpoint = _HttpEndpoint(address, timeout_s)
    return {path: endpoint.call("GET", _state_path(path, sequence)) for path in _stateful_models(endpoint, model)}


def put_states(
    address: str, model: str, sequence: int | str, states: Mapping[str, bytes], *, timeout_s: float = _TIMEOUT_S
) -> None:
    """Have a sequence go on from states that were taken: its next request needs no START.

    All of them are put, or none: where one is refused, the others become what they were.

    Args:
        address: The server's HTTP endpoint, `host:port`.
        model: The model, or the ensemble.
        sequence: The sequence; it need not be called as it was, and need not be live.
        states: What `take_states` gave for a model of the same name.
        timeout_s: Longest wait for an answer.

    Raises:
        InvalidArgument: If a state is missing, or is none of its model.
        NotReady: If a request of the sequence is under way, or there is no slot left.
        TransportError: If the server cannot be reached. What was put may stay then.
    """
    endpoint = _HttpEndpoint(address, timeout_s)
    stateful = list(_stateful_models(endpoint, model))
    if set(stateful) != set(states):
        raise InvalidArgument(
            f"model '{model}' keeps states in {_listed(stateful)}, but those given are of {_listed(states)}",
            model=model,
        )
    before = {path: _present(endpoint, path, sequence) for path in stateful} if len(stateful) > 1 else {}
    put: list[str] = []
    try:
        for path in stateful:
            endpoint.call("PUT", _state_path(path, sequence), states[path])
            put.append(path)
    except AlipesError as error:
        for path in reversed(put):
            _put_back(endpoint, path, sequence, before[path], error)
        raise


def _present(endpoint: _HttpEndpoint, path: str, sequence: int | str) -> bytes | None:
    """The state of a sequence; `None` where it is not live."""
    try:
        return endpoint.call("GET", _state_path(path, sequence))
    except NotFound:
        return None


def _put_back(endpoint: _HttpEndpoint, path: str, sequence: int | str, state: bytes | None, error: AlipesError) -> None:
    """Makes the state of a model what it was; where that fails too, the error says so."""
    try:
        if state is None:
            endpoint.call("DELETE", _state_path(path, sequence))
        else:
            endpoint.call("PUT", _state_path(path, sequence), state)
    except AlipesError as problem:
        error.add_note(f"the new state of model '{path}' stays: {problem}")


def _stateful_models(endpoint: _HttpEndpoint, model: str) -> Iterator[str]:
    """Paths of the models that keep states, each once: `name`, or `name/versions/2` where an ensemble says so."""
    waiting, seen = [model], {model}
    found = 0
    while waiting:
        path = waiting.pop(0)
        config: dict[str, Any] = json.loads(endpoint.call("GET", f"{_model_path(path)}/config"))
        steps = config.get("ensemble_scheduling", {}).get("step", [])
        for step in steps:
            version = int(step.get("model_version", -1))
            name = step["model_name"] if version < 0 else f"{step['model_name']}/versions/{version}"
            if name not in seen:
                seen.add(name)
                waiting.append(name)
        if len(seen) > _MAX_STEPS:
            raise Internal(f"ensemble '{model}' has more than {_MAX_STEPS} models", model=model)
        batching = config.get("sequence_batching")
        if config.get("backend") in _NATIVE or (
            config.get("backend") == _STATES_IN_CONFIG and (batching or {}).get("state")
        ):
            found += 1
            yield path
        elif batching is not None:
            raise Unsupported(
                f"model '{path}' keeps states that no server gives away: they are given of snapshotters, of averagers "
                "and of ONNX models with states in their configuration",
                model=path,
            )
    if not found:
        raise Unsupported(f"model '{model}' keeps no states", model=model)


def _model_path(path: str) -> str:
    return f"/v2/models/{quote(path)}"


def _state_path(path: str, sequence: int | str) -> str:
    named = str(sequence) if isinstance(sequence, int) else f'"{sequence}"'
    return f"{_model_path(path)}/sequences/{quote(named, safe='')}/state"


def _listed(names: Any) -> str:
    return ", ".join(f"'{name}'" for name in sorted(names)) or "none"


class _HttpEndpoint:
    """The HTTP endpoint of a server, one call at a time."""

    def __init__(self, address: str, timeout_s: float) -> None:
        """Connects to nothing yet."""
        self._address, self._timeout_s = resolve(address), timeout_s

    def call(self, method: str, path: str, body: bytes | None = None) -> bytes:
        """The body of the answer.

        Raises:
            InferError: Of the kind that the server's refusal is.
            TransportError: If there is no answer.
        """
        connection = HTTPConnection(self._address, timeout=self._timeout_s)
        try:
            connection.request(method, path, body)
            answer = connection.getresponse()
            content = answer.read(_MAX_ANSWER_BYTES)
        except (OSError, HTTPException) as error:
            raise TransportError(f"cannot ask the server at {self._address}: {error}") from error
        finally:
            connection.close()
        if answer.status != 200:
            raise _ERRORS.get(answer.status, Internal)(_message(answer.status, content))
        return content


def _message(status: int, content: bytes) -> str:
    try:
        return str(json.loads(content)["error"])
    except (ValueError, KeyError, TypeError):
        return f"the server answered with status {status}"
