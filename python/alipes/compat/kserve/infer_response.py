"""`InferResponse`: a response of the V2 protocol, as the KServe SDK has it."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from alipes.compat.kserve.documents import dump, parse
from alipes.compat.kserve.errors import InvalidInput
from alipes.compat.kserve.messages import message_class
from alipes.compat.kserve.parameters import to_grpc_parameters, to_http_parameters
from alipes.compat.kserve.tensors import InferOutput, RequestedOutput, get_content

__all__ = ["InferResponse"]


class InferResponse:
    """A response.

    Attributes:
        id: The id of its request.
        model_name: The model that gave it.
        model_version: Its version.
        parameters: Its parameters; messages where it came over gRPC.
        outputs: Its outputs.
        from_grpc: Whether it came over gRPC.
    """

    id: str
    model_name: str
    model_version: str | None
    parameters: Any
    outputs: list[InferOutput]

    def __init__(  # noqa: PLR0913, PLR0917  # the names and the order are those that scripts use
        self,
        response_id: str,
        model_name: str,
        infer_outputs: list[InferOutput],
        model_version: str | None = None,
        raw_outputs: Any = None,
        from_grpc: bool | None = False,
        parameters: Any = None,
        use_binary_outputs: bool | None = False,
        requested_outputs: list[RequestedOutput] | None = None,
    ) -> None:
        """Takes the parts of a response.

        Args:
            response_id: The id of its request.
            model_name: The model that gave it.
            infer_outputs: Its outputs.
            model_version: Its version.
            raw_outputs: The bytes of all outputs, in order.
            from_grpc: Whether it came over gRPC.
            parameters: Its parameters.
            use_binary_outputs: Whether outputs are sent as bytes.
            requested_outputs: The outputs that are sent, each as the request wants it; all where there are none.
        """
        self.id = response_id
        self.model_name = model_name
        self.model_version = model_version
        self.outputs = infer_outputs
        self.parameters = parameters
        # On the class the name is that of the method, as in the SDK.
        self.from_grpc = from_grpc  # type: ignore[method-assign, assignment]
        self._requested_outputs = requested_outputs
        self._use_binary_outputs = bool(use_binary_outputs)
        for tensor, raw in zip(infer_outputs, raw_outputs or (), strict=False):
            tensor._raw_data = raw

    @classmethod
    def from_grpc(cls, response: Any) -> Self:
        """The response of a message `ModelInferResponse`.

        Raises:
            InvalidInput: If a tensor has no datatype of the protocol.
        """
        outputs = [
            InferOutput(
                tensor.name,
                list(tensor.shape),
                tensor.datatype,
                get_content(tensor.datatype, tensor.contents),
                tensor.parameters,
            )
            for tensor in response.outputs
        ]
        return cls(
            response.id,
            response.model_name,
            outputs,
            response.model_version,
            response.raw_output_contents,
            True,
            response.parameters,
        )

    @classmethod
    def from_rest(cls, response: dict[str, Any]) -> Self:
        """The response of a body that is JSON alone, already read."""
        outputs = [
            InferOutput(one["name"], list(one["shape"]), one["datatype"], one["data"], one.get("parameters"))
            for one in response["outputs"]
        ]
        return cls(
            model_name=response.get("model_name"),  # type: ignore[arg-type]  # as the SDK has it
            model_version=response.get("model_version"),
            response_id=response.get("id"),  # type: ignore[arg-type]
            parameters=response.get("parameters"),
            infer_outputs=outputs,
        )

    @classmethod
    def from_bytes(cls, res_bytes: bytes, json_length: int) -> Self:
        """The response of a body whose JSON may have bytes of tensors behind it.

        Args:
            res_bytes: The body.
            json_length: Bytes of its JSON.

        Raises:
            InvalidInput: If the body is none, or misses something.
        """
        document = parse(res_bytes[:json_length])
        model_name = document["model_name"]
        outputs, begin = [], json_length
        for one in document["outputs"]:
            parameters = one.get("parameters")
            tensor = InferOutput(one["name"], one["shape"], one["datatype"], parameters=parameters)
            if parameters and "binary_data_size" in parameters:
                size = parameters["binary_data_size"]
                tensor._raw_data = res_bytes[begin : begin + size]
                tensor.set_data_from_numpy(tensor.as_numpy(), binary_data=False)
                begin += size
            elif (data := one.get("data")) is None:
                raise InvalidInput(f"'data' field is missing for output '{tensor.name}' for model '{model_name}'")
            else:
                tensor.data = data
            outputs.append(tensor)
        return cls(
            model_name=model_name,
            response_id=document.get("id"),
            parameters=document.get("parameters"),
            infer_outputs=outputs,
        )

    def to_rest(self) -> tuple[bytes | dict[str, Any], int | None]:
        """The body of the response: an object for JSON; or bytes, and how many of them are JSON.

        Raises:
            InvalidInput: If an output that is wanted is missing, has no elements, or cannot be JSON.
            InferenceError: If the elements of an output are not of its shape or datatype.
        """
        outputs, raw = [], []
        for name, is_binary in self._wanted():
            tensor = self.get_output_by_name(name)
            if tensor is None:
                raise InvalidInput(f"Unexpected inference output '{name}' for model '{self.model_name}'")
            self._prepare(tensor, is_binary)
            one: dict[str, Any] = {"name": tensor.name, "shape": tensor.shape, "datatype": tensor.datatype}
            if tensor.parameters:
                one["parameters"] = to_http_parameters(tensor.parameters)
            if is_binary:
                raw.append(tensor._raw_data or b"")
            else:
                one["data"] = tensor.data
            outputs.append(one)
        document: dict[str, Any] = {
            "id": self.id,
            "model_name": self.model_name,
            "model_version": self.model_version,
            "outputs": outputs,
        }
        if self.parameters:
            document["parameters"] = to_http_parameters(self.parameters)
        if not raw:
            return document, None
        text = dump(document)
        return b"".join([text, *raw]), len(text)

    def _wanted(self) -> list[tuple[str, bool]]:
        """The outputs to send, and whether each is sent as bytes."""
        if self._requested_outputs:
            return [(one.name, bool(one.binary_data)) for one in self._requested_outputs]
        return [(one.name, self._use_binary_outputs) for one in self.outputs]

    def _prepare(self, tensor: InferOutput, is_binary: bool) -> None:
        """Brings an output into the form in which it is sent."""
        if tensor.data is None and tensor._raw_data is None:
            raise InvalidInput(f"'data' field is missing for output '{tensor.name}' for model '{self.model_name}'")
        if isinstance(tensor.data, np.ndarray):
            tensor.set_data_from_numpy(tensor.data, binary_data=is_binary)
        elif tensor.data or tensor._raw_data:
            tensor.set_data_from_numpy(tensor.as_numpy(), binary_data=is_binary)
        if tensor.datatype == "FP16" and tensor.data:
            raise InvalidInput(
                "Sending FP16 data via JSON is not supported. Please use the binary data format for output "
                f"{tensor.name}"
            )

    def to_grpc(self) -> Any:
        """The response as a message `ModelInferResponse`.

        Raises:
            InvalidInput: If the elements of an output are no list, or its datatype is none of the protocol's.
        """
        raw: list[bytes] = []
        # FP16 has no field of its own.
        is_raw = self._use_binary_outputs or any(tensor.datatype == "FP16" for tensor in self.outputs)
        for tensor in self.outputs:
            if is_raw and tensor.data and isinstance(tensor.data, list):
                tensor.data = tensor.as_numpy()
        outputs = [tensor.to_message(raw) for tensor in self.outputs]
        return message_class("ModelInferResponse")(
            id=self.id,
            model_name=self.model_name,
            model_version=self.model_version,
            outputs=outputs,
            raw_output_contents=raw,
            parameters=to_grpc_parameters(self.parameters) if self.parameters else None,
        )

    def get_output_by_name(self, name: str) -> InferOutput | None:
        """The output of a name; None where there is none."""
        return next((tensor for tensor in self.outputs if tensor.name == name), None)

    def to_dict(self) -> dict[str, Any]:
        """Its fields."""
        return {
            "id": self.id,
            "model_name": self.model_name,
            "outputs": [tensor.to_dict() for tensor in self.outputs],
            "parameters": self.parameters,
            "from_grpc": self.from_grpc,
        }

    def __eq__(self, other: object) -> bool:
        """Whether all fields are equal."""
        if not isinstance(other, InferResponse):
            return False
        return (self.model_version, self.to_dict()) == (other.model_version, other.to_dict())

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Its fields, as logs of the SDK show them."""
        return (
            f'"id": "{self.id}","model_name": "{self.model_name}","outputs": {self.outputs!r},'
            f'"parameters": {self.parameters},"from_grpc": {self.from_grpc}'
        )
