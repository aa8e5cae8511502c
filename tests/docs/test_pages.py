"""Every page works as it is printed: see `reader` for what a fence means."""

from __future__ import annotations

import ast
import importlib.util
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import typer
from _pytest.mark import MarkDecorator, ParameterSet
from alipes.cli.app import app
from alipes.cli.mistakes import usage_mistake
from alipes.cli.unknown import Command
from alipes.compat.perf_analyzer.parser import parse as perf_analyzer
from support.blocks import blocks, pages
from support.reader import Reader

ROOT = Path(__file__).parents[2]
# Pages whose blocks need more than the base install, with the extra that brings it.
NEEDS = {
    "export-models": "torch",
    "serve-pytorch": "torch",
    "streaming-export": "torch",
    "stream-a-detector": "torch",
    "serve-openvino": "openvino",
    "serve-tensorflow": "keras",
    "serve-mlflow": "mlflow",
    "serve-sklearn": "sklearn",
    "serve-xgboost": "trees",
    "serve-lightgbm": "trees",
    "serve-catboost": "trees",
    "from-mlserver": "trees",
    "from-torchserve": "torch",
    "kubernetes": "deploy",
    "serve-with-kserve": "deploy",
    "helm": "deploy",
    "autoscaling": "deploy",
    "idle-exit": "deploy",
    "run-graphs": "deploy",
    "dashboards": "deploy",
    "several-servers": "deploy",
    "ray": "ray",
    "dask": "dask",
    "explainers": "explain",
}
# Pages whose blocks are run in the proof, and of which the gate looks at what they type. They put servers under load
# for seconds, train and export with heavy frameworks, or make images. What they show has tests of its own in the gate.
MEASURING = {
    "advice",
    "load-shapes",
    "load-testing",
    "perf-analyzer",
    "repeat-measurements",
    "search-configurations",
    "tuning",
}
HEAVY = {
    "build-images",
    "dask",
    "export-models",
    "from-mlserver",
    "from-torchserve",
    "ray",
    "serve-lightgbm",
    "serve-mlflow",
    "serve-pytorch",
    "serve-sklearn",
    "serve-tensorflow",
    "serve-xgboost",
    "slurm",
    "stream-a-detector",
    "streaming-export",
}
EXAMPLES = {"examples/kserve/README.md", "examples/serving-lab/README.md", "examples/text-recognition/README.md"}


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def _is_for_the_proof(page: Path) -> bool:
    return page.stem in MEASURING | HEAVY or _name(page) in EXAMPLES


def _parameter(page: Path, *marks: MarkDecorator) -> ParameterSet:
    """A page, with these marks and that of the extra that it needs."""
    extra = [pytest.mark.extra(NEEDS[page.stem])] if page.stem in NEEDS else []
    return pytest.param(page, marks=[*extra, *marks], id=_name(page))


PAGES = [_parameter(page) for page in pages(ROOT)]
IN_FULL = [_parameter(page, *([pytest.mark.proof] if _is_for_the_proof(page) else [])) for page in pages(ROOT)]
TYPED = [_parameter(page) for page in pages(ROOT) if _is_for_the_proof(page)]
LINK = re.compile(r"\]\(([^)\s]+)\)")
FENCED = re.compile(r"^ *```.*?^ *```$", re.MULTILINE | re.DOTALL)


@pytest.mark.slow("every block of a page is run")
@pytest.mark.timeout(900)
@pytest.mark.parametrize("page", IN_FULL)
def test_every_block_of_a_page_works_as_printed(page: Path, tmp_path: Path) -> None:
    if page.is_relative_to(ROOT / "examples"):
        # Its reader sits in the example's folder; in a copy, for what they make there is not the checkout's.
        shutil.copytree(page.parent, tmp_path, dirs_exist_ok=True)
    elif "examples/" in "".join(block.text for block in blocks(page.read_text(encoding="utf-8"))):
        # Its reader sits in a checkout, whose examples they use.
        shutil.copytree(ROOT / "examples", tmp_path / "examples", ignore=shutil.ignore_patterns(".*"))
    with Reader(tmp_path) as reader:
        for block in blocks(page.read_text(encoding="utf-8")):
            try:
                reader.follow(block)
            except AssertionError as error:
                raise AssertionError(f"{_name(page)}:{block.line}: {error}") from error


def _typed(script: str) -> Iterator[list[str]]:
    """The words behind `alipes` of each of a script's lines that begins with it, without redirections."""
    for line in script.replace("\\\n", " ").splitlines():
        if line.startswith("alipes "):
            yield shlex.split(re.sub(r" (2?>|&|\|\|).*", "", line))[1:]


def _parse(words: list[str]) -> None:
    """Parses a command line as `alipes` does, and runs nothing."""
    if words[0] == "perf_analyzer":
        perf_analyzer(words[1:])
        return
    group: Any = typer.main.get_command(app)
    assert words[0] in group.commands, f"there is no command {words[0]!r}"
    with group.make_context("alipes", words[:1]) as context:
        try:
            group.commands[words[0]].make_context(words[0], words[1:], parent=context)
        except Exception as error:
            mistake = usage_mistake(Command("alipes", group, group), error)
            assert mistake is None, mistake
            raise


def _import(program: str) -> int:
    """Imports what a program imports of alipes; how many names."""
    count = 0
    for statement in ast.walk(ast.parse(program)):
        if isinstance(statement, ast.ImportFrom) and str(statement.module).startswith("alipes"):
            module = importlib.import_module(str(statement.module))
            for name in statement.names:
                whole = f"{statement.module}.{name.name}"
                assert hasattr(module, name.name) or importlib.util.find_spec(whole), f"there is no {whole}"
                count += 1
    return count


@pytest.mark.parametrize("page", TYPED)
def test_commands_and_names_of_a_page_for_the_proof_exist(page: Path) -> None:
    seen = 0
    for block in blocks(page.read_text(encoding="utf-8")):
        if block.language in {"bash", "console"}:
            for words in _typed(block.text.replace("$ ", "")):
                _parse(words)
                seen += 1
        elif block.language == "python":
            seen += _import(block.text)
    assert seen > 0


@pytest.mark.parametrize(
    "wrong", ["alipes loadtest digits --callerz 1", "alipes tune --try", "alipes nothing", "alipes advise --seconds x"]
)
def test_a_command_that_is_not_there_is_seen(wrong: str) -> None:
    (words,) = _typed(wrong)
    with pytest.raises(AssertionError):
        _parse(words)


def test_a_name_that_is_not_there_is_seen() -> None:
    with pytest.raises(AssertionError):
        _import("from alipes.loadtest import nothing")


@pytest.mark.parametrize("page", PAGES)
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    prose = FENCED.sub("", page.read_text(encoding="utf-8"))
    targets = [urlsplit(target) for target in LINK.findall(prose)]
    local = [target for target in targets if not target.scheme]
    missing = [target.path for target in local if target.path and not (page.parent / target.path).exists()]
    assert missing == []
