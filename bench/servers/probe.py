"""Single requests: is a server ready, and does it answer what the model answers?"""

import http.client
import json
import ssl
from collections.abc import Mapping
from typing import Any

import grpc

from bench.work import GRPC_PREFIX_BYTES, STREAMS, Work, WrongAnswer

TIMEOUT_S = 30.0


def is_ready(port: int, path: str = "/v2/health/ready", tls: ssl.SSLContext | None = None) -> bool:
    """Whether a GET of ``path`` is answered with status 200."""
    connection = _connection(port, tls)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == http.client.OK
    except OSError:
        return False
    finally:
        connection.close()


def get_json(port: int, path: str) -> Any:
    """The JSON document at ``path``."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("GET", path)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def post(port: int, path: str, body: bytes, headers: Mapping[str, str]) -> bytes:
    """The body of the answer to a POST.

    Raises:
        WrongAnswer: If the status is not 200.
    """
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    try:
        connection.request("POST", path, body=body, headers=dict(headers))
        response = connection.getresponse()
        answer = response.read()
    finally:
        connection.close()
    if response.status != http.client.OK:
        raise WrongAnswer(f"{path}: status {response.status}: {answer[:200]!r}")
    return answer


def check(port: int, work: Work, path: str | None = None, tls: ssl.SSLContext | None = None) -> int:
    """Sends a request once and compares the answer.

    Args:
        port: Where the server listens.
        work: What is sent.
        path: Where it is posted, if not where the protocol says.
        tls: What knows the server's certificate, where it encrypts HTTP.

    Returns:
        Bytes of the answer's body; for gRPC with its prefix, for a stream those of all responses.

    Raises:
        WrongAnswer: If the answer is not the model's.
    """
    if work.is_grpc:
        return _check_grpc(port, work)
    connection = _connection(port, tls)
    try:
        connection.request("POST", path or work.path, body=work.body, headers=work.headers)
        response = connection.getresponse()
        body = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise WrongAnswer(f"{work.name}: no answer: {error!r}") from error
    finally:
        connection.close()
    if response.status != http.client.OK:
        raise WrongAnswer(f"{work.name}: status {response.status}: {body[:200]!r}")
    work.check(body, {name.lower(): value for name, value in response.getheaders()})
    return len(body)


def _connection(port: int, tls: ssl.SSLContext | None) -> http.client.HTTPConnection:
    if tls is None:
        return http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
    return http.client.HTTPSConnection("127.0.0.1", port, timeout=TIMEOUT_S, context=tls)


def _check_grpc(port: int, work: Work) -> int:
    options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        try:
            answers = _stream(channel, work) if work.form in STREAMS else [_call(channel, work)]
        except grpc.RpcError as error:
            raise WrongAnswer(f"{work.name}: {error}") from error
    if work.form in STREAMS:
        work.check_stream(answers)
    else:
        work.check(answers[0], {})
    return sum(len(answer) + GRPC_PREFIX_BYTES for answer in answers)


def _call(channel: grpc.Channel, work: Work) -> bytes:
    call = channel.unary_unary(work.path, request_serializer=None, response_deserializer=None)
    return bytes(call(work.message, timeout=TIMEOUT_S, wait_for_ready=True))


def _stream(channel: grpc.Channel, work: Work) -> list[bytes]:
    call = channel.stream_stream(work.path, request_serializer=None, response_deserializer=None)
    return list(call(iter([work.message]), timeout=TIMEOUT_S, wait_for_ready=True))
