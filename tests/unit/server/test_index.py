"""The repository index and what it says about readiness."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from alipes.repository.layout import ModelFolder
from alipes.repository.repository import Listing
from alipes.server.index import UNLOADED, Index, Status
from alipes.types import IndexEntry, ModelKey, ModelState

A = ModelKey("a")
READY = Status(ModelState.READY)
BROKEN = Status(ModelState.UNAVAILABLE, "Internal: it broke")


class Published:
    """What the index handed on last."""

    def __init__(self) -> None:
        self.entries: list[dict[str, str]] | None = None
        self.ready: bool | None = None

    def __call__(self, index: str, ready: bool) -> None:
        self.entries = json.loads(index)
        self.ready = ready


def listing(*names: str, duplicates: frozenset[str] = frozenset()) -> Listing:
    return Listing({ModelKey(name): ModelFolder(name, Path(name)) for name in names}, duplicates)


@pytest.fixture
def published() -> Published:
    return Published()


@pytest.fixture
def index(published: Published) -> Index:
    made = Index(published, strict_readiness=True)
    made.take_listing(listing("a", "b"))
    return made


def test_nothing_is_handed_on_before_the_start_is_settled(index: Index, published: Published) -> None:
    index.set(ModelKey("a"), {1: READY})
    assert published.entries is None
    index.open()
    assert published.entries is not None
    assert published.ready is True


def test_folders_that_are_not_loaded_have_a_name_only(index: Index) -> None:
    index.set(ModelKey("b"), {2: READY, 1: BROKEN})
    assert index.entries() == [
        IndexEntry("a"),
        IndexEntry("b", "1", ModelState.UNAVAILABLE, "Internal: it broke"),
        IndexEntry("b", "2", ModelState.READY),
    ]


def test_versions_are_in_numerical_order(index: Index) -> None:
    index.set(ModelKey("a"), dict.fromkeys((10, 9, 1), READY))
    assert [entry.version for entry in index.entries() if entry.name == "a"] == ["1", "9", "10"]


def test_the_wire_gets_empty_text_for_what_is_not_known(index: Index, published: Published) -> None:
    index.open()
    assert published.entries == [{"name": name, "version": "", "state": "", "reason": ""} for name in "ab"]


def test_a_model_in_two_repositories_is_unavailable(index: Index) -> None:
    index.take_listing(listing("a", duplicates=frozenset({"b"})))
    assert index.entries()[1] == IndexEntry(
        "b", "", ModelState.UNAVAILABLE, "model appears in two or more repositories"
    )


def test_a_broken_version_makes_a_strict_server_not_ready(index: Index, published: Published) -> None:
    index.open()
    index.set(ModelKey("a"), {1: READY, 2: BROKEN})
    assert published.ready is False
    index.set(ModelKey("a"), {2: READY})
    assert published.ready is True


def test_a_lenient_server_is_ready_whatever_broke(published: Published) -> None:
    index = Index(published, strict_readiness=False)
    index.open()
    index.set(ModelKey("a"), {1: BROKEN})
    assert published.ready is True


@pytest.mark.parametrize("state", [ModelState.LOADING, ModelState.UNLOADING])
def test_a_version_on_its_way_makes_a_strict_server_not_ready(index: Index, state: ModelState) -> None:
    index.set(ModelKey("a"), {1: Status(state)})
    assert not index.ready()


def test_an_unloaded_version_does_not_disturb_readiness(index: Index) -> None:
    index.set(ModelKey("a"), {1: Status(ModelState.UNAVAILABLE, UNLOADED)})
    assert index.ready()


def test_a_failure_before_any_version_shows_without_version(index: Index) -> None:
    index.fail(ModelKey("a"), "no backend")
    assert index.entries()[0] == IndexEntry("a", "", ModelState.UNAVAILABLE, "no backend")
    assert not index.ready()
    index.set(ModelKey("a"), {1: READY})
    assert index.entries()[0] == IndexEntry("a", "1", ModelState.READY)


def test_a_failed_reload_does_not_touch_what_serves(index: Index) -> None:
    index.set(ModelKey("a"), {1: READY})
    index.fail(ModelKey("a"), "no backend")
    assert index.entries()[0] == IndexEntry("a", "1", ModelState.READY)


def test_a_version_that_broke_says_enough(index: Index) -> None:
    index.set(ModelKey("a"), {1: BROKEN})
    index.fail(ModelKey("a"), "version 1 broke")
    assert index.entries()[0] == IndexEntry("a", "1", ModelState.UNAVAILABLE, "Internal: it broke")


def test_giving_a_broken_model_up_makes_the_server_ready(index: Index) -> None:
    index.set(ModelKey("a"), {1: BROKEN})
    index.fail(ModelKey("b"), "no backend")
    index.give_up(ModelKey("a"))
    index.give_up(ModelKey("b"))
    assert index.ready()
    assert index.entries() == [IndexEntry("a", "1", ModelState.UNAVAILABLE, UNLOADED), IndexEntry("b")]


def test_unloading_ends_once_and_not_after_a_new_load(index: Index) -> None:
    index.set(ModelKey("a"), {1: Status(ModelState.UNLOADING)})
    assert index.end_unloading(ModelKey("a"), 1)
    assert index.versions(ModelKey("a")) == {1: Status(ModelState.UNAVAILABLE, UNLOADED)}
    index.set(ModelKey("a"), {1: READY})
    assert not index.end_unloading(ModelKey("a"), 1)
    assert index.versions(ModelKey("a")) == {1: READY}


def test_a_model_outside_repositories_is_touched_but_unlisted(index: Index) -> None:
    index.set(ModelKey("conjured"), {1: READY})
    assert "conjured" not in {entry.name for entry in index.entries()}
    assert index.touched() == [IndexEntry("conjured", "1", ModelState.READY)]


def test_a_closed_index_says_not_ready(index: Index, published: Published) -> None:
    index.open()
    index.close()
    assert published.ready is False
    index.set(ModelKey("a"), {1: READY})
    assert published.ready is False


def test_what_is_handed_on_is_the_newest_of_every_model(index: Index, published: Published) -> None:
    index.open()
    changes: list[tuple[str, Callable[[], object]]] = [
        ("READY", lambda: index.set(ModelKey("a"), {1: READY})),
        ("UNLOADING", lambda: index.set(ModelKey("a"), {1: Status(ModelState.UNLOADING)})),
        ("UNAVAILABLE", lambda: index.end_unloading(ModelKey("a"), 1)),
        ("READY", lambda: index.set(ModelKey("a"), {1: READY})),
        ("READY", lambda: index.take_listing(listing("a"))),
    ]
    for state, change in changes:
        change()
        assert published.entries is not None
        assert published.entries[0] == {
            "name": "a",
            "version": "1",
            "state": state,
            "reason": UNLOADED if state == "UNAVAILABLE" else "",
        }
        assert published.entries == [
            {"name": e.name, "version": e.version, "state": e.state or "", "reason": e.reason} for e in index.entries()
        ]


def test_a_listing_that_says_nothing_new_is_not_handed_on(index: Index, published: Published) -> None:
    index.open()
    published.entries = None
    index.take_listing(listing("a", "b"))
    assert published.entries is None
    index.take_listing(listing("a"))
    assert published.entries == [{"name": "a", "version": "", "state": "", "reason": ""}]


def advising(published: Published) -> Index:
    made = Index(published, strict_readiness=True, advises=True)
    made.take_listing(listing("a"))
    made.open()
    return made


def test_an_advice_stands_behind_the_reason_of_a_failure(published: Published) -> None:
    index = advising(published)
    index.set(A, {1: Status(ModelState.UNAVAILABLE, "no backend")})
    assert index.advise(A, "rename it") == "rename it"
    assert index.entries() == [IndexEntry("a", "1", ModelState.UNAVAILABLE, "no backend; rename it", "rename it")]
    index.set(A, {1: READY})
    assert index.entries() == [IndexEntry("a", "1", ModelState.READY)]


def test_an_advice_that_the_reason_has_is_not_repeated(published: Published) -> None:
    index = advising(published)
    index.fail(A, "no backend (rename it)")
    index.advise(A, "rename it")
    assert [entry.reason for entry in index.entries()] == ["no backend (rename it)"]


def test_a_folder_that_is_no_model_has_an_advice_and_no_state(published: Published) -> None:
    index = advising(published)
    index.advise(A, "put a file into it")
    assert index.entries() == [IndexEntry("a", reason="put a file into it", advice="put a file into it")]
    assert published.entries == [{"name": "a", "version": "", "state": "", "reason": "put a file into it"}]
    assert index.touched() == index.entries()
    assert index.ready()
    index.take_listing(listing("b"))
    assert index.touched() == []


def test_unloading_a_broken_model_drops_its_advice(published: Published) -> None:
    index = advising(published)
    index.fail(A, "no backend")
    index.advise(A, "rename it")
    index.give_up(A)
    assert index.entries() == [IndexEntry("a")]


def test_an_index_that_does_not_advise_says_triton_s_words_alone(index: Index) -> None:
    index.fail(A, "no backend")
    assert index.advise(A, "rename it") == ""
    assert index.entries()[0] == IndexEntry("a", "", ModelState.UNAVAILABLE, "no backend")
