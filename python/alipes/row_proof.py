"""Whether axis 0 of a model's tensors is the batch: found out by running it, for its shapes do not say.

Requests are run together where axis 0 is the batch. A model that normalises over axis 0, or has its time there, takes
any size of that axis as well: with it, one client's answer would hold another client's numbers. So a model whose
configuration does not say is run on random rows, several together and each alone: an answer may depend on its own row
and on no other. Both the server and the workers know this.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

from alipes.datatypes import array_type
from alipes.signature import ANY, Port, Signature

if TYPE_CHECKING:
    import numpy as np

__all__ = ["RowProof", "prove_rows"]

LONGEST_S: Final = 20.0
"""A model that takes longer to try is served without batching, unless its configuration says otherwise."""

_BUSY: Final = 3.0
"""How many times as long it may take by the clock where others use the processors."""

MAX_INPUT_BYTES: Final = 256 << 20
"""Largest inputs of one run, as their shapes say before anything is made of them."""

_ALONE: Final = 8
_BATCHES: Final = ((0, 1), (0, 2, 3), (0, 4, 5), (6, 7, 0), (1, 2, 0), (3, 5, 1, 7, 0), (4, 2, 6, 5, 0))
"""Which rows are run together. Where two of one size have a row in one place, its answers are compared."""

_MANY: Final = 64
_LARGE_BATCHES: Final = (tuple(range(32)), (*range(16), *range(32, 48)), (*range(48, 64), *range(16, 32)))
"""Of small models more rows: what depends on others for a few rows only, for instance behind a comparison with 0, shows
among many."""

_SMALL_INPUT_BYTES: Final = 1 << 20
"""Largest inputs of many rows."""

_PASSES: Final = 2
"""With how many kinds of numbers a model is tried at least: what shows for large ones may not show for small ones."""

_SOON_S: Final = 0.5
"""After so long the least number of kinds is enough, and the large batches are left out."""

_OPEN_SIZES: Final = (7, 16, 32, 64, 96, 224)
"""What open sizes other than axis 0 are tried with, in turn: none is a number of rows that are run together."""

_SYMBOL_SIZES: Final = (7, 11, 13, 17, 19, 23)
"""What sizes with names are tried with first, each name with another."""

_FILLS: Final = (
    ("normal", 1.0, 2),
    ("normal", 30.0, 8),
    ("uniform", 1.0, 100),
    ("normal", 0.3, 2),
    ("uniform", 1.0, 1),
    ("normal", 3.0, 30),
    ("alike", 1.0, 2),
    ("normal", 0.03, 8),
    ("alike", 0.1, 100),
    ("normal", 1.0, 8),
)
"""Kinds of numbers: how floats are drawn, their scale, and below what integers lie. Small integers are places in any
vocabulary, and true or false. Rows that are nearly alike pass many a comparison together."""

_UNLIKENESS: Final = 0.1
"""How far nearly alike rows lie apart, in units of their numbers."""

_SAME_SIZE_EPS: Final = 64
"""Two runs of one size do the same arithmetic on a row: answers differ by so many roundings at most."""

_OTHER_SIZE: Final = {2: 2e-2, 4: 2e-3, 8: 2e-3}
"""Runs of other sizes may use other kernels: share of the largest answer, by the bytes of a number."""

Arrays = Mapping[str, Any]
Run = Callable[[dict[str, Any]], Arrays]
Sizes = dict[str, int] | int


@dataclass(frozen=True, slots=True)
class RowProof:
    """What was found out.

    Attributes:
        outcome: `proved`, `refuted`, or `untried` where the model could not be run on random rows.
        reason: Why it is not proved, as the end of a sentence about the model; empty where it is.
    """

    outcome: Literal["proved", "refuted", "untried"]
    reason: str = ""

    @property
    def holds(self) -> bool:
        """Whether rows of several requests may be run together."""
        return self.outcome == "proved"

    def to_document(self) -> dict[str, str]:
        """As JSON has it."""
        return asdict(self)


class _Refuted(Exception):
    """An answer depends on more than its own row."""


class _Untried(Exception):
    """Nothing could be found out."""


class _Failed(Exception):
    """The model does not run on these rows; on others it may."""


def prove_rows(
    run: Run, signature: Signature, *, longest_s: float = LONGEST_S, check: Callable[[], None] = lambda: None
) -> RowProof:
    """Run a model on random rows, and compare what it says of a row alone and beside others.

    Args:
        run: Runs the model on arrays by name, rows along axis 0, and gives its outputs by name. Texts are arrays of
            `bytes` objects, BF16 is an array of float32.
        signature: Its inputs and outputs; axis 0 of each is open.
        longest_s: Longest time that it may take, in seconds; a run that has begun is not ended.
        check: Called before each run; raises where nobody needs the answer any more.
    """
    clash = _clash(signature)
    if clash:
        return RowProof("refuted", clash)
    spent = _Spent()

    def bounded(arrays: dict[str, Any]) -> Arrays:
        check()
        if spent.exceeds(longest_s):
            raise _Untried(f"it takes longer than {longest_s:g} s to find out whether its rows depend on each other")
        try:
            return run(arrays)
        except Exception as error:
            raise _Failed(f"it cannot be run on random rows: {_short(error)}") from error

    try:
        _prove(bounded, signature, lambda: spent.clock_s > _SOON_S)
    except _Refuted as found:
        return RowProof("refuted", str(found))
    except _Untried as found:
        return RowProof("untried", str(found))
    return RowProof("proved")


class _Spent:
    """Time since this object was made."""

    def __init__(self) -> None:
        self._began, self._process_began = time.monotonic(), time.process_time()

    @property
    def clock_s(self) -> float:
        """In seconds by the clock."""
        return time.monotonic() - self._began

    def exceeds(self, limit_s: float) -> bool:
        """Whether it is over. On a busy machine a process waits for its turn, which is not the model's fault."""
        if self.clock_s <= limit_s:
            return False
        return self.clock_s > limit_s * _BUSY or time.process_time() - self._process_began > limit_s


def _clash(signature: Signature) -> str:
    """What the names of sizes say against a batch; empty where they say nothing."""
    first = {port.symbols[0] for port in signature.inputs if port.symbols} - {""}
    others = {symbol for port in signature.inputs for symbol in port.symbols[1:]} - {""}
    for port in (*signature.inputs, *signature.outputs):
        symbol = port.symbols[0] if port.symbols else ""
        if symbol in port.symbols[1:] and symbol:
            return f"axis 0 of '{port.name}' is '{symbol}', as another axis of it is"
        if symbol in others and symbol not in first:
            return f"axis 0 of '{port.name}' is '{symbol}', which is no axis 0 of an input"
    return ""


def _prove(run: Run, signature: Signature, takes_long: Callable[[], bool]) -> None:
    passed, error = 0, "it has no inputs"
    sizes: Sequence[Sizes] = tuple(_sizes(signature))
    for number, fill in enumerate(_FILLS):
        for tried in sizes:
            try:
                tells = _compare(run, _Rows(signature, tried, fill, number), takes_long)
            except _Failed as caught:
                error = str(caught)
                continue
            sizes = (tried,)
            passed += tells
            error = error if tells else "its answers to random rows are no numbers"
            break
        if passed >= _PASSES and takes_long():
            return
    if not passed:
        raise _Untried(error)


def _compare(run: Run, rows: _Rows, takes_long: Callable[[], bool]) -> bool:
    """Whether answers could be compared; raises `_Refuted` where one depends on more than its row."""

    def answers(batch: tuple[int, ...]) -> Arrays:
        found = run(rows.take(batch))
        _check_rows(found, len(batch))
        return found

    together: dict[tuple[int, ...], Arrays] = {batch: answers(batch) for batch in _BATCHES}
    alone = [answers((row,)) for row in range(_ALONE)]
    again = answers((0,))
    if rows.many and not takes_long():
        together |= {batch: answers(batch) for batch in _LARGE_BATCHES}
    tells = [
        _compare_output(name, {batch: found[name] for batch, found in together.items()}, alone, again) for name in again
    ]
    return any(tells)


def _compare_output(name: str, together: Mapping[tuple[int, ...], Any], alone: Sequence[Arrays], again: Arrays) -> bool:
    singles = [found[name][:1] for found in alone]  # with its axis: a text alone is no array
    tolerance = _Tolerance.of(singles)
    if not tolerance.same(singles[0], again[name][:1]):
        raise _Refuted(f"output '{name}' is another one each time that it is computed for the same row")
    for batch, other in _overlaps(tuple(together)):
        shared = [place for place, row in enumerate(batch) if other[place] == row]
        if not tolerance.same(together[batch][shared], together[other][shared]):
            raise _Refuted(f"output '{name}' of a row depends on the rows beside it")
    for batch, found in together.items():
        for place, row in enumerate(batch):
            if row < _ALONE and not tolerance.close(found[place : place + 1], singles[row]):
                raise _Refuted(f"output '{name}' of a row is another one beside other rows than alone")
    return tolerance.tells


def _overlaps(batches: Sequence[tuple[int, ...]]) -> Iterator[tuple[tuple[int, ...], tuple[int, ...]]]:
    for at, batch in enumerate(batches):
        for other in batches[at + 1 :]:
            if len(other) == len(batch):
                yield batch, other


def _check_rows(outputs: Arrays, rows: int) -> None:
    for name, array in outputs.items():
        if array.shape[:1] != (rows,):
            raise _Refuted(f"output '{name}' has shape {list(array.shape)} for {rows} row{'s' if rows > 1 else ''}")


@dataclass(frozen=True, slots=True)
class _Tolerance:
    """How far two answers may lie apart that stand for the same one.

    Attributes:
        rounding: Where both were computed alike.
        kernels: Where they were computed for another number of rows.
        tells: Whether there are numbers to compare, or texts.
    """

    rounding: float
    kernels: float
    tells: bool

    @classmethod
    def of(cls, singles: Sequence[np.ndarray]) -> _Tolerance:
        """For an output of which these are answers."""
        import numpy as np

        if singles[0].dtype.kind not in "fc":
            return cls(0, 0, True)
        finite = [np.abs(one[np.isfinite(one)], dtype=np.float64) for one in singles]
        largest = max((float(one.max()) for one in finite if one.size), default=0.0)
        eps = max(float(np.finfo(singles[0].dtype).eps), float(np.finfo(np.float32).eps))
        tells = any(one.size for one in finite) or not singles[0].size
        other_size = _OTHER_SIZE[np.finfo(singles[0].dtype).bits // 8]
        return cls(largest * eps * _SAME_SIZE_EPS, largest * other_size, tells)

    def same(self, one: np.ndarray, other: np.ndarray) -> bool:
        """Whether two answers that were computed alike are the same."""
        return _apart(one, other, self.rounding)

    def close(self, one: np.ndarray, other: np.ndarray) -> bool:
        """Whether two answers that were computed for other numbers of rows are the same."""
        return _apart(one, other, self.kernels)


def _apart(one: np.ndarray, other: np.ndarray, distance: float) -> bool:
    import numpy as np

    if one.shape != other.shape:
        return False
    if one.dtype.kind not in "fc":
        return bool(np.array_equal(one, other))
    return bool(np.allclose(one, other, rtol=0, atol=distance, equal_nan=True))


def _sizes(signature: Signature) -> Iterator[Sizes]:
    """Open sizes to try, in turn: by their names, or one for all."""
    names = {symbol for port in signature.inputs for symbol in port.symbols[1:]} - {""}
    if len(names) > 1:
        yield {name: _SYMBOL_SIZES[at % len(_SYMBOL_SIZES)] for at, name in enumerate(sorted(names))}
    yield from _OPEN_SIZES


class _Rows:
    """Random rows of every input, the same in every process.

    Attributes:
        many: Whether they are enough for large batches.
    """

    def __init__(self, signature: Signature, sizes: Sizes, fill: tuple[str, float, int], seed: int) -> None:
        import numpy as np

        shapes = {port.name: _closed(port, sizes) for port in signature.inputs}
        row_bytes = {name: int(np.prod(shape, dtype=np.float64)) * 8 for name, shape in shapes.items()}
        for name, size in row_bytes.items():
            if size * _ALONE > MAX_INPUT_BYTES:
                raise _Untried(f"input '{name}' is too large to try")
        self.many = sum(row_bytes.values()) * _MANY <= _SMALL_INPUT_BYTES
        rows = _MANY if self.many else _ALONE
        random = np.random.default_rng([36, seed])
        self._arrays = {
            port.name: _drawn(random, port.datatype, (rows, *shapes[port.name]), fill) for port in signature.inputs
        }

    def take(self, rows: Sequence[int]) -> dict[str, Any]:
        """These rows of every input."""
        import numpy as np

        return {name: np.ascontiguousarray(array[list(rows)]) for name, array in self._arrays.items()}


def _closed(port: Port, sizes: Sizes) -> list[int]:
    """The sizes of a port behind axis 0."""
    if isinstance(sizes, int):
        return [sizes if size == ANY else size for size in port.shape[1:]]
    names = port.symbols[1:] or [""] * (len(port.shape) - 1)
    pairs = zip(port.shape[1:], names, strict=True)
    return [sizes.get(name, _OPEN_SIZES[0]) if size == ANY else size for size, name in pairs]


def _drawn(random: np.random.Generator, datatype: str, shape: tuple[int, ...], fill: tuple[str, float, int]) -> Any:
    import numpy as np

    kind, scale, below = fill
    if datatype == "BYTES":
        words = np.array([b"a", b"bc", b"12", b"3.5", b"one two", b"7", b"", b"Z"][: max(below, 2)], object)
        return words[random.integers(0, len(words), shape)]
    if datatype == "BOOL":
        return random.integers(0, 2, shape).astype(bool)
    if datatype[:2] in ("FP", "BF"):
        floats = random.random(shape) if kind == "uniform" else random.standard_normal(shape)
        if kind == "alike":
            floats = floats * _UNLIKENESS + random.standard_normal((1, *shape[1:]))
        return (floats * scale).astype(array_type(datatype))
    low = 1 if below == 1 else 0  # ones alone, where a nought is no length
    return random.integers(low, max(below, low + 1), shape).astype(array_type(datatype))


def _short(error: Exception) -> str:
    return " ".join(str(error).split())[:200] or type(error).__name__
