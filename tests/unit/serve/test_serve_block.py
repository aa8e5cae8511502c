"""What a script learns that calls `serve` in another way than in a `with`."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path

import pytest
from alipes.errors import ServeError
from alipes.serve import Instance, serve
from alipes.serve.folder import repository_of


def test_a_block_that_never_began_says_so(tmp_path: Path) -> None:
    with pytest.warns(RuntimeWarning, match=r"serve\(...\) started no server: write `with serve\(...\) as instance:`"):
        serve(tmp_path)
        gc.collect()


def test_what_a_server_has_is_not_there_before_the_block(tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        block = serve(tmp_path)
        with pytest.raises(AttributeError, match="there is no 'wait' before the block begins: write `with serve"):
            block.wait()
        with pytest.raises(AttributeError, match="'ServerBlock' object has no attribute 'no_such_thing'"):
            block.no_such_thing  # noqa: B018
        del block
        gc.collect()


class _Callable:
    def __call__(self, sound: float) -> float:
        return 2 * sound


@pytest.mark.parametrize(
    ("thing", "told"),
    [
        (
            _Callable(),
            "_Callable is no repository: pass a function that calls it, as in alipes.serve(predict), or write",
        ),
        (3, 'int is no repository: name the folder that holds the models\' folders, as in "models"'),
        (None, "NoneType is no repository: name the folder"),
        (["models"], "list is no repository: name the folder"),
    ],
)
def test_what_is_no_path_is_refused_with_what_to_write(thing: object, told: str) -> None:
    with pytest.raises(ServeError) as caught:
        serve(thing)  # type: ignore[arg-type]
    assert str(caught.value).startswith(told)


def test_a_folder_that_is_not_there_is_refused_before_the_block(tmp_path: Path) -> None:
    with pytest.raises(ServeError, match=r"there is no model repository at .*: it has to be a folder"):
        serve(tmp_path / "none")


@pytest.mark.parametrize(
    ("named", "meant"), [("modles", "models"), ("modles/deeper", "models"), ("models/a", "models/ab")]
)
def test_a_folder_that_is_not_there_is_named_by_the_nearest_one(tmp_path: Path, named: str, meant: str) -> None:
    (tmp_path / "models" / "ab").mkdir(parents=True)
    with pytest.raises(ServeError, match=f"did you mean '{tmp_path / meant}'\\?$"):
        serve(tmp_path / named)


def test_a_file_and_a_model_are_no_repository(tmp_path: Path) -> None:
    (tmp_path / "models" / "digits" / "1").mkdir(parents=True)
    (tmp_path / "models" / "digits" / "config.pbtxt").touch()
    with pytest.raises(ServeError, match=f"is a model, not a repository: name the folder .* '{tmp_path / 'models'}'$"):
        serve(tmp_path / "models" / "digits")
    with pytest.raises(ServeError, match=r"config\.pbtxt is a file: name the folder that holds the models' folders"):
        serve(tmp_path / "models" / "digits" / "config.pbtxt")


def test_a_folder_may_be_named_from_the_home_folder_and_as_a_url(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "models").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path))
    assert repository_of("~/models") == repository_of(f"file://{tmp_path}/models") == str(tmp_path / "models")


ATTRIBUTES = sorted({"name", "log_path", *(name for name in dir(Instance) if not name.startswith("_"))})


@pytest.mark.parametrize("name", ATTRIBUTES)
def test_every_attribute_of_a_server_says_to_write_with(tmp_path: Path, name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        block = serve(tmp_path)
        with pytest.raises(AttributeError, match=f"there is no '{name}' before the block begins: write `with serve"):
            getattr(block, name)
        del block
        gc.collect()
