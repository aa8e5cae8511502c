"""What a region may be, what a slice of it may be, and what becomes of both when it is unregistered in use."""

from __future__ import annotations

import numpy as np
import pytest
from support.processes import metric
from support.regions import RegionClient, SharedObject
from support.server import ServerProcess
from support.waiting import until
from tritonclient.utils import InferenceServerException

ROW = np.array([[1.5, -2.0, 3.25]], np.float32)
PAGE = 4096
FAR = (1 << 62) + PAGE
FAILED = "failed to register shared memory region 'r': "
BEYOND = "Invalid offset%s for shared memory region: 'r'"


@pytest.mark.parametrize(
    ("offset", "byte_size", "text"),
    [
        (16, 32, FAILED + "unable to process address spaceInvalid argument"),
        (0, 0, FAILED + "unable to process address spaceInvalid argument"),
        (0, 3 * PAGE, FAILED + "invalid args"),
        (PAGE, 2 * PAGE, FAILED + "invalid args"),
        (2 * PAGE, 1, FAILED + "invalid args"),
        (FAR, 1, FAILED + "invalid args"),
        (PAGE, FAR, FAILED + "invalid args"),
    ],
)
def test_a_part_that_an_object_does_not_have_is_no_region(
    client: RegionClient, offset: int, byte_size: int, text: str
) -> None:
    with SharedObject(2 * PAGE) as shared:
        with pytest.raises(InferenceServerException) as refused:
            client.register("r", shared, byte_size, offset)
        assert refused.value.message() == text
        assert client.regions() == []
        client.register("r", shared, PAGE, PAGE)  # the name is free
        assert client.regions() == ["r"]


@pytest.mark.parametrize("side", ["input", "output"])
@pytest.mark.parametrize("offset", [56, 64, PAGE, FAR])
def test_a_slice_beyond_its_region_is_refused(client: RegionClient, side: str, offset: int) -> None:
    with SharedObject(PAGE) as shared:  # the memory goes on, the region does not
        client.register("r", shared, 64)
        if side == "input":
            inputs, outputs = [client.place("X", ROW, "r", offset)], None
        else:
            inputs, outputs = [client.send("X", ROW)], [client.into("Y", "r", ROW.nbytes, offset)]
        with pytest.raises(InferenceServerException) as refused:
            client.infer("times", inputs, outputs)
        text, *place = refused.value.message().split("; ")
        assert text == BEYOND % (" + byte size" if offset < 64 else "")
        assert place in ([], [f"{side} '{'X' if side == 'input' else 'Y'}' ({side}s[0])"])  # over HTTP
        answer = client.infer("times", [client.send("X", ROW)], [client.into("Y", "r", ROW.nbytes, 64 - ROW.nbytes)])
        assert answer is not None
        assert np.array_equal(shared.read(np.float32, ROW.shape, 64 - ROW.nbytes), 2 * ROW)
        assert not shared.read(np.uint8, (PAGE - 64,), 64).any()


def test_regions_of_one_object_may_overlap_and_have_any_part(client: RegionClient) -> None:
    with SharedObject(2 * PAGE) as shared:
        shared.write(ROW.tobytes(), PAGE)
        for name, byte_size, offset in (("whole", 2 * PAGE, 0), ("second", PAGE, PAGE)):
            client.register(name, shared, byte_size, offset)
        for name, offset in (("whole", PAGE), ("second", 0)):
            answer = client.infer("times", [client.place("X", ROW, name, offset)]).as_numpy("Y")
            assert np.array_equal(answer, 2 * ROW)
        client.unregister("whole")
        assert np.array_equal(client.infer("times", [client.place("X", ROW, "second")]).as_numpy("Y"), 2 * ROW)


def test_all_regions_of_a_request_stay_until_it_is_answered(client: RegionClient, server: ServerProcess) -> None:
    with SharedObject.of(ROW) as given, SharedObject(64) as taken, SharedObject.of(5 * ROW) as other:
        client.register("r", given)
        client.register("taken", taken)
        client.register("unused", given)
        waiting = client.later(
            lambda own: own.infer("pairs", [own.place("X", ROW, "r")], [own.into("Y", "taken", ROW.nbytes)])
        )
        until(lambda: metric(server, "nv_inference_pending_request_count", model="pairs") == 1)
        for name in ("", "r", "unknown", ""):  # again and again changes nothing
            client.unregister(name)
            assert client.regions() == ["r", "taken"]
        with pytest.raises(InferenceServerException, match="'r' already in manager"):
            client.register("r", other)
        company = client.infer("pairs", [client.place("X", ROW, "r")]).as_numpy("Y")  # still there for others too
        waiting.result()
        assert np.array_equal(company, 2 * ROW)
        assert np.array_equal(taken.read(np.float32, ROW.shape), 2 * ROW)
        until(lambda: client.regions() == [])
        with pytest.raises(InferenceServerException, match="Unable to find shared memory region: 'r'"):
            client.infer("times", [client.place("X", ROW, "r")])
        client.register("r", other)
        assert np.array_equal(client.infer("times", [client.place("X", ROW, "r")]).as_numpy("Y"), 10 * ROW)
