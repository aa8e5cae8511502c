"""`make kube`: builds Kubernetes' own programs for tests, from Go modules, into a folder of the user's cache.

etcd, the API server, the controller manager, the scheduler, kwok, whose nodes need no machines, the kubelet, which
makes a node of this one, `kserve-render`, which asks KServe's own code about objects of KServe, its controllers, its
agent and its router, `kn-decide`, which asks Knative's scaler for its decisions, and Knative's own programs: what runs
beside each server, its activator, autoscaler, controller and webhook. They take half an hour of a core the first time
and nothing afterwards; a new version has a folder of its own.
Tests that need the programs are skipped, with this as their reason, until they are built.

    python3 tools/kube                    all of them
    python3 tools/kube etcd kube-apiserver   these
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys

from build import build, missing, write_files
from programs import PROGRAMS


def main() -> int:
    """Builds what the command line names."""
    parser = argparse.ArgumentParser(prog="tools/kube", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("programs", nargs="*", metavar="PROGRAM", help=", ".join(PROGRAMS))
    chosen = parser.parse_args().programs or list(PROGRAMS)
    if unknown := [name for name in chosen if name not in PROGRAMS]:
        parser.error(f"unknown: {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    wanted = missing(chosen)
    if wanted and shutil.which("go") is None:
        print("tools/kube: Kubernetes is built by Go 1.26 or newer, which is not on the path", file=sys.stderr)
        return 1
    try:
        for name in wanted:
            print(f"» building {name}", flush=True)
            build(PROGRAMS[name], name)
        for name in chosen:
            write_files(name)
    except subprocess.CalledProcessError as error:
        print(f"tools/kube: {' '.join(map(str, error.cmd[:4]))} failed with {error.returncode}", file=sys.stderr)
        return 1
    for place in sorted({PROGRAMS[name].folder() for name in chosen}):
        print(place)
    return 0


if __name__ == "__main__":
    sys.exit(main())
