"""The gate is what its page says, and no test is outside it."""

from __future__ import annotations

import itertools
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GATE = ROOT / "tools" / "gate"


def in_the_gate(code: str) -> str:
    """What Python code prints that imports the modules of `tools/gate`."""
    done = subprocess.run([sys.executable, "-c", code], cwd=GATE, capture_output=True, text=True, check=True)
    return done.stdout


def test_the_page_has_the_table_of_stages() -> None:
    page = in_the_gate("import table; print(table.page(), end='')")
    assert (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8") == page, "`make docs` writes it again"


def test_every_extra_that_a_test_needs_has_a_stage() -> None:
    stages = set(in_the_gate("import stages; [print(stage.name) for stage in stages.STAGES]").splitlines())
    sources = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("*.py"))
    extras = set(re.findall(r'mark\.extra\("(\w+)"\)', sources))
    assert extras
    assert {f"extra {name}" for name in extras} <= stages


@pytest.mark.parametrize("command", ["gate", "proof"])
@pytest.mark.parametrize("marks", list(itertools.product([False, True], repeat=2)))
def test_a_test_runs_in_one_stage_and_by_itself_where_it_has_to(command: str, marks: tuple[bool, bool]) -> None:
    code = f"""
import runner, stages
for stage in stages.STAGES:
    if stage.name in ("python", "python alone"):
        print(stage.command.replace("$EXTENT", runner.variables({command!r})["EXTENT"]).split("-m ")[1].split('"')[1])
"""
    beside, alone = in_the_gate(code).splitlines()
    proof, is_alone = marks
    wanted = command == "proof" or not proof
    selects = [eval(expression, {"proof": proof, "alone": is_alone}) for expression in (beside, alone)]
    assert selects == [wanted and not is_alone, wanted and is_alone]


def test_a_stage_needs_only_stages_before_it() -> None:
    code = """
import stages
seen = set()
for stage in stages.STAGES:
    assert seen.issuperset([*stage.needs, *stage.after]), stage
    seen.add(stage.name)
print(len(seen))
"""
    assert int(in_the_gate(code)) > 1


def test_long_forms_have_a_budget_of_their_own_in_the_proof() -> None:
    code = """
from stages import Stage
stage = Stage("a", "", "", 60, long_s=100)
print([stage.within(command).budget_s for command in ("test", "gate", "proof")])
"""
    assert in_the_gate(code) == "[60, 60, 160]\n"


def test_a_failure_keeps_only_what_needs_it_from_running(tmp_path: Path) -> None:
    code = f"""
import runner
from pathlib import Path
from stages import Stage
rows = [
    Stage("a", "", "exit 1", 60), Stage("b", "", "true", 60, ("a",)), Stage("c", "", "true", 60),
    Stage("d", "", "i=0; while (( i++ < 50000 )); do :; done", 0),
    Stage("e", "", "exit 77", 60), Stage("f", "", "true", 60, ("b",)),
]
runner.ROOT = Path({str(tmp_path)!r})
outcomes = sorted(runner.run(rows, "gate"), key=lambda outcome: outcome.stage.name)
print("|".join(outcome.verdict for outcome in outcomes))
print([outcome.stage.name for outcome in outcomes if outcome.fails])
"""
    verdicts = "failed|not run|passed|over budget|left out|not run"
    assert in_the_gate(code).splitlines()[-2:] == [verdicts, "['a', 'd']"]


def executed(tmp_path: Path, rows: str) -> str:
    """What is printed by a run of stages, whose folder is `tmp_path`."""
    return in_the_gate(f"""
import runner
from pathlib import Path
from stages import EVERY_CORE, ONE_CORE, WHOLE_MACHINE, Stage
runner.ROOT = Path({str(tmp_path)!r})
for outcome in runner.run([{rows}], "gate"):
    print(outcome.stage.name, outcome.verdict)
""")


def test_a_stage_that_takes_one_core_runs_beside_another(tmp_path: Path) -> None:
    # Each waits for the file of the other.
    meets = 'Stage("{0}", "", "touch {0}; until test -e {1}; do sleep 0.01; done", 60, takes={2})'
    printed = executed(tmp_path, f"{meets.format('a', 'b', 'EVERY_CORE')}, {meets.format('b', 'a', 'ONE_CORE')}")
    assert {"a passed", "b passed"} <= set(printed.splitlines())


@pytest.mark.parametrize(
    ("running", "waits", "begins"),
    [
        ([], "WHOLE_MACHINE", True),
        (["EVERY_CORE"], "ONE_CORE", True),
        (["EVERY_CORE"], "EVERY_CORE", False),
        (["WHOLE_MACHINE"], "ONE_CORE", False),
        (["ONE_CORE"], "WHOLE_MACHINE", False),
        (["ONE_CORE", "ONE_CORE"], "ONE_CORE", False),
    ],
)
def test_a_stage_begins_where_those_that_run_leave_it_room(running: list[str], waits: str, begins: bool) -> None:
    takes = f"[{', '.join(running)}]"
    code = f"""
from runner import next_to_begin
from stages import EVERY_CORE, ONE_CORE, WHOLE_MACHINE, Stage
running = [Stage(str(number), "", "", 60, takes=takes) for number, takes in enumerate({takes})]
print(next_to_begin([Stage("a", "", "", 60, takes={waits})], running) is not None)
"""
    assert in_the_gate(code) == f"{begins}\n"


def test_a_stage_begins_when_those_that_it_needs_have_ended(tmp_path: Path) -> None:
    rows = (
        'Stage("a", "", "sleep 0.2; touch done", 60, takes=ONE_CORE),'
        'Stage("b", "", "test -e done", 60, ("a",), takes=ONE_CORE)'
    )
    assert {"a passed", "b passed"} <= set(executed(tmp_path, rows).splitlines())


def test_the_output_of_two_stages_does_not_mix(tmp_path: Path) -> None:
    counts = 'Stage("{0}", "", "for i in 1 2 3 4 5; do echo {0}$i; sleep 0.02; done", 60, takes=ONE_CORE)'
    printed = executed(tmp_path, f"{counts.format('a')}, {counts.format('b')}")
    for name in "ab":
        assert "\n".join(f"{name}{number}" for number in range(1, 6)) in printed


def test_a_stage_waits_for_those_before_it_and_runs_though_they_fail(tmp_path: Path) -> None:
    rows = (
        'Stage("a", "", "touch done; false", 60, takes=ONE_CORE),'
        'Stage("b", "", "test -e done", 60, takes=ONE_CORE, after=("a",))'
    )
    assert {"a failed", "b passed"} <= set(executed(tmp_path, rows).splitlines())


def test_what_a_stage_needs_is_no_reason_to_wait_where_it_is_not_run(tmp_path: Path) -> None:
    assert "b passed" in executed(tmp_path, 'Stage("b", "", "true", 60, ("a",))').splitlines()


def test_a_run_of_tests_names_what_it_leaves_to_gate_and_proof() -> None:
    gate, proof = in_the_gate("import table; print(table.left_to_others('test'))").splitlines()
    assert gate.startswith("left to `make gate`: ")
    assert {"clippy", "interpreters", "extras"} <= set(gate.partition(": ")[2].split(", "))
    assert proof.startswith("left to `make proof`: ")
    assert {"soak", "extra torch", "the long forms of tests"} <= set(proof.partition(": ")[2].split(", "))
    assert "rust" not in gate.partition(": ")[2].split(", ")


def test_the_end_of_a_failed_stage_s_output_is_repeated(tmp_path: Path) -> None:
    code = f"""
import runner, table
from pathlib import Path
from stages import Stage
table.ROOT = runner.ROOT = Path({str(tmp_path)!r})
stage = Stage("a b", "", "seq 30; echo FAILED test_x >&2; false", 60)
list(runner.run([stage], "gate"))
print(table.last_words(stage))
"""
    *_, before, last = in_the_gate(code).splitlines()
    assert (before, last) == ("  30", "  FAILED test_x")


@pytest.mark.slow("pytest starts pytest, with two processes")
def test_tests_of_a_group_run_in_one_process(tmp_path: Path) -> None:
    (tmp_path / "test_grouped.py").write_text(
        """
import os, pathlib, pytest

@pytest.mark.parametrize("number", range(12))
@pytest.mark.xdist_group("all")
def test_notes_its_process(number):
    with pathlib.Path(__file__).with_name("processes").open("a") as file:
        file.write(f"{os.getpid()}\\n")
"""
    )
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-n",
        "2",
        "--dist",
        "loadgroup",
        "--rootdir",
        ".",
    ]
    subprocess.run([*command, "-c", "/dev/null", "test_grouped.py"], cwd=tmp_path, check=True, capture_output=True)
    assert len(set((tmp_path / "processes").read_text().split())) == 1
