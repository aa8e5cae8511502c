"""Models in a row: which output goes to which input, and what is said where none fits."""

from __future__ import annotations

from pathlib import Path

import pytest
from alipes import repository as qv
from alipes.errors import ConfigError, RepositoryUseError
from support.exported import added, scaled


@pytest.fixture
def repo(tmp_path: Path) -> qv.ModelRepository:
    """Models that scale `[None, 4]`, named after what they take and give; `sum` adds a and b; `wide` has 8 columns."""
    repo = qv.ModelRepository(tmp_path)
    for name, source in (
        ("xy", scaled("x", "y")),
        ("yz", scaled("y", "z")),
        ("zy", scaled("z", "y")),
        ("xb", scaled("x", "b")),
        ("ya", scaled("y", "a")),
        ("sum", added()),
        ("wide", scaled("y", "z", columns=8)),
    ):
        repo.add(name, "onnx").export_version(source)
    return repo


def steps(ensemble: qv.EnsembleModel) -> list[tuple[str, dict[str, str], dict[str, str]]]:
    return [(step.model_name, dict(step.input_map), dict(step.output_map)) for step in ensemble.config.steps]


def test_two_models_in_a_row_are_an_ensemble(repo: qv.ModelRepository) -> None:
    chain = repo.models["xy"] >> repo.models["yz"]
    assert repr(chain) == "xy >> yz"
    both = chain.export("both")
    assert isinstance(both, qv.EnsembleModel)
    assert both is repo.models["both"]
    assert both.versions == [1]
    assert steps(both) == [("xy", {"x": "x"}, {"y": "y"}), ("yz", {"y": "y"}, {"z": "z"})]
    again = qv.ModelRepository(str(repo.fs)).models["both"]
    assert (list(again.inputs), list(again.outputs)) == (["x"], ["z"])


def test_every_way_to_say_it_means_the_same(repo: qv.ModelRepository) -> None:
    a, b, c = (repo.models[name] for name in ("xy", "yz", "zy"))
    chains = [a >> b >> c, qv.pipe(a, b, c), qv.pipe(a >> b, c), a >> (b >> c), qv.Chain([a, b, c])]
    assert {repr(chain) for chain in chains} == {"xy >> yz >> zy"}
    made = [chain.export(f"chain{at}") for at, chain in enumerate(chains)]
    made += [repo.pipe(a, b, c, name="models"), repo.pipe("xy", "yz", "zy", name="names")]
    assert all(steps(one) == steps(made[0]) for one in made)
    assert steps(made[0])[2] == ("zy", {"z": "z"}, {"y": "y"})


def test_the_one_output_goes_to_the_one_input_whatever_their_names(repo: qv.ModelRepository) -> None:
    both = (repo.models["yz"] >> repo.models["xb"]).export("both")
    assert steps(both) == [("yz", {"y": "y"}, {"z": "z"}), ("xb", {"x": "z"}, {"b": "b"})]


def test_an_input_is_fed_by_the_nearest_model_that_gives_its_name(repo: qv.ModelRepository) -> None:
    tree = (repo.models["xb"] >> repo.models["ya"] >> repo.models["sum"]).export("tree")
    assert steps(tree)[2] == ("sum", {"a": "a", "b": "b"}, {"sum": "sum"})
    assert list(tree.inputs) == ["x"]


def test_requests_bring_what_no_model_gives(repo: qv.ModelRepository) -> None:
    partial = (repo.models["ya"] >> repo.models["sum"]).export("partial")
    assert (list(partial.inputs), list(partial.outputs)) == (["y", "b"], ["sum"])


def test_a_chain_exported_again_is_one_more_version(repo: qv.ModelRepository) -> None:
    chain = repo.models["xy"] >> repo.models["yz"]
    assert chain.export("both") is chain.export("both")
    assert repo.models["both"].versions == [1, 2]
    other = qv.ModelRepository(str(repo.fs))
    assert other.pipe("xy", "yz", name="both").versions == [1, 2, 3]


def test_a_chain_of_other_tensors_does_not_replace_an_ensemble(repo: qv.ModelRepository) -> None:
    both = (repo.models["xy"] >> repo.models["yz"]).export("both")
    before = str(both.config)
    with pytest.raises(ConfigError) as caught:
        (repo.models["zy"] >> repo.models["ya"]).export("both")
    assert str(caught.value) == (
        "ensemble 'both' has the inputs 'x' and the outputs 'z'; zy >> ya has the inputs 'z' and the outputs 'a': take "
        'another name, or call remove("both") first'
    )
    assert (str(both.config), both.versions) == (before, [1])


def test_batches_are_as_large_as_the_least_of_the_models_takes(repo: qv.ModelRepository) -> None:
    for name, largest in (("xy", 16), ("yz", 8)):
        repo.models[name].export_version(scaled(*name), max_batch_size=largest)
    both = (repo.models["xy"] >> repo.models["yz"]).export("both")
    assert (both.config.max_batch_size, both.inputs["x"].shape) == (8, (None, 4))
    repo.models["yz"].export_version(scaled("y", "z"), max_batch_size=16)
    assert (repo.models["xy"] >> repo.models["yz"]).export("both").config.max_batch_size == 16


def test_what_does_not_fit_is_named_with_both_ends(repo: qv.ModelRepository, tmp_path: Path) -> None:
    models = repo.models
    with pytest.raises(ConfigError) as caught:
        models["xy"] >> models["sum"]
    assert str(caught.value).startswith(
        "xy >> sum: no output of 'xy' ('y') has the name of an input of 'sum' ('a', 'b'); "
    )
    with pytest.raises(ConfigError, match=r"xy\.y -> wide\.y: shapes \[None, 4\] and \[None, 8\] differ on axis 1"):
        models["xy"] >> models["wide"]
    with pytest.raises(ConfigError, match="empty' has no inputs yet: export it first"):
        models["xy"] >> repo.add("empty", "python")
    with pytest.raises(RepositoryUseError, match="'xy' appears twice"):
        models["xy"] >> models["xy"]
    with pytest.raises(RepositoryUseError, match=r"in the repository .*; take both from one ModelRepository"):
        models["xy"] >> qv.ModelRepository(tmp_path).models["yz"]
    assert "both" not in repo.models


@pytest.mark.parametrize("other", ["yz", None, 3])
def test_what_is_no_model_is_refused_in_words(repo: qv.ModelRepository, other: object) -> None:
    with pytest.raises(TypeError, match=r'expected a model of a repository, such as repo.models\["name"\]'):
        repo.models["xy"] >> other  # type: ignore[operator]
    with pytest.raises(RepositoryUseError, match="a chain has two models or more, such as pipe"):
        qv.pipe(repo.models["xy"])
    with pytest.raises(RepositoryUseError, match=r"there is no model 'yx' in .*; it has .*'yz'"):
        repo.pipe("xy", "yx", name="both")


def test_a_chain_that_cannot_be_exported_leaves_nothing(repo: qv.ModelRepository) -> None:
    with pytest.raises(RepositoryUseError, match="already exists"):
        (repo.models["xy"] >> repo.models["yz"]).export("sum")
    chain = repo.models["xy"] >> repo.models["yz"]
    repo.remove("yz")
    with pytest.raises(ConfigError, match="step 'yz' is no model"):
        chain.export("both")
    assert "both" not in repo.models
    assert not Path(str(repo.fs), "both").exists()
