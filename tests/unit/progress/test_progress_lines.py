"""One line says how far work is: on a terminal, for as long as the work lasts, and nowhere else."""

from __future__ import annotations

import os
import subprocess
import sys
import threading

import pytest
from alipes.progress import current, task, track
from support.terminal import TerminalScript

ERASED = "\x1b[2K"  # the line is erased
CURSOR_IS_BACK = "\x1b[?25h"

STEPS = """
from alipes.progress import current, task
with task("mending [the] net"):
    current().step("first knot")
    current().step("second knot", 2)
    current().advance()
    print("printed meanwhile")
print("done")
"""

LOOP = """
from alipes.progress import track
print(sum(track(range(4), "counting")))
"""

INSIDE = """
from alipes.progress import task, track
with task("outer"):
    with task("inner") as inner:
        inner.step("deeper")
    with task("hidden", show=False) as hidden:
        hidden.step("unseen")
    list(track("ab", "letters"))
"""

IMPORTS = """
import sys
from alipes.progress import task, track
with task("work") as line:
    line.step("step")
list(track(range(3), "loop"))
print("rich" in sys.modules)
"""


def test_a_terminal_shows_the_steps_and_the_line_is_erased() -> None:
    with TerminalScript(STEPS) as script:
        script.finish()
    for words in ("mending [the] net", "first knot", "second knot", "50%"):
        assert words in script.text
    assert script.text.rindex(ERASED) > script.text.rindex("second knot")
    assert CURSOR_IS_BACK in script.text


def test_what_a_script_prints_meanwhile_goes_where_it_prints() -> None:
    with TerminalScript(STEPS) as script:
        assert script.finish() == "printed meanwhile\ndone\n"
    assert "printed meanwhile" not in script.text


def test_a_loop_is_counted_to_its_end() -> None:
    with TerminalScript(LOOP) as script:
        assert script.finish() == "6\n"
    assert "counting" in script.text
    assert "100%" in script.text


def test_inner_work_is_a_step_of_outer_work_unless_hidden() -> None:
    with TerminalScript(INSIDE) as script:
        script.finish()
    for words in ("outer", "inner", "deeper", "letters"):
        assert words in script.text
    assert "unseen" not in script.text
    assert "hidden" not in script.text


@pytest.mark.parametrize(
    "environment", [{"ALIPES_PROGRESS": "0"}, {"ALIPES_PROGRESS": " Off "}, {"TERM": "dumb"}], ids=str
)
def test_a_terminal_stays_empty_where_off_or_unable_to_erase(environment: dict[str, str]) -> None:
    with TerminalScript(IMPORTS, environment=environment) as script:
        assert script.finish() == "False\n"
    assert script.text == ""


def test_without_a_terminal_nothing_is_written_and_nothing_imported() -> None:
    run = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True, check=True, env=os.environ)
    assert run.stdout == "False\n"
    assert run.stderr == ""


def test_a_script_without_an_error_output_works() -> None:
    code = "import sys\nsys.stderr = None\n" + LOOP
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout == "6\n"


def test_work_that_fails_takes_its_line_with_it_and_the_next_has_one() -> None:
    code = (
        "from alipes.progress import task\n"
        "try:\n"
        "    with task('first'):\n"
        "        raise ValueError\n"
        "except ValueError:\n"
        "    pass\n"
        "with task('second'):\n"
        "    pass\n"
    )
    with TerminalScript(code) as script:
        script.finish()
    assert "first" in script.text
    assert "second" in script.text


def test_a_loop_that_is_left_early_lets_go_of_the_line() -> None:
    code = (
        "from alipes.progress import task, track\n"
        "for number in track(range(9), 'first'):\n"
        "    break\n"
        "with task('second'):\n"
        "    pass\n"
    )
    with TerminalScript(code) as script:
        script.finish()
    assert "second" in script.text


def test_work_beside_other_work_goes_without_a_line() -> None:
    code = (
        "import threading\n"
        "from alipes.progress import task\n"
        "def beside():\n"
        "    with task('beside') as line:\n"
        "        print(line.shown)\n"
        "with task('first'):\n"
        "    thread = threading.Thread(target=beside)\n"
        "    thread.start()\n"
        "    thread.join()\n"
    )
    with TerminalScript(code) as script:
        assert script.finish() == "False\n"
    assert "beside" not in script.text


def test_unseen_work_still_takes_steps_from_any_thread() -> None:
    with task("work", show=False) as line:
        assert current() is line
        seen = []
        thread = threading.Thread(target=lambda: seen.append(current().shown))
        thread.start()
        thread.join()
    assert seen == [False]
    assert list(track(iter("ab"), "loop", show=False)) == ["a", "b"]
