"""Every fuzzer is found by `make fuzz`, replayed by the gate, and holds something that SECURITY.md promises."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "fuzz"
VECTORS = sorted((ROOT / "tests" / "vectors" / "fuzz").glob("*.json"))


def in_the_tool(code: str) -> str:
    """What Python code prints that imports the modules of `tools/fuzz`."""
    done = subprocess.run([sys.executable, "-c", code], cwd=TOOL, capture_output=True, text=True, check=True)
    return done.stdout


def found_in_crates() -> dict[str, list[str]]:
    """The fuzzers that `make fuzz` finds in crates, and which crates those are."""
    found: dict[str, list[str]] = json.loads(
        in_the_tool("import fuzzers, json; print(json.dumps(fuzzers.in_crates()))")
    )
    return found


def test_every_fuzzer_of_a_crate_is_found() -> None:
    files = {file: file.read_text(encoding="utf-8") for file in (ROOT / "crates").rglob("*.rs")}
    named = {name for text in files.values() for name in re.findall(r'Fuzzer::new\(\s*"([\w-]+)"', text)}
    assert named == set(found_in_crates())
    assert len(named) > 15


def test_every_fuzzer_of_a_crate_holds_a_promise() -> None:
    promises = (ROOT / "tests" / "meta" / "security.toml").read_text(encoding="utf-8")
    code = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "crates").rglob("*.rs"))
    tests = re.findall(r"\bfn (whatever_\w+)\(\)", code)
    assert len(tests) >= len(found_in_crates())
    assert [test for test in tests if f'"{test}"' not in promises] == []


@pytest.mark.parametrize("file", VECTORS, ids=lambda file: file.stem)
def test_every_vector_of_a_fuzzer_says_what_it_showed(file: Path) -> None:
    python = (ROOT / "tests" / "support" / "fuzzing" / "fuzzers.py").read_text(encoding="utf-8")
    assert file.stem in found_in_crates() or f'Fuzzer("{file.stem}"' in python
    for vector in json.loads(file.read_text(encoding="utf-8")):
        assert vector.keys() == {"fact", "hex"}
        assert vector["fact"]
        bytes.fromhex(vector["hex"])


SAID = """
INFO: seed corpus: files: 96 min: 1b max: 4096b total: 12345b rss: 40Mb
#97     INITED cov: 812 ft: 2001 corp: 80/11Kb exec/s: 0 rss: 44Mb
#4096   pulse  cov: 815 ft: 2040 corp: 88/12Kb lim: 4096 exec/s: 2048 rss: 45Mb
#50000  DONE   cov: 901 ft: 2222 corp: 99/13Kb lim: 4096 exec/s: 5000 rss: 46Mb
stat::number_of_executed_units: 50001
"""


def test_what_a_search_says_is_counted() -> None:
    code = f"""
import search
said = {SAID!r}
print(max(map(int, search.TRIED.findall(said))), max(map(int, search.COVERED.findall(said))))
"""
    assert in_the_tool(code).split() == ["50001", "901"]


def test_a_search_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    code = """
import record
kept = record.Record.read("json-request")
kept.add(record.Found(1000, 2.0, 70, failed=False))
kept.write()
kept = record.Record.read("json-request")
kept.add(record.Found(3000, 2.0, 0, failed=True))
kept.write()
print(record.table([record.Record.read("json-request")]))
"""
    lines = [line.split() for line in in_the_tool(code).splitlines()]
    assert lines[1] == ["json-request", "4,000", "1,000", "4", "s", "0", "70", "0"]
