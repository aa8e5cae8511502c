"""Processes that a model forks: they call models as the worker itself does."""

from __future__ import annotations

import os
import signal
import socket
import urllib.request
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.notes import Notes
from support.processes import is_gone
from support.python_models import add_python_model, instances
from support.server import ServerProcess
from support.text_models import ask
from support.waiting import TIMEOUT_S, until

Serve = Callable[..., ServerProcess]

# What forked processes do, by the word that the request begins with.
FORKING = """
import multiprocessing

FORK = multiprocessing.get_context("fork")


def request(how, model="callee"):
    tensor = pb_utils.Tensor("HOW", np.array([how], dtype=object))
    return pb_utils.InferenceRequest(model_name=model, requested_output_names=["OUT"], inputs=[tensor])


def read(response):
    if response.has_error():
        return f"{response.error().code()} {response.error().message()}"
    return response.output_tensors()[0].as_numpy()[0].decode()


def call(how):
    return read(request(how).exec())


def nobody(_):
    return read(request("x", "nobody").exec())


def raised(attempt):
    try:
        return str(attempt())
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def wrong(_):
    return raised(lambda: request("x").exec(decoupled=True))


def sender(_):
    return raised(lambda: CURRENT[0].get_response_sender().send(answer(OUT=np.array(["x"], dtype=object)), FINAL))


def soon(how):
    async def both():
        return await asyncio.gather(*[request(f"{how}{number}").async_exec() for number in range(3)])
    return " ".join(read(response) for response in asyncio.run(both()))


def several_threads(how):
    from concurrent.futures import ThreadPoolExecutor
    with ThreadPoolExecutor(4) as pool:
        return " ".join(pool.map(call, [f"{how}{number}" for number in range(8)]))


def other_tools(how):
    pb_utils.Logger.log_info(f"said in a forked process: {how}")
    return str(pb_utils.is_model_ready("callee"))


def forget_metrics(_):
    TritonPythonModel.families.clear()
    import gc
    gc.collect()
    return "forgotten"


def drop_a_metric(_):
    family = pb_utils.MetricFamily("fork_made", "Made", pb_utils.MetricFamily.COUNTER)
    metric = family.Metric(labels={"a": "b"})
    seen = TritonPythonModel.families[0][1].Metric(labels={"made": "there"})
    metric.increment(2)
    return str(metric.value() + seen.value())


def grandchild(how):
    ends = FORK.Pipe()
    child = os.fork()
    if child == 0:
        ends[1].send(call(how))
        os._exit(0)
    os.waitpid(child, 0)
    return ends[0].recv() + " " + call(how)


def pid(_):
    return str(os.getpid())


CURRENT = []
TASKS = [call, nobody, wrong, sender, soon, several_threads, other_tools, forget_metrics, drop_a_metric, grandchild]


class TritonPythonModel:
    families = []

    def initialize(self, args):
        family = pb_utils.MetricFamily("fork_seen", "Seen", pb_utils.MetricFamily.COUNTER)
        self.families.append((family.Metric(labels={"a": "b"}), family))
        self.pool = FORK.Pool(3)
        note("children", " ".join(set(self.pool.map(pid, range(300)))))

    def execute(self, requests):
        return [answer(OUT=np.array([self.one(word(request), request)], dtype=object)) for request in requests]

    def one(self, how, request):
        task, _, how = how.partition(" ")
        if task == "here":
            return call(how) + "," + nobody(how)
        if task == "many":
            return " ".join(self.pool.map(call, [f"a{number}" for number in range(int(how))]))
        if task == "large":
            return str(len(self.pool.map(call, ["x" * 3_000_000])[0]))
        CURRENT[:] = [request]
        with FORK.Pool(1) as pool:
            return pool.map(next(it for it in TASKS if it.__name__ == task), [how])[0]
"""

UPPER = """
class TritonPythonModel:
    def execute(self, requests):
        return [self.one(word(request)) for request in requests]

    def one(self, how):
        if how == "fail":
            return pb_utils.InferenceResponse(error=pb_utils.TritonError("it failed", pb_utils.TritonError.NOT_FOUND))
        return answer(OUT=np.array([how.upper()], dtype=object))
"""

# A child that calls a model which waits for the test.
WAITING = """
class TritonPythonModel:
    def execute(self, requests):
        return [answer(OUT=np.array([self.one(word(request))], dtype=object)) for request in requests]

    def one(self, how):
        child = os.fork()
        if child == 0:
            tensor = pb_utils.Tensor("HOW", np.array([how], dtype=object))
            call = pb_utils.InferenceRequest(model_name="slow", requested_output_names=["OUT"], inputs=[tensor])
            note(f"child {how}", os.getpid())
            try:
                said = call.exec().output_tensors()[0].as_numpy()[0].decode()
            except pb_utils.TritonModelException as error:
                said = f"raised {error}"
            note(f"said {how}", said)
            os._exit(0)
        note(f"worker {how}", os.getpid())
        return str(os.waitpid(child, 0)[1])
"""

SLOW = """
class TritonPythonModel:
    def execute(self, requests):
        note(f"slow {word(requests[0])}")
        await_note(f"go {word(requests[0])}")
        return [answer(OUT=np.array([word(request)], dtype=object)) for request in requests]
"""


def add(repository: Path, name: str, source: str, count: int = 1) -> None:
    add_python_model(repository, name, source, signature="HOW: BYTES[1] -> OUT: BYTES[1]", config=instances(count))


@pytest.fixture(scope="module")
def notes(tmp_path_factory: pytest.TempPathFactory) -> Notes:
    return Notes(tmp_path_factory.mktemp("notes"))


@pytest.fixture(scope="module")
def server(serve_module: Serve, tmp_path_factory: pytest.TempPathFactory, notes: Notes) -> ServerProcess:
    repository = tmp_path_factory.mktemp("models")
    add(repository, "forking", FORKING)
    add(repository, "callee", UPPER, 2)
    add(repository, "waiting", WAITING)
    add(repository, "slow", SLOW)
    return serve_module(repository, environment=notes.environment)


ONE_EACH = (
    "TritonModelException: A process that was forked from the worker calls models for one response each: "
    "decoupled=True is for the worker's own process."
)
NOT_OURS = "Only the worker's own process reaches the server, not one that was forked from it."


@pytest.mark.parametrize(
    ("how", "seen"),
    [
        ("call a", "A"),
        ("call fail", "1 it failed"),
        ("many 30", " ".join(f"A{number}" for number in range(30))),
        ("large", "3000000"),
        ("wrong", ONE_EACH),
        ("sender", f"TritonModelException: {NOT_OURS}"),
        ("soon b", "B0 B1 B2"),
        ("several_threads c", " ".join(f"C{number}" for number in range(8))),
        ("grandchild d", "D D"),
    ],
)
def test_a_forked_process_calls_models(server: ServerProcess, how: str, seen: str) -> None:
    assert ask(server, "forking", how) == (200, seen)


def test_errors_are_those_of_a_call_of_the_worker_itself(server: ServerProcess) -> None:
    status, here = ask(server, "forking", "here fail")
    assert (status, here.split(",", 1)[0]) == (200, ask(server, "forking", "call fail")[1])
    assert here.split(",", 1)[1] == ask(server, "forking", "nobody")[1]


def test_a_forked_process_logs_and_asks_for_models(server: ServerProcess) -> None:
    assert ask(server, "forking", "other_tools x") == (200, "True")
    until(lambda: "said in a forked process: x" in server.output, "no line in the log")


def exposed(server: ServerProcess) -> str:
    with urllib.request.urlopen(f"http://{server.metrics}/metrics", timeout=TIMEOUT_S) as answer:
        return str(answer.read().decode())


def test_metrics_stay_when_a_forked_process_drops_its_copies(server: ServerProcess) -> None:
    assert ask(server, "forking", "forget_metrics x") == (200, "forgotten")
    assert 'fork_seen{a="b"} 0' in exposed(server)


def test_metrics_of_a_forked_process_go_when_it_drops_them(server: ServerProcess) -> None:
    assert ask(server, "forking", "drop_a_metric x") == (200, "2.0")
    assert "fork_made" not in exposed(server)
    assert 'made="there"' not in exposed(server)
    assert 'fork_seen{a="b"} 0' in exposed(server)


def test_the_end_of_a_forked_process_within_a_call_harms_nobody(server: ServerProcess, notes: Notes) -> None:
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, server, "waiting", "dies")
        notes.read("slow dies")
        os.kill(int(notes.read("child dies")), signal.SIGKILL)
        assert asked.result() == (200, str(int(signal.SIGKILL)))
        notes.write("go dies")
        asked = pool.submit(ask, server, "waiting", "lives")
        notes.write("go lives")
        assert asked.result() == (200, "0")
    assert notes.read("said lives") == "lives"


def test_a_call_ends_with_the_worker(server: ServerProcess, notes: Notes) -> None:
    with ThreadPoolExecutor(1) as pool:
        asked = pool.submit(ask, server, "waiting", "orphan")
        notes.read("slow orphan")
        os.kill(int(notes.read("worker orphan")), signal.SIGKILL)
        assert asked.result()[0] == 503
    assert notes.read("said orphan") == "raised The server does not answer calls any more."
    notes.write("go orphan")
    until(lambda: is_gone(int(notes.read("child orphan"))))


def relay_addresses(process: int) -> set[str]:
    """The addresses of the sockets, without a name in the file system, that a process has and listens on."""
    inodes = set()
    for descriptor in Path(f"/proc/{process}/fd").iterdir():
        target = str(descriptor.readlink())
        if target.startswith("socket:["):
            inodes.add(target.removeprefix("socket:[").removesuffix("]"))
    lines = [line.split() for line in Path("/proc/net/unix").read_text().splitlines()[1:]]
    return {
        "\0" + line[7][1:] for line in lines if len(line) > 7 and line[6] in inodes and line[7].startswith("@alipes")
    }


def relay_address(notes: Notes) -> str:
    parent = int(Path(f"/proc/{notes.read('children').split()[0]}/stat").read_text().rsplit(") ", 1)[1].split()[1])
    (address,) = relay_addresses(parent)
    return address


def test_another_process_is_not_served_and_holds_up_nobody(server: ServerProcess, notes: Notes) -> None:
    assert ask(server, "forking", "call a") == (200, "A")
    address = relay_address(notes)
    with socket.socket(socket.AF_UNIX) as silent, socket.socket(socket.AF_UNIX) as loud:
        silent.connect(address)
        loud.connect(address)
        loud.sendall(b"x" * 32)
        assert loud.recv(1) == b""
        assert ask(server, "forking", "call a") == (200, "A")


@pytest.mark.slow("a connection has some seconds to show its secret")
@pytest.mark.parametrize("sent", [b"", b"\0\0", b"\0\0\0\x20"])
def test_another_process_that_falls_silent_holds_no_thread(server: ServerProcess, notes: Notes, sent: bytes) -> None:
    with socket.socket(socket.AF_UNIX) as silent:
        silent.settimeout(TIMEOUT_S)
        silent.connect(relay_address(notes))
        silent.sendall(sent)
        assert silent.recv(1) == b""


def test_a_pool_ends_with_its_model(serve: Serve, tmp_path: Path) -> None:
    notes = Notes(tmp_path / "notes")
    repository = tmp_path / "models"
    add(repository, "forking", FORKING)
    server = serve(repository, environment=notes.environment)
    children = [int(child) for child in notes.read("children").split()]
    assert ask(server, "forking", "nobody x")[0] == 200
    server.stop()
    until(lambda: all(map(is_gone, children)), "a process of the pool is still there")


RETURNS = """
class TritonPythonModel:
    def execute(self, requests):
        child = os.fork()
        said = "the child's" if child == 0 else "the worker's"
        if child:
            os.waitpid(child, 0)
        return [answer(OUT=np.array([said], dtype=object)) for request in requests]
"""


def test_a_process_that_returns_from_execute_ends_unheard(serve: Serve, tmp_path: Path) -> None:
    add(tmp_path / "models", "returns", RETURNS)
    server = serve(tmp_path / "models")
    # It neither answers for the worker, nor takes the next request.
    for _ in range(3):
        assert ask(server, "returns", "x") == (200, "the worker's")
