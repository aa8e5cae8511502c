"""What protobuf's parser in C++ takes for a token, where the one in Python takes more or less.

Triton reads configurations with the former. A text passes through here on its way to the latter, which then sees the
same numbers and strings in it.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["TokenError", "as_cpp_reads"]

_PIECE: Final = re.compile(
    r"""
      (?P<comment> \#[^\n]* )
    | (?P<string> "(?:\\.|[^"\\\n])*" | '(?:\\.|[^'\\\n])*' )
    | (?P<word> [A-Za-z_]\w* )
    | (?P<sign> - ) (?P<gap> (?: \s | \#[^\n]*\n )+ ) (?= [\w.] )
    | (?P<number> (?: [0-9+] | \.[0-9] ) [\w.+-]* )
    | (?P<foreign> [^\x00-\x7f] )
    """,
    re.VERBOSE | re.ASCII,
)
_NUMBER: Final = re.compile(
    r"0[xX][0-9a-fA-F]+ | (?: [0-9]+ (?: \.[0-9]* )? | \.[0-9]+ ) (?: [eE][+-]?[0-9]+ )? [fF]?", re.VERBOSE | re.ASCII
)
_ESCAPE: Final = re.compile(
    r"""\\ (?: [abfnrtv\\'"] | [0-7] | x[0-9a-fA-F] | u[0-9a-fA-F]{4} | U00[01][0-9a-fA-F]{5} | (?P<mark> \? )
    | (?P<wrong> .? ) )""",
    re.VERBOSE | re.ASCII,
)


class TokenError(ValueError):
    """A token that protobuf does not have.

    Attributes:
        offset: Where it begins, in characters.
    """

    def __init__(self, offset: int, what: str) -> None:
        """Takes the place and what is wrong with it."""
        super().__init__(what)
        self.offset = offset


def as_cpp_reads(text: str) -> str:
    r"""A text in which the parser in Python reads what the one in C++ reads in the given one; the lines are the same.

    A minus sign may stand apart from its number, and `\?` is a question mark.

    Raises:
        TokenError: If a number or a string has a form that only Python knows: `1_000`, `0b11`, `+4`, `"\d"`.
    """
    return _PIECE.sub(_rewritten, text)


def _rewritten(piece: re.Match[str]) -> str:
    match piece.lastgroup:
        case "string":
            return _ESCAPE.sub(lambda escape: _unescaped(escape, piece.start()), piece[0])
        case "gap":
            return f"{piece['gap']}-"
        case "number" if _NUMBER.fullmatch(piece[0]) is None:
            raise TokenError(piece.start(), f"a number is written as 8, 0x1f, 017, 0.5 or 1e3, got '{piece[0]}'")
        case "number" if piece[0].endswith("F") and piece[0][:2].lower() != "0x":
            return f"{piece[0][:-1]}f"  # before 6.30 the parser in Python knows no other
        case "foreign":
            raise TokenError(piece.start(), f"'{piece[0]}' can stand in strings and comments alone")
        case _:
            return piece[0]


def _unescaped(escape: re.Match[str], start: int) -> str:
    if escape["wrong"] is not None:
        what = f"invalid escape sequence '{escape[0]}' in a string; a backslash is written as '\\\\'"
        raise TokenError(start + escape.start(), what)
    return "?" if escape["mark"] else escape[0]
