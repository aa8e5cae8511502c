"""Runs a model in a bare loop, in a process of its own and on one thread, with no server around it.

``loop KIND FILE SECONDS {"batch size": times} [dims of a row]`` runs batches in the given proportions and prints how
fast; ``answer KIND FILE`` reads rows as JSON and prints what the model makes of them.
"""

import json
import random
import sys
import time
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float32]
Run = Callable[[Array], Array]

WARM_UP_RUNS = 3
#: What the command line begins with.
LOOP, ANSWER = "loop", "answer"


def _onnx(file: str) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    name = session.get_inputs()[0].name
    return lambda rows: session.run(None, {name: rows})[0]


def _torchscript(file: str) -> Run:
    import torch

    return _torch(torch, torch.jit.load(file))


def _torchexport(file: str) -> Run:
    import torch

    return _torch(torch, torch.export.load(file).module())


def _torch(torch, module) -> Run:  # type: ignore[no-untyped-def]
    torch.set_num_threads(1)
    torch.set_num_interop_threads(1)

    def run(rows: Array) -> Array:
        with torch.inference_mode():
            return np.asarray(module(torch.from_numpy(rows)).numpy())

    return run


def _openvino(file: str) -> Run:
    import openvino  # type: ignore[import-not-found]

    # As the backend asks for it: processors with bfloat16 would take that, and be five times as fast and less exact.
    precise = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    compiled = openvino.Core().compile_model(file, "CPU", precise)
    request = compiled.create_infer_request()
    return lambda rows: request.infer({0: rows})[0]


def _xgboost(file: str) -> Run:
    import xgboost  # type: ignore[import-not-found]

    booster = xgboost.Booster({"nthread": 1})
    booster.load_model(file)
    predict: Run = booster.inplace_predict
    return predict


KINDS = {
    "onnx": _onnx,
    "openvino": _openvino,
    "torchexport": _torchexport,
    "torchscript": _torchscript,
    "xgboost": _xgboost,
}


def main() -> None:
    """Does what the command line asks for."""
    program, kind, file, *more = sys.argv[1:]
    run = KINDS[kind](file)
    if program == ANSWER:
        print(json.dumps(np.asarray(run(np.asarray(json.load(sys.stdin), np.float32)), np.float64).tolist()))
    else:
        seconds, counts, dims = more
        print(json.dumps(_loop(run, tuple(json.loads(dims)), float(seconds), json.loads(counts))))


def _loop(run: Run, dims: tuple[int, ...], seconds: float, counts: dict[str, int]) -> dict[str, float]:
    sizes = [int(size) for size, count in counts.items() for _ in range(count)]
    random.Random(5).shuffle(sizes)
    generator = np.random.default_rng(5)
    batches = {size: generator.random((size, *dims), dtype=np.float32) for size in set(sizes)}
    for batch in batches.values():
        for _ in range(WARM_UP_RUNS):
            run(batch)
    rows, begin, cpu_begin = 0, time.perf_counter(), time.process_time()
    while time.perf_counter() - begin < seconds:
        size = sizes.pop()
        sizes.insert(0, size)
        run(batches[size])
        rows += size
    elapsed_s, cpu_s = time.perf_counter() - begin, time.process_time() - cpu_begin
    return {"rate": rows / elapsed_s, "cpu_us_per_row": cpu_s / rows * 1e6}


if __name__ == "__main__":
    main()
