"""Tables of everything that is measured, as one library makes them, or says how to get it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import pytest
from alipes import ConfigError, Unsupported
from alipes.advise import Advice
from alipes.loadtest import Candidate, Closed, Comparison
from alipes.tune import Goal, Results
from alipes.tune.machine import Machine
from alipes.tune.space import Space
from support.load_windows import report, window

COMPARISON = Comparison(
    (Candidate("a", "localhost:1", "m"), Candidate("b", "localhost:2", "m")),
    Closed(1),
    ([window()] * 4, [window()] * 4),
)
SHOWN = {
    "report": report(),
    "comparison": COMPARISON,
    "search": Results(Machine("a processor", 2, 8 << 30), Goal(), Space(()), ()),
    "advice": Advice("localhost:1", 1.0, (), ()),
}


@pytest.fixture
def no_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where pandas cannot be imported."""
    monkeypatch.setitem(sys.modules, "pandas", None)


@pytest.mark.usefixtures("no_pandas")
@pytest.mark.parametrize("name", SHOWN)
def test_without_pandas_every_table_says_how_to_get_it(name: str) -> None:
    to_pandas: Callable[[], Any] = SHOWN[name].to_pandas  # type: ignore[attr-defined]
    with pytest.raises(Unsupported, match=r"need pandas: install it with `pip install 'alipes\[tables\]'`"):
        to_pandas()


def test_tables_have_names() -> None:
    with pytest.raises(ConfigError, match="no table 'days': expected levels or windows"):
        report().to_pandas("days")
    with pytest.raises(ConfigError, match="no table 'levels': expected ratios or rounds"):
        COMPARISON.to_pandas("levels")
