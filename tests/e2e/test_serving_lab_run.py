"""The lab in one command: every variant is started, says what the network says, and is measured beside the others."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.example import EXAMPLES, load_example

(senders, results) = load_example("serving-lab", "senders", "results")

SHORT = ("--seconds", "0.2", "--rounds", "1", "--senders", "1", "4", "--no-picture")
WITHOUT_EXTRAS = ["model-py", "function", "onnx", "native"]


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLES / "serving-lab" / "run.py"), *SHORT, *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=400)


def found(folder: Path, *arguments: str) -> tuple[str, dict[str, Any]]:
    done = run(folder, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout, json.loads((folder / "serving-lab" / "results.json").read_text())


def check(result: dict[str, Any], variants: list[str]) -> None:
    assert list(result["answers"]) == variants
    assert {label for label, _ in result["answers"].values()} == {"Soup"}
    assert [(row["senders"], row["variant"]) for row in result["measured"]] == [
        (count, variant) for count in (1, 4) for variant in variants
    ]
    assert all(row["rate"] > 0 and 0 < row["median_ms"] <= row["p99_ms"] for row in result["measured"])
    assert all(row["cpu_ms"] >= 0 for row in result["measured"])


@pytest.mark.slow("four servers, each measured")
@pytest.mark.timeout(500)
def test_the_variants_of_alipes_run_and_say_the_same(tmp_path: Path) -> None:
    printed, result = found(tmp_path, "--variants", *WITHOUT_EXTRAS)
    check(result, WITHOUT_EXTRAS)
    assert result["baseline"] == "model-py"
    assert all(row["ratio"] == 1.0 for row in result["measured"] if row["variant"] == "model-py")
    # Every request is counted, under the size of its batch.
    counted = {(row["variant"], row["model"]) for row in result["batches"]}
    assert {("model-py", "food_classifier"), ("onnx", "food_classifier_onnx"), ("native", "network")} <= counted
    assert all(row["executions"] > 0 and row["size"] > 0 for row in result["batches"])
    for word in ("native ensemble", "function, ONNX", "requests", "Executions by batch size"):
        assert word in printed


@pytest.mark.extra("examples")
@pytest.mark.slow("two servers, each measured")
@pytest.mark.timeout(500)
def test_fastapi_says_what_the_native_ensemble_says(tmp_path: Path) -> None:
    _, result = found(tmp_path, "--variants", "fastapi-onnx", "native")
    check(result, ["fastapi-onnx", "native"])
    assert result["baseline"] == "fastapi-onnx"


@pytest.mark.proof
@pytest.mark.extra("torch")
@pytest.mark.slow("two servers that import PyTorch, in a network with layers")
@pytest.mark.timeout(500)
def test_pytorch_says_what_onnx_says_of_a_network_with_layers(tmp_path: Path) -> None:
    variants = ["fastapi-pt", "model-py-pt", "native"]
    _, result = found(tmp_path, "--variants", *variants, "--layers", "1")
    check(result, variants)
    assert result["baseline"] is None


@pytest.mark.slow("imports what the lab imports")
def test_an_unknown_variant_is_refused_with_the_known_ones(tmp_path: Path) -> None:
    done = run(tmp_path, "--variants", "tensorrt")
    assert done.returncode == 2
    assert "tensorrt" in done.stderr and "native" in done.stderr


@pytest.mark.slow("imports what the lab imports")
@pytest.mark.parametrize(
    ("script", "folder"), [(("run.py", *SHORT, "--output", "."), "lab"), (("containers/gather.py", "build"), "build")]
)
def test_a_folder_of_others_is_left_alone(tmp_path: Path, script: tuple[str, ...], folder: str) -> None:
    kept = tmp_path / folder / "thesis.txt"
    kept.parent.mkdir()
    kept.touch()
    program, *arguments = script
    command = [sys.executable, str(EXAMPLES / "serving-lab" / program), *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 1
    assert str(kept.parent) in done.stderr and "would be replaced" in done.stderr
    assert kept.exists()


@contextmanager
def answering(*answers: bytes) -> Iterator[int]:
    """A server that takes one connection and gives these answers; its port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            accepted, _ = listener.accept()
            with accepted:
                for answer in answers:
                    accepted.recv(1 << 16)
                    accepted.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield listener.getsockname()[1]
        finally:
            thread.join()


OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"


def test_senders_read_the_body_that_was_announced() -> None:
    with answering(OK) as port:
        assert senders.ask(port, b"x") == b"ab"


@pytest.mark.parametrize(
    ("answers", "says"),
    [
        ((OK, OK.replace(b"ab", b"ba")), "b'ba' instead of b'ab'"),
        ((OK.replace(b"200 OK", b"500 Oh"),), "500 Oh: ab"),
        ((OK[:-1],), "closed the connection"),
        ((), "closed the connection"),
    ],
)
def test_senders_stop_at_an_answer_that_is_none(answers: tuple[bytes, ...], says: str) -> None:
    with answering(*answers) as port, pytest.raises(senders.SendFailed, match=says):
        senders.load(port, b"x", b"ab", 1, 60.0)


def test_results_are_medians_and_ratios_those_within_a_round() -> None:
    def row(variant: str, rate: float) -> object:
        return results.Measured(variant, 1, rate, 2.0, 3.0, 4.0)

    rounds = [[row("fastapi-onnx", base), row("native", base * times)] for base, times in ((1, 6), (10, 2), (100, 4))]
    answers = {"fastapi-onnx": ("Soup", 0.9), "native": ("Soup", 0.9)}
    made = results.Results.of(rounds, [], answers)
    assert (made.row("native", 1).rate, made.row("native", 1).ratio) == (20, 4)
    assert made.row("fastapi-onnx", 1).ratio == 1.0


@pytest.mark.extra("plots")
@pytest.mark.slow("imports matplotlib")
def test_the_picture_of_the_lab_is_drawn(tmp_path: Path) -> None:
    results, picture = load_example("serving-lab", "results", "picture")
    rows = [results.Measured(name, 8, 10.0, 1.0, 2.0, 3.0, 1.0) for name in ("fastapi-onnx", "onnx", "native")]
    batches = [results.Batches("native", "network", size, 5, 1.0) for size in (1, 2, 16)]
    answers = {row.variant: ("Soup", 0.9) for row in rows}
    drawn = picture.draw(results.Results(rows, batches, answers, "fastapi-onnx"), tmp_path / "lab.png")
    content = drawn.read_bytes()
    assert content.startswith(b"\x89PNG\r\n\x1a\n")
    assert len(content) > 20_000
