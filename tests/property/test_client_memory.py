"""However long windows and means are: the updates that a client keeps bring their state back bit for bit."""

from __future__ import annotations

from typing import Any

import numpy as np
from alipes.client.inference.memory import memory_of
from hypothesis import given
from hypothesis import strategies as st

Samples = np.ndarray[Any, np.dtype[np.float32]]


class Windows:
    """A snapshotter of one channel: ``length`` samples, ``stride`` new ones for each of ``batch`` windows."""

    def __init__(self, length: int, stride: int, batch: int) -> None:
        self.length, self.stride, self.batch = length, stride, batch
        self.known = np.zeros(length, np.float32)

    def take(self, update: Samples) -> Samples:
        z = np.concatenate([self.known[self.stride :], update])
        self.known = np.concatenate([self.known, update])[-self.length :]
        return np.stack([z[i * self.stride : i * self.stride + self.length] for i in range(self.batch)])


class Means:
    """An averager: ``count`` predictions make a mean, each ``update`` samples ahead of the one before it."""

    def __init__(self, update: int, count: int, batch: int) -> None:
        self.update, self.count, self.batch = update, count, batch
        self.sums = np.zeros(update * (count + batch - 1), np.float32)

    def take(self, kernels: Samples) -> Samples:
        sums = self.sums.copy()
        for number, kernel in enumerate(kernels):
            at = number * self.update
            sums[at : at + self.count * self.update] += kernel[-self.count * self.update :] / np.float32(self.count)
        done = self.batch * self.update
        self.sums = np.concatenate([sums[done:], np.zeros(done, np.float32)])
        return sums[:done]


@given(
    length=st.integers(1, 40),
    stride=st.integers(1, 12),
    batch=st.integers(1, 5),
    update=st.integers(1, 6),
    data=st.data(),
)
def test_what_follows_the_replayed_updates_is_what_would_have_followed_all(
    length: int, stride: int, batch: int, update: int, data: st.DataObject
) -> None:
    stride, update = min(stride, length), min(update, length)
    count = data.draw(st.integers(1, max(1, length // update)))
    window = {
        "backend": "snapshotter",
        "input": [{"dims": [1, 1, stride * batch]}],
        "output": [{"dims": [batch, 1, length]}],
    }
    mean = {
        "backend": "averager",
        "input": [{"dims": [batch, length]}],
        "parameters": {"num_updates": {"string_value": str(count)}},
    }
    of_window, of_mean = memory_of(window), memory_of(mean)
    assert of_window is not None
    assert of_mean is not None
    memory = of_window + of_mean
    updates = np.random.default_rng(1).standard_normal((memory + 9, stride * batch), np.float32)

    def chain(some: Samples) -> list[bytes]:
        windows, means = Windows(length, stride, batch), Means(update, count, batch)
        return [means.take(np.tanh(windows.take(one))).tobytes() for one in some]

    assert chain(updates)[-4:] == chain(updates[-4 - memory :])[-4:]
    assert chain(updates)[-1:] == chain(updates[-1 - memory :])[-1:]
