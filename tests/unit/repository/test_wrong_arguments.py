"""Arguments of a wrong type or form: our errors, with the argument's name and what it takes, in four lines at most."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from alipes import repository as qv
from alipes.errors import AlipesError
from support.exported import scaled


def doubled(sound: np.ndarray) -> np.ndarray:
    return sound * np.float32(2)


def mixed(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    return left + right


def export(function: Any = doubled, **arguments: Any) -> Callable[[qv.ModelRepository], object]:
    defaults = {"input_shapes": {"sound": (None, 4)}}
    return lambda repo: repo.models["f"].export_version(function, **{**defaults, **arguments})


MISTAKES: dict[str, tuple[Callable[[Any], object], str]] = {
    "a repository that is a number": (
        lambda repo: qv.ModelRepository(5),  # type: ignore[arg-type]
        r"root is 5, of type int; expected a folder or an address",
    ),
    "a repository that is None": (
        lambda repo: qv.ModelRepository(None),  # type: ignore[arg-type]
        r"root is None, of type NoneType; expected a folder or an address",
    ),
    "a model whose name is a number": (lambda repo: repo.add(5, "onnx"), "name is 5, of type int; expected the name"),
    "a platform that is a number": (lambda repo: repo.add("m", 5), "there is no platform 5; there are "),
    "a batch that is a word": (
        lambda repo: repo.add("m", "onnx", max_batch_size="8"),
        "'max_batch_size' of model 'm' cannot be '8'",
    ),
    "a removed model that is a number": (lambda repo: repo.remove(5), "model is 5, of type int; expected a model, or"),
    "a removed model that is not there": (lambda repo: repo.remove("fn"), "there is no model 'fn' in .*; it has 'f'"),
    "one shape without a name": (
        export(input_shapes=(None, 4)),
        r"input_shapes is \(None, 4\), one shape without a name; expected shapes by name, such as "
        r"input_shapes=\{'x': \(None, 4\)\}",
    ),
    "shapes that are a number": (export(input_shapes=4), "input_shapes is 4; expected shapes by name, such as"),
    "shapes that are a word": (export(input_shapes="sound"), "input_shapes is 'sound'; expected shapes by name"),
    "shapes that are empty": (export(input_shapes={}), r"input_shapes is \{\}; expected shapes by name"),
    "shapes without names": (export(input_shapes={0: (None, 4)}), r"input_shapes is \{0: .*; expected shapes by name"),
    "a shape that is a number": (
        export(input_shapes={"sound": 4}),
        r"in input_shapes, the shape of 'sound' is 4; expected sizes, with None for the batch, such as \(None, 64\)",
    ),
    "a size that is a fraction": (
        export(input_shapes={"sound": (None, 4.5)}),
        r"in input_shapes, the shape of 'sound' has size 4\.5; expected whole numbers, with None for the batch",
    ),
    "an array in the place of a shape": (
        export(input_shapes={"sound": np.zeros((2, 4), np.float32)}),
        r"in input_shapes, the shape of 'sound' has size array\(\[",
    ),
    "no shapes at all": (
        export(input_shapes=None),
        r"Must specify input shapes: model 'f' has no inputs yet; such as input_shapes=\{'sound': \(None, 64\)\}",
    ),
    "one input for two arguments": (
        export(mixed, input_shapes={"left": (None, 4)}),
        "the function takes 'left', 'right', and 'right' gets no input; input_shapes names 'left'",
    ),
    "two inputs for one argument": (
        export(input_shapes={"left": (None, 4), "right": (None, 4)}),
        "2 inputs, left, right, for a function of 1 arguments, sound",
    ),
    "output names that are a number": (export(output_names=5), "output_names is 5; expected names in order, such as"),
    "output names that are numbers": (export(output_names=[1]), r"output_names is \[1\]; expected names in order"),
    "more output names than outputs": (export(output_names=["a", "b"]), "2 output names for 1 outputs"),
    "a version that is a word": (export(version="1"), "version '1' of model 'f': expected a whole number from 1 on"),
    "a datatype without a name": (
        export(input_dtypes="int64"),
        r"input_dtypes is a str; expected datatypes by input name or in order: input_dtypes=\{'x': 'int64'\}",
    ),
    "a datatype that is misspelt": (export(input_dtypes={"sound": "flaot32"}), "unknown datatype 'flaot32'"),
    "an example without a name": (
        export(examples=np.zeros((2, 4), np.float32)),
        r"examples is a ndarray; expected arrays by input name or in order: examples=\{'x': array\}",
    ),
    "a tolerance that is a word": (export(tolerance="1e-3"), "tolerance is '1e-3'; expected a number such as 1e-3"),
    "a check that is a word": (export(check="no"), "check is 'no'; expected True, False or 'warn'"),
    "an option of another library": (export(shapes=1), "unknown option 'shapes'; did you mean 'input_shapes'?"),
    "an option that is misspelt": (export(tolerence=1), "unknown option 'tolerence'; did you mean 'tolerance'?"),
    "a batch in a shape that has none": (
        export(input_shapes={"sound": (4,)}, max_batch_size=8),
        r"has shape \[4\], but the model batches \(max_batch_size is 8\): its first axis must be None",
    ),
    "a tensor of an ensemble that is a word": (
        lambda repo: repo.add("e", "ensemble").add_input("sound"),
        r"input is 'sound', of type str; expected an input such as model\.inputs\['name'\]",
    ),
    "models that an ensemble is to join": (
        lambda repo: repo.add("e", "ensemble").pipe(repo.models["x"], repo.models["x"]),
        r"output is Model\('x', .*; expected an output such as model\.outputs\['name'\]; \(a >> b\)\.export",
    ),
    "a shape of a configuration that is a number": (
        lambda repo: repo.add("m", "python").config.add_input("x", 4),
        "the shape of input 'x' of model 'm' is 4; expected sizes such as",
    ),
    "a field of a configuration that is misspelt": (
        lambda repo: setattr(repo.models["x"].config, "max_batchsize", 8),
        "a model configuration has no field 'max_batchsize'",
    ),
}


@pytest.fixture
def repo(tmp_path: Path) -> qv.ModelRepository:
    """Holds `x`, which is exported, and `f`, a function to come."""
    made = qv.ModelRepository(tmp_path)
    made.add("x", "onnx").export_version(scaled())
    made.add("f", "python")
    return made


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_wrong_argument_is_refused_by_its_name(repo: qv.ModelRepository, mistake: str) -> None:
    call, message = MISTAKES[mistake]
    with pytest.raises(AlipesError, match=message) as caught:
        call(repo)
    assert len(textwrap.wrap(str(caught.value), 80)) <= 4
    assert repo.models["f"].versions == []
    assert [path.name for path in Path(str(repo.fs)).iterdir()] == ["x"]


def test_sizes_may_be_numbers_of_numpy(repo: qv.ModelRepository) -> None:
    shape = (None, np.zeros((2, 4)).shape[1] + np.int64(0))
    repo.models["f"].export_version(doubled, input_shapes={"sound": shape}, output_names="y")
    assert repo.models["f"].outputs["y"].shape == (None, 4)
