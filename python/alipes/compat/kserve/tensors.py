"""Tensors of requests and responses, as the KServe SDK has them: `InferInput`, `InferOutput`, `RequestedOutput`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from alipes.compat.kserve.constants import GRPC_CONTENT_DATATYPE_MAPPINGS
from alipes.compat.kserve.errors import InferenceError, InvalidInput
from alipes.compat.kserve.numpy_codec import from_np_dtype, to_np_dtype
from alipes.compat.kserve.parameters import to_grpc_parameters
from alipes.compat.kserve.tensor_bytes import deserialize_bytes_tensor, serialized

__all__ = ["InferInput", "InferOutput", "RequestedOutput", "get_content"]

_SIZE: Final = "binary_data_size"


class _Tensor:
    """A named tensor: its elements as a list or an array, or as the bytes that are sent."""

    _no_type: str
    _no_list: str
    _no_field: str

    def __init__(
        self,
        name: str,
        shape: list[int],
        datatype: str,
        data: Any = None,
        parameters: Any = None,
    ) -> None:
        """Takes a tensor.

        Args:
            name: Its name.
            shape: Its sizes.
            datatype: A datatype of the V2 protocol, in any case.
            data: Its elements, flat or nested; none where bytes follow by `set_data_from_numpy`.
            parameters: Its parameters.
        """
        self._name = name
        self._shape = shape
        self._datatype = datatype.upper()
        self._parameters = parameters
        self._data = data
        self._raw_data: bytes | None = None

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def datatype(self) -> str:
        """Its datatype."""
        return self._datatype

    @property
    def data(self) -> Any:
        """Its elements; None where it has bytes in their place."""
        return self._data

    @data.setter
    def data(self, data: Any) -> None:
        self._data = data

    @property
    def shape(self) -> list[int]:
        """Its sizes."""
        return self._shape

    @shape.setter
    def shape(self, shape: list[int]) -> None:
        self._shape = shape

    @property
    def parameters(self) -> Any:
        """Its parameters, by name."""
        return self._parameters

    @parameters.setter
    def parameters(self, params: Any) -> None:
        self._parameters = params

    def as_numpy(self) -> npt.NDArray[Any]:
        """Its elements as an array of its shape.

        Raises:
            InvalidInput: If its datatype is none of the protocol's.
            ValueError: If the elements do not fit the shape.
        """
        dtype = to_np_dtype(self.datatype)
        if dtype is None:
            raise InvalidInput(self._no_type)
        if self._raw_data is None:
            array = np.array(self._data, dtype=dtype)
        elif self.datatype == "BYTES":
            array = deserialize_bytes_tensor(self._raw_data)
        else:
            array = np.frombuffer(self._raw_data, dtype=dtype)
        return array.reshape(self._shape)

    def _set(self, array: npt.NDArray[Any], binary_data: bool) -> None:
        if not isinstance(array, np.ndarray):
            raise InferenceError("input_tensor must be a numpy array")
        dtype = from_np_dtype(array.dtype)
        if self._datatype != dtype:
            raise InferenceError(f"got unexpected datatype {dtype} from numpy array, expected {self._datatype}")
        if list(self._shape) != list(array.shape):
            found, expected = str(array.shape)[1:-1], str(self._shape)[1:-1]
            raise InferenceError(f"got unexpected numpy array shape [{found}], expected [{expected}]")
        if binary_data:
            self._data = None
            self._raw_data = serialized(array) if self._datatype == "BYTES" else array.tobytes()
            self._parameters = {**(self._parameters or {}), _SIZE: len(self._raw_data)}
            return
        if self._parameters:
            self._parameters.pop(_SIZE, None)
        self._raw_data = None
        values = array.ravel().tolist()
        self._data = [_text(one) for one in values] if self._datatype == "BYTES" else values

    def to_message(self, raw: list[bytes]) -> dict[str, Any]:
        """The fields of its message. What is sent as bytes is added to `raw`, which stands beside the tensors there.

        Raises:
            InvalidInput: If its elements are no list, or its datatype has no field in a message.
        """
        if isinstance(self.data, np.ndarray):
            self._set(self.data, True)
        fields: dict[str, Any] = {"name": self.name, "shape": self.shape, "datatype": self.datatype}
        if self.parameters:
            fields["parameters"] = to_grpc_parameters(self.parameters)
        if self._raw_data is not None:
            raw.append(self._raw_data)
            return fields
        if not isinstance(self.data, list):
            raise InvalidInput(self._no_list)
        field = GRPC_CONTENT_DATATYPE_MAPPINGS.get(self.datatype)
        if field is None:
            raise InvalidInput(self._no_field)
        self.data = [value.encode() if isinstance(value, str) else value for value in self.data]
        fields["contents"] = {field: self.data}
        return fields

    def to_dict(self) -> dict[str, Any]:
        """Its fields."""
        return {
            "name": self.name,
            "shape": self.shape,
            "datatype": self.datatype,
            "data": self.data,
            "parameters": self.parameters,
        }

    def __eq__(self, other: object) -> bool:
        """Whether all fields are equal."""
        if not isinstance(other, type(self)):
            return False
        return self.to_dict() == other.to_dict() and self._raw_data == other._raw_data

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Its fields, as logs of the SDK show them."""
        return (
            f'"name": "{self.name}","shape": {self.shape},"datatype": "{self.datatype}","data": {self.data},'
            f'"parameters": {self.parameters}'
        )


class InferInput(_Tensor):
    """An input of a request."""

    _no_type = "invalid datatype None in the input"
    _no_list = "input data is not a List"
    _no_field = "invalid input datatype"

    def as_string(self) -> list[str]:
        """The elements of a BYTES tensor of two dimensions as texts, in a row.

        Raises:
            InvalidInput: If it has another datatype.
        """
        if self.datatype != "BYTES":
            raise InvalidInput(f"invalid datatype {self.datatype} in the input")
        return [element.decode("utf-8") for row in self._data for element in row]

    def set_data_from_numpy(self, input_tensor: npt.NDArray[Any], binary_data: bool = True) -> None:
        """Take the elements of an array.

        Args:
            input_tensor: The array, of the shape and datatype that were announced.
            binary_data: Whether they are sent as bytes, and not in the JSON.

        Raises:
            InferenceError: If it is another array, or its bytes are no text where they have to be.
        """
        self._set(input_tensor, binary_data)


class InferOutput(_Tensor):
    """An output of a response."""

    _no_type = "invalid datatype in the input"
    _no_list = "output data is not a List"
    _no_field = "to_grpc: invalid output datatype"

    def set_data_from_numpy(self, output_tensor: npt.NDArray[Any], binary_data: bool = True) -> None:
        """Take the elements of an array; moments of numpy are sent as texts.

        Args:
            output_tensor: The array, of the shape and datatype that were announced.
            binary_data: Whether they are sent as bytes, and not in the JSON.

        Raises:
            InferenceError: If it is another array, or its bytes are no text where they have to be.
        """
        self._set(output_tensor, binary_data)

    def _set(self, array: npt.NDArray[Any], binary_data: bool) -> None:
        if isinstance(array, np.ndarray) and array.dtype.kind == "M":
            array = array.astype(np.object_)
        super()._set(array, binary_data)


class RequestedOutput:
    """An output that a request asks for."""

    def __init__(self, name: str, parameters: Any = None) -> None:
        """Takes its name, and parameters such as `binary_data`."""
        self._name = name
        self._parameters = parameters

    @property
    def name(self) -> str:
        """Its name."""
        return self._name

    @property
    def parameters(self) -> Any:
        """Its parameters, by name."""
        return self._parameters

    @parameters.setter
    def parameters(self, params: Any) -> None:
        self._parameters = params

    @property
    def binary_data(self) -> bool | None:
        """Whether it is wanted as bytes; None where the request leaves that open."""
        if isinstance(self.parameters, Mapping) and "binary_data" in self.parameters:
            wanted: bool = self.parameters["binary_data"]
            return wanted
        return None

    def __eq__(self, other: object) -> bool:
        """Whether name and parameters are equal."""
        if not isinstance(other, RequestedOutput):
            return False
        return (self.name, self.parameters) == (other.name, other.parameters)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Name and parameters."""
        return f"RequestedOutput(name={self.name}, parameters={self.parameters})"


def get_content(datatype: str, data: Any) -> list[Any]:
    """The elements of a message's tensor, flat. FP16 has no field: its elements are sent as bytes.

    Raises:
        InvalidInput: If the datatype is none of the protocol's.
    """
    if datatype == "FP16":
        return []
    if datatype not in GRPC_CONTENT_DATATYPE_MAPPINGS:
        raise InvalidInput("invalid content type")
    return list(getattr(data, GRPC_CONTENT_DATATYPE_MAPPINGS[datatype]))


def _text(value: Any) -> str:
    if not isinstance(value, bytes):
        return str(value)
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        text = (
            f'Failed to encode "{value!r}" using UTF-8. Please use binary_data=True, if you want to pass a byte array.'
        )
        raise InferenceError(text) from None
