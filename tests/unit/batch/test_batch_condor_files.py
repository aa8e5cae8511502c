"""Files for HTCondor say what each client runs, as HTCondor's own library reads them. No pool runs them here."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

import pytest
from alipes.batch.executors.base import worker_command
from alipes.batch.executors.htcondor import dag_text, submit_text
from alipes.batch.folder import RunFolder, Start

START = Start(3, ["grpc://a:8001"], 2)


def test_a_submit_file_line_by_line(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path)
    lines = submit_text(folder, START, range(2), {"request_memory": "2G", "+Project": '"waves"'}).splitlines()
    python = worker_command(folder, 0, START)[0]
    assert lines == [
        "universe = vanilla",
        f"executable = {python}",
        f'arguments = "-m alipes.batch.worker {tmp_path} $(shard) --start 3"',
        "should_transfer_files = NO",
        "getenv = ALIPES_*",
        f"log = {tmp_path}/starts/0003.log",
        f"output = {tmp_path}/starts/0003-$(shard).out",
        f"error = {tmp_path}/starts/0003-$(shard).err",
        "kill_sig = SIGTERM",
        "checkpoint_exit_code = 85",
        "max_retries = 3",
        "retry_until = ExitCode =?= 0 || ExitCode =?= 1",
        "request_memory = 2G",
        '+Project = "waves"',
        "queue shard from (",
        "0",
        "1",
        ")",
    ]


@pytest.fixture
def library() -> Any:
    return pytest.importorskip("htcondor2", reason="HTCondor's library is not installed: pip install htcondor")


@pytest.mark.proof
@pytest.mark.extra("batch")
@pytest.mark.parametrize("name", ["plain", "with space", "with 'quotes' and \"more\""])
def test_the_library_of_htcondor_reads_what_was_meant(library: Any, tmp_path: Path, name: str) -> None:
    folder = RunFolder(tmp_path / name)
    found = library.Submit(submit_text(folder, START, [0, 5, 7], {"request_cpus": 1, "accounting_group": "waves"}))
    assert [one["shard"] for one in found.itemdata()] == ["0", "5", "7"]
    assert found["executable"] == worker_command(folder, 0, START)[0]
    assert (found["checkpoint_exit_code"], found["max_retries"], found["accounting_group"]) == ("85", "3", "waves")
    found["shard"] = "5"
    assert split(found.expand("arguments")) == worker_command(folder, 5, START)[1:]


def split(arguments: str) -> list[str]:
    """The words of a command `arguments` in HTCondor's new syntax, as its manual says."""
    text = arguments.strip().removeprefix('"').removesuffix('"').replace('""', '"')
    words, word, quoted, at = [], "", False, 0
    while at < len(text):
        if quoted and text[at : at + 2] == "''":
            word, at = word + "'", at + 1
        elif text[at] == "'":
            quoted = not quoted
        elif text[at] == " " and not quoted:
            words, word = [*words, word], ""
        else:
            word += text[at]
        at += 1
    return [*words, word]


@pytest.mark.proof
@pytest.mark.extra("batch")
def test_the_library_of_htcondor_writes_the_same_graph(library: Any, tmp_path: Path) -> None:
    from htcondor2 import dags

    node = tmp_path / "node.sub"
    graph = dags.DAG()
    graph.layer(
        name="shard",
        submit_description=node,
        vars=[{"shard": str(number)} for number in (0, 5)],
        retries=3,
        retry_unless_exit=1,
    )
    dags.write_dag(graph, tmp_path / "theirs")
    theirs = (tmp_path / "theirs" / "dagfile.dag").read_text().splitlines()
    kinds = ("JOB", "VARS", "RETRY")
    assert statements(theirs, kinds) == statements(dag_text(node, [0, 5]).splitlines(), kinds)


def statements(lines: list[str], kinds: tuple[str, ...]) -> list[list[str]]:
    """The statements of a graph without the names of its nodes."""
    found = [shlex.split(line) for line in lines if line.strip() and not line.startswith("#")]
    return sorted([words[0], *words[2:]] for words in found if words[0] in kinds)
