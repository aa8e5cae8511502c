"""Rows of many files answered by servers: a batch run, or the loop of a talk. Run as a program of its own.

Every answer is compared with the model's. Prints as JSON how many rows were answered in a second.
"""

import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

#: The share of a run at its begin and its end that does not count: clients start, and the last ones have nothing to do.
EDGE = 0.1
#: Rows of a file.
FILE_ROWS = 64
RELATIVE_TOLERANCE = 1e-3
ABSOLUTE_TOLERANCE = 1e-4

Rows = np.ndarray[Any, np.dtype[np.float32]]


@dataclass(frozen=True)
class Task:
    """What is done: so many rows by clients of servers, each row with this answer."""

    model: str
    rows: int
    clients: int
    row: Rows
    answer: Rows
    urls: Sequence[str]

    def check(self, answers: Rows) -> None:
        """Ends the program where an answer is another one."""
        if not np.allclose(answers, self.answer, RELATIVE_TOLERANCE, ABSOLUTE_TOLERANCE):
            raise SystemExit("an answer is not the model's")


def main() -> None:
    """Runs one: `batch|talk model rows clients row-file answer-file url...`."""
    how, model, rows, clients, row, answer, *urls = sys.argv[1:]
    task = Task(model, int(rows), int(clients), np.load(row), np.load(answer), urls)
    print(json.dumps(LOOPS[how](task)))


def batch(task: Task) -> dict[str, float]:
    """`alipes.batch.run` over files, in which each file is the same one under another name."""
    from alipes import batch as batches

    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        data = folder / "data"
        data.mkdir()
        first = data / "0000000.npy"
        np.save(first, np.repeat(task.row, FILE_ROWS, axis=0))
        files = -(-task.rows // FILE_ROWS)
        for number in range(1, files):
            os.link(first, data / f"{number:07}.npy")
        urls = [f"grpc://{url}" for url in task.urls]
        done = batches.run(task.model, data, folder / "out", url=urls, clients=task.clients, progress=False)
        if (done.rows, done.set_aside) != (files * FILE_ROWS, 0):
            raise SystemExit(f"{done.rows} rows were answered and {done.set_aside} set aside, of {files * FILE_ROWS}")
        for columns in batches.results(folder / "out"):
            for answers in columns.values():
                task.check(answers)
        return {"rate": _steady(folder / "out"), "whole_rate": done.rows_per_s, "rows": done.rows}


def talk(task: Task) -> dict[str, float]:
    """The loop that a talk shows: batches of eight rows sent without waiting, answers counted by a callback."""
    import tritonclient.grpc as triton

    client = triton.InferenceServerClient(task.urls[0])
    metadata = client.get_model_metadata(task.model).inputs[0]
    size = 8
    shape = [size, *(int(one) for one in metadata.shape[1:])]
    tensor = triton.InferInput(metadata.name, shape, metadata.datatype)
    dataset = np.repeat(task.row, size, axis=0)
    answered: list[Rows] = []

    def callback(result: Any, error: Exception | None) -> None:
        answered.append(result.as_numpy("y"))

    begun_s = time.perf_counter()
    batches = task.rows // size
    for _ in range(batches):
        tensor.set_data_from_numpy(dataset)
        client.async_infer(task.model, inputs=[tensor], callback=callback)
    while len(answered) < batches:
        time.sleep(0.01)
    took_s = time.perf_counter() - begun_s
    for answers in answered:
        task.check(answers)
    client.close()
    return {"rate": batches * size / took_s, "rows": batches * size}


def _steady(out: Path) -> float:
    """Rows in a second in the middle of a run, by the times at which its pieces were done."""
    reports = []
    for file in (out / "pieces").glob("[0-9]*.json"):
        rows = sum(unit["rows"] for unit in json.loads(file.read_text())["units"])
        reports.append((file.stat().st_mtime_ns, rows))
    reports.sort()
    edge = max(1, int(len(reports) * EDGE))
    middle = reports[edge : len(reports) - edge]
    return sum(rows for _, rows in middle[1:]) / ((middle[-1][0] - middle[0][0]) / 1e9)


LOOPS: dict[str, Callable[[Task], dict[str, float]]] = {"batch": batch, "talk": talk}


if __name__ == "__main__":
    main()
