"""The examples in docstrings of the repository: readers write programs from these alone."""

from __future__ import annotations

import doctest
from importlib import import_module
from pathlib import Path

import pytest

EXAMPLES = {
    "model_repository": "ModelRepository",
    "model": "Model.export_version",
    "ensemble": "EnsembleModel",
    "chain": "Chain",
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_of_a_docstring_works_as_printed(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module = import_module(f"alipes.repository.{name}")
    owner = EXAMPLES[name].partition(".")[0]
    # By the class: once it was imported from `alipes`, it names that as its module, and a look by module misses it.
    tests = doctest.DocTestFinder().find(getattr(module, owner), owner, module=module, globs={})
    found = [one for one in tests if one.examples]
    assert [one.name for one in found] == [EXAMPLES[name]]
    runner = doctest.DocTestRunner(verbose=False)
    for one in found:
        assert runner.run(one).failed == 0
