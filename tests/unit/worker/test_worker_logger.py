"""Lines of a model in the server's log."""

from __future__ import annotations

import inspect
from typing import Any

import pytest
from alipes.worker.triton.logger import Logger


def here() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def test_lines_carry_level_and_place(link: Any) -> None:
    Logger.log("default")
    Logger.log("chosen", Logger.WARNING)
    Logger.log_info("info")
    Logger.log_warn("warning")
    Logger.log_error("error")
    first = here() - 5
    assert link.lines == [
        (2, __file__, first, "default"),
        (1, __file__, first + 1, "chosen"),
        (2, __file__, first + 2, "info"),
        (1, __file__, first + 3, "warning"),
        (0, __file__, first + 4, "error"),
    ]


@pytest.mark.parametrize(("verbose", "lines"), [(False, []), (True, ["detail", "more"])])
def test_verbose_lines_are_sent_where_the_server_shows_them(link: Any, verbose: bool, lines: list[str]) -> None:
    link.verbose = verbose
    Logger.log_verbose("detail")
    Logger.log("more", Logger.VERBOSE)
    assert [(level, text) for level, _, _, text in link.lines] == [(3, text) for text in lines]


def test_without_a_server_lines_go_to_the_console(capsys: pytest.CaptureFixture[str]) -> None:
    Logger.log_warn("careful")
    assert capsys.readouterr().err == f"W {__file__}:{here() - 1}] careful\n"


def test_an_instance_logs_like_the_class(link: Any) -> None:
    Logger().log_info("info")
    assert link.lines[0][3] == "info"


@pytest.mark.parametrize("arguments", [("text", None), ("text", 0), (None,), (5, Logger.INFO)])
def test_other_arguments_of_log_are_a_type_error(link: Any, arguments: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match=r"^log\(\): incompatible function arguments\."):
        Logger.log(*arguments)
    assert link.lines == []


@pytest.mark.parametrize("name", ["log_info", "log_warn", "log_error", "log_verbose"])
@pytest.mark.parametrize("message", [None, 5])
def test_a_message_of_the_log_is_text(link: Any, name: str, message: object) -> None:
    with pytest.raises(TypeError, match=rf"^{name}\(\): incompatible function arguments\."):
        getattr(Logger, name)(message)
    assert link.lines == []
