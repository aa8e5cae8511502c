"""What a script learns that calls `serve` in another way than in a `with`."""

from __future__ import annotations

import gc
import warnings
from pathlib import Path

import pytest
from alipes.errors import ServeError
from alipes.serve import serve


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


@pytest.mark.parametrize(
    ("thing", "kind"), [(lambda x: x, "a function or a model"), (3, "int"), (None, "NoneType"), (["models"], "list")]
)
def test_what_is_no_path_is_refused_with_what_to_write(thing: object, kind: str) -> None:
    with pytest.raises(ServeError, match=f"^{kind} is no repository, and a repository is what is served"):
        serve(thing)  # type: ignore[arg-type]


def test_a_folder_that_is_not_there_is_refused_before_the_block(tmp_path: Path) -> None:
    with pytest.raises(ServeError, match="there is no model repository at"):
        serve(tmp_path / "none")
