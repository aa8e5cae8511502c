"""Runs a model in a bare loop, in a process of its own: MODEL SECONDS {"batch size": times}. Prints rows a second."""

import json
import random
import sys
import time

import numpy as np
import onnxruntime

WARM_UP_RUNS = 3


def main() -> None:
    """Runs batches in the given proportions, on one thread, as the served model does."""
    model, seconds, counts = sys.argv[1], float(sys.argv[2]), json.loads(sys.argv[3])
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(model, options, providers=["CPUExecutionProvider"])
    dims = session.get_inputs()[0].shape[1:]
    sizes = [int(size) for size, count in counts.items() for _ in range(count)]
    random.Random(5).shuffle(sizes)
    generator = np.random.default_rng(5)
    batches = {size: generator.random((size, *dims), dtype=np.float32) for size in set(sizes)}
    for batch in batches.values():
        for _ in range(WARM_UP_RUNS):
            session.run(None, {"x": batch})
    rows, begin = 0, time.perf_counter()
    while time.perf_counter() - begin < seconds:
        size = sizes.pop()
        sizes.insert(0, size)
        session.run(None, {"x": batches[size]})
        rows += size
    print(rows / (time.perf_counter() - begin))


if __name__ == "__main__":
    main()
