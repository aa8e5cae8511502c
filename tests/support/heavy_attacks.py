"""Requests that would keep a network thread busy, were they worked on there; honest ones look at their answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Final

import grpc
import numpy as np
from grpc_reflection.v1alpha.reflection_pb2 import ServerReflectionRequest
from tritonclient.grpc import service_pb2

from support import heavy
from support.attack import connect, links, rest
from support.http2 import HEADERS, PING, SETTINGS, Connection, frame, header_block, request, reset
from support.regions import SharedObject
from support.server import ServerProcess

Attack = Callable[[ServerProcess], object]

MIB: Final = 1 << 20
# FP32 in a mebibyte.
FLOATS: Final = MIB // 4

# What each model does with each number.
FACTORS: Final = {"any": 2, "kept": 2, "echo": 1, "chain": 1}


def infer(model: str, *, events: bool = False) -> str:
    """The path of an inference."""
    return f"/v2/models/{model}/{'generate_stream' if events else 'infer'}"


def post(server: ServerProcess, model: str, body: heavy.Body, headers: dict[str, str] | None = None) -> bytes:
    """The answer to an inference that is not refused."""
    status, text = heavy.ask(server.http, infer(model), body, headers)
    assert status == 200, text[:1000]
    return text


def refused(server: ServerProcess, path: str, body: heavy.Body, headers: dict[str, str] | None = None) -> None:
    """Sends a request that is refused."""
    status, text = heavy.ask(server.http, path, body, headers)
    assert 400 <= status < 500, text[:1000]


def numbers(mebibytes: int) -> bytes:
    """A request of so many mebibytes of JSON."""
    count = mebibytes * MIB // 2
    return heavy.json_tensor(["1"] * count, count)


def numbers_as_json(model: str, send: Callable[[bytes], heavy.Body] = bytes, **headers: str) -> Attack:
    """Numbers as JSON, both ways."""
    body = numbers(10)

    def attack(server: ServerProcess) -> None:
        answer = post(server, model, send(body), {name.replace("_", "-"): value for name, value in headers.items()})
        assert answer.count(b"%d.0" % FACTORS[model]) == 5 * MIB, answer[:1000]

    return attack


def generated() -> Attack:
    body = json.dumps({"X": [1] * (5 * MIB)}).encode()

    def attack(server: ServerProcess) -> None:
        status, text = heavy.ask(server.http, infer("any", events=True), body)
        assert (status, text.count(b"2.0")) == (200, 5 * MIB), text[:1000]

    return attack


def streamed_by_a_function(accept: str) -> Attack:
    """A stream of one response, which is as long as the call."""
    body = bytes(48 * MIB)

    def attack(server: ServerProcess) -> None:
        status, text = heavy.ask(server.http, "/says", body, {"Accept": accept})
        assert (status, text.count(0)) == (200, len(body)), text[:1000]

    return attack


def words_as_json(model: str) -> Attack:
    body = heavy.json_tensor(['"a"'] * (4 * MIB), 4 * MIB, "BYTES")
    if model != "words":
        return lambda server: refused(server, infer(model), body)

    def attack(server: ServerProcess) -> None:
        assert post(server, model, body).count(b'"a"') == 4 * MIB

    return attack


def parameters() -> Attack:
    body = json.dumps({"inputs": [], "parameters": {str(number): 1 for number in range(MIB)}}).encode()
    return lambda server: refused(server, infer("any"), body)


def binary(model: str, mebibytes: int, *, known: bool = True) -> Attack:
    """A tensor in binary, both ways, with its length or in chunks."""
    count = mebibytes * FLOATS
    body, headers = heavy.binary_tensor(heavy.ones(count), [1, count])
    whole, expected = b"".join(body), heavy.ones(count, FACTORS[model])

    def attack(server: ServerProcess) -> None:
        assert post(server, model, whole if known else heavy.pieces(whole), headers).endswith(expected)

    return attack


def words_in_binary() -> Attack:
    data = bytes(40 * MIB)
    body, headers = heavy.binary_tensor(data, [1, len(data) // 4], "BYTES")

    def attack(server: ServerProcess) -> None:
        assert post(server, "words", b"".join(body), headers).endswith(data)

    return attack


def answered_in_json(model: str, **output: object) -> Attack:
    """Four million numbers in binary, and the answer in JSON; a classification of fewer where the output says so."""
    mebibytes = 3 if output else 16
    count = mebibytes * FLOATS
    wanted = [{"name": "Y"} | output]
    body, headers = heavy.binary_tensor(heavy.ones(count), [1, count], parameters={}, outputs=wanted)
    whole = b"".join(body)

    def attack(server: ServerProcess) -> None:
        assert post(server, model, whole, headers).count(b"%d.0" % FACTORS[model]) == count

    return attack


def tensor(model: str, mebibytes: int) -> bytes:
    """A message with a raw tensor."""
    count = mebibytes * FLOATS
    return heavy.message(model, heavy.ones(count), [1, count]).SerializeToString()


def raw(model: str, mebibytes: int, compression: grpc.Compression | None = None) -> Attack:
    """A raw tensor over gRPC, both ways."""
    wire, expected = tensor(model, mebibytes), heavy.ones(mebibytes * FLOATS, FACTORS[model])

    def attack(server: ServerProcess) -> None:
        assert heavy.call(server.grpc, heavy.INFER, wire, compression).endswith(expected)

    return attack


def raw_words() -> Attack:
    data = bytes(40 * MIB)
    wire = heavy.message("words", data, [1, len(data) // 4], "BYTES").SerializeToString()

    def attack(server: ServerProcess) -> None:
        assert heavy.call(server.grpc, heavy.INFER, wire).endswith(data)

    return attack


def typed_numbers() -> bytes:
    count = 4 * MIB
    return heavy.message("any", None, [1, count], fp32_contents=[1.0] * count).SerializeToString()


def typed_words() -> bytes:
    count = 2 * MIB
    return heavy.message("words", None, [1, count], "BYTES", bytes_contents=[b""] * count).SerializeToString()


def sent(wire: bytes) -> Attack:
    """Any inference over gRPC."""
    return lambda server: heavy.call(server.grpc, heavy.INFER, wire)


def fields(field: bytes, model: bytes = b"any") -> Attack:
    """Three million fields."""
    return sent(b"\x0a" + bytes([len(model)]) + model + field * 3_000_000)


def bomb() -> Attack:
    body = heavy.gzipped(bytes(1 << 28))
    return lambda server: refused(server, infer("any"), body, {"Content-Encoding": "gzip"})


def bomb_in_grpc() -> Attack:
    return lambda server: heavy.call(server.grpc, heavy.INFER, bytes(1 << 28), grpc.Compression.Gzip)


def over_http2(model: str, body: bytes, headers: dict[str, str] | None = None) -> Attack:
    """A body without a length, over HTTP/2."""

    def attack(server: ServerProcess) -> None:
        assert heavy.upload(server.http, infer(model), body, headers) > MIB

    return attack


def binary_over_http2() -> Attack:
    body, headers = heavy.binary_tensor(heavy.ones(100 * FLOATS), [1, 100 * FLOATS])
    return over_http2("any", b"".join(body), {name.lower(): value for name, value in headers.items()})


def regions(model: str) -> Attack:
    """A tensor in shared memory, both ways."""
    size = 200 * MIB
    data, expected = heavy.ones(size // 4), heavy.ones(size // 4, FACTORS[model])
    place = {"shared_memory_region": "whole", "shared_memory_byte_size": size}
    tensor = {"name": "X", "datatype": "FP32", "shape": [1, size // 4], "parameters": place}
    wanted = {"name": "Y", "parameters": place | {"shared_memory_offset": size}}
    document = json.dumps({"inputs": [tensor], "outputs": [wanted]}).encode()
    path = "/v2/systemsharedmemory/region/whole"

    def attack(server: ServerProcess) -> None:
        with SharedObject(2 * size) as memory:
            memory.write(data)
            whole = {"key": memory.key, "offset": 0, "byte_size": memory.byte_size}
            assert heavy.ask(server.http, f"{path}/register", json.dumps(whole).encode())[0] == 200
            post(server, model, document)
            assert memory.read(np.float32, (size // 4,), size).tobytes() == expected
            assert heavy.ask(server.http, f"{path}/unregister", b"")[0] == 200

    return attack


def streamed(wires: Iterable[bytes]) -> Attack:
    """Requests on a stream, each of which is answered."""
    sent = list(wires)

    def attack(server: ServerProcess) -> None:
        assert heavy.stream(server.grpc, heavy.STREAM, sent) == len(sent)

    return attack


def control(path: str) -> Attack:
    """A control request with a million entries in its body."""
    body = json.dumps({"parameters": {str(number): "x" for number in range(MIB)}}).encode()
    return lambda server: heavy.ask(server.http, path, body)


def control_call(method: str, wire: bytes) -> Attack:
    """A control request over gRPC."""
    return lambda server: heavy.call(server.grpc, f"/inference.GRPCInferenceService/{method}", wire)


def one_byte_bodies(server: ServerProcess) -> None:
    head = f"POST {infer('any')} HTTP/1.1\r\nHost: x\r\nContent-Length: 40000000\r\n\r\n"
    with links(server.http, 300, head.encode() + b"{"):
        heavy.get(server.http, "/v2/health/live")


def large_heads(server: ServerProcess) -> None:
    """As many headers as are allowed, one head after the other."""
    lines = ["GET /v2 HTTP/1.1", "Host: x", *[f"X-{number}: {'y' * 600}" for number in range(95)], "", ""]
    with connect(server.http) as link:
        link.sendall("\r\n".join(lines).encode() * 50)
        link.shutdown(1)
        rest(link)
    block = {f"x-{number}": "y" * 600 for number in range(95)}
    with Connection(server.http) as connection:
        streams = range(1, 801, 2)
        connection.send(*(request(stream, "GET", "/v2/health/live", block) for stream in streams))
        answered: set[int] = set()
        while len(answered) < len(streams):
            answered.add(connection.next(HEADERS).stream)


def calls_that_end_with_their_connection(server: ServerProcess) -> None:
    """As many calls as are allowed."""
    with Connection(server.http) as connection:
        connection.next(SETTINGS)
        for stream in range(1, 8193, 2):
            connection.send(request(stream, "POST", infer("any"), {"content-length": "1000"}, end=False))
    heavy.get(server.http, "/v2/health/live")


def rapid_resets(server: ServerProcess) -> None:
    named = {":method": "POST", ":scheme": "http", ":path": heavy.INFER, ":authority": "x"}
    block = header_block(named | {"content-type": "application/grpc"})
    with Connection(server.grpc) as connection:
        connection.send(*(frame(HEADERS, 4, stream, block) + reset(stream) for stream in range(1, 20_001, 2)))
        connection.send(*([frame(PING, payload=bytes(8))] * 1000))
    heavy.get(server.http, "/v2/health/live")


def reflection(server: ServerProcess) -> None:
    asks = [
        ServerReflectionRequest(list_services=""),
        ServerReflectionRequest(file_by_filename="inference.proto"),
        ServerReflectionRequest(file_containing_symbol="inference.ModelInferRequest"),
        ServerReflectionRequest(file_containing_symbol="x" * 10_000),
    ]
    wires = [ask.SerializeToString() for ask in asks * 500]
    assert heavy.stream(server.grpc, heavy.REFLECTION, wires) == len(wires)


def setting() -> bytes:
    return service_pb2.LogSettingsRequest(
        settings={"x": service_pb2.LogSettingsRequest.SettingValue()}
    ).SerializeToString()


# Each is made when it is needed, since many take a while and much memory.
ATTACKS: Final[dict[str, Callable[[], Attack]]] = {
    "numbers as JSON": lambda: numbers_as_json("any"),
    "numbers as JSON, to a worker": lambda: numbers_as_json("echo"),
    "numbers as JSON, kept": lambda: numbers_as_json("kept"),
    "numbers as JSON, gzipped": lambda: numbers_as_json("any", heavy.gzipped, Content_Encoding="gzip"),
    "numbers as JSON, in chunks": lambda: numbers_as_json("any", heavy.pieces),
    "numbers as JSON, over HTTP/2": lambda: over_http2("any", numbers(10)),
    "numbers as JSON, generated": generated,
    "a long event": lambda: streamed_by_a_function("text/event-stream"),
    "a long line": lambda: streamed_by_a_function("application/x-ndjson"),
    "words as JSON": lambda: words_as_json("words"),
    "words as JSON, refused": lambda: words_as_json("any"),
    "words in binary": words_in_binary,
    "words in gRPC": raw_words,
    "words in gRPC, typed": lambda: sent(typed_words()),
    "numbers in gRPC, typed": lambda: sent(typed_numbers()),
    "parameters as JSON": parameters,
    "fields that are inputs": lambda: fields(b"\x2a\x00"),
    "fields that are unknown": lambda: fields(b"\x78\x00"),
    "fields to a worker": lambda: fields(b"\x78\x00", b"echo"),
    "a bomb": bomb,
    "a bomb in gRPC": bomb_in_grpc,
    "bodies of one byte": lambda: one_byte_bodies,
    "a tensor": lambda: binary("any", 200),
    "a tensor in chunks": lambda: binary("any", 200, known=False),
    "a tensor over HTTP/2": binary_over_http2,
    "a tensor to a worker": lambda: binary("echo", 200),
    "a tensor, kept": lambda: binary("kept", 100),
    "a tensor through an ensemble": lambda: binary("chain", 100),
    "a tensor in gRPC": lambda: raw("any", 200),
    "a tensor in gRPC, gzipped": lambda: raw("any", 50, grpc.Compression.Gzip),
    "a tensor in gRPC, to a worker": lambda: raw("echo", 200),
    "a tensor in gRPC, kept": lambda: raw("kept", 100),
    "a tensor in gRPC, through an ensemble": lambda: raw("chain", 100),
    "a tensor in regions": lambda: regions("any"),
    "a tensor in regions, to a worker": lambda: regions("echo"),
    "an answer as JSON": lambda: answered_in_json("any"),
    "an answer as JSON, of a worker": lambda: answered_in_json("echo"),
    "an answer as classes": lambda: answered_in_json("any", parameters={"classification": MIB}),
    "a long stream": lambda: streamed([heavy.message("any", heavy.ones(4), [1, 4]).SerializeToString()] * 20_000),
    "a stream of tensors": lambda: streamed([tensor("any", 4)] * 50),
    "a stream of tensors to a worker": lambda: streamed([tensor("echo", 4)] * 50),
    "a stream of typed numbers": lambda: streamed([typed_numbers()] * 3),
    "a stream of typed words": lambda: streamed([typed_words()] * 3),
    "large heads": lambda: large_heads,
    "calls that end with their connection": lambda: calls_that_end_with_their_connection,
    "rapid resets": lambda: rapid_resets,
    "reflection": lambda: reflection,
    "log settings": lambda: control("/v2/logging"),
    "trace settings": lambda: control("/v2/trace/setting"),
    "an index": lambda: control("/v2/repository/index"),
    "a load": lambda: control("/v2/repository/models/any/load"),
    "an unload": lambda: control("/v2/repository/models/any/unload"),
    "a region": lambda: control("/v2/systemsharedmemory/region/x/register"),
    "log settings in gRPC": lambda: control_call("LogSettings", setting() * 100_000),
    "trace settings in gRPC": lambda: control_call("TraceSetting", b"\x0a\x00" * 500_000),
    "metadata in gRPC": lambda: control_call("ModelMetadata", b"\x78\x00" * 30_000),
    "a load in gRPC": lambda: control_call("RepositoryModelLoad", b"\x1a\x00" * 10_000_000),
    "a load of a file in gRPC": lambda: control_call("RepositoryModelLoad", load_of_a_file()),
}


def load_of_a_file() -> bytes:
    file = service_pb2.ModelRepositoryParameter(bytes_param=bytes(200 * MIB))
    return service_pb2.RepositoryModelLoadRequest(model_name="any", parameters={"file:1/x": file}).SerializeToString()


# The same for a server with hundreds of models.
CROWDED: Final[dict[str, Attack]] = {
    "metrics": lambda server: heavy.get(server.metrics, "/metrics"),
    "statistics": lambda server: heavy.get(server.http, "/v2/models/stats"),
    "statistics in gRPC": control_call("ModelStatistics", b""),
    "the index": lambda server: heavy.ask(server.http, "/v2/repository/index", b""),
    "the index in gRPC": control_call("RepositoryIndex", b""),
    "readiness": lambda server: heavy.get(server.http, "/v2/health/ready"),
}
