"""Reads responses as they come, waiting and awaiting."""

import asyncio
import sys

import numpy as np
from pytriton.client import AsyncioDecoupledModelClient, DecoupledModelClient
from pytriton.client.exceptions import PyTritonClientInferenceServerError

url = sys.argv[1]
n = np.array([3], np.int32)
seen = []
for model in ("count", "asynchronous"):
    client = DecoupledModelClient(url, model)
    seen.append([int(answer["value"][0]) for answer in client.infer_sample(n)])
    seen.append([answer["value"].tolist() for answer in client.infer_batch(n=np.array([[1], [2]], np.int32))])
    client.close()

client = DecoupledModelClient(url, "fail")
try:
    for answer in client.infer_sample(n):
        seen.append(int(answer["value"][0]))
except PyTritonClientInferenceServerError as error:
    seen.append("ValueError: no more" in str(error))
client.close()


async def main():
    async with AsyncioDecoupledModelClient(url, "count") as client:
        return [[int(a["value"][0]) async for a in client.infer_sample(n * times)] for times in (0, 1)]


seen += asyncio.run(main())
print(seen)
