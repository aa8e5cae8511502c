"""`@alipes.model`: marks a function or a class as a model, and leaves it what it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar, overload

from alipes.errors import ConfigError
from alipes.worker.apps.only_declared import note
from alipes.worker.apps.options import DEFAULT_BATCH, MARK, Options, checked
from alipes.worker.apps.peers import KNOWN

__all__ = ["OPTIONS", "model"]

OPTIONS: Final = (
    *("name", "max_batch_size", "batch", "instances", "max_delay", "concurrency", "device", "before", "after"),
    *("before_instances", "after_instances", "start", "stop", "timeout", "explain", "example"),
)
"""Every option, for hints."""

Served = TypeVar("Served", bound=Callable[..., Any])


@overload
def model(served: Served, /) -> Served: ...


@overload
def model(
    *,
    name: str | None = None,
    max_batch_size: int = 0,
    batch: bool = False,
    instances: int = 1,
    max_delay: float = 0.0,
    concurrency: int = 64,
    device: str = "cpu",
    before: Callable[..., Any] | None = None,
    after: Callable[..., Any] | None = None,
    before_instances: int = 1,
    after_instances: int = 1,
    start: Callable[[], object] | None = None,
    stop: Callable[[], object] | None = None,
    timeout: float | None = None,
    explain: Callable[..., Any] | None = None,
    example: dict[str, Any] | None = None,
) -> Callable[[Served], Served]: ...


def model(
    served: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    max_batch_size: int = 0,
    batch: bool = False,
    max_delay: float = 0.0,
    timeout: float | None = None,
    **others: Any,
) -> Any:
    """Mark a function or a class as a model, for `alipes serve app.py`.

    What is marked stays an ordinary function or class, which scripts and tests call as before. Its annotations say
    what `POST /<name>` takes and gives. A generator is a stream; an `async` function works on several requests at a
    time. A class is made once in each instance; its `predict`, or else its `__call__`, answers.

    Args:
        served: The function or the class, where the decorator is used bare.
        name: Name of the model; the function's own, or the class's in lower case, where left out.
        max_batch_size: Rows that one call may get. Each argument is then an array, or a list, with one row for each
            request, and so is the result. 0 calls the function for one request at a time.
        batch: True stands for `max_batch_size=32`.
        max_delay: Longest wait for further requests of a batch, in seconds.
        timeout: Longest call, in seconds, of a function that is neither `async` nor a generator: its process is then
            started again. 0 sets no limit. Left out, it is what the server says of all models, or else ten minutes.
        **others: `instances`: processes that run it. `concurrency`: requests that an `async` function or a generator
            works on at a time, in each of them. `device`: `"cpu"`, or `"gpu"` for that many on each GPU. `before`,
            `after`: functions around it, in processes of their own, `before_instances` and `after_instances` of them.
            `start`, `stop`: functions that are called once in each instance. `explain`: a function that answers
            requests of V1 for explanations. `example`: arguments that the API page shows.

    Raises:
        ConfigError: If an option cannot be.

    Examples:
        >>> import alipes
        >>> @alipes.model
        ... def add(a: float, b: float = 1.0) -> float:
        ...     return a + b
        >>> add(2.0)
        3.0
    """

    def mark(thing: Any) -> Any:
        if not callable(thing):
            raise ConfigError(f"@alipes.model stands above a function or a class, not above a {type(thing).__name__}")
        if unknown := sorted(others.keys() - set(OPTIONS)):
            raise ConfigError(_unknown(unknown[0]))
        called = name if name is not None else _own_name(thing)
        rows = max_batch_size or (DEFAULT_BATCH if batch else 0)
        options = checked(Options(name=called, max_batch_size=rows, max_delay_s=max_delay, timeout_s=timeout, **others))
        setattr(thing, MARK, options)
        if not hasattr(thing, "serve"):  # a class may have a method of that name
            thing.serve = partial(_serve, thing)
        KNOWN[called] = (thing, options)
        note(thing, called)
        return thing

    return mark(served) if served is not None else mark


def _serve(thing: Any, **options: Any) -> Any:
    """`double.serve()`: serves a function or class of this process until somebody ends it."""
    from alipes.attached.functions import serve_until_left  # most models are served by a server that imports them

    return serve_until_left(thing, **options)


def _unknown(option: str) -> str:
    """What to say about an option that there is not."""
    from difflib import get_close_matches  # on use: a right decorator needs neither

    from alipes.synonyms import synonym

    close = get_close_matches(option, OPTIONS, n=1)
    row = synonym("@alipes.model", option)
    hint = row.hint if row else f"did you mean {close[0]}=?" if close else "help(alipes.model) lists them"
    return f"@alipes.model has no option {option}=: {hint}"


def _own_name(thing: Any) -> str:
    own = str(getattr(thing, "__name__", type(thing).__name__))
    return own.lower() if isinstance(thing, type) else own
