"""Honest callers: each asks something for a while and looks at every answer."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable
from typing import Final

import numpy as np

from support import heavy
from support.endpoints import ENDPOINTS, Endpoint
from support.regions import RegionClient, SharedObject
from support.sequence_callers import Caller
from support.sequences import SequenceStream
from support.sequences import windows as windows_of
from support.server import ServerProcess
from support.soak import models
from support.soak.tally import Tally
from support.streams import Stream

Pause = Callable[[], bool]
"""Waits a moment; whether the caller has to end."""

Call = Callable[[ServerProcess, Tally, random.Random, Pause], None]

# Requests of one client, after which it goes and another one comes. On a machine that is busy with other things all of
# them have to be answered within the time that a stream may last.
_REQUESTS: Final = 20
_COUNTS: Final = (1, 10, 1_000, 50_000)
_FACTORS: Final = {models.DOUBLE: 2, models.PASSING: 2, models.FOUR_TIMES: 4, models.MIXED: 1}

_sequences = itertools.count(1)


def numbers(model: str, protocol: str) -> Call:
    """A model in Python, with numbers of many sizes."""

    def ask(endpoint: Endpoint, tally: Tally, dice: random.Random) -> None:
        sent = np.arange(dice.choice(_COUNTS), dtype=np.int32)
        answer = endpoint.ask(model, {"X": sent})["Y"]
        tally.answered(model, right=np.array_equal(answer, 2 * sent), answer=answer)

    return _unary(model, protocol, ask)


def row(model: str, protocol: str) -> Call:
    """A model of ONNX, or an ensemble."""

    def ask(endpoint: Endpoint, tally: Tally, dice: random.Random) -> None:
        sent = np.array([[dice.randrange(1 << 20), 2]], np.float32)
        answer = endpoint.ask(model, {"X": sent})["Y"]
        tally.answered(model, right=np.array_equal(answer, _FACTORS[model] * sent), answer=answer)

    return _unary(model, protocol, ask)


def large(protocol: str) -> Call:
    """A tensor of a megabyte."""

    def ask(endpoint: Endpoint, tally: Tally, dice: random.Random) -> None:
        sent = np.full((1, 1 << 18), dice.randrange(1 << 20), np.float32)
        answer = endpoint.ask(models.WIDE, {"X": sent})["Y"]
        tally.answered(models.WIDE, right=np.array_equal(answer, 2 * sent))

    return _unary(models.WIDE, protocol, ask)


def reports(server: ServerProcess, tally: Tally, dice: random.Random, pause: Pause) -> None:
    """Responses one after the other, on a stream."""
    with Stream(server) as stream:
        for _ in range(_REQUESTS):
            count = dice.randrange(20)
            with tally.errors_of(models.REPORTING):
                stream.send(models.REPORTING, {"X": np.arange(count, dtype=np.int32)})
                got = []
                for reply in stream.replies():
                    if isinstance(reply, Exception):
                        raise reply
                    got.append(int(reply["Y"][0]))
                tally.answered(models.REPORTING, right=got == list(range(count)), answer=got)
            if pause():
                return


def sums(protocol: str) -> Call:
    """A sequence whose state is a sum."""

    def call(server: ServerProcess, tally: Tally, dice: random.Random, pause: Pause) -> None:
        sequence, total = next(_sequences), 0
        with Caller(server, protocol) as caller:
            for step in range(_REQUESTS):
                number = dice.randrange(1000)
                total += number
                with tally.errors_of(models.SUMS):
                    flags = {"start": step == 0, "end": step == _REQUESTS - 1}
                    answer = caller.step(models.SUMS, sequence, {"X": [[number]]}, **flags)
                    tally.answered(models.SUMS, right=answer == {"Y": [[total]]}, answer=answer)
                pause()  # to the end, so that no state is left

    return call


def windows(server: ServerProcess, tally: Tally, dice: random.Random, pause: Pause) -> None:
    """A sequence of a streaming model: each answer holds the newest samples."""
    seed, sequence = dice.randrange(1 << 30), next(_sequences)
    samples = np.random.default_rng(seed).standard_normal((models.CHANNELS, _REQUESTS * models.STRIDE), np.float32)
    expected = windows_of(samples, models.STRIDE, models.LENGTH)
    with SequenceStream(server) as stream, tally.errors_of(models.WINDOWS):
        for step, update in enumerate(np.split(samples, _REQUESTS, axis=1)):
            flags = {"start": step == 0, "end": step == _REQUESTS - 1}
            stream.send(models.WINDOWS, "snapshot_update", update[None], sequence, **flags)
            answer = stream.receive()
            tally.answered(models.WINDOWS, right=np.array_equal(answer[0], expected[step]), answer=answer)
            pause()


def regions(protocol: str) -> Call:
    """A tensor in shared memory, both ways."""

    def call(server: ServerProcess, tally: Tally, dice: random.Random, pause: Pause) -> None:
        name, sent = f"honest-{next(_sequences)}", np.full((1, 10_000), dice.randrange(1000), np.float32)
        client = RegionClient(protocol, server)
        try:
            with SharedObject.of(sent, sent) as shared, tally.errors_of("regions"):
                client.register(name, shared)
                for _ in range(5):
                    into = client.into("Y", name, sent.nbytes, sent.nbytes)
                    client.infer(models.WIDE, [client.place("X", sent, name)], [into])
                    answer = shared.read(np.float32, sent.shape, sent.nbytes)
                    tally.answered("regions", right=np.array_equal(answer, 2 * sent))
                    pause()
                client.unregister(name)
        finally:
            client.close()

    return call


def observe(server: ServerProcess, tally: Tally, dice: random.Random, pause: Pause) -> None:
    """What those ask who watch a server."""
    for path in ("/v2/health/ready", "/v2/models/stats", f"/v2/models/{models.PLAIN}/explain", "/v2"):
        status, text = heavy.ask(server.http, path, method="GET")
        # It is not ready while a worker is away.
        tally.answered(path, right=status == 200 or path.endswith("ready"), answer=text)
        pause()
    tally.answered("metrics", right=b"nv_inference_request_success" in heavy.get(server.metrics, "/metrics"))


def _unary(model: str, protocol: str, ask: Callable[[Endpoint, Tally, random.Random], None]) -> Call:
    def call(server: ServerProcess, tally: Tally, dice: random.Random, pause: Pause) -> None:
        with ENDPOINTS[protocol](server) as endpoint:
            for _ in range(_REQUESTS):
                with tally.errors_of(model):
                    ask(endpoint, tally, dice)
                if pause():
                    return

    return call


CALLERS: Final[tuple[Call, ...]] = (
    *(numbers(model, protocol) for model in (models.PLAIN, models.VETERAN) for protocol in ENDPOINTS),
    *(row(model, protocol) for model in _FACTORS for protocol in ENDPOINTS),
    *(large(protocol) for protocol in ENDPOINTS),
    *(sums(protocol) for protocol in ENDPOINTS),
    *(regions(protocol) for protocol in ENDPOINTS),
    reports,
    windows,
    observe,
)
