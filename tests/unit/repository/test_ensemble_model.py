"""Joining models: every edge that does not fit is named, and nothing is changed by a join that is refused."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes import repository as qv
from alipes.config.pbtxt import parse_pbtxt
from alipes.errors import ConfigError, ExportError, NoExporter
from onnx import TensorProto
from support.exported import added, scaled


@pytest.fixture
def repo(tmp_path: Path) -> qv.ModelRepository:
    """`first` and `second` scale `[None, 4]`, x to y; `sum` adds a and b; `wide` has eight columns."""
    repo = qv.ModelRepository(tmp_path)
    for name, source in (
        ("first", scaled()),
        ("second", scaled(factor=3.0)),
        ("sum", added()),
        ("wide", scaled(columns=8)),
        ("free", scaled(columns="n")),
        ("whole", scaled(datatype=TensorProto.INT64)),
    ):
        repo.add(name, qv.Platform.ONNX).export_version(source)
    return repo


@pytest.fixture
def ensemble(repo: qv.ModelRepository) -> qv.EnsembleModel:
    made = repo.add("chain", qv.Platform.ENSEMBLE)
    assert isinstance(made, qv.EnsembleModel)
    return made


def steps(ensemble: qv.EnsembleModel) -> list[tuple[str, dict[str, str], dict[str, str]]]:
    return [(step.model_name, dict(step.input_map), dict(step.output_map)) for step in ensemble.config.steps]


def refused(ensemble: qv.EnsembleModel, call: str, *arguments: object, **more: object) -> str:
    """The text of a refusal that changes nothing."""
    before = str(ensemble.config)
    with pytest.raises(ConfigError) as caught:
        getattr(ensemble, call)(*arguments, **more)
    assert str(ensemble.config) == before
    assert str(caught.value).startswith("in ensemble 'chain': ")
    return str(caught.value).removeprefix("in ensemble 'chain': ")


def test_two_models_in_a_row(repo: qv.ModelRepository, ensemble: qv.EnsembleModel) -> None:
    first, second = repo.models["first"], repo.models["second"]
    added = ensemble.add_input(input=first.inputs["x"])
    ensemble.pipe(first.outputs["y"], second.inputs["x"])
    result = ensemble.add_output(output=second.outputs["y"], key="result")
    assert added == qv.ExposedTensor(ensemble, "x", (None, 4), "FP32")
    assert result == qv.ExposedTensor(ensemble, "result", (None, 4), "FP32")
    assert ensemble.models == [first, second]
    assert ensemble.export_version(None) == "chain/1/model.empty"
    assert ensemble.export_version(None) == "chain/2/model.empty"
    written = parse_pbtxt(Path(str(repo.fs), "chain", "config.pbtxt").read_text())
    assert [(step.model_name, step.model_version) for step in written.ensemble_scheduling.step] == [
        ("first", -1),
        ("second", -1),
    ]
    assert steps(ensemble) == [("first", {"x": "x"}, {"y": "y"}), ("second", {"x": "y"}, {"y": "result"})]
    assert qv.ModelRepository(str(repo.fs)).models["chain"].inputs["x"].shape == (None, 4)


def test_one_input_of_the_ensemble_can_feed_several_models(
    repo: qv.ModelRepository, ensemble: qv.EnsembleModel
) -> None:
    first, second, total = (repo.models[name] for name in ("first", "second", "sum"))
    ensemble.add_input(first.inputs["x"])
    assert "key='x' feeds both" in refused(ensemble, "add_input", second.inputs["x"])
    ensemble.add_input(second.inputs["x"], key="x")
    ensemble.pipe(first.outputs["y"], total.inputs["a"])
    ensemble.pipe(second.outputs["y"], total.inputs["b"])
    ensemble.add_output(total.outputs["sum"])
    ensemble.export_version(None)
    assert [tensor.name for tensor in ensemble.config.input] == ["x"]


def test_what_shares_an_input_must_fit_and_says_its_sizes(repo: qv.ModelRepository, ensemble: qv.EnsembleModel) -> None:
    ensemble.add_input(repo.models["free"].inputs["x"])
    assert ensemble.inputs["x"].shape == (None, None)
    ensemble.add_input(repo.models["first"].inputs["x"], key="x")
    assert ensemble.inputs["x"].shape == (None, 4)
    assert "chain.x -> wide.x: shapes [None, 4] and [None, 8] differ on axis 1, 4 and 8" in refused(
        ensemble, "add_input", repo.models["wide"].inputs["x"], key="x"
    )
    assert "FP32 on the one side, INT64 on the other" in refused(
        ensemble, "add_input", repo.models["whole"].inputs["x"], key="x"
    )


def test_outputs_of_one_name_get_names_of_their_own(repo: qv.ModelRepository, ensemble: qv.EnsembleModel) -> None:
    first, second, total = (repo.models[name] for name in ("first", "second", "sum"))
    ensemble.pipe(first.outputs["y"], total.inputs["a"])
    ensemble.pipe(second.outputs["y"], total.inputs["b"])
    assert steps(ensemble)[0][2] == {"y": "y"}
    assert steps(ensemble)[2][2] == {"y": "second.y"}
    ensemble.add_output(second.outputs["y"])
    assert steps(ensemble) == [
        ("first", {}, {"y": "first.y"}),
        ("sum", {"a": "first.y", "b": "y"}, {}),
        ("second", {}, {"y": "y"}),
    ]


def test_a_chain_whose_outputs_share_a_name_answers_with_it(
    repo: qv.ModelRepository, ensemble: qv.EnsembleModel, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = repo.models["first"], repo.models["second"]
    ensemble.add_input(first.inputs["x"])
    ensemble.pipe(first.outputs["y"], second.inputs["x"])
    assert ensemble.add_output(second.outputs["y"]).name == "y"
    assert steps(ensemble) == [("first", {"x": "x"}, {"y": "first.y"}), ("second", {"x": "first.y"}, {"y": "y"})]
    assert caplog.text == ""
    # Requests see the name now: nothing else can have it.
    assert "first.y cannot be called 'y': second.y has that name already" in refused(
        ensemble, "add_output", first.outputs["y"], key="y"
    )
    assert ensemble.add_output(first.outputs["y"]).name == "first.y"
    assert "first.y is answered as 'first.y': second.y has that name already" in caplog.text
    ensemble.export_version(None)


def test_a_name_inside_gives_way_to_one_that_requests_see(repo: qv.ModelRepository, ensemble: qv.EnsembleModel) -> None:
    first, second, total = (repo.models[name] for name in ("first", "second", "sum"))
    named = repo.add("named", qv.Platform.ONNX)
    named.export_version(scaled("y", "z"))
    ensemble.add_input(first.inputs["x"])
    ensemble.pipe(first.outputs["y"], second.inputs["x"])
    assert ensemble.add_input(named.inputs["y"]).name == "y"
    ensemble.pipe(second.outputs["y"], total.inputs["a"], key="between")
    assert "named.z cannot be called 'between': second.y has that name already" in refused(
        ensemble, "pipe", named.outputs["z"], total.inputs["b"], key="between"
    )
    ensemble.pipe(named.outputs["z"], total.inputs["b"], key="first.y")
    ensemble.add_output(total.outputs["sum"])
    ensemble.export_version(None)
    assert steps(ensemble) == [
        ("first", {"x": "x"}, {"y": "first.y_1"}),
        ("second", {"x": "first.y_1"}, {"y": "between"}),
        ("named", {"y": "y"}, {"z": "first.y"}),
        ("sum", {"a": "between", "b": "first.y"}, {"sum": "sum"}),
    ]


def test_an_output_called_like_an_input_gets_the_model_s_name(
    repo: qv.ModelRepository, ensemble: qv.EnsembleModel
) -> None:
    same = repo.add("same", qv.Platform.ONNX)
    same.export_version(scaled("x", "z"))
    before = repo.add("before", qv.Platform.ONNX)
    before.export_version(scaled("z", "x"))
    ensemble.add_input(same.inputs["x"])
    ensemble.pipe(same.outputs["z"], before.inputs["z"])
    assert ensemble.add_output(before.outputs["x"]).name == "before.x"
    ensemble.export_version(None)


def test_a_tensor_can_be_piped_and_be_an_output(repo: qv.ModelRepository, ensemble: qv.EnsembleModel) -> None:
    first, second = repo.models["first"], repo.models["second"]
    ensemble.add_input(first.inputs["x"])
    ensemble.pipe(first.outputs["y"], second.inputs["x"], key="between")
    ensemble.add_output(first.outputs["y"])
    assert steps(ensemble) == [("first", {"x": "x"}, {"y": "y"}), ("second", {"x": "y"}, {})]
    ensemble.add_output(second.outputs["y"], key="z")
    assert "first.y is the ensemble's output 'y' already" in refused(
        ensemble, "add_output", first.outputs["y"], key="more"
    )
    ensemble.export_version(None)


def test_one_output_can_feed_many_inputs(repo: qv.ModelRepository, ensemble: qv.EnsembleModel) -> None:
    first, total = repo.models["first"], repo.models["sum"]
    ensemble.add_input(first.inputs["x"])
    ensemble.pipe(first.outputs["y"], total.inputs["a"], key="k")
    ensemble.pipe(first.outputs["y"], total.inputs["b"])
    ensemble.pipe(first.outputs["y"], total.inputs["b"], key="k")
    assert "first.y is called 'k' already, not 'other'" in refused(
        ensemble, "pipe", first.outputs["y"], total.inputs["b"], key="other"
    )
    ensemble.add_output(total.outputs["sum"])
    ensemble.export_version(None)
    assert steps(ensemble)[1][1] == {"a": "k", "b": "k"}


def test_edges_that_do_not_fit_are_named(repo: qv.ModelRepository, ensemble: qv.EnsembleModel, tmp_path: Path) -> None:
    models = repo.models
    first, second, wide = models["first"], models["second"], models["wide"]
    assert refused(ensemble, "pipe", first.outputs["y"], wide.inputs["x"]) == (
        "first.y -> wide.x: shapes [None, 4] and [None, 8] differ on axis 1, 4 and 8"
    )
    assert "FP32 on the one side" in refused(ensemble, "pipe", first.outputs["y"], models["whole"].inputs["x"])
    flat = repo.add("flat", qv.Platform.ONNX)
    flat.config.add_input("x", (None,))
    assert "have 2 and 1 axes" in refused(ensemble, "pipe", first.outputs["y"], flat.inputs["x"])
    assert "first.x is no output of model 'first': it is an input" in refused(
        ensemble, "pipe", first.inputs["x"], second.inputs["x"]
    )
    assert "first.y is no input of model 'first': it is an output" in refused(ensemble, "add_input", first.outputs["y"])
    gone = qv.ExposedTensor(first, "z", (None, 4))
    assert "it is gone" in refused(ensemble, "add_output", gone)
    stale = first.outputs["y"]
    first.config.output[0].dims[1] = 5
    assert "has changed since it was looked up" in refused(ensemble, "add_output", stale)
    elsewhere = qv.ModelRepository(tmp_path / "other").add("m", qv.Platform.ONNX)
    elsewhere.config.add_input("x", (None, 4))
    assert "is in the repository" in refused(ensemble, "add_input", elsewhere.inputs["x"])
    with pytest.raises(TypeError, match="expected an input"):
        ensemble.add_input(first)  # type: ignore[arg-type]


def test_an_input_is_fed_once(repo: qv.ModelRepository, ensemble: qv.EnsembleModel) -> None:
    first, second = repo.models["first"], repo.models["second"]
    ensemble.add_input(second.inputs["x"])
    assert "first.y ('y') -> second.x: it is fed by the ensemble's input 'x' already" in refused(
        ensemble, "pipe", first.outputs["y"], second.inputs["x"]
    )
    assert "'other' -> second.x: it is fed by the ensemble's input 'x' already" in refused(
        ensemble, "add_input", second.inputs["x"], key="other"
    )
    assert "an input of the ensemble has that name" in refused(ensemble, "add_output", first.outputs["y"], key="x")


def test_an_ensemble_without_inputs_or_outputs_is_not_exported(
    repo: qv.ModelRepository, ensemble: qv.EnsembleModel
) -> None:
    first = repo.models["first"]
    with pytest.raises(ExportError, match="Must specify input shapes"):
        ensemble.export_version(None)
    ensemble.add_input(first.inputs["x"])
    with pytest.raises(ExportError, match="Must specify output shapes"):
        ensemble.export_version(None)
    with pytest.raises(NoExporter, match="cannot export a onnx"):
        ensemble.export_version(scaled())
    assert ensemble.versions == []


def test_an_input_that_nothing_feeds_is_named(repo: qv.ModelRepository, ensemble: qv.EnsembleModel) -> None:
    total = repo.models["sum"]
    ensemble.add_input(total.inputs["a"])
    ensemble.add_output(total.outputs["sum"])
    with pytest.raises(ConfigError, match=r"sum\.b has no source"):
        ensemble.export_version(None)
    total.config.input[1].optional = True
    ensemble.export_version(None)


def test_a_circle_is_named(repo: qv.ModelRepository, ensemble: qv.EnsembleModel) -> None:
    first, second, total = (repo.models[name] for name in ("first", "second", "sum"))
    ensemble.add_input(total.inputs["a"])
    ensemble.pipe(total.outputs["sum"], first.inputs["x"])
    ensemble.pipe(first.outputs["y"], second.inputs["x"])
    ensemble.pipe(second.outputs["y"], total.inputs["b"])
    ensemble.add_output(first.outputs["y"])
    with pytest.raises(ConfigError, match="is a cycle") as caught:
        ensemble.export_version(None)
    assert any(circle in str(caught.value) for circle in ("sum -> first -> second -> sum",))


def test_two_versions_of_a_model_can_stand_side_by_side(repo: qv.ModelRepository, ensemble: qv.EnsembleModel) -> None:
    first = repo.models["first"]
    first.export_version(scaled(factor=5.0))
    ensemble.add_input(first.inputs["x"], version=1, key="in")
    ensemble.add_input(first.inputs["x"], version=2, key="in")
    assert "in the versions 1, 2: say which" in refused(ensemble, "add_output", first.outputs["y"])
    ensemble.add_output(first.outputs["y"], version=1, key="production")
    ensemble.add_output(first.outputs["y"], version=2, key="canary")
    assert "has no version 7; it has 1, 2" in refused(ensemble, "add_input", first.inputs["x"], version=7, key="in")
    ensemble.export_version(None)
    assert [step.model_version for step in ensemble.config.steps] == [1, 2]


def test_a_version_or_model_that_went_is_named_at_the_export(
    repo: qv.ModelRepository, ensemble: qv.EnsembleModel
) -> None:
    first = repo.models["first"]
    ensemble.add_input(first.inputs["x"], version=1)
    ensemble.add_output(first.outputs["y"])
    repo.fs.remove("first/1")
    with pytest.raises(ConfigError, match="step 'first' is version 1, which does not exist"):
        ensemble.export_version(None)
    repo.remove("first")
    with pytest.raises(ConfigError, match="step 'first' is no model"):
        ensemble.export_version(None)


def test_a_step_that_was_never_exported_is_warned_of(
    repo: qv.ModelRepository, ensemble: qv.EnsembleModel, caplog: pytest.LogCaptureFixture
) -> None:
    later = repo.add("later", qv.Platform.ONNX)
    later.config.add_input("x", (None, 4))
    later.config.add_output("y", (None, 4))
    ensemble.add_input(later.inputs["x"])
    ensemble.add_output(later.outputs["y"])
    ensemble.export_version(None)
    assert "its step 'later' has no version yet: export one before it is served" in caplog.text


def test_an_ensemble_batches_as_far_as_all_its_models_do(repo: qv.ModelRepository, ensemble: qv.EnsembleModel) -> None:
    first, second, total = (repo.models[name] for name in ("first", "second", "sum"))
    first.config.max_batch_size = 16
    second.config.max_batch_size = 8
    ensemble.add_input(first.inputs["x"])
    assert ensemble.config.max_batch_size == 16
    ensemble.pipe(first.outputs["y"], second.inputs["x"])
    assert ensemble.config.max_batch_size == 8
    assert list(ensemble.config.input[0].dims) == [4]
    ensemble.pipe(second.outputs["y"], total.inputs["a"])
    assert ensemble.config.max_batch_size == 0
    assert list(ensemble.config.input[0].dims) == [-1, 4]
    assert ensemble.inputs["x"].shape == (None, 4)


def test_an_ensemble_is_no_step_of_itself_but_of_others(repo: qv.ModelRepository, ensemble: qv.EnsembleModel) -> None:
    first = repo.models["first"]
    ensemble.add_input(first.inputs["x"])
    ensemble.add_output(first.outputs["y"])
    assert "cannot be a step of itself" in refused(ensemble, "add_input", ensemble.inputs["x"])
    ensemble.export_version(None)
    outer = repo.add("outer", qv.Platform.ENSEMBLE)
    outer.add_input(ensemble.inputs["x"])
    outer.add_output(ensemble.outputs["y"])
    assert outer.export_version(None) == "outer/1/model.empty"


def test_state_behind_several_instances_is_warned_of(
    repo: qv.ModelRepository, ensemble: qv.EnsembleModel, caplog: pytest.LogCaptureFixture
) -> None:
    first, second = repo.models["first"], repo.models["second"]
    second.config.sequence_batching = {"direct": {}}
    ensemble.add_input(first.inputs["x"])
    ensemble.pipe(first.outputs["y"], second.inputs["x"])
    ensemble.add_output(second.outputs["y"], key="z")
    ensemble.export_version(None)
    assert "keeps state" not in caplog.text
    first.config.add_instance_group("cpu", count=2)
    ensemble.export_version(None)
    assert "first -> second: second keeps state and first has 2 instances" in caplog.text
    caplog.clear()
    first.config.dynamic_batching = {"preserve_ordering": True}
    ensemble.export_version(None)
    assert "keeps state" not in caplog.text


def test_a_step_is_added_once_a_version(ensemble: qv.EnsembleModel) -> None:
    ensemble.config.add_step("first").model_namespace = ""
    ensemble.config.add_step("first", 2)
    with pytest.raises(ConfigError, match="version 2 of model 'first' is a step"):
        ensemble.config.add_step("first", 2)


def test_what_an_ensemble_may_not_have_is_refused_in_the_servers_words(
    repo: qv.ModelRepository, ensemble: qv.EnsembleModel
) -> None:
    first = repo.models["first"]
    ensemble.add_input(first.inputs["x"])
    ensemble.add_output(first.outputs["y"])
    ensemble.config.add_instance_group("cpu")
    with pytest.raises(ConfigError, match="instance group should not be specified for ensemble 'chain'"):
        ensemble.export_version(None)
