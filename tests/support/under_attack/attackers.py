"""An attack, in a process of its own: `python -m support.under_attack.attackers NAME HTTP GRPC PID`."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from support.under_attack.attacks import ATTACKS, Attack
from support.under_attack.strike import Strike
from support.under_attack.target import Target

# Where nobody listens any more, an attacker would do nothing but ask.
_PAUSE_S: Final = 0.05
_BEGUN: Final = "attacking"


class Attackers:
    """The clients of an attack, which attack for as long as the context lasts."""

    def __init__(self, attack: Attack, target: Target) -> None:
        """Starts their process, in a session of its own, so that the machine divides its time fairly between them, the
        server and clients that behave well.
        """
        command = [sys.executable, "-m", __spec__.name, attack.name, target.http, target.grpc, str(target.pid)]
        self._process = subprocess.Popen(
            command,
            cwd=Path(__file__).parents[2],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        self._reader = threading.Thread(target=self._read)
        self._begun = threading.Event()
        self.outcomes: Counter[str] = Counter()
        """How often the clients were told what; complete once the context has ended."""

    @property
    def pid(self) -> int:
        """Their process."""
        return self._process.pid

    def forget(self) -> None:
        """Lets go of their process, as one who is killed does; it ends by itself."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def __enter__(self) -> Self:
        """Returns once they attack."""
        self._reader.start()
        self._begun.wait()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # At once, whatever they wait for.
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._reader.join()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.strip() != _BEGUN:
                self.outcomes[line.strip()] += 1
            self._begun.set()
        self._begun.set()


def main(name: str, http: str, grpc: str, pid: str) -> None:
    """Attacks until the input ends."""
    limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
    attack = ATTACKS[name]
    strike = attack.prepare(Target(http, grpc, int(pid)))
    print(_BEGUN, flush=True)
    for _ in range(attack.clients):
        threading.Thread(target=_strike_on, args=(strike,), daemon=True).start()
    sys.stdin.read()
    os._exit(0)  # without waiting for connections


def _strike_on(strike: Strike) -> None:
    while True:
        try:
            outcome = strike()
        except OSError as error:
            time.sleep(_PAUSE_S)
            outcome = "no answer" if isinstance(error, TimeoutError) else "no connection"
        if outcome:
            # In one piece, since threads write beside each other.
            sys.stdout.write(f"{outcome}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
