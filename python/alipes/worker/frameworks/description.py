"""What a model's file says of itself, and what running it shows, for a load that completes a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from alipes.row_proof import RowProof, prove_rows
from alipes.signature import Port, Signature
from alipes.worker.frameworks.opened import OpenedModel, Opening
from alipes.worker.frameworks.programs import checked, opened

__all__ = ["describe_file"]


def describe_file(framework: Mapping[str, Any], opening: Opening, *, prove: bool) -> tuple[Signature, RowProof | None]:
    """The inputs and outputs of a file; whether rows of several requests may be run together, where that is asked.

    A program that can tell the signature without opening the model, which may take long, has a `read_signature` of its
    own.

    Raises:
        LoadError: If the file cannot be opened, or does not say.
    """
    signature = checked(framework, opening, _signature)
    if signature is None:
        raise opening.refuse(
            "the file does not say which inputs and outputs the model has; list them in config.pbtxt, each with name, "
            "data_type and dims"
        )
    if not (prove and signature.can_batch):
        return signature, None
    model = checked(framework, replace(opening, config=_completed(opening, signature)), opened)
    try:
        # Without joint calls every request runs by itself, whatever its rows are; so does one of a sequence.
        return signature, _prove(model, signature) if model.joins and not model.hidden else None
    finally:
        model.close()


def _signature(program: Any, opening: Opening) -> Signature | None:
    if hasattr(program, "read_signature"):
        found: Signature | None = program.read_signature(opening)
        return found
    model = opened(program, opening)
    model.close()
    return model.signature


def _prove(model: OpenedModel, signature: Signature) -> RowProof:
    names = [port.name for port in signature.outputs]

    def run(arrays: dict[str, Any]) -> dict[str, Any]:
        found = model.run(arrays)
        return {name: found[name] for name in names}

    return prove_rows(run, signature)


def _completed(opening: Opening, signature: Signature) -> dict[str, Any]:
    """The configuration as it will be if rows are independent."""
    sides = {side: [_tensor(port) for port in signature.side(side)] for side in ("input", "output")}
    return {"max_batch_size": 2, **sides, **{key: value for key, value in opening.config.items() if value}}


def _tensor(port: Port) -> dict[str, Any]:
    kind = "STRING" if port.datatype == "BYTES" else port.datatype
    return {"name": port.name, "data_type": f"TYPE_{kind}", "dims": list(port.shape[1:])}
