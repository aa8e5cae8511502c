"""Names another release of a package as the cause where its objects cannot be read from a pickle."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from textwrap import shorten
from types import ModuleType
from typing import TYPE_CHECKING, Final

from alipes.worker.loading import LoadError

if TYPE_CHECKING:
    from alipes.worker.frameworks.opened import Opening

__all__ = ["release_explained"]

_DISTRIBUTIONS: Final = {"sklearn": "scikit-learn"}
"""Packages that are installed under another name."""

_CHECKS_PARTS: Final = "sklearn"
"""The package that refuses the parts of objects of its own where another release wrote them."""

_MOST_CHARACTERS: Final = 80
"""Most of a package's own text: that of a tree of another release goes on with all fields of its nodes."""

_IN_MODULE: Final = re.compile(r" on <module '([\w.]+)'")
"""How an error of `pickle` ends that has no module with it: in newer pickles it looks names up by itself."""

_SCRIPT: Final = "__main__"


@contextmanager
def release_explained(
    opening: Opening, *, install: str = "install it beside alipes", again: str = "as ONNX"
) -> Iterator[None]:
    """Turns what a pickle's reader raises for want of a module or of a class into an error that names the cause.

    Args:
        opening: What the server says.
        install: What to do about a package that is not installed.
        again: As what a model of another release is saved again.

    Raises:
        LoadError: If the block raises one, or fails because a package or a part of one is not there.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise opening.refuse(_absent(error, install, again)) from error
    except LoadError as error:
        if (why := _of_release(error.__cause__, again)) is None:
            raise
        raise opening.refuse(why) from error.__cause__
    except Exception as error:
        if (why := _of_release(error, again)) is None:
            raise
        raise opening.refuse(why) from error


def _absent(error: ModuleNotFoundError, install: str, again: str) -> str:
    name = error.name or ""
    package = name.split(".")[0]
    if package != name and find_spec(package) is not None:
        return (
            f"another release of {_distribution(package)} wrote it, with a module '{name}' that the installed "
            f"{_version(package)} does not have: open it with that release, and save it again {again}"
        )
    return f"what it holds is of the package '{name}', which is not installed: {install}"


def _of_release(error: BaseException | None, again: str) -> str | None:
    """Why a pickle is not read, where a package lacks a class of it, or refuses the parts of an object of its own."""
    package = _package(error)
    if package is None or package == _SCRIPT:
        return None
    text = shorten(str(error), _MOST_CHARACTERS, placeholder=" …")
    return (
        f"the installed {_distribution(package)} {_version(package)} does not read what another release wrote "
        f"({type(error).__name__}: {text}): install the release that wrote it, or save it again with that one, {again}"
    )


def _package(error: BaseException | None) -> str | None:
    if isinstance(error, AttributeError):
        found = _IN_MODULE.search(str(error))
        module = error.obj.__name__ if isinstance(error.obj, ModuleType) else found[1] if found else None
        return module.split(".")[0] if module else None
    if error is None or error.__traceback__ is None:
        return None
    raised_in = traceback.extract_tb(error.__traceback__)[-1].filename
    return _CHECKS_PARTS if _CHECKS_PARTS in Path(raised_in).parts else None


def _distribution(package: str) -> str:
    return _DISTRIBUTIONS.get(package, package)


def _version(package: str) -> str:
    return str(getattr(import_module(package), "__version__", "one"))
