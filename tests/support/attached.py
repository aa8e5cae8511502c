"""Attached models for tests: configurations, and servers that only this machine reaches."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from alipes.attached import AttachedModel, Attachment, InferenceRequest, InferenceResponse, Tensor

from support.waiting import TIMEOUT_S

LOCAL: Final[Mapping[str, Any]] = {"host": "127.0.0.1", "port": 0, "timeout": TIMEOUT_S}
"""Keywords of a server that only this machine reaches."""

Execute = Callable[[list[InferenceRequest]], Any]


def config(kind: str = "TYPE_FP32", **fields: Any) -> dict[str, Any]:
    """The configuration of a model from x to y, both of one axis, with further fields."""
    port = {"data_type": kind, "dims": [-1]}
    return {"input": [{"name": "x", **port}], "output": [{"name": "y", **port}], **fields}


def attached(name: str, *instances: object, **fields: Any) -> AttachedModel:
    """A model from x to y with these instances."""
    return AttachedModel(name, config(**fields), instances)


def attach(*models: AttachedModel, **options: Any) -> Attachment:
    """A server for these models, not started yet."""
    return Attachment(models, **{**LOCAL, **options})


def first_input(request: InferenceRequest) -> npt.NDArray[Any]:
    """The input of a request."""
    array: npt.NDArray[Any] = request.inputs()[0].as_numpy()
    return array


def answer(array: npt.ArrayLike) -> InferenceResponse:
    """A response with one output."""
    return InferenceResponse([Tensor("y", np.asarray(array))])


def each(function: Callable[[npt.NDArray[Any]], npt.ArrayLike]) -> Execute:
    """Executes a function for each request."""
    return lambda requests: [answer(function(first_input(request))) for request in requests]


def numbers(*values: float) -> npt.NDArray[np.float32]:
    """An input."""
    return np.array(values, np.float32)
