"""`tools/gpu-check`: its rows name tests that need a GPU, and its table says what became of them."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType

import pytest
from support.gpus import has_real_gpu

ROOT = Path(__file__).parents[2]
TOOL = ROOT / "tools" / "gpu-check"

REPORT = """<testsuites><testsuite>
<testcase name="test_a_real_gpu_is_measured"/>
<testcase name="test_two_instances_share_a_gpu"><failure message="it did not&#10;at all"/></testcase>
<testcase name="test_a_model_of_pytorch_answers_from_its_gpu"><skipped message="needs PyTorch"/></testcase>
<testcase name="test_tensors_lie_on_the_gpu[real-http]"/>
<testcase name="test_tensors_lie_on_the_gpu[real-grpc]"/>
</testsuite></testsuites>"""


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    loader = SourceFileLoader("gpu_check", str(TOOL))
    spec = spec_from_loader("gpu_check", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def test_every_row_names_tests_that_there_are(tool: ModuleType) -> None:
    sources = [file.read_text("utf-8") for file in (ROOT / "tests").rglob("test_*.py")]
    marked = "\n".join(source for source in sources if "mark.gpu" in source)
    named = [test for tests in tool.ROWS.values() for test in tests]
    assert [test for test in named if f"def {test}(" not in marked] == []


def test_every_test_marked_gpu_is_in_a_row(tool: ModuleType) -> None:
    decorated = re.compile(r"@pytest\.mark\.gpu\n(?:@.*\n)*def (\w+)\(")
    marked = {
        name for file in (ROOT / "tests").rglob("test_*.py") for name in decorated.findall(file.read_text("utf-8"))
    }
    assert marked
    assert marked <= {test for tests in tool.ROWS.values() for test in tests}


def test_the_table_says_what_held_and_what_did_not_run(tool: ModuleType, tmp_path: Path) -> None:
    report = tmp_path / "report.xml"
    report.write_text(REPORT)
    page = tool.table(tool.read(report), ["NVIDIA T"])
    assert page.startswith("On 2")
    for line in (
        "| `nv_gpu_*` metrics | yes (1 case) |",
        "| two instances of a model on one GPU | no: it did not |",
        "| PyTorch on `cuda` answers as the CPU does | not run: needs PyTorch |",
        "| `perf_analyzer --shared-memory cuda` | yes (2 cases) |",
        "| shared memory of GPUs, requests and answers | did not run |",
    ):
        assert line in page.splitlines()


@pytest.mark.skipif(has_real_gpu(), reason="this machine has a GPU")
def test_without_a_gpu_nothing_is_checked_and_it_says_so() -> None:
    done = subprocess.run([sys.executable, str(TOOL), sys.executable], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (77, "")
    assert done.stderr == "there is no GPU here: NVIDIA's driver lists none, so nothing was checked\n"
