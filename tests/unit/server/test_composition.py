"""Ensembles and the models that they are made of: who is loaded with whom, and who is looked at again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from alipes.config.limits import MAX_ENSEMBLE_DEPTH
from alipes.errors import ModelLoadError
from alipes.repository.layout import ModelFolder
from alipes.repository.repository import Repository
from alipes.server.builder import Origin, Request
from alipes.server.failures import LoadFailed
from alipes.server.index import Index
from alipes.server.lifecycle import Lifecycle
from alipes.server.override import Override
from alipes.server.planner import Planner
from alipes.server.reader import Reader
from support.data_plane import DataPlane
from support.ensembles import as_model, ensemble, serving
from support.folders import CONFIG, touch

MakeModel = Callable[..., Path]


def failure_of(lifecycle: Lifecycle, model: str) -> str:
    with pytest.raises(LoadFailed) as failure:
        lifecycle.load(model)
    assert failure.value.code == "INVALID_ARG"
    return str(failure.value)


def test_an_ensemble_brings_its_models(lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel) -> None:
    model("e", config=ensemble("m", "n"))
    model("m")
    model("n")
    lifecycle.load("e")
    assert data_plane.history == [
        "build m 1",
        "publish m [1]",
        "build n 1",
        "publish n [1]",
        "build e 1",
        "publish e [1]",
    ]


def test_the_specification_has_the_steps(lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel) -> None:
    model("e", config=ensemble("m"))
    model("m", config=CONFIG + "model_transaction_policy { decoupled: true }")
    lifecycle.load("e")
    (version,) = data_plane.published["e"]
    assert version.spec["engine"] == {
        "kind": "ensemble",
        "steps": [{"model": "m", "version": -1, "inputs": {"X": "A"}, "outputs": {"Y": "R"}, "decoupled": True}],
        "max_inflight_requests": 0,
    }
    assert (version.spec["decoupled"], version.spec["instances"]) == (True, [])


def test_models_stay_when_their_ensemble_goes(lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel) -> None:
    model("e", config=ensemble("m"))
    model("m")
    lifecycle.load("e")
    lifecycle.unload("e")
    assert serving(data_plane) == {"m"}


def test_models_unload_with_their_ensemble_unless_still_in_use(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    model("e", config=ensemble("m", "n", "o"))
    model("f", config=ensemble("n"))
    [model(name) for name in ("m", "n", "o")]
    [lifecycle.load(name) for name in ("e", "f", "o")]
    lifecycle.unload("e", dependents=True)
    assert serving(data_plane) == {"f", "n", "o"}


def test_models_of_an_ensemble_within_an_ensemble_go_too(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    model("outer", config=ensemble("inner"))
    model("inner", config=as_model(ensemble("m")))
    model("m")
    lifecycle.load("outer")
    assert serving(data_plane) == {"outer", "inner", "m"}
    lifecycle.unload("outer", dependents=True)
    assert serving(data_plane) == set()


def test_an_ensemble_goes_and_comes_with_its_models(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    model("outer", config=ensemble("inner"))
    model("inner", config=as_model(ensemble("m")))
    model("m")
    lifecycle.load("outer")
    lifecycle.unload("m")
    assert serving(data_plane) == set()
    lifecycle.load("m")
    assert serving(data_plane) == {"outer", "inner", "m"}


def test_an_unloaded_ensemble_does_not_come_back(lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel) -> None:
    model("e", config=ensemble("m"))
    model("m")
    lifecycle.load("e")
    lifecycle.unload("e")
    lifecycle.unload("m")
    lifecycle.load("m")
    assert serving(data_plane) == {"m"}


def test_a_load_takes_up_what_has_changed_in_the_models(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    model("e", config=ensemble("m"))
    folder = model("m")
    lifecycle.load("e")
    (folder / "config.pbtxt").write_text('name: "m"\n' + CONFIG + "model_transaction_policy { decoupled: true }")
    touch(folder / "config.pbtxt")
    lifecycle.load("e")
    (version,) = data_plane.published["e"]
    assert version.spec["decoupled"] is True


def test_an_ensemble_is_unloaded_when_a_model_no_longer_fits(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    model("e", config=ensemble("m"))
    folder = model("m")
    lifecycle.load("e")
    fits = (folder / "config.pbtxt").read_text()
    (folder / "config.pbtxt").write_text(fits.replace("max_batch_size: 4", "max_batch_size: 2"))
    touch(folder / "config.pbtxt")
    lifecycle.load("m")
    assert serving(data_plane) == {"m"}


def test_a_model_that_is_absent_is_named(lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel) -> None:
    model("e", config=ensemble("z", "y", "m"))
    model("m")
    text = "load failed for model 'e': ensemble e contains models that are not available or ambiguous: y, z\n"
    assert failure_of(lifecycle, "e") == text
    assert data_plane.published["e"] == []


def test_a_failed_model_is_reported_with_its_reason(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    model("e", config=ensemble("m"))
    model("m")
    data_plane.refused["m", 1] = ModelLoadError("it broke", code="INVALID_ARG")
    assert failure_of(lifecycle, "e") == (
        "load failed for model 'e': ensemble 'e' depends on 'm' which has no loaded version. Model 'm' loading failed "
        "with error: version 1 is at UNAVAILABLE state: Invalid argument: it broke;\n"
    )
    data_plane.refused.clear()
    lifecycle.load("e")
    assert serving(data_plane) == {"e", "m"}


def test_a_model_that_fails_at_the_start_is_tried_once(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    tried: list[str] = []
    data_plane.before_build = lambda name, version: tried.append(name)
    data_plane.refused["m", 1] = ModelLoadError("it broke", code="INVALID_ARG")
    model("e", config=ensemble("m"))
    model("m")
    assert (lifecycle.try_load("e"), lifecycle.try_load("m")) == (False, False)
    assert tried == ["m"]


def test_a_version_that_is_not_loaded_is_named(lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel) -> None:
    model("e", config=ensemble("m", version=7))
    model("m")
    text = "load failed for model 'e': ensemble 'e' depends on 'm' whose required version 7 is not loaded.\n"
    assert failure_of(lifecycle, "e") == text


def test_a_version_that_is_not_loaded_is_answered_with_what_to_write(
    repository: Path, data_plane: DataPlane, planner: Planner, model: MakeModel
) -> None:
    index = Index(data_plane.set_index, strict_readiness=True, advises=True)
    advising = Lifecycle(data_plane, Repository([repository]), planner, index)  # type: ignore[arg-type]
    model("e", config=ensemble("m", version=7))
    model("m")
    assert failure_of(advising, "e").endswith(
        "whose required version 7 is not loaded.; write model_version: -1 for the newest\n"
    )


@pytest.mark.parametrize("first", ["e", "f"])
def test_a_circle_of_ensembles_is_refused(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel, first: str
) -> None:
    model("e", config=as_model(ensemble("f")))
    model("f", config=as_model(ensemble("e")))
    other = {"e": "f", "f": "e"}[first]
    names = f"{first} -> ... -> {other} -> {first}"
    assert failure_of(lifecycle, first) == (
        f"load failed for model '{first}': circular dependency between ensembles: {names}\n"
    )
    assert serving(data_plane) == set()


def test_ensembles_stand_only_so_deep_in_each_other(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    depth = MAX_ENSEMBLE_DEPTH + 1
    for number in range(depth):
        model(f"e{number}", config=as_model(ensemble(f"e{number + 1}" if number + 1 < depth else "m")))
    model("m")
    assert failure_of(lifecycle, "e0").endswith(f"ensembles stand more than {MAX_ENSEMBLE_DEPTH} deep in 'e0'\n")
    lifecycle.load("e1")
    assert "e1" in serving(data_plane)


def test_a_name_that_leads_out_of_the_repository_is_no_model(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    model("e", config=ensemble("../m", "/m"))
    model("m")
    assert failure_of(lifecycle, "e").endswith("not available or ambiguous: ../m, /m\n")


def test_an_ensemble_is_put_off_until_its_models_are_loaded_and_read_once(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    folder = model("a", config=ensemble("m"))
    model("m")
    assert [lifecycle.try_load(name, compose=False) for name in ("a", "m")] == [True, True]
    assert (serving(data_plane), lifecycle.put_off()) == ({"m"}, ("a",))
    (folder / "config.pbtxt").write_text("no configuration")
    assert lifecycle.try_load("a")
    assert (serving(data_plane), lifecycle.put_off()) == ({"a", "m"}, ())


def test_an_ensemble_that_is_a_part_of_another_is_read_once(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    model("m")
    model("inner", config=as_model(ensemble("m")))
    model("outer", config=ensemble("inner"))
    read: list[str] = []
    reads = Reader.read

    def note(self: Reader, folder: ModelFolder, origin: Origin, override: Override | None) -> Request:
        read.append(folder.name)
        return reads(self, folder, origin, override)

    monkeypatch.setattr(Reader, "read", note)
    for compose in (False, True, True):
        assert all(lifecycle.try_load(name, compose=compose) for name in ("outer", "inner", "m"))
    assert (serving(data_plane), sorted(read)) == ({"outer", "inner", "m"}, ["inner", "m", "outer"])
    lifecycle.load("outer")
    assert sorted(read) == ["inner", "m", "outer"], "nothing has changed"


def test_who_asks_for_an_ensemble_that_was_put_off_gets_it_as_it_is_now(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    folder = model("a", config=ensemble("m"))
    model("m")
    lifecycle.try_load("a", compose=False)
    (folder / "config.pbtxt").write_text(ensemble("absent"))
    assert "not available or ambiguous: absent" in failure_of(lifecycle, "a")
    assert lifecycle.put_off() == ()


def test_an_ensemble_that_was_put_off_and_unloaded_stays_away(lifecycle: Lifecycle, model: MakeModel) -> None:
    model("a", config=ensemble("m"))
    lifecycle.try_load("a", compose=False)
    lifecycle.unload("a")
    assert lifecycle.put_off() == ()


def test_an_ensemble_that_goes_on_serving_is_looked_at_as_it_was(
    lifecycle: Lifecycle, data_plane: DataPlane, model: MakeModel
) -> None:
    folder = model("e", config=ensemble("m"))
    model("m")
    lifecycle.load("e")
    (folder / "config.pbtxt").write_text(ensemble("absent"))
    touch(folder / "config.pbtxt")
    assert "not available or ambiguous: absent" in failure_of(lifecycle, "e")
    assert serving(data_plane) == {"e", "m"}
    lifecycle.unload("m")
    assert serving(data_plane) == set()
    lifecycle.load("m")
    assert serving(data_plane) == {"e", "m"}
