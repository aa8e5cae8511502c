"""Reads what a SavedModel says of itself: its graphs' tags, its signatures, who wrote it. Runs nothing of it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Final

from alipes.signature import ANY, Port, Signature
from alipes.worker.frameworks.opened import reading

if TYPE_CHECKING:
    from alipes.worker.frameworks.opened import Opening

__all__ = ["find_graph", "find_signature", "ports_of", "read_without_tensorflow", "tag"]

_INSIDE: Final = "saved_model.pb"
_DEFAULT: Final = "serving_default"
_DATATYPES: Final = {
    "DT_BOOL": "BOOL",
    "DT_HALF": "FP16",
    "DT_FLOAT": "FP32",
    "DT_DOUBLE": "FP64",
    "DT_STRING": "BYTES",
    **{f"DT_INT{bits}": f"INT{bits}" for bits in (8, 16, 32, 64)},
    **{f"DT_UINT{bits}": f"UINT{bits}" for bits in (8, 16, 32, 64)},
}
"""TensorFlow's names of element types, and ours."""


def read_without_tensorflow(opening: Opening, folder: Path) -> Signature | None:
    """The wanted signature; `None` where it leaves open how many dimensions a tensor has.

    TensorFlow itself takes seconds to import, and only its messages are needed. They are imported without it, so this
    is for a process that does not import it later.

    Raises:
        LoadError: If the folder is no SavedModel, or lacks the signature.
    """
    with _messages_alone():
        graph = find_graph(opening, _content(opening, folder))
        return ports_of(opening, find_signature(opening, graph))


def find_graph(opening: Opening, content: bytes) -> Any:
    """The description of the graph with the wanted tag, without its weights.

    Args:
        opening: What the server says.
        content: What `saved_model.pb` holds.

    Raises:
        LoadError: If the content cannot be read, or there is no such graph.
    """
    messages: Any = import_module("tensorflow.core.protobuf.saved_model_pb2")
    with reading(opening):
        graphs = messages.SavedModel.FromString(content).meta_graphs
    wanted = tag(opening)
    tags = [sorted(graph.meta_info_def.tags) for graph in graphs]
    for graph, own in zip(graphs, tags, strict=True):
        if own == [wanted]:
            return graph
    known = "; ".join(", ".join(own) for own in tags) or "none"
    raise opening.refuse(f"it has no graph tagged '{wanted}', its tags are: {known}; name one in TF_GRAPH_TAG")


def tag(opening: Opening) -> str:
    """The tag of the graph that is served."""
    return opening.parameter("TF_GRAPH_TAG", "serve")


def find_signature(opening: Opening, graph: Any) -> Any:
    """The wanted signature of a graph, as the file has it.

    Raises:
        LoadError: If there is none of that name.
    """
    wanted = opening.parameter("TF_SIGNATURE_DEF", _DEFAULT)
    known = [name for name, one in graph.signature_def.items() if not name.startswith("__") and one.outputs]
    if wanted not in known:
        listed = ", ".join(sorted(known)) or "none"
        raise opening.refuse(
            f"it has no signature '{wanted}', its signatures are: {listed}; name one in TF_SIGNATURE_DEF, or save the "
            "model with signatures"
        )
    return graph.signature_def[wanted]


def ports_of(opening: Opening, signature: Any) -> Signature | None:
    """Inputs and outputs, sorted by name; `None` where the number of dimensions of one is not known.

    Raises:
        LoadError: If one is no plain tensor, or of a type that clients cannot send.
    """
    sides = [
        [_port(opening, side, name, infos[name]) for name in sorted(infos)]
        for side, infos in (("input", signature.inputs), ("output", signature.outputs))
    ]
    inputs, outputs = (tuple(port for port in ports if port is not None) for ports in sides)
    whole = all(port is not None for ports in sides for port in ports)
    return Signature(inputs, outputs) if whole else None


def _port(opening: Opening, side: str, name: str, info: Any) -> Port | None:
    encoding = info.WhichOneof("encoding")
    if encoding != "name":
        raise opening.refuse(f"its {side} '{name}' is no plain tensor, but {encoding}; give it a signature of tensors")
    types: Any = import_module("tensorflow.core.framework.types_pb2")
    kind = types.DataType.Name(info.dtype)
    if kind not in _DATATYPES:
        raise opening.refuse(f"its {side} '{name}' has element type {kind}, which clients cannot send; cast it")
    if info.tensor_shape.unknown_rank:
        return None
    return Port(name, _DATATYPES[kind], tuple(size.size if size.size >= 0 else ANY for size in info.tensor_shape.dim))


def _content(opening: Opening, folder: Path) -> bytes:
    file = folder / _INSIDE
    if not file.is_file():
        raise opening.refuse(f"it is no SavedModel, whose folder holds {_INSIDE}; save the model again")
    return file.read_bytes()


@contextmanager
def _messages_alone() -> Iterator[None]:
    """Lets modules below `tensorflow` be imported without what its own `__init__` imports."""
    if "tensorflow" in sys.modules:
        yield
        return
    spec = find_spec("tensorflow")
    if spec is None or spec.submodule_search_locations is None:
        raise ModuleNotFoundError("No module named 'tensorflow'", name="tensorflow")
    alone = ModuleType("tensorflow")
    alone.__path__ = list(spec.submodule_search_locations)
    sys.modules["tensorflow"] = alone
    try:
        yield
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "tensorflow"]:
            del sys.modules[name]
