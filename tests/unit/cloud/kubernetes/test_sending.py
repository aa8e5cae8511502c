"""Whether sending an object changed it."""

from __future__ import annotations

from typing import Any

import pytest
from alipes.cloud.kubernetes.sending import _wanted


def one(replicas: int = 1, **metadata: Any) -> dict[str, Any]:
    return {"metadata": {"name": "d", **metadata}, "spec": {"replicas": replicas}, "status": {"ready": replicas}}


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (one(resourceVersion="7", managedFields=[{}]), True),
        (one(annotations={"deployment.kubernetes.io/revision": "1"}), True),
        (one() | {"status": {"ready": 0}}, True),
        (one(annotations={"mine": "1"}), False),
        (one(labels={"app": "x"}), False),
        (one(replicas=2), False),
    ],
)
def test_what_controllers_write_is_no_change(other: dict[str, Any], same: bool) -> None:
    assert (_wanted(one(resourceVersion="1")) == _wanted(other)) is same
