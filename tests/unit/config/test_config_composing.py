"""An ensemble against the models that it is made of, one text after the other."""

from __future__ import annotations

import pytest
from alipes.config.pbtxt import parse_pbtxt
from alipes.config.validate.composing import check_composing
from alipes.errors import ConfigError

FP32 = "data_type: TYPE_FP32"
PLAIN = f'input {{ name: "X" {FP32} dims: [ 2 ] }} output {{ name: "Y" {FP32} dims: [ 2 ] }}'
DECOUPLED = "model_transaction_policy { decoupled: true }"


def step(model: str, inputs: dict[str, str], outputs: dict[str, str]) -> str:
    maps = [f'input_map {{ key: "{key}" value: "{value}" }}' for key, value in inputs.items()]
    maps += [f'output_map {{ key: "{key}" value: "{value}" }}' for key, value in outputs.items()]
    return f'step {{ model_name: "{model}" {" ".join(maps)} }}'


def ensemble(*steps: str, own: str = PLAIN.replace('"X"', '"A"').replace('"Y"', '"R"'), batch: int = 0) -> str:
    scheduling = f"ensemble_scheduling {{ {' '.join(steps)} }}"
    return f'name: "e" platform: "ensemble" max_batch_size: {batch} {own} {scheduling}'


def check(text: str, **models: str) -> bool:
    return check_composing(parse_pbtxt(text), {name: parse_pbtxt(model) for name, model in models.items()})


CHAIN = ensemble(step("m", {"X": "A"}, {"Y": "mid"}), step("n", {"X": "mid"}, {"Y": "R"}))


def test_models_that_fit_make_an_ensemble() -> None:
    assert check(CHAIN, m=PLAIN, n=PLAIN) is False


def test_an_ensemble_with_a_decoupled_model_is_decoupled() -> None:
    assert check(CHAIN, m=PLAIN + DECOUPLED, n=PLAIN) is True
    assert check(CHAIN, m=PLAIN, n=PLAIN + DECOUPLED) is True
    assert check(CHAIN, m=PLAIN + DECOUPLED, n=PLAIN + DECOUPLED) is True


def test_an_optional_input_need_not_be_mapped() -> None:
    spare = f'{PLAIN} input {{ name: "Z" {FP32} dims: [ 7 ] optional: true }}'
    assert check(CHAIN, m=spare, n=PLAIN) is False


def test_a_model_that_does_not_batch_may_take_a_batch_as_one_tensor() -> None:
    flat = PLAIN.replace("dims: [ 2 ]", "dims: [ -1, 2 ]")
    assert check(ensemble(step("m", {"X": "A"}, {"Y": "R"}), batch=8), m=flat) is False


@pytest.mark.parametrize(
    ("text", "model", "message"),
    [
        (
            ensemble(step("m", {"Q": "A"}, {"Y": "R"})),
            PLAIN,
            "in ensemble e, ensemble tensor A is mapping to non-existing input Q in model m",
        ),
        (
            ensemble(step("m", {"X": "A"}, {"Y": "R"})),
            f'{PLAIN} output {{ name: "Y" {FP32} dims: [ 2 ] }}',
            "in ensemble e, multiple outputs in model m are mapped to the same ensemble tensor R",
        ),
        (
            ensemble(step("m", {"X": "A"}, {"Y": "R"})),
            f'{PLAIN} input {{ name: "Z" {FP32} dims: [ 7 ] }}',
            "in ensemble e, input Z in model m is not mapped to any ensemble tensors",
        ),
        (
            ensemble(step("m", {"X": "A"}, {"Q": "R"})),
            PLAIN,
            "in ensemble e, ensemble tensor R is mapped from non-existing output Q in model m",
        ),
        (
            ensemble(step("m", {"X": "A"}, {"Y": "R"})),
            PLAIN.replace("FP32", "INT8", 1),
            "in ensemble e, ensemble tensor A: inconsistent data type: TYPE_FP32 is inferred from model e while "
            "TYPE_INT8 is inferred from model m",
        ),
        (
            ensemble(step("m", {"X": "A"}, {"Y": "R"}), batch=4),
            f"max_batch_size: 4 {PLAIN.replace('dims: [ 2 ]', 'dims: [ 5, 1 ]', 1)}",
            "in ensemble e, ensemble tensor A: inconsistent shape: [-1,2] is inferred from model e while [-1,5,1] is "
            "inferred from model m",
        ),
        (
            ensemble(step("m", {"X": "A"}, {"Y": "R"}), batch=3),
            f"max_batch_size: 2 {PLAIN}",
            "ensemble e allows maximum batch size 3, but it contains model m which only allows maximum batch size to "
            "be 2",
        ),
    ],
)
def test_what_does_not_fit_is_refused(text: str, model: str, message: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check(text, m=model)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    "second",
    [
        step("m", {"X": "A"}, {"Y": "other"}),  # two decoupled models
        step("n", {"X": "A"}, {"Y": "other"}),  # a decoupled model and none
    ],
)
def test_tensors_of_different_decoupled_models_do_not_meet(second: str) -> None:
    both = PLAIN.replace("output", f'input {{ name: "Z" {FP32} dims: [ 2 ] }} output')
    text = ensemble(step("m", {"X": "A"}, {"Y": "mid"}), second, step("join", {"X": "mid", "Z": "other"}, {"Y": "R"}))
    with pytest.raises(ConfigError, match="step of model 'join' receives inputs originated from different decoupled"):
        check(text, m=PLAIN + DECOUPLED, n=PLAIN, join=both)
