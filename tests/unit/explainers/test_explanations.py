"""What SHAP and captum find, for functions whose attributions are known."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from alipes.explainers import Limits, PictureExplainer, TabularExplainer, TextExplainer

pytestmark = [pytest.mark.extra("explain"), pytest.mark.filterwarnings("ignore")]

WEIGHTS = np.array([1.0, 10.0, 0.0])


def scores(rows: Any) -> Any:
    return np.stack([rows @ WEIGHTS, rows[:, 0] * rows[:, 1]], axis=1)


def test_the_columns_of_a_sum_have_their_own_parts() -> None:
    explainer = TabularExplainer(scores, np.zeros((2, 3)), columns=["a", "b", "c"], target=0, limits=Limits(passes=2))
    first, second = explainer.explain([[1.0, 2.0, 3.0], [2.0, 0.0, 0.0]])
    assert first.attributions == pytest.approx([1.0, 20.0, 0.0])
    assert second.attributions == pytest.approx([2.0, 0.0, 0.0])
    assert (first.base, first.prediction, first.target, first.is_approximate) == (0.0, 21.0, 0, False)
    assert first.document()["parts"] == ["a", "b", "c"]


def test_attributions_and_base_sum_to_the_prediction() -> None:
    background = np.random.default_rng(0).normal(size=(20, 3))
    explainer = TabularExplainer(scores, background, limits=Limits(passes=3))
    for one in explainer.explain(np.random.default_rng(1).normal(size=(4, 3))):
        assert one.base + one.attributions.sum() == pytest.approx(one.prediction)


def test_equal_seeds_give_equal_explanations() -> None:
    def curved(rows: Any) -> Any:
        return np.prod(rows, axis=1)

    background = np.random.default_rng(0).normal(size=(5, 6))
    rows = np.random.default_rng(1).normal(size=(1, 6))

    def found(seed: int) -> list[float]:
        np.random.seed(len(background) + seed)
        explainer = TabularExplainer(curved, background, limits=Limits(passes=2), seed=seed)
        numbers: list[float] = explainer.explain(rows)[0].attributions.tolist()
        return numbers

    assert found(3) == found(3)
    assert found(3) != found(4)


def test_the_words_that_count_are_named() -> None:
    def liked(texts: Any) -> Any:
        return [float("good" in text) for text in texts]

    explainer = TextExplainer(liked, limits=Limits(passes=2), batch_size=3)
    found = explainer.explain(["a very good day", "good"])
    assert dict(zip(found[0].parts, found[0].attributions, strict=True))["good "] == pytest.approx(1.0)
    assert found[0].attributions.sum() == pytest.approx(1.0)
    assert found[1].attributions == pytest.approx([1.0])


@pytest.mark.parametrize(("layout", "shape"), [("HWC", (8, 6, 3)), ("CHW", (3, 8, 6))])
def test_the_cells_that_count_are_found(layout: Any, shape: tuple[int, int, int]) -> None:
    sizes: list[int] = []

    def corner(pictures: Any) -> Any:
        sizes.append(len(pictures))
        cell = pictures[:, :4, :3] if layout == "HWC" else pictures[:, :, :4, :3]
        return cell.sum(axis=(1, 2, 3))

    explainer = PictureExplainer(corner, shape, layout=layout, grid=(2, 2), limits=Limits(passes=2), batch_size=3)
    (found,) = explainer.explain(np.ones((1, *shape)))
    assert found.attributions == pytest.approx(np.array([[36.0, 0.0], [0.0, 0.0]]))
    assert max(sizes) <= 3
    assert explainer.explain(np.ones((1, *shape)))[0].attributions.tolist() == found.attributions.tolist()


def test_a_module_is_explained_by_its_gradients() -> None:
    import torch

    torch.manual_seed(0)
    network = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    explainer = PictureExplainer(network, (8, 8, 1), limits=Limits(passes=5), target=1)
    (found,) = explainer.explain(np.random.default_rng(0).random((1, 8, 8, 1)))
    assert found.attributions.shape == (8, 8)
    assert found.base + found.attributions.sum() == pytest.approx(found.prediction, abs=0.05)


def test_a_limit_of_calls_leaves_an_explanation_that_says_so() -> None:
    explainer = TabularExplainer(scores, np.zeros((1, 3)), target=0, limits=Limits(calls=3, passes=50), batch_size=16)
    (found,) = explainer.explain([[1.0, 2.0, 3.0]])
    assert found.is_approximate
    assert 1 <= found.passes < 50
    assert found.attributions == pytest.approx([1.0, 20.0, 0.0])
