"""The model that is measured, as its server describes it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from alipes.client import Client
from alipes.client.signature import Document, TensorSpec
from alipes.compat.perf_analyzer.failures import Failed
from alipes.compat.perf_analyzer.settings import Target
from alipes.errors import AlipesError, TransportError

__all__ = ["Model", "Port", "server_words"]

_NO_SERVER: Final = {
    "http": "HTTP client failed: Couldn't connect to server",
    "grpc": "failed to connect to all addresses",
}
_MOST_COMPOSING: Final = 256
"""Models of an ensemble whose statistics are read."""


@dataclass(frozen=True, slots=True)
class Port:
    """An input or an output.

    Attributes:
        spec: Name, datatype, and the shape without the batch axis.
        optional: Whether a request may leave it out.
    """

    spec: TensorSpec
    optional: bool = False

    @property
    def name(self) -> str:
        """Its name."""
        return self.spec.name

    @property
    def shape(self) -> tuple[int, ...]:
        """Its sizes for one row; -1 is any."""
        return self.spec.shape


@dataclass(frozen=True, slots=True)
class Model:
    """What a run has to know of a model.

    Attributes:
        name: Its name.
        version: The one that is asked; empty where the server chooses.
        inputs: By name.
        outputs: By name.
        max_batch: Rows of a request; 0 where there is no batch axis.
        is_decoupled: Whether a request may have several responses.
        is_sequence: Whether requests of a sequence belong together.
        has_cache: Whether responses are cached.
        is_ensemble: Whether it is a graph of others.
        composing: Names and versions of the models that it calls; a version is empty where the latest counts.
    """

    name: str
    version: str
    inputs: Mapping[str, Port]
    outputs: Mapping[str, Port]
    max_batch: int = 0
    is_decoupled: bool = False
    is_sequence: bool = False
    has_cache: bool = False
    is_ensemble: bool = False
    composing: Sequence[tuple[str, str]] = ()

    @classmethod
    def ask(cls, client: Client, target: Target) -> Model:
        """The model of a server of the V2 protocol.

        Raises:
            Failed: If the server is not there, does not know the model, or answers with what describes none.
        """
        name, version = target.model, target.version
        try:
            metadata = client.metadata(name, version)
        except AlipesError as error:
            raise Failed(f"error: failed to get model metadata: {server_words(error, target)}\n") from error
        try:
            config = client.config(name, version)
            composing = [*_steps(client, config, []), *target.composing]
            return cls.read(metadata, config, version, composing)
        except AlipesError as error:
            raise Failed(f"error: failed to get model config: {server_words(error, target)}\n") from error
        except (AttributeError, LookupError, TypeError, ValueError) as error:
            words = f"what {target.address} answers describes no model: is it a server of the V2 protocol?"
            raise Failed(f"error: failed to get model config: {words}\n") from error

    @classmethod
    def read(
        cls, metadata: Document, config: Document, version: str = "", composing: Sequence[tuple[str, str]] = ()
    ) -> Model:
        """The model of its documents."""
        max_batch = int(config.get("max_batch_size", 0))
        optional = {str(port["name"]) for port in config.get("input", ()) if port.get("optional", False)}
        inputs = _ports(metadata.get("inputs", ()), max_batch > 0, optional)
        outputs = _ports(metadata.get("outputs", ()), max_batch > 0, set())
        return cls(
            str(metadata["name"]),
            version,
            inputs,
            outputs,
            max_batch,
            bool(config.get("model_transaction_policy", {}).get("decoupled", False)),
            "sequence_batching" in config,
            bool(config.get("response_cache", {}).get("enable", False)),
            "ensemble_scheduling" in config,
            composing,
        )


def server_words(error: AlipesError, target: Target) -> str:
    """What went wrong, in the words of the original's clients where nobody answered."""
    if isinstance(error, TransportError) and not error.reached:
        words = _NO_SERVER[target.protocol]
        return words if target.protocol == "http" else f"{words}; last error: {error}"
    return str(error).partition("; the server has ")[0]


def _ports(documents: Sequence[Any], takes_batches: bool, optional: set[str]) -> dict[str, Port]:
    ports = {}
    for document in documents:
        spec = TensorSpec.read(document)
        rows = TensorSpec(spec.name, spec.datatype, spec.shape[1:] if takes_batches else spec.shape)
        ports[spec.name] = Port(rows, spec.name in optional)
    return ports


def _steps(client: Client, config: Document, known: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """The models of an ensemble, and those of ensembles in it, each once."""
    for step in config.get("ensemble_scheduling", {}).get("step", ()):
        version = int(step.get("model_version", -1))
        member = (str(step["model_name"]), str(version) if version > 0 else "")
        if member in known or len(known) >= _MOST_COMPOSING:
            continue
        known.append(member)
        _steps(client, client.config(*member), known)
    return known
