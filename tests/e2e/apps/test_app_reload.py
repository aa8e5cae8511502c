"""`--reload`: a changed source takes over without losing a request; one that cannot be imported does not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from alipes import Client
from support.server import ServerProcess
from support.waiting import until


def source(answer: int, name: str = "answer") -> str:
    return (
        "import alipes\nimport part\n\n\n@alipes.model\n"
        f"def {name}(x: int) -> int:\n    return x + part.MORE + {answer}\n\n\n"
        "@alipes.model\ndef same(x: int) -> int:\n    return x\n"
    )


@pytest.fixture
def app(tmp_path: Path) -> Path:
    (tmp_path / "part.py").write_text("MORE = 0\n")
    file = tmp_path / "app.py"
    file.write_text(source(1))
    return file


def ask(client: Client, name: str = "answer") -> int:
    return int(client.infer(name, {"x": [0]})["output_0"][0])


def test_a_changed_source_takes_over_without_losing_a_request(app: Path, serve: Callable[..., ServerProcess]) -> None:
    server = serve(app, "--reload")
    stop = threading.Event()
    answers: list[list[int]] = [[] for _ in range(4)]

    def ask_on(seen: list[int]) -> None:
        with Client(server.grpc) as own:
            while not stop.is_set():
                seen.append(ask(own))

    threads = [threading.Thread(target=ask_on, args=(seen,)) for seen in answers]
    for thread in threads:
        thread.start()
    try:
        until(lambda: all(seen[-1:] == [1] for seen in answers))
        app.write_text(source(2))
        until(lambda: all(seen[-1:] == [2] for seen in answers))
        (app.parent / "part.py").write_text("MORE = 10\n")
        until(lambda: all(seen[-1:] == [12] for seen in answers))
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    for seen in answers:
        assert {*seen} == {1, 2, 12}
        assert sorted(seen) == seen, "an old one answered after a new one"


def test_a_source_that_cannot_be_imported_changes_nothing(app: Path, serve: Callable[..., ServerProcess]) -> None:
    server = serve(app, "--reload")
    with Client(server.grpc) as client:
        app.write_text("import alipes\nraise RuntimeError('not yet')\n")
        server.wait_for_output("RuntimeError: not yet.*what it was before goes on serving")
        assert ask(client) == 1
        app.write_text(source(3))
        until(lambda: ask(client) == 3)


def test_a_model_that_cannot_start_leaves_the_old_one(app: Path, serve: Callable[..., ServerProcess]) -> None:
    server = serve(app, "--reload")
    broken = (
        "import alipes\n\n\n@alipes.model\nclass Answer:\n    def setup(self):\n        raise OSError('no weights')\n"
    )
    with Client(server.grpc) as client:
        app.write_text(broken + "\n    def predict(self, x: int) -> int:\n        return x\n")
        server.wait_for_output("OSError: no weights")
        assert ask(client) == 1
        app.write_text(source(6))
        until(lambda: ask(client) == 6)


def test_models_come_and_go_with_the_source(app: Path, serve: Callable[..., ServerProcess]) -> None:
    server = serve(app, "--reload")
    with Client(server.grpc) as client:
        app.write_text(source(4, name="other"))
        until(lambda: client.ready("other") and not client.ready("answer"))
        assert ask(client, "other") == 4
        assert ask(client, "same") == 0


def test_without_the_flag_the_source_is_read_once(app: Path, serve: Callable[..., ServerProcess]) -> None:
    server = serve(app)
    with Client(server.grpc) as client:
        app.write_text("broken(\n")
        assert ask(client) == 1
