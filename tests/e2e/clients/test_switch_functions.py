"""The functions on the pages "From ..." answer as the same functions do on the servers that people come from."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from support.server import ServerProcess
from support.switched import APPS, Document, Program, environment_of, post, start

pytestmark = [pytest.mark.proof, pytest.mark.timeout(300)]

SOUNDS = [
    {"sound": [1, 2, 3]},
    {"sound": [0.1, -2.5e10, 1e-30], "factor": 0.5},
    {"sound": []},
    {"sound": [float(value) for value in range(1000)], "factor": -1},
]
ROWS = [np.linspace(low, low + 1, 16).tolist() for low in (-3, -0.5, 0, 0.25)]
# A document that does not fit, and the status of each server: ours is 422 for all three.
MISFITS = ({"sound": [1, "two"]}, {}, {"sound": 1})
STATUS = {"fastapi": 422, "litserve": 500, "mosec": 500, "bentoml": 400}
# A body that is no JSON; ours is 400.
NO_JSON = {"fastapi": 422, "litserve": 500, "mosec": 400, "bentoml": 400}


@pytest.fixture(params=sorted(STATUS))
def peer(request: pytest.FixtureRequest) -> str:
    """Each server that has both functions."""
    name: str = request.param
    if environment_of(name) is None:
        pytest.skip(f"{name} is not there: `make clients` brings it")
    return name


def test_the_readmes_function_answers_the_same(peer: str, serve: Callable[..., ServerProcess]) -> None:
    ours = serve(APPS / "louder.py").http
    theirs = start(Program(peer, "louder"), Document("louder", "/louder", SOUNDS[0], (2, 4, 6)))
    with theirs.process:
        address = f"127.0.0.1:{theirs.http_port}"
        for sound in SOUNDS:
            assert post(ours, "/louder", sound) == post(address, "/louder", sound)
        for misfit in MISFITS:
            assert (post(ours, "/louder", misfit)[0], post(address, "/louder", misfit)[0]) == (422, STATUS[peer])
        assert (post(ours, "/louder", b"{")[0], post(address, "/louder", b"{")[0]) == (400, NO_JSON[peer])
        # A member that nobody declared is refused here, and ignored there.
        more = {"sound": [1.0], "more": 3}
        assert (post(ours, "/louder", more)[0], post(address, "/louder", more)) == (422, (200, [2.0]))
        if peer == "fastapi":
            text = {"sound": ["1.5"]}
            assert (post(ours, "/louder", text)[0], post(address, "/louder", text)) == (422, (200, [3.0]))


def test_the_batched_function_answers_the_same(peer: str, serve: Callable[..., ServerProcess]) -> None:
    ours = serve(APPS / "score.py").http
    # A batch of BentoML shows in the document; elsewhere a request is one row.
    rows = [{"x": [row] if peer == "bentoml" else row} for row in ROWS]
    expected = [post(ours, "/score", {"x": row})[1] for row in ROWS]
    theirs = start(Program(peer, "score"), Document("score_first", "/score", rows[0], tuple(expected[0])))
    with theirs.process:
        found = [post(f"127.0.0.1:{theirs.http_port}", "/score", row) for row in rows]
    assert [status for status, _ in found] == [200] * len(rows)
    np.testing.assert_allclose([np.ravel(answer) for _, answer in found], expected, rtol=1e-6)
