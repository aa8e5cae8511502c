"""Workers are killed, stopped, starved and flooded under load; at the end everything is as it was.

Eight seconds as one of many tests; two minutes in the proof, and longer in `make soak`. The dice are thrown anew each
time: to throw them as before, say `ALIPES_CHAOS_SEED=<the seed that was printed>`.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil
import pytest
from support.chaos.account import Account
from support.chaos.load import Load
from support.chaos.models import INSTANCES, NATIVE, STREAM, UNARY, write_repository
from support.chaos.trouble import Trouble
from support.endpoints import ENDPOINTS, HttpEndpoint
from support.processes import assert_none_stays, is_gone, metric, shared_bytes, shared_memory_files, workers_of
from support.server import ServerProcess
from support.streams import Stream
from support.waiting import until

SECONDS = float(os.environ.get("ALIPES_CHAOS_SECONDS", "8"))
SEED = int(os.environ.get("ALIPES_CHAOS_SEED", random.SystemRandom().randrange(10**9)))

# Pauses between restarts grow up to half a minute.
RECOVERY_S = 120.0
# What the allocators of server and clients may keep after a flood of large requests.
MAX_GROWTH_BYTES = 256 << 20

MODELS = (*UNARY, "callee", STREAM)


@pytest.mark.slow("eight seconds of trouble")
@pytest.mark.timeout(SECONDS + 300)
def test_a_server_survives_everything_that_happens_to_its_workers(
    repository: Path, serve: Callable[..., ServerProcess], capsys: pytest.CaptureFixture[str]
) -> None:
    write_repository(repository)
    others = shared_memory_files()
    server = serve(repository)
    account = Account()
    load = Load(server, account, SEED)
    load.flood(random.Random(SEED))  # reaches the level that memory is compared with
    process = psutil.Process(server.process.pid)
    descriptors, resident = process.num_fds(), process.memory_info().rss
    with load:
        trouble = Trouble(server, load, SEED)
        trouble.make(SECONDS)
    story = f"seed {SEED}: {dict(trouble.done)}; {account.text()}"
    with capsys.disabled():
        print(f"\nchaos: {story}")

    assert not account.violations, "\n".join([story, *account.violations])
    recover(server, load)
    # Also the requests whose clients have left.
    until(lambda: metric(server, "nv_inference_pending_request_count") == 0, story)
    assert not account.violations, "\n".join([story, *account.violations])
    assert [account.open(model) for model in (*MODELS, NATIVE)] == [0] * (len(MODELS) + 1), story
    for model in (*UNARY, STREAM, NATIVE):
        compare_statistics(server, account, model, story)
    until(lambda: process.num_fds() <= descriptors, f"descriptors were left open; {story}")
    until(lambda: shared_bytes(process.pid) < MAX_GROWTH_BYTES, f"shared memory was kept; {story}")
    until(lambda: process.memory_info().rss < resident + MAX_GROWTH_BYTES, f"memory was kept; {story}")
    until(lambda: workers_per_model(server) == INSTANCES, story)
    until(lambda: not any(is_gone(child.pid) for child in process.children()), f"a process was left; {story}")
    assert server.stop() == 0
    assert_none_stays(others)


def recover(server: ServerProcess, load: Load) -> None:
    """Waits until all models serve, and asks each of them."""
    with HttpEndpoint(server) as endpoint:
        assert endpoint.call("GET", "/v2/health/live")[0].status == 200
        for model in MODELS:
            until(lambda model=model: endpoint.is_ready(model), f"{model} does not come back", RECOVERY_S)  # type: ignore[misc]
        until(lambda: workers_per_model(server) == INSTANCES, "a worker does not come back", RECOVERY_S)
        until(lambda: endpoint.call("GET", "/v2/health/ready")[0].status == 200, "the server is not ready", RECOVERY_S)
        until(lambda: answers_to_all(server, load), "a model does not answer", RECOVERY_S)


def answers_to_all(server: ServerProcess, load: Load) -> bool:
    """Whether every model answers."""
    numbers = np.arange(5, dtype=np.int32)
    for protocol in ENDPOINTS:
        with ENDPOINTS[protocol](server) as endpoint:
            if not all(load.ask(endpoint, model, numbers) for model in UNARY):
                return False
    with Stream(server) as stream:
        return load.ask_stream(stream, 5)


def compare_statistics(server: ServerProcess, account: Account, model: str, story: str) -> None:
    """The server has counted every request that ended, once; those that we left it may have seen or not."""
    succeeded = metric(server, "nv_inference_request_success", model=model)
    failed = metric(server, "nv_inference_request_failure", model=model)
    answered, refused = account.count(model, "answered"), account.count(model, "refused")
    unseen = account.count(model, "dropped") + account.count(model, "turned away")
    assert answered <= succeeded <= answered + account.count(model, "dropped"), (
        f"{model} succeeded {succeeded}; {story}"
    )
    assert refused <= failed <= refused + unseen, f"{model} failed {failed}; {story}"
    assert answered + refused <= succeeded + failed <= answered + refused + unseen, story


def workers_per_model(server: ServerProcess) -> dict[str, int]:
    """How many processes each model has."""
    names = [name_of(worker) for worker in workers_of(server)]
    return {model: sum(name.startswith(f"alipes:{model}"[:15]) for name in names) for model in INSTANCES}


def name_of(worker: psutil.Process) -> str:
    """What `ps` shows of a process; nothing once it has ended."""
    try:
        return Path(f"/proc/{worker.pid}/comm").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
