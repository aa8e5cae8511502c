"""The line that moves while a load test runs."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.scripted_latency import ScriptedLatency
from support.terminal import TerminalScript

CODE = "import sys; from alipes.cli import main; sys.exit(main(sys.argv[1:]))"
BARS = "▁▂▃▄▅▆▇█"


def lines(text: str) -> list[str]:
    """What the line showed, one state after the other."""
    return [line for line in text.split("\r\x1b[K") if line.strip()]


@pytest.mark.parametrize("columns", [80, 30])
def test_a_level_moves_in_one_line(tmp_path: Path, columns: int) -> None:
    (tmp_path / "body").write_text("1")
    with ScriptedLatency() as server:
        words = ["loadtest", f"--url={server.address}", "--path=/", f"--body={tmp_path}/body", "--rate=300"]
        # Long enough for answers in each: one in which the server had no processor shows no latency.
        words += ["--window=0.2", "--windows=6", "--within=0.1", "--percentile=99"]
        with TerminalScript(CODE, *words, columns=columns) as script:
            printed = script.finish()
    shown = lines(script.text)
    assert len(shown) >= 3
    assert all(len(line) < columns for line in shown)
    assert shown[0].startswith("300/s random: ")
    assert script.text.endswith("\r\x1b[K")
    assert "300/s random" in printed
    if columns == 80:
        assert shown[0] == "300/s random: connecting and warming up"
        pattern = rf"300/s random: [\d,]+/s [{BARS}]+  p99 \S+ ms [{BARS}]*  window (\d+) of up to 6"
        numbers = [int(found[1]) for line in shown[1:] if (found := re.fullmatch(pattern, line))]
        assert numbers == list(range(1, len(shown)))
        assert len(re.findall(rf"[{BARS}]", shown[-1])) > len(re.findall(rf"[{BARS}]", shown[1]))


def test_a_number_of_requests_moves_while_it_is_sent(tmp_path: Path) -> None:
    (tmp_path / "body").write_text("1")
    with ScriptedLatency() as server:
        words = ["loadtest", f"--url={server.address}", "--path=/", f"--body={tmp_path}/body", "--rate=100"]
        with TerminalScript(CODE, *words, "--count=150", columns=80) as script:
            script.finish()
    shown = lines(script.text)
    assert re.search(r"  (?!150)\d+ of 150 requests$", shown[1])
    assert shown[-1].endswith("  150 of 150 requests")


def test_a_comparison_moves_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "body").write_text("1")
    with ScriptedLatency() as server:
        words = ["loadtest", "--compare", server.address, server.address, "--path=/", f"--body={tmp_path}/body"]
        words += ["--window=0.05", "--rounds=4", "--warm-up=0.02"]
        with TerminalScript(CODE, *words, columns=80) as script:
            script.finish()
    shown = lines(script.text)
    assert [line.partition(":")[0] for line in shown] == [f"round {number}" for number in (1, 1, 2, 3, 4)]
    assert all(re.fullmatch(rf"round \d: [\d,]+/s [{BARS}]+  [\d,]+/s [{BARS}]+", line) for line in shown[1:])
