"""Inputs from files: one JSON document with steps, or a folder with one file for each input."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from alipes.compat.perf_analyzer.data_values import TensorReader, lengths_and_texts
from alipes.compat.perf_analyzer.dataset import Dataset, Step
from alipes.compat.perf_analyzer.failures import Failed
from alipes.compat.perf_analyzer.generated_data import filled_shape
from alipes.compat.perf_analyzer.model import Model, Port
from alipes.compat.perf_analyzer.settings import SentData

__all__ = ["document_streams", "from_files"]

_MAX_BYTES: Final = 2 << 30
"""Largest file that is read."""

_MIXED: Final = (
    "Inconsistency in input-data provided. Can not have a combination of objects and arrays inside of the Data array"
)

Document = Mapping[str, Any]


def from_files(model: Model, data: SentData, paths: Sequence[Path]) -> Dataset:
    """The steps of documents, or the one step of a folder.

    Raises:
        Failed: If a file does not hold what the model takes.
    """
    try:
        if len(paths) == 1 and paths[0].is_dir():
            return Dataset([[_folder_step(model, data, paths[0])]])
        return _documents(model, data, paths)
    except OSError as error:
        raise _failed(f"failed to open file for reading provided data: {error}") from error


def document_streams(path: Path) -> tuple[list[list[Document]], list[list[Document]]]:
    """The streams of a document, and those of its validation data; steps without validation data have an empty one.

    Raises:
        Failed: If it is no such document.
        OSError: If it cannot be read.
    """
    return _split(_document(path))


def _split(document: Document) -> tuple[list[list[Document]], list[list[Document]]]:
    steps = document.get("data")
    if not isinstance(steps, list):
        raise _failed("The json file doesn't contain data field")
    streams = _streams(steps)
    if not document.get("validation_data"):
        return streams, [[{} for _ in stream] for stream in streams]
    expected = _streams(document["validation_data"])
    if [len(stream) for stream in expected] != [len(stream) for stream in streams]:
        raise _failed("The 'validation_data' field doesn't align with 'data' field in the json file")
    return streams, expected


def _of_all(paths: Sequence[Path]) -> list[tuple[list[Document], list[Document]]]:
    """The streams of documents, each with its validation data. Documents that are lists of steps are one stream."""
    pairs = list[tuple[list[Document], list[Document]]]()
    kinds = set[bool]()
    for path in paths:
        document = _document(path)
        streams, expected = _split(document)
        is_flat = any(isinstance(entry, dict) for entry in document["data"])
        kinds.add(is_flat)
        if len(kinds) > 1:
            raise _failed(_MIXED)
        if is_flat and pairs:
            pairs[0][0].extend(streams[0])
            pairs[0][1].extend(expected[0])
        else:
            pairs.extend(zip(streams, expected, strict=True))
    return pairs


def _documents(model: Model, data: SentData, paths: Sequence[Path]) -> Dataset:
    reader = TensorReader(data.shapes)
    streams: list[list[Step]] = []
    expected: list[list[Step]] = []
    for number, (stream, known) in enumerate(_of_all(paths)):
        places = [f"( Location stream id: {number}, step id: {step})" for step in range(len(stream))]
        streams.append([_inputs(model, reader, *pair) for pair in zip(stream, places, strict=True)])
        expected.append([_outputs(model, reader, *pair) for pair in zip(known, places, strict=True)])
    if not any(streams):
        raise _failed("the data field holds no step")
    steps = f" with {len(streams[0])} step/steps" if len(streams) == 1 else ""
    message = f" Successfully read data for {len(streams)} stream/streams{steps}."
    is_known = any(outputs for stream in expected for outputs in stream)
    return Dataset(streams, expected if is_known else [], message)


def _document(path: Path) -> Document:
    if path.stat().st_size > _MAX_BYTES:
        raise _failed(f"'{path}' has more than {_MAX_BYTES} bytes")
    try:
        document = json.loads(path.read_bytes())
    except ValueError as error:
        raise _failed(f"failed to parse the specified json file for reading provided data: {error}") from error
    if not isinstance(document, dict):
        raise _failed("The json file doesn't contain data field")
    return document


def _streams(steps: object) -> list[list[Document]]:
    """Steps, or lists of steps, as lists of steps."""
    entries: list[Any] = steps if isinstance(steps, list) else [steps]
    if all(isinstance(entry, dict) for entry in entries):
        return [entries] if entries else []
    if all(isinstance(entry, list) and all(isinstance(step, dict) for step in entry) for entry in entries):
        return entries
    raise _failed(_MIXED)


def _inputs(model: Model, reader: TensorReader, step: Document, place: str) -> Step:
    for port in model.inputs.values():
        if port.name not in step and not port.optional:
            raise _failed(f"missing tensor {port.name} {place}")
    return dict(_tensors(model, reader, step, model.inputs, place))


def _outputs(model: Model, reader: TensorReader, step: Document, place: str) -> Step:
    return dict(_tensors(model, reader, step, model.outputs, place))


def _tensors(
    model: Model, reader: TensorReader, step: Document, ports: Mapping[str, Port], place: str
) -> Iterator[tuple[str, Any]]:
    for name, value in step.items():
        if name not in ports:
            raise _failed(f"The input or output '{name}' is not found in the model configuration")
        yield name, reader.read(ports[name], value, place)


def _folder_step(model: Model, data: SentData, folder: Path) -> Step:
    """The step whose tensors are files that bear the names of inputs: raw bytes, or text with one element a line."""
    step = {}
    for port in model.inputs.values():
        path = folder / port.name
        if not path.is_file():
            if port.optional:
                continue
            raise _failed(f"failed to open file '{path}'")
        shape = filled_shape(port, data)
        content = path.read_bytes()
        if port.spec.datatype == "BYTES":
            step[port.name] = _texts(port, content, shape)
            continue
        size = math.prod(shape) * (2 if port.spec.datatype == "BF16" else port.spec.dtype.itemsize)
        if len(content) != size:
            raise _failed(f"provided data for input {port.name} has byte size {len(content)}, expect {size}")
        dtype = np.dtype(np.uint16) if port.spec.datatype == "BF16" else port.spec.dtype
        step[port.name] = np.frombuffer(content, dtype).reshape(shape)
    return step


def _texts(port: Port, content: bytes, shape: tuple[int, ...]) -> Any:
    count = math.prod(shape)
    elements = lengths_and_texts(content, count) or content.splitlines()
    if len(elements) != count:
        raise _failed(f"provided data for input {port.name} has {len(elements)} elements, expect {count}")
    array = np.empty(count, np.object_)
    array[:] = elements
    return array.reshape(shape)


def _failed(message: str) -> Failed:
    return Failed(f"error: Failed to init manager inputs: {message}\n")
