"""Changes what one model computes by another, and keeps two instances of a third busy at the same time."""

import sys

import numpy as np
from pytriton.client import FuturesModelClient, ModelClient

url = sys.argv[1]
x = np.array([7], np.float32)


def ask(model, value, version=None):
    with ModelClient(url, model, version) as client:
        return float(client.infer_sample(value)["y"][0])


answers = [ask("multiply", x), ask("set-factor", np.array([3], np.float32)), ask("multiply", x)]
answers.append(ask("asynchronous", x, "3"))
with FuturesModelClient(url, "side.by.side") as client:
    answers += [float(future.result()["y"][0]) for future in [client.infer_sample(x), client.infer_sample(x)]]
print(answers)
