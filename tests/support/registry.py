"""A real registry of images: Debian's docker-registry, on a free port of this machine."""

from __future__ import annotations

import re
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.waiting import TIMEOUT_S

PROGRAM = "docker-registry"
_LISTENING = re.compile(r"listening on (?:\S*?)(127\.0\.0\.1:\d+)")
_CONFIG = """\
version: 0.1
log: {{level: info, accesslog: {{disabled: false}}}}
storage: {{filesystem: {{rootdirectory: {folder}}}, delete: {{enabled: true}}}}
http: {{addr: 127.0.0.1:0}}
{more}
"""


def is_installed() -> bool:
    """Whether it is there: `tools/install-system-tools` installs it."""
    return shutil.which(PROGRAM) is not None


@contextmanager
def registry(folder: Path, more: str = "") -> Iterator[str]:
    """Runs until the block ends; gives its address.

    Args:
        folder: An empty folder for its files.
        more: Further lines of its configuration.
    """
    config = folder / "config.yml"
    config.write_text(_CONFIG.format(folder=folder / "data", more=more))
    process = subprocess.Popen(
        [PROGRAM, "serve", str(config)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    lines: list[str] = []
    found: list[str] = []
    ready = threading.Event()

    def read() -> None:
        for line in process.stderr or ():
            lines.append(line)
            if match := _LISTENING.search(line):
                found.append(match[1])
                ready.set()
        ready.set()

    thread = threading.Thread(target=read, daemon=True)
    thread.start()
    try:
        assert ready.wait(TIMEOUT_S) and found, "".join(lines)
        yield found[0]
    finally:
        process.kill()
        process.wait()
        thread.join()
        process.stderr.close()
