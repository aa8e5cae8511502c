"""Sends rows with different parameters in one batch, and computes them again."""

import sys

import numpy as np
from pytriton.client import ModelClient

url = sys.argv[1]
layers = [np.eye(3, k=shift, dtype=np.float32) + 0.5 for shift in range(3)]
x = np.array([[1, -2, 3], [0, 1, 0], [-1, -1, 4], [2, 2, 2]], np.float32)
bend = np.array([[b"relu"], [b"tanh"], [b"relu"], [b"relu"]], np.object_)
repeats = np.array([[1], [2], [2], [1]], np.int32)
with ModelClient(url, "Layers") as client:
    answer = client.infer_batch(x=x, bend=bend, repeats=repeats)["y"]
for row, name, times, got in zip(x, bend[:, 0], repeats[:, 0], answer, strict=True):
    y = row
    for layer in layers:
        y = np.tanh(y @ layer) if name == b"tanh" else np.maximum(y @ layer, 0)
    wanted = np.pad(np.repeat(y, times), (0, 6 - 3 * times), constant_values=-1)
    np.testing.assert_allclose(got, wanted, rtol=1e-5)
print(answer.shape)
