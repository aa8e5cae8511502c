"""A node with a machine: a real kubelet with containerd and runc, whose pods have addresses of their own.

It has namespaces of its own, for processes and for mounts, and is to be started in a network of its own. The system
ends what ran in them and removes what was mounted in them with the first of their processes.
"""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from support.kube import ControlPlane, Missing, need, program_file
from support.ports import free_ports
from support.static_image import write_image
from support.waiting import TIMEOUT_S

NAME = "localhost"
"""Its name: by it the API server finds the kubelet."""

ADDRESS = "10.245.9.1"
"""An address of the machine that is none of the loopback interface's own, which a kubelet refuses."""

_PODS = "10.244.9.0/24"
_PROGRAMS = ("containerd", "ctr", "runc", "catatonit", "nsenter", "unshare", "ip")
_PLUGINS = Path("/usr/lib/cni")
_PAUSE = "localhost/pause:1"
_SOCKET = "/run/containerd/containerd.sock"
_CTR = ("ctr", "--address", _SOCKET, "--namespace", "k8s.io")
# Folders with a fixed place, in which others of this machine may have files as well.
_OWN_FOLDERS = ("/run", "/var/lib", "/var/log")
_CONTROL_GROUPS = Path("/sys/fs/cgroup")

_CONTAINERD = """\
version = 2
root = "{folder}/containerd"
state = "/run/containerd"
[grpc]
  address = "{socket}"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # Whoever has a higher value than the lowest of the system may not lower it.
  restrict_oom_score_adj = true
  disable_apparmor = true
  stream_server_address = "127.0.0.1"
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{plugins}"
    conf_dir = "{folder}/cni"
"""


class Machine:
    """The processes of a node.

    Attributes:
        group: The name of the control group that has those of its pods.
    """

    def __init__(self, folder: Path, plane: ControlPlane) -> None:
        """Takes an empty folder for its files and the control plane that it belongs to, and starts nothing."""
        self._folder = folder
        self._plane = plane
        self.group = f"alipes-test-{secrets.token_hex(4)}"
        self._kubelet, self._health = free_ports(2)
        self._first: subprocess.Popen[bytes] | None = None
        self._others: dict[str, subprocess.Popen[bytes]] = {}

    def start(self) -> None:
        """Start containerd and the kubelet, and return once the node takes pods.

        Raises:
            Missing: If programs are not there.
        """
        self._first = subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "KILL", "unshare", "--mount", "--pid", "--mount-proc", "--fork"),
                *("--kill-child", "sh", "-c", self._first_words()),
            ],
            stdin=subprocess.DEVNULL,
            start_new_session=True,
        )
        self._wait_until(lambda: self._first_pid() is not None, "the namespaces are there")
        try:
            for tree in _trees():
                (tree / self.group).mkdir()
        except OSError as error:
            raise Missing(f"no control group can be made: {error}") from error
        self._start_containerd()
        self._start_kubelet()

    def stop(self) -> None:
        """End everything that runs in it, and remove what it has made outside its folder."""
        pid = self._first_pid()
        for process in (self._first, *self._others.values()):
            if process is not None:
                process.kill()
                process.wait()
        self._await_end(pid)
        for folder in self.control_groups():
            with contextlib.suppress(FileNotFoundError):
                folder.rmdir()

    def run(self, *words: str) -> str:
        """What a command prints that runs in the node's namespaces.

        Raises:
            CalledProcessError: If it fails.
        """
        done = subprocess.run([*self._inside(), *words], stdout=subprocess.PIPE, text=True, check=True)
        return done.stdout

    def containers(self) -> list[str]:
        """The names of the containers that there are, those that hold a pod's network included."""
        return self.run(*_CTR, "containers", "list", "--quiet").split()

    def load_image(self, name: str, program: Path, *arguments: str, user: str = "") -> None:
        """Makes an image of one program that needs no library, which pods of the node may name.

        Args:
            name: Of the image, `localhost/name:tag`.
            program: The program.
            arguments: What it is started with.
            user: The number of the user that runs it; root, where there is none.
        """
        file = self._folder / "image.tar"
        write_image(file, name, program, arguments, user)
        self.run(*_CTR, "images", "import", str(file))

    def mounts(self) -> list[str]:
        """Where the file systems of pods and containers are mounted."""
        lines = self.run("cat", "/proc/mounts").splitlines()
        return [path for path in (line.split()[1] for line in lines) if "/pods/" in path or "/containerd/" in path]

    def networks(self) -> list[str]:
        """The networks of pods."""
        return self.run("sh", "-c", "ls /run/netns 2>/dev/null || true").split()

    def control_groups(self) -> list[Path]:
        """The control groups of the node, each after those in it."""
        trees = [tree / self.group for tree in _trees()]
        return sorted({folder for tree in trees for folder in (tree, *tree.rglob("*/"))}, reverse=True)

    def processes_of(self, container: str) -> list[int]:
        """The processes of a container, as this process sees them.

        Args:
            container: Its number as a pod's status has it, `containerd://...`.
        """
        number = container.removeprefix("containerd://")
        files = (folder / "cgroup.procs" for folder in self.control_groups() if folder.name == number)
        return sorted({int(line) for file in files for line in file.read_text().split()})

    def _first_words(self) -> str:
        """What the first process does: it makes folders its own, and then buries processes."""
        mounts = [f"mount -t tmpfs tmpfs {folder}" for folder in _OWN_FOLDERS]
        return " && ".join([*mounts, f"touch {self._folder / 'is-there'}", "exec catatonit -P"])

    def _first_pid(self) -> int | None:
        if self._first is None or self._first.poll() is not None:
            return None
        pid = self._first.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        return int(children[0]) if children and (self._folder / "is-there").exists() else None

    def _inside(self) -> list[str]:
        return ["nsenter", f"--target={self._first_pid()}", "--mount", "--pid"]

    def _start_containerd(self) -> None:
        _write_network(self._folder / "cni")
        config = self._folder / "containerd.toml"
        words = {"folder": self._folder, "socket": _SOCKET, "pause": _PAUSE, "plugins": _PLUGINS}
        config.write_text(_CONTAINERD.format(**words), encoding="utf-8")
        self._run("containerd", "containerd", f"--config={config}")
        self._wait_until(lambda: self._succeeds(*_CTR, "version"), "containerd answers")
        # It holds a pod's namespaces: a program that does nothing but bury processes.
        self.load_image(_PAUSE, Path(str(shutil.which("catatonit"))), "-P")

    def _start_kubelet(self) -> None:
        config = self._folder / "kubelet.json"
        config.write_text(json.dumps(self._kubelet_settings()), encoding="utf-8")
        self._run(
            "kubelet",
            str(program_file("kubelet")),
            f"--config={config}",
            f"--kubeconfig={self._plane.kubeconfig()}",
            f"--root-dir={self._folder / 'kubelet'}",
            f"--cert-dir={self._folder}",
            f"--hostname-override={NAME}",
            f"--node-ip={ADDRESS}",
        )
        self._wait_until(lambda: self._plane.is_ready(NAME), "the node is ready")

    def _kubelet_settings(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": "127.0.0.1",
            "port": self._kubelet,
            "healthzPort": self._health,
            "authentication": {"anonymous": {"enabled": True}, "webhook": {"enabled": False}},
            "authorization": {"mode": "AlwaysAllow"},
            "tlsCertFile": str(self._plane.folder / "server.pem"),
            "tlsPrivateKeyFile": str(self._plane.folder / "server.key"),
            "containerRuntimeEndpoint": f"unix://{_SOCKET}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{self.group}",
            "enforceNodeAllocatable": [],
            "failCgroupV1": False,
            "failSwapOn": False,
            "oomScoreAdj": 0,
            "resolvConf": "",
            "makeIPTablesUtilChains": False,
            "localStorageCapacityIsolation": False,
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "nodeStatusUpdateFrequency": "5s",
            "syncFrequency": "5s",
        }

    def _run(self, name: str, *words: str) -> None:
        with self._log(name).open("ab") as log:
            self._others[name] = subprocess.Popen(
                [*self._inside(), *words], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
            )

    def _log(self, name: str) -> Path:
        return self._folder / f"{name}.log"

    def _succeeds(self, *words: str) -> bool:
        done = subprocess.run([*self._inside(), *words], capture_output=True, check=False)
        return done.returncode == 0

    def _wait_until(self, fact: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + TIMEOUT_S
        while not fact():
            for name, process in self._others.items():
                assert process.poll() is None, f"{name} ended: {self._log(name).read_text(errors='replace')[-2000:]}"
            assert self._first is None or self._first.poll() is None, "the namespaces cannot be had"
            assert time.monotonic() < deadline, f"not in time: {what}"
            time.sleep(0.05)  # nothing announces what is waited for

    def _await_end(self, pid: int | None) -> None:
        """Returns once the first process, and with it every other, has ended."""
        deadline = time.monotonic() + TIMEOUT_S
        while pid is not None and Path(f"/proc/{pid}").exists():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
            assert time.monotonic() < deadline, "processes of the node are left"
            time.sleep(0.05)


@contextmanager
def machine(folder: Path, plane: ControlPlane) -> Iterator[Machine]:
    """A node of a control plane that takes pods; nothing of it is left afterwards.

    Raises:
        Missing: If programs or rights are.
    """
    if os.geteuid() != 0:
        raise Missing("a kubelet runs as root alone")
    need("kubelet")
    missing = [program for program in _PROGRAMS if shutil.which(program) is None]
    missing += [str(_PLUGINS / name) for name in ("bridge", "host-local") if not (_PLUGINS / name).exists()]
    if missing:
        raise Missing(f"a kubelet needs {', '.join(missing)}: tools/install-system-tools")
    folder.mkdir(parents=True, exist_ok=True)
    made = Machine(folder, plane)
    try:
        made.start()
        yield made
    finally:
        made.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _trees() -> list[Path]:
    """Where control groups are: in one tree, or in one for each controller, as systems of the first version have it."""
    if (_CONTROL_GROUPS / "cgroup.controllers").exists():
        return [_CONTROL_GROUPS]
    return [folder for folder in _CONTROL_GROUPS.iterdir() if folder.is_dir() and not folder.is_symlink()]


def _write_network(folder: Path) -> None:
    """The plugin that gives pods addresses: a bridge, to which this network has an address as well."""
    addresses = {"type": "host-local", "ranges": [[{"subnet": _PODS}]], "routes": [{"dst": "0.0.0.0/0"}]}
    bridge = {"type": "bridge", "bridge": "pods", "isGateway": True, "ipMasq": False, "ipam": addresses}
    folder.mkdir()
    document = {"cniVersion": "0.4.0", "name": "pods", "plugins": [bridge]}
    (folder / "pods.conflist").write_text(json.dumps(document), encoding="utf-8")
