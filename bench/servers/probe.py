"""Single requests: is a server ready, and does it answer what the model answers?"""

import http.client
import json
from typing import Any

import grpc

from bench.work import GRPC, GRPC_PREFIX_BYTES, Work, WrongAnswer

TIMEOUT_S = 30.0


def is_ready(port: int, path: str = "/v2/health/ready") -> bool:
    """Whether a GET of ``path`` is answered with status 200."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
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


def check(port: int, work: Work, path: str | None = None) -> int:
    """Sends a request once and compares the answer.

    Args:
        port: Where the server listens.
        work: What is sent.
        path: Where it is posted, if not where the protocol says.

    Returns:
        Bytes of the answer's body; for gRPC with its prefix.

    Raises:
        WrongAnswer: If the answer is not the model's.
    """
    if work.form == GRPC:
        return _check_grpc(port, work)
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=TIMEOUT_S)
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


def _check_grpc(port: int, work: Work) -> int:
    options = [("grpc.max_send_message_length", -1), ("grpc.max_receive_message_length", -1)]
    with grpc.insecure_channel(f"127.0.0.1:{port}", options=options) as channel:
        call = channel.unary_unary(work.path, request_serializer=None, response_deserializer=None)
        try:
            answer = call(work.body[GRPC_PREFIX_BYTES:], timeout=TIMEOUT_S, wait_for_ready=True)
        except grpc.RpcError as error:
            raise WrongAnswer(f"{work.name}: {error}") from error
    work.check(answer, {})
    return len(answer) + GRPC_PREFIX_BYTES
