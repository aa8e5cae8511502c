"""Which tests run, where, and which of them took long."""

from __future__ import annotations

import re
from collections.abc import Generator, Iterable
from pathlib import Path

import pytest

from support import kube_fixtures
from support.gpus import has_real_gpu
from support.stalls import stalled_s

SLOW_S = 5.0
# Several processes share the cores, so a test takes longer there than by itself.
SLOW_BESIDE_OTHERS_S = 8.0
EVERY = "every"


def add_options(parser: pytest.Parser) -> None:
    """Adds `--extra` and `--list-slow` to pytest."""
    group = parser.getgroup("alipes")
    group.addoption(
        "--extra", metavar="NAME", help=f"run the tests marked extra(NAME), or any extra for {EVERY!r}, and no others"
    )
    group.addoption("--list-slow", metavar="FILE", help="write the ids of tests over five seconds, unless marked slow")


def select(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps the tests of one extra, or of none; groups tests that share a server; skips those that lack a GPU."""
    extra = config.getoption("--extra")
    selected: list[pytest.Item] = []
    deselected: list[pytest.Item] = []
    for item in items:
        (selected if _is_of(item, extra) else deselected).append(item)
    config.hook.pytest_deselected(items=deselected)
    items[:] = selected
    for item in items:
        if kube_fixtures.FIXTURES.intersection(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.xdist_group(kube_fixtures.GROUP))
        elif item.get_closest_marker("xdist_group") is None and _shares_a_module_fixture(item):
            item.add_marker(pytest.mark.xdist_group(str(item.path)))
        if item.get_closest_marker("gpu") is not None and not has_real_gpu():
            item.add_marker(pytest.mark.skip(reason="needs a GPU"))
    # What is slow and last would keep one process at work while the others have nothing left. The sort is stable.
    items.sort(key=lambda item: item.get_closest_marker("slow") is None)


def _is_of(item: pytest.Item, extra: str | None) -> bool:
    """Whether a test belongs to an extra, to any for `EVERY`, or to none for `None`."""
    extras = _extras(item)
    if extra is None:
        return not extras
    return bool(extras) if extra == EVERY else extra in extras


def _extras(item: pytest.Item) -> set[object]:
    return {name for mark in item.iter_markers("extra") for name in mark.args}


def _shares_a_module_fixture(item: pytest.Item) -> bool:
    """Whether tests of its module use something that is made once for them, such as a server."""
    info = getattr(item, "_fixtureinfo", None)
    definitions: Iterable[list[pytest.FixtureDef[object]]] = info.name2fixturedefs.values() if info else ()
    return any(found[-1].scope in {"module", "package"} for found in definitions)


# A long form takes as long as it takes.
MAY_TAKE_LONG = {"slow", "proof"}


class SlowTests:
    """Notes tests that took longer than a limit without being marked. Registered where reports come together.

    In a process that runs tests itself, time does not count in which threads waited for a core.
    """

    def __init__(self, file: Path, limit_s: float) -> None:
        self._file = file
        self._limit_s = limit_s
        self._stalled_s = 0.0
        self._ids: list[str] = []

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, object, object]:
        """Measures how long the call of a test was kept waiting."""
        before_s = stalled_s()
        try:
            return (yield)
        finally:
            self._stalled_s = stalled_s() - before_s

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Looks at the time of each call."""
        took_s = report.duration - self._stalled_s
        if report.when == "call" and took_s > self._limit_s and not MAY_TAKE_LONG & report.keywords.keys():
            # xdist adds the group to the id.
            self._ids.append(re.sub(r"@[^\]]*$", "", report.nodeid))

    def pytest_sessionfinish(self) -> None:
        """Writes the file, if there is anything to write."""
        if self._ids:
            self._file.write_text("\n".join(self._ids) + "\n", encoding="utf-8")


def note_slow_tests(config: pytest.Config) -> None:
    """Registers `SlowTests`, where `--list-slow` asks for it and this process is not one of xdist's workers."""
    file = config.getoption("--list-slow")
    if file and not hasattr(config, "workerinput"):
        limit_s = SLOW_BESIDE_OTHERS_S if config.getoption("numprocesses", None) else SLOW_S
        config.pluginmanager.register(SlowTests(Path(file), limit_s), "alipes-slow-tests")
