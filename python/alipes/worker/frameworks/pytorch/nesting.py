"""Arguments and results within others: the single tensors in them, and what each is called.

Source: the naming of Triton's PyTorch backend for archives of AOTInductor: `ARGS[0][key]`, `KWARGS[name]`, and
`RESULT[key][0]`, where a lone result is `RESULT`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

__all__ = ["NAMED", "RESULT", "leaf_paths", "leaves", "paths_of_arguments", "result_names"]

NAMED: Final = "KWARGS"
RESULT: Final = "RESULT"


def leaf_paths(spec: Any) -> list[str]:
    """The path of each tensor, such as `[key][0]`; empty where it is the whole.

    Args:
        spec: How values nest, a `TreeSpec` of torch.
    """
    if spec.is_leaf():
        return [""]
    children = spec.children()
    is_dictionary = isinstance(spec.context, list) and len(spec.context) == len(children)
    keys = spec.context if is_dictionary else range(len(children))
    return [f"[{key}]{path}" for key, child in zip(keys, children, strict=True) for path in leaf_paths(child)]


def paths_of_arguments(spec: Any) -> list[str]:
    """What Triton calls each argument of a program, whose specification holds positional and named ones."""
    positional, named = spec.children()
    return [f"ARGS{path}" for path in leaf_paths(positional)] + [f"{NAMED}{path}" for path in leaf_paths(named)]


def result_names(paths: list[str]) -> tuple[str, ...]:
    """What results are called where nobody named them: by their key in a flat dictionary, else by Triton's path."""
    keys = [path[1:-1] for path in paths]
    flat = all(path and "[" not in key and "]" not in key for path, key in zip(paths, keys, strict=True))
    if flat and not all(key.isdecimal() for key in keys):
        return tuple(keys)
    return tuple(f"{RESULT}{path}" for path in paths)


def leaves(found: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """The path and the value of each result; a list of texts is one."""
    if isinstance(found, Mapping):
        for key, value in found.items():
            yield from leaves(value, f"{path}[{key}]")
    elif isinstance(found, (list, tuple)) and not (found and all(isinstance(one, str) for one in found)):
        for at, value in enumerate(found):
            yield from leaves(value, f"{path}[{at}]")
    else:
        yield path, found
