"""Finds the model on the server: live, loaded if need be, and what it takes."""

from __future__ import annotations

from typing import Final, NamedTuple

from alipes.client.inference.calls import Calls
from alipes.client.inference.stream_signature import StreamSignature, read_stream_signature
from alipes.client.signature import Document
from alipes.client.tls import Tls
from alipes.client.wrong_port import advice
from alipes.config.nearest import nearest_first
from alipes.errors import AlipesError, InferError, NotReady, TransportError, Unsupported

__all__ = ["Found", "find_model"]

_POLLING: Final = "polling is enabled"
"""The end of what a server says that looks after its repository itself."""


class Found(NamedTuple):
    """A model that can answer."""

    version: int
    metadata: Document
    config: Document
    signature: StreamSignature


def find_model(  # noqa: PLR0913 - what each constructor was given
    calls: Calls,
    address: str,
    model: str,
    version: int,
    batch_size: int,
    tls: Tls | None = None,
    *,
    missing: type[InferError] = NotReady,
) -> Found:
    """Tell what is known of a model that answers, loading it where it is not loaded.

    Args:
        calls: Asks the server.
        address: The server's, for messages.
        model: The model's name.
        version: Its version; -1 is the latest that is served.
        batch_size: What stands for sizes that the server leaves open.
        tls: What the client knows of encryption.
        missing: The error for a model that the server does not have.

    Raises:
        TransportError: If the server cannot be reached or is not live; a `RuntimeError`.
        Unsupported: If what answers there knows nothing of inference; a `RuntimeError`.
        NotReady: If the model cannot be loaded, or has no such version; a `RuntimeError`.
    """
    _check_live(calls, address, tls)
    wanted = "" if version == -1 else str(version)
    refusal = None if _is_ready(calls, model, wanted) else _load(calls, model)
    if not _is_ready(calls, model, wanted):
        known = _known(calls)
        if known and model not in known:
            text = f'Model "{model}" is not at {address}: the server has {nearest_first(model, known)}'
            raise missing(text, model=model) from refusal
        raise NotReady(_why(calls, address, model, version, refusal), model=model) from refusal
    metadata = calls.metadata(model, wanted)
    if version == -1:
        version = max(int(one) for one in metadata["versions"])
    config = calls.config(model, str(version))

    def lookup(name: str, number: int) -> Document:
        return calls.config(name, "" if number == -1 else str(number))

    return Found(version, metadata, config, read_stream_signature(metadata, config, lookup, batch_size))


def _check_live(calls: Calls, address: str, tls: Tls | None) -> None:
    try:
        live = calls.is_live()
    except (TransportError, Unsupported) as error:
        strange = isinstance(error, Unsupported) or (type(error) is TransportError and error.reached)
        advised = advice(address, "grpc", tls) if strange else None
        text = f"{error}" if advised is None else f"{error}; {advised}"
        raise type(error)(f"Couldn't connect to server at {address}: {text}") from error
    if not live:
        raise TransportError(f"Server at url {address} isn't live")


def _is_ready(calls: Calls, model: str, version: str) -> bool:
    try:
        return calls.is_ready(model, version)
    except TransportError:
        raise
    except AlipesError:  # a version that is not there is an error to some servers
        return False


def _load(calls: Calls, model: str) -> AlipesError | None:
    """Asks the server to load the model; returns why it did not."""
    try:
        calls.load(model)
    except TransportError as error:
        if _POLLING not in str(error):
            raise
        return error
    except AlipesError as error:
        return error
    return None


def _why(calls: Calls, address: str, model: str, version: int, refusal: AlipesError | None) -> str:
    loads_on_request = refusal is None or not (_POLLING in str(refusal) or "explicit" in str(refusal))
    if not loads_on_request and not _is_ready(calls, model, ""):
        return (
            f'Model "{model}" is not ready at {address}, and the server loads no models when asked ({refusal}): '
            "start it with --model-control-mode=explicit, or wait until it has loaded the model"
        )
    if refusal is not None and loads_on_request:
        return f'Model "{model}" could not be loaded at {address}: {refusal}'
    try:
        versions = ", ".join(str(one) for one in calls.metadata(model, "")["versions"])
    except AlipesError as error:
        return f'Model "{model}" is not ready at {address}: {error}'
    return f'Model "{model}" is available but not version {version}: the server at {address} has {versions}'


def _known(calls: Calls) -> list[str]:
    """The models that the server knows of; none where it does not say."""
    try:
        return calls.models()
    except AlipesError:
        return []
