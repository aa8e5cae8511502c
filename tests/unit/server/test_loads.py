"""The loads that an unload can end."""

from __future__ import annotations

from alipes.server.loads import Loads
from alipes.types import ModelKey

A, B = ModelKey("m", "a"), ModelKey("m", "b")


def test_a_load_is_cancelled_by_its_name_while_it_waits_and_runs() -> None:
    loads = Loads()
    announced = loads.announce("m")
    with loads.of(A) as running, loads.of(ModelKey("n")) as other:
        loads.cancel(ModelKey("m"), every_namespace=True)
        assert (announced.is_cancelled, running.is_cancelled, other.is_cancelled) == (True, True, False)


def test_another_namespace_stays_unless_all_are_meant() -> None:
    loads = Loads()
    with loads.of(A) as one, loads.of(B) as other:
        loads.cancel(A)
        assert (one.is_cancelled, other.is_cancelled) == (True, False)


def test_a_part_ends_with_the_whole() -> None:
    loads = Loads()
    with loads.of(ModelKey("e")) as ensemble, loads.of(ModelKey("m"), ensemble) as member:
        loads.cancel(ModelKey("m"))
        assert (ensemble.is_cancelled, member.is_cancelled) == (False, True)
    with loads.of(ModelKey("e")) as ensemble, loads.of(ModelKey("m"), ensemble) as member:
        loads.cancel(ModelKey("e"))
        assert (ensemble.is_cancelled, member.is_cancelled) == (True, True)


def test_what_has_ended_is_forgotten() -> None:
    loads = Loads()
    with loads.of(A) as ended:
        pass
    with loads.request("m") as request:
        pass
    announced = loads.announce("m")
    loads.forget(announced)
    loads.cancel(ModelKey("m"), every_namespace=True)
    assert not any(load.is_cancelled for load in (ended, request, announced))
