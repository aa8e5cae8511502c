"""What attacks did to servers, as rows of a page."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Final

from support.steady_client import WIRES
from support.under_attack.attacks import ATTACKS
from support.under_attack.measurement import RECOVERY_S, Measurement

# By attack and server, its rounds.
Rounds = Mapping[tuple[str, str], Sequence[Measurement]]

TITLES: Final = {"alipes": "alipes", "triton": "Triton"}
_NAMES: Final = {"http": "HTTP", "grpc": "gRPC"}
# Words of the attackers that are shown, the most frequent first.
_MOST_WORDS: Final = 4
# A server that serves again sooner serves all the time.
_SOON_S: Final = 1.0
_NEVER: Final = float("inf")


def attacks() -> str:
    """What each attack does."""
    rows = [f"| {attack.title} | {attack.meaning} |" for attack in ATTACKS.values()]
    return "\n".join(["| attack | what clients do |", "|---|---|", *rows])


def results(found: Rounds) -> str:
    """A row for each attack, a column for each server."""
    servers = list(dict.fromkeys(server for _, server in found))
    names = list(dict.fromkeys(name for name, _ in found))
    head = [f"| attack | {' | '.join(TITLES[server] for server in servers)} |", "|---" * (len(servers) + 1) + "|"]
    rows = [
        f"| {ATTACKS[name].title} | {' | '.join(cell(found[name, server]) for server in servers)} |" for name in names
    ]
    return "\n".join(head + rows)


def quiet(found: Rounds) -> str:
    """The 99th percentiles of servers that nobody attacks, over all rounds."""
    servers = list(dict.fromkeys(server for _, server in found))
    return ", ".join(f"{TITLES[server]} {_quiet_of(found, server)}" for server in servers)


def _quiet_of(found: Rounds, server: str) -> str:
    rounds = [one for (_, whose), rounds in found.items() if whose == server for one in rounds]
    return " and ".join(
        f"{_NAMES[wire]} {_milliseconds(median(one.quiet_s[wire] for one in rounds))}" for wire in WIRES
    )


def cell(rounds: Sequence[Measurement]) -> str:
    """What an attack did to a server: medians of the rounds, failures of all of them."""
    failed = sum(one.failures.total() for one in rounds)
    due = sum(one.due for one in rounds)
    words: Counter[str] = sum((one.outcomes for one in rounds), Counter())
    parts = [
        _fate(rounds),
        "p99 " + ", ".join(f"{_NAMES[wire]} {_latency(rounds, wire)}" for wire in WIRES),
        f"{failed:,} of {due:,} failed" if failed else "none failed",
        _memory(rounds),
        "told " + ", ".join(f"`{word}`" for word, _ in words.most_common(_MOST_WORDS)) if words else "",
    ]
    return "; ".join(part for part in parts if part)


def _fate(rounds: Sequence[Measurement]) -> str:
    many = len(rounds)
    if dead := sum(not one.alive for one in rounds):
        return f"**dies** in {dead} of {many}" if dead < many else "**dies**"
    if mute := sum(one.recovery_s is None for one in rounds):
        return f"**answers nobody for {RECOVERY_S:.0f} s after it**" + (f" in {mute} of {many}" if mute < many else "")
    later_s = median(one.recovery_s or 0.0 for one in rounds)
    return "serves" if later_s < _SOON_S else f"serves {later_s:.1f} s after it"


def _latency(rounds: Sequence[Measurement], wire: str) -> str:
    loud_s = _median(rounds, lambda one: one.loud_s.get(wire))
    if loud_s == _NEVER:
        return "no answer"
    ratio = _median(rounds, lambda one: one.ratio(wire))
    times = f"{ratio:,.0f}" if ratio >= 10 else f"{ratio:.1f}"
    return f"{_milliseconds(loud_s)} ({times} times)"


def _memory(rounds: Sequence[Measurement]) -> str:
    grown = [one.growth_bytes for one in rounds if one.growth_bytes is not None]
    return f"{median(grown) / 1e6:+,.0f} MB" if grown else ""


def _median(rounds: Sequence[Measurement], value: Callable[[Measurement], float | None]) -> float:
    """Of what there is of each round; what there is not is worse than anything."""
    return median(_NEVER if (found := value(one)) is None else found for one in rounds)


def _milliseconds(seconds: float) -> str:
    return f"{seconds * 1000:,.0f} ms" if seconds >= 0.1 else f"{seconds * 1000:.1f} ms"
