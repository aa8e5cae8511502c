"""The attacks by their names."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from support.under_attack import connections, damage, floods, uploads
from support.under_attack.strike import CLOSED, Prepare

# Of the client that behaves well, too.
HERE: Final = "127.0.0.1"
ELSEWHERE: Final = "127.0.2.1"
# Of a body or message that comes compressed, by default.
_MOST_EXPANDED: Final = 64 << 20
# Connections of a flood.
FLOODERS: Final = 20

_REFUSED: Final = frozenset({"400"})
# An honest request, which a server that has no room says it is too busy for.
_HONEST: Final = frozenset({"200", "503"})
_CUT_OFF: Final = frozenset({CLOSED})
_TIMED_OUT: Final = frozenset({"408", "503", CLOSED})


@dataclass(frozen=True)
class Attack:
    """Something that clients do again and again.

    Attributes:
        name: In code and on command lines.
        title: In the table.
        meaning: On the page: what is sent, and why it may hurt.
        prepare: What each of its clients does, with all that is prepared for it.
        clients: How many do it at a time.
        under_way_bytes: What requests that are read hold together at most, expanded.
        wanted: What the clients may be told; any other word means that the server did something wrong. Empty where any
            answer will do.
    """

    name: str
    title: str
    meaning: str
    prepare: Prepare
    clients: int = 1
    under_way_bytes: int = 0
    wanted: frozenset[str] = frozenset()


_ALL: Final = (
    Attack(
        "chunks",
        "40 MB in chunks",
        "A client uploads a tensor of 40 MB without saying its length, in chunks of 16 KiB. It is honest: `curl -T -` "
        "does the same. A server that makes room for each chunk by copying what it has copies gigabytes.",
        uploads.tensor_in_chunks(40),
        under_way_bytes=40 * uploads.MB,
        wanted=_HONEST,
    ),
    Attack(
        "uploads",
        "five gzip uploads of 60 MB",
        "Five honest clients upload 60 MB of JSON, compressed to less than half. Expanding and reading one takes a "
        "core for a good part of a second.",
        uploads.numbers_gzipped(60),
        clients=5,
        under_way_bytes=5 * 60 * uploads.MB,
        wanted=_HONEST,
    ),
    Attack(
        "fields",
        "gRPC messages of empty fields",
        "A message of 6 MB holds three million fields that are empty: inputs, outputs, or fields that nobody knows. A "
        "parser makes an object of hundreds of bytes of every two bytes.",
        uploads.empty_fields(6),
        under_way_bytes=6 * uploads.MB,
        wanted=frozenset({"INVALID_ARGUMENT"}),
    ),
    Attack(
        "parameters",
        "60 MB of JSON parameters",
        "A document of 60 MB holds five million parameters, each a name and a number that a parser keeps.",
        uploads.parameters(60),
        under_way_bytes=60 * uploads.MB,
        wanted=_REFUSED,
    ),
    Attack(
        "json",
        "60 MB of honest JSON",
        "A client sends seven million numbers as JSON, as a client does that knows no better.",
        uploads.numbers(60),
        under_way_bytes=60 * uploads.MB,
        wanted=_HONEST,
    ),
    Attack(
        "one-byte-bodies",
        "300 bodies of one byte",
        "300 requests announce a body of 40 MB and send one byte of it. A server that makes room for what is announced "
        "has none left.",
        connections.one_byte_bodies(300),
        wanted=_TIMED_OUT,
    ),
    Attack(
        "begun",
        "1,500 requests that fall silent",
        "1,500 connections send 150 bytes of a request and then nothing.",
        connections.begun(1500, length=150),
        wanted=_TIMED_OUT,
    ),
    Attack(
        "silent",
        "500 silent connections",
        "500 connections are opened, and never say a word.",
        connections.silent(500),
        wanted=_TIMED_OUT,
    ),
    Attack(
        "slow-heads",
        "500 slow heads",
        "500 connections send the head of a request a byte every half second, and never end it.",
        connections.slow_heads(500),
        wanted=_TIMED_OUT,
    ),
    Attack(
        "resets",
        "rapid reset",
        "20 connections open calls and withdraw each at once, as fast as they can, and connect again when the server "
        "closes them. They come from the address of the client that behaves well, as behind one proxy.",
        floods.resets(HERE),
        clients=FLOODERS,
        wanted=_CUT_OFF,
    ),
    Attack(
        "resets-elsewhere",
        "rapid reset from elsewhere",
        "The same from another address.",
        floods.resets(ELSEWHERE),
        clients=FLOODERS,
        wanted=_CUT_OFF,
    ),
    Attack(
        "resets-and-leaves",
        "rapid reset that leaves",
        "A rapid reset whose connections end: each connection is closed as soon as its hundred thousand calls are "
        "sent, and the next one is opened at once: what the server still has to read of the last one is its own "
        "trouble.",
        floods.resets(ELSEWHERE, stay=False),
        clients=FLOODERS,
        wanted=_CUT_OFF,
    ),
    Attack(
        "windows",
        "a flood of window updates",
        "20 connections send frames that open the window of the connection by a byte, without end.",
        floods.frames(floods.WINDOW, ELSEWHERE),
        clients=FLOODERS,
        wanted=_CUT_OFF,
    ),
    Attack(
        "unknown-frames",
        "a flood of unknown frames",
        "20 connections send frames of a type that HTTP/2 has no name for, without end. Each has to be read and thrown "
        "away.",
        floods.frames(floods.UNKNOWN, ELSEWHERE),
        clients=FLOODERS,
        wanted=_CUT_OFF,
    ),
    Attack(
        "bombs",
        "gzip bombs",
        "Two clients send a megabyte that expands to 256 MiB of zeros, over HTTP and over gRPC in turn.",
        uploads.bombs,
        clients=2,
        under_way_bytes=2 * _MOST_EXPANDED,
        wanted=frozenset({"400", "413", "refused", CLOSED}),
    ),
    Attack(
        "damaged-heads",
        "damaged HTTP heads",
        "Four clients send 10,000 requests one after the other, each damaged at random: bytes that differ, are "
        "missing, come again or were never there.",
        damage.heads,
        clients=4,
    ),
    Attack(
        "damaged-calls",
        "damaged gRPC frames",
        "The same with the frames of 10,000 calls over gRPC.",
        damage.calls,
        clients=4,
    ),
    Attack(
        "ambiguous",
        "ambiguous HTTP heads",
        "Four clients send requests whose end a proxy may find elsewhere than the server: two `Host` headers or none, "
        "`Transfer-Encoding: gzip, chunked`, two lengths. Who answers them may be made to answer "
        "somebody else's request.",
        damage.ambiguous_heads,
        clients=4,
        wanted=frozenset({"400", "501"}),
    ),
)

ATTACKS: Final[dict[str, Attack]] = {attack.name: attack for attack in _ALL}
