"""What `alipes deploy kserve` writes, sent to a real API server that asks KServe's own webhooks about it."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import msgspec
import pytest
from alipes.deploy.kserve.description import KServe
from alipes.deploy.kserve.objects import kserve_objects
from alipes.deploy.kserve.reading import described
from alipes.deploy.yaml_text import yaml_of
from support.command import Done, alipes
from support.kserve import start_controllers
from support.kserve_values import REFUSED, VALUE_SETS
from support.kube import ControlPlane, Missing, control_plane
from support.kubelet import ADDRESS
from support.network import own_network

pytestmark = [pytest.mark.extra("deploy"), pytest.mark.proof, pytest.mark.timeout(600)]

Apply = Callable[..., Done]
# What KServe's controller finds once it has the object, or what stands for two objects of one name.
LATER = [
    "a canary of another form of storage",
    "a storage that nobody knows",
    "a format without a runtime",
    "models of one name",
]
AT_ONCE = [name for name, (_, _, words) in REFUSED.items() if words and name not in LATER]


@pytest.fixture(scope="module")
def plane(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    with ExitStack() as stack:
        try:
            stack.enter_context(own_network(f"{ADDRESS}/32"))
            found = stack.enter_context(control_plane(tmp_path_factory.mktemp("webhooks")))
            start_controllers(found, webhooks=True)
        except (Missing, PermissionError) as reason:
            pytest.skip(str(reason))
        yield found


@pytest.fixture
def apply(plane: ControlPlane) -> Apply:
    """`alipes deploy apply` in a namespace of the test."""
    name = f"test-{secrets.token_hex(4)}"
    plane.namespace(name)

    def run(objects: list[dict[str, Any]]) -> Done:
        kubeconfig = plane.kubeconfig(namespace=name)
        return alipes("deploy", "apply", "-", "--no-wait", f"--kubeconfig={kubeconfig}", text=yaml_of(objects))

    return run


@pytest.mark.parametrize("name", VALUE_SETS)
def test_kserve_s_webhooks_take_all_that_we_write(apply: Apply, name: str) -> None:
    objects = kserve_objects(described(VALUE_SETS[name]))
    done = apply(objects)
    assert done.code == 0, done.err
    assert sum(row[-1] in {"created", "changed", "unchanged"} for row in done.rows) == len(objects)


@pytest.mark.parametrize("name", AT_ONCE)
def test_what_kserve_refuses_is_shown_as_one_sentence(apply: Apply, name: str) -> None:
    values, _, words = REFUSED[name]
    # As somebody would write it who does not let us check it.
    done = apply(kserve_objects(msgspec.convert(values, KServe, strict=False)))
    assert (done.code, done.out) == (1, "")
    (message,) = done.message.split("error: ")[1:]
    assert message.partition(": ")[0] in {"InferenceService alipes", "InferenceGraph graph", "TrainedModel a"}
    assert ": KServe refuses it: " in message
    assert words in message


@pytest.mark.parametrize("name", LATER)
def test_what_kserve_finds_later_is_accepted_at_first(apply: Apply, name: str) -> None:
    values, _, _ = REFUSED[name]
    assert apply(kserve_objects(msgspec.convert(values, KServe, strict=False))).code == 0
