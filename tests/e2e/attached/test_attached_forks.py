"""Processes that a script forks: they have its objects, and neither its links nor its server."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable

import pytest
from alipes.attached import InferenceRequest, InferenceResponse, TritonModelException
from support.attached import answer, attach, attached, each, first_input, numbers
from support.processes import descriptors, is_gone
from support.waiting import until

LOWEST_DOORBELL = 768

double = each(lambda x: 2 * x)


def forked(work: Callable[[], object]) -> int:
    """Forks a process that does some work; gives the exit status: 0 where the work returned true."""
    child = os.fork()
    if child == 0:
        status = 1
        try:
            status = 0 if work() else 2
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def test_a_forked_process_stops_and_removes_nothing() -> None:
    with attach(attached("double", double)) as attachment, attachment.client() as client:
        folder = attachment.server.log_path.parent

        def leave() -> bool:
            attachment.stop()
            return True

        assert forked(leave) == 0
        assert folder.is_dir()
        assert client.infer("double", numbers(2)).tolist() == [4]
        attachment.add(attached("more", double))


def link_descriptors() -> set[int]:
    """The descriptors of links that this process has: doorbells, which lie out of the way, and sockets for packets."""
    found = descriptors(os.getpid())
    doorbells = {number for number, name in found.items() if "eventfd" in name and number >= LOWEST_DOORBELL}
    return doorbells | {number for number, name in found.items() if name.startswith("socket:") and _has_packets(number)}


def _has_packets(number: int) -> bool:
    with socket.socket(fileno=os.dup(number)) as copy:
        return copy.type == socket.SOCK_SEQPACKET


def test_a_forked_process_has_no_descriptor_of_a_link() -> None:
    with attach(attached("double", double, double)) as attachment:
        assert len(link_descriptors()) >= 6  # two doorbells and lifelines, and both ends of the socket of instances
        assert forked(lambda: not link_descriptors()) == 0
        assert attachment.is_running


def test_a_process_that_a_model_forks_cannot_answer_for_it() -> None:
    statuses: list[int] = []

    def execute(requests: list[InferenceRequest]) -> None:
        sender = requests[0].get_response_sender()

        def answers() -> bool:
            with pytest.raises(TritonModelException, match="not one that was forked from it"):
                sender.send(answer(numbers(-1)), flags=1)
            return True

        statuses.append(forked(answers))
        sender.send(answer(2 * first_input(requests[0])))
        sender.send(flags=1)

    decoupled = {"model_transaction_policy": {"decoupled": True}}
    with attach(attached("forks", execute, **decoupled)) as attachment, attachment.client() as client:
        assert [response.tolist() for response in client.stream("forks", numbers(3))] == [[6]]
    assert statuses == [0]


def test_a_process_that_returns_from_execute_answers_nothing() -> None:
    """A forked copy of the instance's thread goes on where its parent does: to the answer."""
    children: list[int] = []

    def execute(requests: list[InferenceRequest]) -> list[InferenceResponse]:
        child = os.fork()
        if child:
            children.append(child)
            until(lambda: is_gone(child))
        return [answer(numbers(0 if child else -1)) for _ in requests]

    with attach(attached("forks", execute)) as attachment, attachment.client() as client:
        for _ in range(3):
            assert client.infer("forks", numbers(1)).tolist() == [0]
    assert len(children) == 3
    for child in children:
        os.waitpid(child, 0)


def test_a_forked_process_may_attach_models_of_its_own() -> None:
    def serves() -> bool:
        with attach(attached("double", double)) as attachment, attachment.client() as client:
            return client.infer("double", numbers(5)).tolist() == [10]

    with attach(attached("double", double)) as attachment, attachment.client() as client:
        assert client.infer("double", numbers(1)).tolist() == [2]
        assert forked(serves) == 0
        assert client.infer("double", numbers(2)).tolist() == [4]
