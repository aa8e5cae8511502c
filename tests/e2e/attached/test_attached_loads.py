"""Attached models come and go: with the server, while it runs, and by the control protocol."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import numpy as np
import pytest
from alipes import AlreadyExists, Client, InferError, NotFound, ServeError
from alipes.attached import Attachment, InferenceRequest, InferenceResponse
from support.attached import LOCAL, answer, attach, attached, config, first_input, numbers
from support.processes import descriptors, is_gone, memory_files
from support.waiting import TIMEOUT_S, until

CYCLES = 5


class Counted:
    """Counts what the server asks of it."""

    def __init__(self, fails: bool = False) -> None:
        self.initialized, self.finalized, self.executed = 0, 0, 0
        self.fails = fails

    def initialize(self, args: dict[str, str]) -> None:
        self.initialized += 1
        if self.fails:
            raise RuntimeError("the weights are not there")

    def execute(self, requests: list[InferenceRequest]) -> list[InferenceResponse]:
        self.executed += len(requests)
        return [answer(first_input(request)) for request in requests]

    def finalize(self) -> None:
        self.finalized += 1


def threads() -> list[str]:
    """Threads of attachments in this process."""
    names = (one.name for one in threading.enumerate())
    # Those of calls to models belong to the process, and wait for the next call.
    others = ("alipes-serve-", "alipes-call_", "alipes-predictor-calls")
    return sorted(name for name in names if name.startswith("alipes-") and not name.startswith(others))


def left_open() -> tuple[list[str], int, int]:
    """Memory of links, threads and descriptors of this process."""
    native = len(list(Path("/proc/self/task").iterdir()))
    return memory_files(os.getpid()), native, len(descriptors(os.getpid()))


def test_nothing_stays_after_the_end() -> None:
    before = set(descriptors(os.getpid()).values())
    with attach(attached("echo", Counted(), Counted())) as attachment, attachment.client() as client:
        client.infer("echo", numbers(1))
        assert memory_files(os.getpid())
        pid, folder = attachment.server.pid, attachment.server.log_path.parent
    assert is_gone(pid)
    assert not folder.exists()
    assert threads() == []
    assert memory_files(os.getpid()) == []
    left = [name for name in set(descriptors(os.getpid()).values()) - before if name.startswith("socket:")]
    assert left == []


def test_an_attachment_starts_again_after_its_end() -> None:
    model = Counted()
    attachment = attach(attached("echo", model))
    for turn in (1, 2):
        with attachment, attachment.client() as client:
            assert client.infer("echo", numbers(turn)).tolist() == [turn]
        assert (model.initialized, model.finalized) == (turn, turn)
    attachment.stop()


def test_models_are_added_and_removed_while_others_answer() -> None:
    first, second = Counted(), Counted()
    with attach(attached("first", first)) as attachment, attachment.client() as client:
        attachment.add(attached("second", second))
        assert attachment.models == ["first", "second"]
        assert client.infer("second", numbers(2)).tolist() == [2]
        attachment.remove("second")
        assert second.finalized == 1
        assert attachment.models == ["first"]
        assert client.infer("first", numbers(1)).tolist() == [1]
        with pytest.raises(InferError):
            client.infer("second", numbers(2))
        with pytest.raises(NotFound, match="no model 'second' is attached; attached: first"):
            attachment.remove("second")
        attachment.add(attached("second", second))
        assert client.infer("second", numbers(2)).tolist() == [2]
    assert (second.initialized, second.finalized) == (2, 2)


def test_what_is_removed_gives_its_memory_back() -> None:
    with attach(attached("stays", Counted())) as attachment, attachment.client() as client:
        client.infer("stays", numbers(1))  # the client has its connection
        before = left_open()
        for _ in range(CYCLES):
            attachment.add(attached("goes", Counted(), Counted()))
            client.infer("goes", np.zeros(1000, np.float32))
            assert left_open() != before
            attachment.remove("goes")
        # Threads that watch lifelines end by themselves, soon.
        until(lambda: left_open() == before, "memory, descriptors or threads of links are left")


def test_an_array_outlives_its_model_and_its_server() -> None:
    arrays: list[np.ndarray[tuple[int, ...], np.dtype[np.float32]]] = []

    def execute(requests: list[InferenceRequest]) -> list[InferenceResponse]:
        arrays.extend(first_input(request) for request in requests)
        return [answer(numbers(0)) for _ in requests]

    with attach(attached("keeps", execute)) as attachment, attachment.client() as client:
        client.infer("keeps", np.arange(1000, dtype=np.float32))
    assert arrays[0].sum() == 499_500
    assert memory_files(os.getpid())
    arrays.clear()
    assert memory_files(os.getpid()) == []


def test_unload_finalizes_and_load_attaches_the_same_objects_again() -> None:
    model = Counted()
    with attach(attached("echo", model)) as attachment, attachment.client() as client:
        attachment.unload("echo")
        until(lambda: model.finalized == 1)
        with pytest.raises(InferError):
            client.infer("echo", numbers(1))
        assert attachment.models == ["echo"]
        attachment.load("echo")
        assert client.infer("echo", numbers(1)).tolist() == [1]
        assert (model.initialized, model.finalized, model.executed) == (2, 1, 1)


def test_a_model_that_is_loaded_anew_is_never_without_an_instance() -> None:
    model = Counted()
    with attach(attached("echo", model, max_batch_size=2)) as attachment, attachment.client() as client:
        changed = config(max_batch_size=4, backend="attached")
        attachment.server.load("echo", config=changed)
        assert client.infer("echo", np.ones((4, 1), np.float32)).sum() == 4
        # The new version took the object over from the old one, which had it until then.
        assert (model.initialized, model.finalized) == (1, 0)
    assert (model.initialized, model.finalized) == (1, 1)


def test_more_instances_than_objects_are_refused() -> None:
    with attach(attached("echo", Counted())) as attachment, attachment.client() as client:
        changed = config(backend="attached", instance_group=[{"count": 2, "kind": "KIND_CPU"}])
        with pytest.raises(InferError, match="model 'echo' has 1 attached instances, and 'echo_0_1' would be number 2"):
            attachment.server.load("echo", config=changed)
        assert client.infer("echo", numbers(1)).tolist() == [1]


def test_an_initialize_that_raises_fails_its_load_alone() -> None:
    broken = Counted(fails=True)
    with attach(attached("echo", Counted())) as attachment, attachment.client() as client:
        with pytest.raises(InferError, match="RuntimeError: the weights are not there"):
            attachment.add(attached("broken", broken))
        assert attachment.models == ["echo"]
        # The server says why it has no such model.
        broken_entry, echo_entry = sorted(attachment.server.models(), key=lambda entry: entry.name)
        assert (echo_entry.name, echo_entry.state) == ("echo", "READY")
        assert (broken_entry.name, broken_entry.state) == ("broken", "UNAVAILABLE")
        assert "the weights are not there" in broken_entry.reason
        assert client.infer("echo", numbers(1)).tolist() == [1]
        broken.fails = False
        attachment.add(attached("broken", broken))
        assert client.infer("broken", numbers(1)).tolist() == [1]
    assert (broken.initialized, broken.finalized) == (2, 1)


def test_a_start_whose_model_fails_leaves_nothing() -> None:
    attachment = attach(attached("broken", Counted(fails=True)))
    with pytest.raises(InferError, match="the weights are not there"):
        attachment.start()
    assert not attachment.is_running
    assert threads() == []
    with pytest.raises(ServeError, match="does not run"):
        attachment.client()


def test_a_finalize_that_raises_is_a_line_in_the_log() -> None:
    class Sulks(Counted):
        def finalize(self) -> None:
            raise OSError("the device is busy")

    with attach(attached("sulks", Sulks())) as attachment:
        attachment.remove("sulks")
        until(lambda: "finalize of model 'sulks' failed: OSError: the device is busy" in attachment.server.log)


def test_two_models_of_one_name_are_refused() -> None:
    with pytest.raises(AlreadyExists, match="a model 'echo' is attached already"):
        attach(attached("echo", Counted()), attached("echo", Counted()))
    with attach(attached("echo", Counted())) as attachment, pytest.raises(AlreadyExists):
        attachment.add(attached("echo", Counted()))


def test_what_is_no_flag_is_named_and_nothing_starts() -> None:
    with pytest.raises(ServeError, match="htpp_port= is no flag of the server"):
        Attachment(htpp_port=0).start()
    with pytest.raises(ServeError, match="model_control_mode= cannot be given here: attached models are loaded"):
        Attachment(model_control_mode="poll", **LOCAL).start()
    assert threads() == []


def test_a_server_that_is_started_twice_says_so() -> None:
    with attach(attached("echo", Counted())) as attachment, pytest.raises(ServeError, match="runs already"):
        attachment.start()


def test_waiting_ends_with_the_time_or_with_the_server() -> None:
    with attach(attached("echo", Counted())) as attachment:
        assert attachment.wait(timeout=0.01) is False
        os.kill(attachment.server.pid, 9)
        assert attachment.wait(timeout=TIMEOUT_S) is True
        # Whoever executed for the server learns of its end.
        until(lambda: not [name for name in threads() if name.startswith("alipes-echo")])


@pytest.mark.parametrize("address", ["url", "grpc_url"])
def test_nobody_but_the_script_loads_or_unloads(address: str) -> None:
    with attach(attached("echo", Counted())) as attachment:
        with Client(getattr(attachment, address)) as stranger:
            for control in (stranger.load, stranger.unload):
                with pytest.raises(InferError, match="restricted"):
                    control("echo")
            assert stranger.infer("echo", numbers(1)).tolist() == [1]
        # Whoever can list processes reads their words, and finds no secret there.
        assert "restricted" not in Path(f"/proc/{attachment.server.pid}/cmdline").read_text()


def test_restrictions_of_the_script_stay() -> None:
    restricted = {
        "http_restricted_api": "statistics:key=word",
        "server_args": "--grpc-restricted-protocol metadata:k=w",
    }
    with attach(attached("echo", Counted()), **restricted) as attachment:
        with Client(attachment.url) as stranger, pytest.raises(InferError, match="restricted"):
            stranger.statistics("echo")
        with Client(attachment.url, headers={"key": "word"}) as friend:
            assert friend.statistics("echo")
        with Client(attachment.grpc_url) as stranger, pytest.raises(InferError, match="restricted"):
            stranger.metadata("echo")
