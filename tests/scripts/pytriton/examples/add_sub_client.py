"""Asks for sums and differences, with and without what may be left out, one by one and many at a time."""

import sys

import numpy as np
from pytriton.client import FuturesModelClient, ModelClient

url = sys.argv[1]
a_batch = np.array([[1], [2]], np.float32)
b_batch = np.array([[10], [20]], np.float32)

with ModelClient(url, "AddSub") as client:
    results = client.infer_batch(a_batch, b_batch)
    np.testing.assert_array_equal(results["add"], a_batch + b_batch)
    np.testing.assert_array_equal(results["sub"], a_batch - b_batch)
    results = client.infer_sample(INPUT_2=b_batch[0], INPUT_1=a_batch[0])
    np.testing.assert_array_equal(results["sub"], [-9])

factor, bias = np.array([3], np.float32), np.array([0.5, 0.25], np.float32)
a, b = np.array([1, 2], np.float32), np.array([3, 4], np.float32)
with FuturesModelClient(url, "Scaled") as client:
    futures = [client.infer_sample(a=a, b=b), client.infer_sample(a=a, b=b, factor=factor)]
    futures += [client.infer_sample(a=a, b=b, bias=bias), client.infer_sample(a=a, b=b, factor=factor, bias=bias)]
    totals = [future.result()["total"].tolist() for future in futures]
print(totals)
