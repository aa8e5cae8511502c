"""What models read out of a payload, and what they make of a result: `get_predict_input`, `get_predict_response`."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

import numpy as np

from alipes.compat.kserve.errors import InvalidInput
from alipes.compat.kserve.infer_request import InferRequest
from alipes.compat.kserve.infer_response import InferResponse
from alipes.compat.kserve.numpy_codec import from_np_dtype
from alipes.compat.kserve.parameters import value_of
from alipes.compat.kserve.tensors import InferOutput

if TYPE_CHECKING:
    import pandas

__all__ = ["generate_uuid", "get_predict_input", "get_predict_response"]


def generate_uuid() -> str:
    """A new id."""
    return str(uuid.uuid4())


def get_predict_input(payload: dict[str, Any] | InferRequest, columns: list[Any] | None = None) -> Any:
    """What a payload holds: an array; a table for instances with names; a list for texts.

    Args:
        payload: The body of a V1 request, or a V2 request, of which the first input counts. Its parameter
            `content_type` asks for a table of all of them by `pd`.
        columns: Columns of the table, where it is one of V1.
    """
    if isinstance(payload, dict):
        return _instances(payload["inputs"] if "inputs" in payload else payload["instances"], columns)
    if not isinstance(payload, InferRequest):
        return None
    if payload.parameters and value_of(payload.parameters.get("content_type")) == "pd":
        return payload.as_dataframe()
    first = payload.inputs[0]
    data = first.data
    if first.datatype == "BYTES" and data is not None and len(data) > 0 and isinstance(data[0], str):
        return data
    return first.as_numpy()


def _instances(instances: Any, columns: list[Any] | None) -> Any:
    if len(instances) == 0:
        return np.array(instances)
    first = instances[0]
    if isinstance(first, dict) or (isinstance(first, list) and first and isinstance(first[0], dict)):
        import pandas

        tables = [pandas.DataFrame(instance, columns=columns) for instance in instances]
        return pandas.concat(tables, axis=0)
    return instances if isinstance(first, str) else np.array(instances)


def get_predict_response(
    payload: dict[str, Any] | InferRequest, result: Any, model_name: str
) -> dict[str, Any] | InferResponse:
    """A result in the form of its request: `predictions` for V1, a response with one output, or one a column, for V2.

    Args:
        payload: The request.
        result: An array, a list or a table.
        model_name: The model that gave it.

    Raises:
        InvalidInput: If the payload is neither.
    """
    if isinstance(payload, dict):
        return {"predictions": _rows(result)}
    if not isinstance(payload, InferRequest):
        raise InvalidInput(f"unsupported payload type {type(payload)}")
    outputs = []
    for name, array in _columns(result):
        datatype = from_np_dtype(array.dtype)
        output = InferOutput(name, list(array.shape), datatype or "")
        output.set_data_from_numpy(array, binary_data=payload.use_binary_outputs)
        outputs.append(output)
    return InferResponse(
        response_id=payload.id or generate_uuid(),
        model_name=model_name,
        infer_outputs=outputs,
        use_binary_outputs=payload.use_binary_outputs,
        requested_outputs=payload.request_outputs,
    )


def _rows(result: Any) -> Any:
    if _is_table(result):
        return [row.to_dict() for _, row in result.iterrows()]
    return result.tolist() if isinstance(result, np.ndarray) else result


def _columns(result: Any) -> list[tuple[str, Any]]:
    """The outputs of a result, by name."""
    if _is_table(result):
        table: pandas.DataFrame = result
        return [(str(name), table[name].to_numpy()) for name in table.columns]
    if isinstance(result, list) and result and isinstance(result[0], str):
        return [("output-0", np.array(result, dtype=np.object_))]
    return [("output-0", np.array(result) if isinstance(result, list) else result)]


def _is_table(result: Any) -> bool:
    # A script that has a table has imported pandas.
    return type(result).__name__ == "DataFrame" and hasattr(result, "iterrows")
