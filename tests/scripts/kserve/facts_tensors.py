"""Prints what the types of requests and responses of the KServe SDK make of a list of calls, as JSON.

The script imports `kserve` alone. Run by an interpreter that has the SDK, it prints the facts that
`tests/vectors/kserve` keeps; run by `python -m alipes.compat kserve`, what alipes makes of the same calls.
"""

from __future__ import annotations

import json

import numpy as np
from kserve import InferInput, InferOutput, InferRequest, InferResponse
from kserve.protocol.infer_type import (
    RequestedOutput,
    deserialize_bytes_tensor,
    serialize_byte_tensor,
    to_grpc_parameters,
    to_http_parameters,
)
from kserve.utils.numpy_codec import from_np_dtype, to_np_dtype
from noting import fact, print_facts

X = np.array([[1, 2], [3, 4]], np.float32)
TYPES = [
    "BOOL",
    "INT8",
    "INT16",
    "INT32",
    "INT64",
    "UINT8",
    "UINT16",
    "UINT32",
    "UINT64",
    "FP16",
    "FP32",
    "FP64",
    "BYTES",
    "BF16",
    "fp32",
]


def filled(kind, array, datatype, binary, **more):
    """A tensor with the elements of an array."""
    made = kind("x", list(array.shape), datatype, **more)
    made.set_data_from_numpy(array, binary_data=binary)
    return made


def seen(tensor):
    """All of a tensor."""
    return [tensor.name, tensor.shape, tensor.datatype, tensor.data, tensor.parameters, tensor._raw_data]


def message(document):
    """A message, without its id."""
    return str(document).replace(document.id, "ID") if document.id else str(document)


def body(request):
    """A body that goes over HTTP."""
    sent, length = request.to_rest()
    return [sent if isinstance(sent, dict) else [json.loads(sent[:length]), sent[length:]], length is not None]


def request(*tensors, **more):
    """A request with these inputs."""
    return InferRequest("m", list(tensors), request_id="7", **more)


def response(*tensors, **more):
    """A response with these outputs."""
    return InferResponse("7", "m", list(tensors), **more)


for name in TYPES:
    fact(f"type of {name}", lambda name=name: str(np.dtype(to_np_dtype(name))) if to_np_dtype(name) else None)
for kind in [
    "bool",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "float16",
    "float32",
    "float64",
    "O",
    "S3",
    "U3",
    "M8[s]",
]:
    fact(f"datatype of {kind}", lambda kind=kind: from_np_dtype(np.dtype(kind)))
fact("datatype of complex", lambda: from_np_dtype(np.dtype("complex64")))

fact("bytes", lambda: serialize_byte_tensor(np.array([b"a", "ü", 3], object)).item())
fact("fixed bytes", lambda: serialize_byte_tensor(np.array([b"a", b"bcd"])).item())
fact("no bytes", lambda: serialize_byte_tensor(np.array([], object)))
fact("numbers as bytes", lambda: serialize_byte_tensor(X))
fact("bytes back", lambda: deserialize_bytes_tensor(b"\1\0\0\0a\0\0\0\0"))

for kind in (InferInput, InferOutput):
    at = kind.__name__
    texts = np.array([["a", b"b"]], object)
    fact(f"{at} binary", lambda kind=kind: seen(filled(kind, X, "FP32", True)))
    fact(f"{at} JSON", lambda kind=kind: seen(filled(kind, X, "fp32", False, parameters={"binary_data_size": 3})))
    fact(f"{at} texts, binary", lambda kind=kind, texts=texts: seen(filled(kind, texts, "BYTES", True)))
    fact(f"{at} texts, JSON", lambda kind=kind, texts=texts: seen(filled(kind, texts, "BYTES", False)))
    fact(f"{at} no texts", lambda kind=kind: seen(filled(kind, np.empty([0], object), "BYTES", True)))
    fact(f"{at} no UTF-8", lambda kind=kind: filled(kind, np.array([b"\xff"], object), "BYTES", False))
    fact(f"{at} another type", lambda kind=kind: filled(kind, X, "INT8", True))
    fact(f"{at} another shape", lambda kind=kind: kind("x", [4], "FP32").set_data_from_numpy(X))
    fact(f"{at} another rank", lambda kind=kind: kind("x", [2, 3], "FP32").set_data_from_numpy(X))
    fact(f"{at} no array", lambda kind=kind: kind("x", [1], "FP32").set_data_from_numpy([1]))
    fact(f"{at} as array", lambda kind=kind: filled(kind, X, "FP32", True).as_numpy())
    fact(f"{at} a list as array", lambda kind=kind: kind("x", [2], "INT32", [1, 2]).as_numpy())
    fact(f"{at} texts as array", lambda kind=kind, texts=texts: filled(kind, texts, "BYTES", True).as_numpy())
    fact(f"{at} no datatype", lambda kind=kind: kind("x", [2], "BF16", [1, 2]).as_numpy())
    fact(f"{at} does not fit", lambda kind=kind: kind("x", [3], "INT32", [1, 2]).as_numpy())
    fact(f"{at} fields", lambda kind=kind: kind("x", [2], "INT32", [1, 2], {"a": 1}).to_dict())
    fact(f"{at} text", lambda kind=kind: str(kind("x", [2], "INT32", [1, 2], {"a": 1})))
    fact(f"{at} equal", lambda kind=kind: [kind("x", [1], "INT8", [1]) == kind("x", [1], "int8", [n]) for n in (1, 2)])

fact("strings", lambda: InferInput("x", [1, 2], "BYTES", [[b"a", b"b"]]).as_string())
fact("no strings", lambda: InferInput("x", [1, 2], "INT8", [[1]]).as_string())
fact("moments", lambda: seen(filled(InferOutput, np.array(["2020-01-01"], "M8[D]"), "BYTES", False)))

PLAIN = InferInput("x", [2], "INT32", [1, 2], {"a": 1})
fact("a request over HTTP", lambda: body(request(PLAIN, request_outputs=[RequestedOutput("y", {"binary_data": True})])))
fact("a request with an array", lambda: body(request(InferInput("x", [2, 2], "FP32", X))))
fact("a request with bytes", lambda: body(request(filled(InferInput, X, "FP32", True), parameters={"p": True})))
fact("a request without elements", lambda: body(request(InferInput("x", [2], "INT32"))))
fact("a request with FP16", lambda: body(request(InferInput("x", [1], "FP16", [1.0]))))
fact("a request over gRPC", lambda: message(request(PLAIN, parameters={"p": "q"}).to_grpc()))
fact("a request with an array over gRPC", lambda: message(request(InferInput("x", [2, 2], "FP32", X)).to_grpc()))
fact("texts over gRPC", lambda: message(request(InferInput("x", [2], "BYTES", ["a", b"b"])).to_grpc()))
fact("no list over gRPC", lambda: request(InferInput("x", [2], "INT32", (1, 2))).to_grpc())
fact("no datatype over gRPC", lambda: request(InferInput("x", [2], "FP16", [1, 2])).to_grpc())
fact("a wrong parameter over gRPC", lambda: request(PLAIN, parameters={"p": 1.5}).to_grpc())
fact("a request's fields", lambda: request(PLAIN, parameters={"p": 1}).to_dict())
fact("a request's text", lambda: str(request(PLAIN)))
fact("an input by name", lambda: [request(PLAIN).get_input_by_name(n) is PLAIN for n in ("x", "y")])
fact("equal requests", lambda: [request(PLAIN) == request(PLAIN), request(PLAIN) == request()])


def from_bytes(document, tail=b""):
    """The request of a body."""
    text = json.dumps(document).encode() if isinstance(document, dict) else document
    made = InferRequest.from_bytes(text + tail, len(text), "m")
    return [made.id, made.parameters, [seen(one) for one in made.inputs], made.request_outputs, made.use_binary_outputs]


def one(**more):
    """A document with one input."""
    return {"inputs": [{"name": "x", "shape": [2], "datatype": "INT32", **more}]}


fact("a body", lambda: from_bytes(one(data=[1, 2]) | {"id": "7", "outputs": [{"name": "y"}], "parameters": {"a": 1}}))
fact("a body with bytes", lambda: from_bytes(one(parameters={"binary_data_size": 8}), b"\1\0\0\0\2\0\0\0"))
fact("a body with too few bytes", lambda: from_bytes(one(parameters={"binary_data_size": 8}), b"\1\0\0\0"))
fact("a body without elements", lambda: from_bytes(one()))
fact("a body without a size", lambda: from_bytes(one(parameters={"binary_data_size": None})))
fact("a body that wants bytes", lambda: from_bytes(one(data=[1, 2]) | {"parameters": {"binary_data_output": True}}))
fact("a body of FP16", lambda: from_bytes({"inputs": [{"name": "x", "shape": [1], "datatype": "FP16", "data": [1]}]}))
fact("back from gRPC", lambda: InferRequest.from_grpc(request(PLAIN).to_grpc()).to_dict())

OUT = InferOutput("y", [2], "INT32", [1, 2], {"a": 1})
ARRAY = InferOutput("z", [2, 2], "FP32", X)
fact("a response over HTTP", lambda: body(response(OUT, model_version="3", parameters={"p": 1})))
fact("a response with an array", lambda: body(response(InferOutput("z", [2, 2], "FP32", X))))
fact("a binary response", lambda: body(response(InferOutput("z", [2, 2], "FP32", X), use_binary_outputs=True)))
fact(
    "a response to a request for one",
    lambda: body(response(OUT, InferOutput("z", [1], "FP32", [1.5]), requested_outputs=[RequestedOutput("z")])),
)
fact(
    "a response to a request for bytes",
    lambda: body(
        response(InferOutput("z", [1], "FP32", [1.5]), requested_outputs=[RequestedOutput("z", {"binary_data": True})])
    ),
)
fact("a response without what is wanted", lambda: body(response(OUT, requested_outputs=[RequestedOutput("q")])))
fact("a response without elements", lambda: body(response(InferOutput("y", [2], "INT32"))))
fact("a response of FP16", lambda: body(response(InferOutput("y", [1], "FP16", np.ones(1, np.float16)))))
fact("a response that does not fit", lambda: body(response(InferOutput("y", [3], "INT32", [1, 2]))))
fact("a response over gRPC", lambda: message(response(InferOutput("y", [2], "INT32", [1, 2])).to_grpc()))
fact("FP16 over gRPC", lambda: message(response(InferOutput("y", [1], "FP16", [1.0])).to_grpc()))
fact("an answer without a datatype", lambda: response(InferOutput("y", [1], "BF16", [1.0])).to_grpc())
fact("an answer that is no list", lambda: response(InferOutput("y", [1], "INT8", (1,))).to_grpc())
fact("a response's fields", lambda: response(OUT).to_dict())
fact("a response's text", lambda: str(response(OUT)))
fact(
    "a response of a document",
    lambda: InferResponse.from_rest(
        {"model_name": "m", "id": "7", "outputs": [{"name": "y", "shape": [1], "datatype": "INT8", "data": [1]}]}
    ).to_dict(),
)
fact(
    "a response back from gRPC",
    lambda: seen(InferResponse.from_grpc(response(OUT).to_grpc()).outputs[0])[:4],
)
fact("parameters", lambda: to_http_parameters(to_grpc_parameters({"a": "b", "c": True, "d": 4})))
print_facts()
