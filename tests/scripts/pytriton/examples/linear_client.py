"""Has rows scored, and compares them with the weights of the same seed."""

import sys

import numpy as np
from pytriton.client import ModelClient

url = sys.argv[1]
random = np.random.default_rng(5)
weights = random.normal(size=(20, 5)).astype(np.float32)
values = random.normal(size=(4, 20)).astype(np.float32)
with ModelClient(url, "Linear") as client:
    scores = client.infer_batch(values)["scores"]
    np.testing.assert_allclose(scores, values @ weights, rtol=1e-5)
with ModelClient(url, "Seen") as client:
    print(client.infer_sample(np.array([1], np.int32))["rows"][0].decode())
