"""An exception on its way from one process to another."""

from __future__ import annotations

import pickle
import traceback
from types import TracebackType
from typing import NoReturn

__all__ = ["ExceptionWrapper", "Remote"]


class Remote(Exception):
    """The cause of an exception that comes from another process: where it was raised there."""

    def __init__(self, text: str) -> None:
        """Takes the traceback as text."""
        super().__init__(text)
        self.text = text

    def __str__(self) -> str:
        """The traceback, apart from what stands around it."""
        return f'\n"""\n{self.text}"""'


class ExceptionWrapper(Exception):
    """Holds an exception and the place where it was raised, and can be sent to another process."""

    def __init__(self, exception: BaseException) -> None:
        """Takes the exception, with its traceback as it is now."""
        super().__init__(str(exception))
        self.exception = exception
        self.text = "".join(traceback.format_exception(exception))

    @property
    def exc(self) -> BaseException:
        """The exception, likewise."""
        return self.exception

    @property
    def tb(self) -> TracebackType | None:
        """Its traceback; none of an exception that has travelled, which brings it as text."""
        return self.exception.__traceback__

    def __reduce__(self) -> tuple[object, ...]:
        """How it travels: an exception that cannot be sent goes as a `RuntimeError` with its words."""
        return _unpacked, (_sendable(self.exception), self.text)

    def reraise(self) -> NoReturn:
        """Raises the exception, with the place where it was raised first as its cause."""
        raise self.exception from Remote(self.text)


def _unpacked(exception: BaseException, text: str) -> ExceptionWrapper:
    wrapper = ExceptionWrapper(exception)
    wrapper.text = text
    return wrapper


def _sendable(exception: BaseException) -> BaseException:
    try:
        pickle.loads(pickle.dumps(exception))  # some can be written and not read
    except Exception:
        return RuntimeError(f"{type(exception).__name__}: {exception}")
    return exception
