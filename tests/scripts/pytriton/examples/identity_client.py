"""Sends values of every kind, with asyncio."""

import asyncio
import sys

import numpy as np
from pytriton.client import AsyncioModelClient

url = sys.argv[1]
NUMBERS = ["bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "f2", "f4", "f8"]
sent = {f"t{number}": np.array([[0, 1], [1, 0]]).astype(kind) for number, kind in enumerate(NUMBERS)}
words = np.array([[b"one", b"\x00\xff"], ["drei ü".encode(), b""]], np.object_)
sent |= {f"t{len(NUMBERS) + number}": words for number in range(3)}


async def main():
    async with AsyncioModelClient(url, "Identity") as client:
        for answer in await asyncio.gather(*(client.infer_batch(**sent) for _ in range(4))):
            for name, value in sent.items():
                assert answer[name].dtype == value.dtype, (name, answer[name].dtype)
                np.testing.assert_array_equal(answer[name], value)
    async with AsyncioModelClient(url, "OneByOne") as client:
        answer = await client.infer_sample(words[0])
        np.testing.assert_array_equal(answer["sequence"], words[0])


asyncio.run(main())
print("the same")
