"""What attached models can do: all that a model in a process of its own can, with objects of this script."""

from __future__ import annotations

import asyncio
import json
import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

import numpy as np
import pytest
from alipes import Client, InferError
from alipes.attached import (
    AttachedModel,
    Attachment,
    InferenceRequest,
    InferenceResponse,
    Tensor,
    TritonError,
    TritonModelException,
)
from support.attached import LOCAL, answer, attach, attached, config, each, first_input, numbers
from support.waiting import TIMEOUT_S

ADDRESSES = ("url", "grpc_url")


def count_up(start: float) -> Any:
    """A closure with a state of its own."""
    total = start

    def execute(requests: list[InferenceRequest]) -> list[InferenceResponse]:
        nonlocal total
        answers = []
        for request in requests:
            total += float(first_input(request).sum())
            answers.append(answer(numbers(total)))
        return answers

    return execute


def fails(requests: list[InferenceRequest]) -> list[InferenceResponse]:
    if first_input(requests[0])[0] < 0:
        raise ValueError("no number below zero")
    return [answer(first_input(request)) for request in requests]


def refuses(requests: list[InferenceRequest]) -> list[InferenceResponse]:
    return [InferenceResponse(error=TritonError("not today", TritonError.UNAVAILABLE)) for _ in requests]


def echo_texts(requests: list[InferenceRequest]) -> list[InferenceResponse]:
    answers = []
    for request in requests:
        parameters = json.loads(request.parameters())
        texts = np.array([text + b"!" for text in first_input(request)], dtype=object)
        answers.append(InferenceResponse([Tensor("y", texts)], parameters={"told": str(parameters["tell"])}))
    return answers


async def waits(requests: list[InferenceRequest]) -> list[InferenceResponse]:
    await asyncio.sleep(0)
    return [answer(1 + first_input(request)) for request in requests]


def streams(requests: list[InferenceRequest]) -> None:
    for request in requests:
        sender = request.get_response_sender()
        for number in range(int(first_input(request)[0])):
            sender.send(answer(numbers(number)))
        sender.send(flags=1)


async def streams_later(requests: list[InferenceRequest]) -> None:
    for request in requests:
        sender = request.get_response_sender()
        for number in range(int(first_input(request)[0])):
            await asyncio.sleep(0)
            sender.send(answer(called_output(await call("double", numbers(number)).async_exec())))
        sender.send(flags=1)


def call(model: str, array: np.ndarray[Any, Any]) -> InferenceRequest:
    return InferenceRequest(model_name=model, requested_output_names=["y"], inputs=[Tensor("x", array)])


def called_output(response: InferenceResponse) -> np.ndarray[Any, Any]:
    return response.output_tensors()[0].as_numpy()


def calls(requests: list[InferenceRequest]) -> list[InferenceResponse]:
    return [answer(1 + called_output(call("double", first_input(request)).exec())) for request in requests]


def calls_from_elsewhere(requests: list[InferenceRequest]) -> list[InferenceResponse]:
    """Calls from a thread that is no instance's."""
    with ThreadPoolExecutor(1) as pool:
        try:
            pool.submit(lambda: call("double", numbers(1)).exec()).result()
        except TritonModelException as error:
            return [InferenceResponse(error=TritonError(str(error))) for _ in requests]
    raise AssertionError("a thread without an instance called a model")


@pytest.fixture(scope="module")
def attachment() -> Iterator[Attachment]:
    decoupled = {"model_transaction_policy": {"decoupled": True}}
    models = [
        attached("double", each(lambda x: 2 * x), each(lambda x: 2 * x)),
        attached("counts", count_up(100)),
        attached("fails", fails),
        attached("refuses", refuses),
        attached("texts", echo_texts, kind="TYPE_STRING"),
        attached("waits", waits),
        attached("streams", streams, **decoupled),
        attached("streams-later", streams_later, **decoupled),
        attached("calls", calls),
        attached("calls-from-elsewhere", calls_from_elsewhere),
    ]
    with attach(*models) as attachment:
        yield attachment


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_object_of_the_script_answers_over_rest_and_grpc(attachment: Attachment, address: str) -> None:
    with Client(getattr(attachment, address)) as client:
        assert client.infer("double", numbers(1, 2, 3)).tolist() == [2, 4, 6]


def test_a_closure_keeps_its_state_between_requests(attachment: Attachment) -> None:
    with attachment.client() as client:
        assert [client.infer("counts", numbers(n))[0] for n in (1, 2, 3)] == [101, 103, 106]


@pytest.mark.parametrize("address", ADDRESSES)
def test_an_exception_fails_its_request_and_no_other(attachment: Attachment, address: str) -> None:
    with Client(getattr(attachment, address)) as client:
        with pytest.raises(InferError) as failure:
            client.infer("fails", numbers(-1))
        assert client.infer("fails", numbers(1)).tolist() == [1]
    text = str(failure.value)
    assert "Failed to process the request(s) for model 'fails_0_0', message: ValueError: no number below zero" in text
    # Frames of the script, none of those that led there.
    assert "fails" in text
    assert "alipes/attached" not in text


def test_an_error_that_a_model_answers_has_its_code(attachment: Attachment) -> None:
    with attachment.client() as client, pytest.raises(InferError, match="not today") as failure:
        client.infer("refuses", numbers(1))
    assert failure.value.code == "NotReady"


def test_texts_and_parameters_pass_both_ways(attachment: Attachment) -> None:
    body = {
        "inputs": [{"name": "x", "datatype": "BYTES", "shape": [2], "data": ["a", "bé"]}],
        "parameters": {"tell": "me"},
    }
    request = Request(f"{attachment.url}/v2/models/texts/infer", json.dumps(body).encode())
    with urlopen(request, timeout=TIMEOUT_S) as response:
        document = json.load(response)
    assert document["outputs"][0]["data"] == ["a!", "bé!"]
    assert document["parameters"]["told"] == "me"


def test_a_coroutine_answers_when_it_is_done(attachment: Attachment) -> None:
    with attachment.client() as client:
        assert client.infer("waits", numbers(4)).tolist() == [5]


@pytest.mark.parametrize(("model", "factor"), [("streams", 1), ("streams-later", 2)])
def test_a_decoupled_model_gives_any_number_of_responses(attachment: Attachment, model: str, factor: int) -> None:
    with Client(attachment.grpc_url) as client:
        for count in (0, 1, 5):
            found = [float(response[0]) for response in client.stream(model, numbers(count))]
            assert found == [factor * number for number in range(count)]


def test_an_attached_model_calls_another_on_its_own_thread(attachment: Attachment) -> None:
    with attachment.client() as client:
        assert client.infer("calls", numbers(5)).tolist() == [11]


def test_a_thread_that_is_no_instances_calls_no_model(attachment: Attachment) -> None:
    with attachment.client() as client, pytest.raises(InferError, match="BLS is only supported"):
        client.infer("calls-from-elsewhere", numbers(5))


def test_inputs_are_views_of_the_memory_that_the_server_wrote() -> None:
    seen: list[int] = []

    def execute(requests: list[InferenceRequest]) -> list[InferenceResponse]:
        for request in requests:
            array = first_input(request)
            assert not array.flags.owndata
            seen.append(array.__array_interface__["data"][0])
        return [answer(first_input(request)) for request in requests]

    with attach(attached("views", execute)) as attachment, attachment.client() as client:
        client.infer("views", np.zeros(100_000, np.float32))
        shared = [
            range(int(start, 16), int(end, 16))
            for start, end in re.findall(
                r"^(\w+)-(\w+) .*/memfd:", Path(f"/proc/{os.getpid()}/maps").read_text(), re.MULTILINE
            )
        ]
    assert any(seen[0] in part for part in shared)


def test_a_batch_is_what_the_configuration_asks_for() -> None:
    sizes: list[int] = []

    def execute(requests: list[InferenceRequest]) -> list[InferenceResponse]:
        sizes.append(len(requests))
        return [answer(2 * first_input(request)) for request in requests]

    batching = {"preferred_batch_size": [4], "max_queue_delay_microseconds": 60_000_000}
    model = AttachedModel("batches", config(max_batch_size=4, dynamic_batching=batching), [execute])
    with Attachment([model], **LOCAL) as attachment, attachment.client() as client, ThreadPoolExecutor(4) as pool:
        found = pool.map(lambda n: client.infer("batches", numbers(n)[None])[0, 0], range(4))
        assert list(found) == [0, 2, 4, 6]
    assert sizes == [4]


def test_a_model_says_itself_whether_it_is_ready() -> None:
    class Moody:
        ready = True

        def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse]:
            return [answer(first_input(request)) for request in requests]

        def is_ready(self) -> bool:
            return self.ready

    moody = Moody()
    with attach(attached("moody", moody)) as attachment:
        assert attachment.server.ready("moody") is True
        moody.ready = False
        assert attachment.server.ready("moody") is False
