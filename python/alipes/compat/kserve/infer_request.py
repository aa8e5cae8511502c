"""`InferRequest`: a request of the V2 protocol, as the KServe SDK has it."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from alipes.compat.kserve.documents import InferenceRequest, dump, parse
from alipes.compat.kserve.errors import InvalidInput
from alipes.compat.kserve.messages import message_class
from alipes.compat.kserve.parameters import to_grpc_parameters, to_http_parameters
from alipes.compat.kserve.tensors import InferInput, RequestedOutput, get_content

if TYPE_CHECKING:
    import pandas

__all__ = ["InferRequest"]


class InferRequest:
    """A request.

    Attributes:
        id: Its id; None or empty where it has none.
        model_name: The model that it is for.
        inputs: Its inputs.
        parameters: Its parameters; messages where it came over gRPC.
        from_grpc: Whether it came over gRPC.
        request_outputs: The outputs that it asks for; None stands for all.
        model_version: The version that it asks for.
    """

    id: str | None
    model_name: str
    parameters: Any
    inputs: list[InferInput]
    model_version: str | None

    def __init__(  # noqa: PLR0913, PLR0917  # the names and the order are those that scripts use
        self,
        model_name: str,
        infer_inputs: list[InferInput],
        request_id: str | None = None,
        raw_inputs: Any = None,
        from_grpc: bool | None = False,
        parameters: Any = None,
        request_outputs: list[RequestedOutput] | None = None,
        model_version: str | None = None,
    ) -> None:
        """Takes the parts of a request; `raw_inputs` are the bytes of all inputs, in order."""
        self.id = request_id
        self.model_name = model_name
        self.inputs = infer_inputs
        self.parameters = parameters
        # On the class the name is that of the method, as in the SDK.
        self.from_grpc = from_grpc  # type: ignore[method-assign, assignment]
        self._use_raw_outputs = bool(raw_inputs)
        for tensor, raw in zip(infer_inputs, raw_inputs or (), strict=False):
            tensor._raw_data = raw
        self.request_outputs = request_outputs
        self.model_version = model_version

    @property
    def use_binary_outputs(self) -> bool:
        """Whether outputs are wanted as bytes: over gRPC where the inputs came so, else where a parameter says it."""
        if bool(self.from_grpc):
            return self._use_raw_outputs
        return bool(self.parameters and self.parameters.get("binary_data_output", False))

    @classmethod
    def from_grpc(cls, request: Any) -> Self:
        """The request of a message `ModelInferRequest`.

        Raises:
            InvalidInput: If a tensor has no datatype of the protocol.
        """
        inputs = [
            InferInput(
                tensor.name,
                list(tensor.shape),
                tensor.datatype,
                get_content(tensor.datatype, tensor.contents),
                to_http_parameters(tensor.parameters) if tensor.parameters else None,
            )
            for tensor in request.inputs
        ]
        outputs = [
            RequestedOutput(one.name, to_http_parameters(one.parameters) if one.parameters else None)
            for one in request.outputs
        ]
        return cls(
            model_name=request.model_name,
            infer_inputs=inputs,
            request_id=request.id,
            raw_inputs=request.raw_input_contents,
            from_grpc=True,
            parameters=request.parameters,
            request_outputs=outputs or None,
            model_version=request.model_version,
        )

    @classmethod
    def from_bytes(cls, req_bytes: bytes, json_length: int, model_name: str) -> Self:
        """The request of a body whose JSON has bytes of tensors behind it.

        Args:
            req_bytes: The body.
            json_length: Bytes of its JSON.
            model_name: The model that it is for.

        Raises:
            InvalidInput: If the body is none, or misses something.
        """
        document = parse(req_bytes[:json_length])
        inputs, begin = [], json_length
        for one in document["inputs"]:
            parameters = one.get("parameters")
            tensor = InferInput(one["name"], one["shape"], one["datatype"], parameters=parameters)
            data, size = one.get("data"), (parameters or {}).get("binary_data_size")
            if data is not None:
                if tensor.datatype == "FP16":
                    raise InvalidInput(
                        "Receiving FP16 data via JSON is not supported. Please use the binary data format "
                        f"for input {tensor.name}"
                    )
                tensor.data = data
            elif size is not None:
                tensor._raw_data = req_bytes[begin : begin + size]
                tensor.set_data_from_numpy(tensor.as_numpy(), binary_data=False)
                begin += size
            elif parameters and "binary_data_size" in parameters:
                raise InvalidInput(
                    f"'binary_data_size' is not specified for input '{tensor.name}' for model '{model_name}'"
                )
            else:
                raise InvalidInput(f"'data' field is missing for input '{tensor.name}' for model '{model_name}'")
            inputs.append(tensor)
        outputs = document.get("outputs")
        return cls(
            model_name=model_name,
            infer_inputs=inputs,
            request_id=document.get("id"),
            parameters=document.get("parameters"),
            request_outputs=None
            if outputs is None
            else [RequestedOutput(one["name"], one.get("parameters")) for one in outputs],
        )

    @classmethod
    def from_inference_request(cls, request: InferenceRequest, model_name: str) -> Self:
        """The request of a body that is JSON alone.

        Raises:
            InvalidInput: If a tensor is of FP16, which JSON cannot carry.
        """
        for one in request.inputs:
            if one.datatype == "FP16" and len(one.data) != 0:
                raise InvalidInput(
                    "Sending FP16 data via JSON is not supported. "
                    f"Please use the binary data format for input {one.name}"
                )
        return cls(
            model_name=model_name,
            infer_inputs=[
                InferInput(
                    one.name, one.shape, one.datatype, one.data, {} if one.parameters is None else one.parameters
                )
                for one in request.inputs
            ],
            request_id=request.id,
            parameters=request.parameters,
            request_outputs=[
                RequestedOutput(one.name, {} if one.parameters is None else one.parameters) for one in request.outputs
            ]
            if request.outputs
            else None,
        )

    def to_rest(self) -> tuple[bytes | dict[str, Any], int | None]:
        """The body of the request: an object for JSON; or bytes, and how many of them are JSON.

        Raises:
            InvalidInput: If an input has no elements, or has them twice.
        """
        inputs, raw = [], []
        for tensor in self.inputs:
            self._check(tensor)
            one: dict[str, Any] = {"name": tensor.name, "shape": tensor.shape, "datatype": tensor.datatype}
            if tensor.parameters:
                one["parameters"] = to_http_parameters(tensor.parameters)
            if tensor._raw_data:
                raw.append(tensor._raw_data)
            else:
                one["data"] = tensor.data
            inputs.append(one)
        document: dict[str, Any] = {"id": self.id or str(uuid.uuid4()), "model_name": self.model_name, "inputs": inputs}
        if self.request_outputs:
            document["outputs"] = [
                {"name": one.name, **({"parameters": to_http_parameters(one.parameters)} if one.parameters else {})}
                for one in self.request_outputs
            ]
        if self.parameters:
            document["parameters"] = to_http_parameters(self.parameters)
        if not raw:
            return document, None
        text = dump(document)
        return b"".join([text, *raw]), len(text)

    def _check(self, tensor: InferInput) -> None:
        """Refuses an input that cannot be sent over HTTP; arrays become lists."""
        if tensor.data is None and tensor._raw_data is None:
            raise InvalidInput(f"'data' field is missing for output '{tensor.name}' for model '{self.model_name}'")
        if isinstance(tensor.data, np.ndarray):
            tensor.set_data_from_numpy(tensor.data, binary_data=False)
        if tensor.data and tensor._raw_data:
            raise InvalidInput(
                f"Both 'data' and 'raw_data' fields are set for input '{tensor.name}' for model '{self.model_name}'"
            )
        if tensor.datatype == "FP16" and tensor.data:
            raise InvalidInput(
                "Sending FP16 data via JSON is not supported. Please use the binary data format for input "
                f"{tensor.name}"
            )

    def to_grpc(self) -> Any:
        """The request as a message `ModelInferRequest`.

        Raises:
            InvalidInput: If the elements of an input are no list, or its datatype is none of the protocol's.
        """
        raw: list[bytes] = []
        inputs = [tensor.to_message(raw) for tensor in self.inputs]
        outputs = [
            {"name": one.name, **({"parameters": to_grpc_parameters(one.parameters)} if one.parameters else {})}
            for one in self.request_outputs or ()
        ]
        return message_class("ModelInferRequest")(
            id=self.id,
            model_name=self.model_name,
            model_version=self.model_version,
            inputs=inputs,
            raw_input_contents=raw,
            parameters=to_grpc_parameters(self.parameters) if self.parameters else None,
            outputs=outputs or None,
        )

    def as_dataframe(self) -> pandas.DataFrame:
        """The inputs as a table: a column for each."""
        import pandas

        columns = []
        for tensor in self.inputs:
            data = tensor.data
            if tensor.datatype == "BYTES":
                data = [value.decode() if isinstance(value, bytes) else value for value in data]
            columns.append(pandas.DataFrame(data, columns=[tensor.name]))
        return pandas.concat(columns, axis=1)

    def get_input_by_name(self, name: str) -> InferInput | None:
        """The input of a name; None where there is none."""
        return next((tensor for tensor in self.inputs if tensor.name == name), None)

    def to_dict(self) -> dict[str, Any]:
        """Its fields."""
        return {
            "id": self.id,
            "model_name": self.model_name,
            "inputs": [tensor.to_dict() for tensor in self.inputs],
            "parameters": self.parameters,
            "from_grpc": self.from_grpc,
        }

    def __eq__(self, other: object) -> bool:
        """Whether all fields but the version are equal."""
        if not isinstance(other, InferRequest):
            return False
        return (self.model_name, self.id, self.from_grpc, self.parameters, self.inputs, self.request_outputs) == (
            (other.model_name, other.id, other.from_grpc, other.parameters, other.inputs, other.request_outputs)
        )

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """Its fields, as logs of the SDK show them."""
        return (
            f'"id": "{self.id}","model_name": "{self.model_name}","inputs": {self.inputs!r},'
            f'"parameters": {self.parameters},"from_grpc": {self.from_grpc}'
        )
