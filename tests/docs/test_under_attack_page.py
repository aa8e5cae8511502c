"""The page about attacks names every attack, and its cells say what was measured."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
from support.under_attack import page, table
from support.under_attack.attacks import ATTACKS, Attack
from support.under_attack.measurement import Measurement

TEXT = page.PAGE.read_text(encoding="utf-8")
SERVES = Measurement(
    quiet_s={"http": 0.002, "grpc": 0.003},
    loud_s={"http": 0.003, "grpc": 0.3},
    due=600,
    failures=Counter(),
    growth_bytes=12_000_000,
    alive=True,
    recovery_s=0.02,
    outcomes=Counter({"200": 7, "503": 9}),
)
FAILS = replace(SERVES, failures=Counter({"timed out": 5}), loud_s={"http": 0.002}, outcomes=Counter())


def test_the_page_says_what_each_attack_is() -> None:
    assert page.part(page.ATTACKS, TEXT).strip() == table.attacks(), "run `tools/under-attack`"


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_each_attack_is_measured_on_the_page(attack: Attack) -> None:
    assert f"\n| {attack.title} | " in page.part(page.RESULTS, TEXT), "run `tools/under-attack`"


@pytest.mark.parametrize(
    ("rounds", "cell"),
    [
        (
            [SERVES],
            "serves; p99 HTTP 3.0 ms (1.5 times), gRPC 300 ms (100 times); none failed; +12 MB; told `503`, `200`",
        ),
        (
            [SERVES, FAILS, FAILS],
            "serves; p99 HTTP 2.0 ms (1.0 times), gRPC no answer; 10 of 1,800 failed; +12 MB; told `503`, `200`",
        ),
        (
            [replace(FAILS, recovery_s=None)],
            "**answers nobody for 30 s after it**; p99 HTTP 2.0 ms (1.0 times), gRPC no answer; 5 of 600 failed; "
            "+12 MB",
        ),
        (
            [FAILS, replace(FAILS, alive=False, growth_bytes=None)],
            "**dies** in 1 of 2; p99 HTTP 2.0 ms (1.0 times), gRPC no answer; 10 of 1,200 failed; +12 MB",
        ),
    ],
    ids=["serves", "fails", "mute", "dead"],
)
def test_a_cell_says_what_was_measured(rounds: list[Measurement], cell: str) -> None:
    assert table.cell(rounds) == cell


def test_a_part_of_the_page_is_replaced_and_nothing_else() -> None:
    text = "a\n<!-- results: by hand -->\nold\n<!-- end of results -->\nb\n"
    assert (
        page.replaced("results", "new", text) == "a\n<!-- results: by hand -->\n\nnew\n\n<!-- end of results -->\nb\n"
    )
    with pytest.raises(LookupError, match="'attacks'"):
        page.replaced("attacks", "new", text)
