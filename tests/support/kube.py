"""A real Kubernetes for tests: its own etcd, API server and controllers, with nodes of kwok that need no machines.

`make kube` builds the programs. Each control plane has a folder and ports of its own and accepts connections from this
machine alone. Its processes end with the test session, also where that is killed.
"""

from __future__ import annotations

import json
import os
import runpy
import secrets
import shutil
import signal
import ssl
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Any, Final
from urllib.error import HTTPError
from urllib.request import HTTPSHandler, OpenerDirector, ProxyHandler, Request, build_opener

from support.checkout import ROOT
from support.ports import free_ports
from support.waiting import TIMEOUT_S

ADMIN = "admin"
"""The user who may do everything."""

VISITOR = "visitor"
"""A user who may do nothing."""

BARE = ("etcd", "kube-apiserver")
"""What checks and keeps objects, and does nothing with them."""

CONTROLLERS = ("kube-controller-manager", "kube-scheduler")
"""What makes pods of deployments, and places them on nodes."""

KWOK = "kwok"
"""What says of the pods on nodes without machines that they run."""

LOOPBACK: Final = "127.0.0.1"

_GPUS_A_NODE = 4
# Others watch what no test has.
_CONTROLLERS_IN_USE = tuple(
    f"{name}-controller"
    for name in (
        "daemonset",
        "deployment",
        "disruption",
        "endpoints",
        "endpointslice",
        "garbage-collector",
        "horizontal-pod-autoscaler",
        "job",
        "namespace",
        "node-lifecycle",
        "replicaset",
        "resourcequota",
        "root-ca-certificate-publisher",
        "serviceaccount",
        "statefulset",
    )
)
# Of those that stand in documents and nowhere else (RFC 5737).
_NO_ADDRESS = "192.0.2.1"
_READY = ("/readyz", "/api/v1/namespaces/default")


class Missing(Exception):
    """Programs are not built."""


TOO_MANY_REQUESTS: Final = 429


class Refused(Exception):
    """The API server refused a request."""

    def __init__(self, status: int, content: str) -> None:
        super().__init__(f"{status}: {content}")
        self.status = status
        self.content = content


@dataclass(frozen=True)
class Node:
    """A node without a machine.

    kwok says of every pod on it that it runs. With `is_acted` nobody does: the test says what a kubelet would.
    """

    name: str
    gpus: int = _GPUS_A_NODE
    gpu_product: str = "NVIDIA-L4"
    labels: dict[str, str] = field(default_factory=dict)
    is_acted: bool = False

    def document(self) -> dict[str, Any]:
        """The object that the API server keeps."""
        labels = {
            "type": "acted" if self.is_acted else "kwok",
            "kubernetes.io/hostname": self.name,
            "kubernetes.io/arch": "amd64",
            "kubernetes.io/os": "linux",
            **({"nvidia.com/gpu.product": self.gpu_product} if self.gpus else {}),
            **self.labels,
        }
        resources = {"cpu": "32", "memory": "256Gi", "pods": "110", "ephemeral-storage": "1Ti"}
        resources |= {"nvidia.com/gpu": str(self.gpus)} if self.gpus else {}
        about = {"operatingSystem": "linux", "architecture": "amd64", "kubeletVersion": "kwok"}
        about |= dict.fromkeys(
            ["bootID", "containerRuntimeVersion", "kernelVersion", "kubeProxyVersion", "machineID", "osImage"], ""
        )
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": ""}
        return {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": self.name, "labels": labels, "annotations": {"node.alpha.kubernetes.io/ttl": "0"}},
            "status": {
                "allocatable": resources,
                "capacity": resources,
                "nodeInfo": about | {"systemUUID": ""},
                **({"conditions": [ready]} if self.is_acted else {}),
            },
        }


class ControlPlane:
    """The processes of a Kubernetes, and how to reach it."""

    def __init__(self, folder: Path, listen_at: str = LOOPBACK) -> None:
        """Takes the folder for everything that it writes, and starts nothing.

        Args:
            folder: An empty one.
            listen_at: Where its API server listens, beside the loopback interface; in a network of its own alone.
        """
        self.folder = folder
        self._listen_at = listen_at
        self.tokens = {name: secrets.token_hex(16) for name in (ADMIN, VISITOR)}
        self._etcd, self._etcd_peers, self._api, self._kwok = free_ports(4)
        self._processes: dict[str, subprocess.Popen[bytes]] = {}

    @property
    def url(self) -> str:
        """The address of the API server."""
        return f"https://127.0.0.1:{self._api}"

    @property
    def pod_log(self) -> Path:
        """The file that stands for what every container of kwok's pods has written."""
        return self.folder / "pod.log"

    @property
    def authority(self) -> Path:
        """The certificate by which clients know the API server."""
        return self.folder / "ca.pem"

    def kubeconfig(self, user: str = ADMIN, namespace: str = "default", host: str = LOOPBACK) -> Path:
        """A file that names the API server, one of its users and a namespace. It has one context, `test`.

        Args:
            user: Of those of `tokens`.
            namespace: The context's.
            host: An address of the API server.
        """
        path = self.folder / f"kubeconfig-{user}-{namespace}-{host}.json"
        cluster = {"server": f"https://{host}:{self._api}", "certificate-authority": str(self.authority)}
        if host != LOOPBACK:
            cluster["tls-server-name"] = LOOPBACK  # whose name is in its certificate
        context = {"cluster": "test", "user": user, "namespace": namespace}
        content = {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "test", "cluster": cluster}],
            "users": [{"name": user, "user": {"token": self.tokens[user]}}],
            "contexts": [{"name": "test", "context": context}],
            "current-context": "test",
        }
        path.write_text(json.dumps(content), encoding="utf-8")
        return path

    def request(
        self, method: str, path: str, body: object = None, kind: str = "application/json", user: str = ADMIN
    ) -> Any:
        """The answer of the API server to a request, as it stands, without a client's help.

        Raises:
            OSError: If it does not answer.
            Refused: If it refuses the request.
        """
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.tokens[user]}", "Content-Type": kind}
        request = Request(self.url + path, data, headers, method=method)
        until = time.monotonic() + TIMEOUT_S
        while True:
            try:
                with self._opener.open(request, timeout=TIMEOUT_S) as response:
                    content = response.read()
            except HTTPError as error:
                with error:  # it holds the connection
                    # It says so while it opens the storage of a kind that has just been added.
                    if error.code == TOO_MANY_REQUESTS and time.monotonic() < until:
                        time.sleep(float(error.headers.get("Retry-After", 1)))
                        continue
                    raise Refused(error.code, error.read().decode()) from None
            return json.loads(content) if content.startswith(b"{") else content.decode()

    def patch_status(self, path: str, status: dict[str, Any]) -> None:
        """Say what a controller or a load balancer that is not here would: the status of an object."""
        self.request("PATCH", f"{path}/status", {"status": status}, "application/merge-patch+json")

    def start(self) -> None:
        """Start etcd and the API server, and return once it answers.

        Raises:
            Missing: If they are not built.
        """
        need(*BARE)
        self._write_keys()
        client = f"http://127.0.0.1:{self._etcd}"
        peers = f"http://127.0.0.1:{self._etcd_peers}"
        self._run(
            "etcd",
            f"--data-dir={self.folder / 'etcd'}",
            *(f"--{which}-client-urls={client}" for which in ("listen", "advertise")),
            *(f"--{which}-urls={peers}" for which in ("listen-peer", "initial-advertise-peer")),
            f"--initial-cluster=default={peers}",
            "--unsafe-no-fsync",  # nothing here outlives the machine
            "--log-level=warn",
        )
        self.start_api_server()

    def start_api_server(self) -> None:
        """Start the API server, for the first time or again."""
        self._run(
            "kube-apiserver",
            f"--etcd-servers=http://127.0.0.1:{self._etcd}",
            f"--bind-address={self._listen_at}",
            f"--secure-port={self._api}",
            f"--tls-cert-file={self.folder / 'server.pem'}",
            f"--tls-private-key-file={self.folder / 'server.key'}",
            f"--client-ca-file={self.authority}",
            f"--cert-dir={self.folder}",
            f"--service-account-key-file={self.folder / 'server.pem'}",
            f"--service-account-signing-key-file={self.folder / 'server.key'}",
            "--service-account-issuer=https://kubernetes.default.svc",
            "--service-cluster-ip-range=10.0.0.0/24",
            "--authorization-mode=RBAC",
            f"--token-auth-file={self.folder / 'tokens.csv'}",
            # It publishes no address, and looks for none of its own: a network without a way out has none.
            "--endpoint-reconciler-type=none",
            f"--advertise-address={_NO_ADDRESS}",
            "--allow-privileged",
            "--enable-priority-and-fairness=false",  # it weighs callers against each other all the time
        )
        for path in _READY:
            self.wait_until(lambda path=path: self._answers(path), f"the API server answers {path}")

    def stop_api_server(self) -> None:
        """End the API server at once, as a crash would; what it keeps stays in etcd."""
        self._end("kube-apiserver")

    def start_controllers(self, *nodes: Node) -> None:
        """Start the controllers, and kwok if it has nodes, and return once pods can be placed.

        Raises:
            Missing: If they are not built.
        """
        need(*CONTROLLERS, *((KWOK,) if nodes else ()))
        kubeconfig = f"--kubeconfig={self.kubeconfig()}"
        self._run(
            "kube-controller-manager",
            kubeconfig,
            "--secure-port=0",
            "--leader-elect=false",
            f"--controllers={','.join(_CONTROLLERS_IN_USE)}",
            f"--service-account-private-key-file={self.folder / 'server.key'}",
            f"--root-ca-file={self.authority}",
            # What waits for minutes elsewhere: scaling by measurements.
            "--horizontal-pod-autoscaler-sync-period=2s",
            "--horizontal-pod-autoscaler-downscale-stabilization=10s",
            "--horizontal-pod-autoscaler-initial-readiness-delay=1s",
        )
        self._run("kube-scheduler", kubeconfig, "--secure-port=0", "--leader-elect=false")
        if nodes:
            self._start_kwok()
        for node in nodes:
            self.add(node)
        self.wait_until(
            lambda: self._answers("/api/v1/namespaces/default/serviceaccounts/default"), "the controllers work"
        )

    def _start_kwok(self) -> None:
        self._run(
            KWOK,
            f"--kubeconfig={self.kubeconfig()}",
            "--manage-all-nodes=false",
            "--manage-nodes-with-label-selector=type=kwok",
            "--cidr=10.244.0.0/24",
            "--node-ip=127.0.0.1",
            f"--node-port={self._kwok}",
            f"--server-address=127.0.0.1:{self._kwok}",
            f"--tls-cert-file={self.folder / 'server.pem'}",
            f"--tls-private-key-file={self.folder / 'server.key'}",
            f"--config={self._kwok_config()}",
        )

    def add(self, node: Node) -> None:
        """Add a node, and return once it is ready."""
        self.request("POST", "/api/v1/nodes", node.document())
        self.wait_until(lambda: self.is_ready(node.name), f"{node.name} is ready")

    def is_ready(self, node: str) -> bool:
        """Whether a node is there and takes pods."""
        try:
            found = self.request("GET", f"/api/v1/nodes/{node}")
        except Refused:
            return False
        conditions = found["status"].get("conditions", [])
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    def namespace(self, name: str) -> None:
        """Make a namespace, and return once pods can be made in it, where controllers run."""
        self.request("POST", "/api/v1/namespaces", {"metadata": {"name": name}})
        if "kube-controller-manager" in self._processes:
            account = f"/api/v1/namespaces/{name}/serviceaccounts/default"
            self.wait_until(lambda: self._answers(account), f"{name} has its service account")

    def wait_until(self, fact: Callable[[], bool], what: str) -> None:
        """Returns once a fact holds.

        Raises:
            AssertionError: If it does not in time, or a process has ended, with the last lines that it wrote.
        """
        deadline = time.monotonic() + TIMEOUT_S
        while not fact():
            for name, process in self._processes.items():
                assert process.poll() is None, f"{name} ended with {process.returncode}: {self.log(name)[-2000:]}"
            assert time.monotonic() < deadline, f"not in time: {what}; {self.log('kube-apiserver')[-2000:]}"
            time.sleep(0.05)  # what is waited for is also the API server itself, which announces nothing yet

    def log(self, program: str) -> str:
        """What a program has written."""
        return self._log(program).read_text(encoding="utf-8", errors="replace")

    def stop(self) -> None:
        """End every process, in the order in which they need each other."""
        for name in reversed(list(self._processes)):
            self._end(name)

    def _write_keys(self) -> None:
        import trustme  # most tests start no Kubernetes

        authority = trustme.CA()
        certificate = authority.issue_cert("127.0.0.1", "10.0.0.1", "localhost", "kubernetes.default.svc")
        authority.cert_pem.write_to_path(self.authority)
        certificate.private_key_pem.write_to_path(self.folder / "server.key")
        certificate.cert_chain_pems[0].write_to_path(self.folder / "server.pem")
        groups = {ADMIN: "system:masters", VISITOR: "visitors"}
        lines = [f"{token},{user},{user},{groups[user]}\n" for user, token in self.tokens.items()]
        (self.folder / "tokens.csv").write_text("".join(lines), encoding="utf-8")

    def _kwok_config(self) -> Path:
        """What kwok's pods do: they start, they end, and they have written what is in `pod_log`."""
        logs = {"apiVersion": "kwok.x-k8s.io/v1alpha1", "kind": "ClusterLogs", "metadata": {"name": "logs"}}
        logs |= {"spec": {"logs": [{"logsFile": str(self.pod_log), "follow": True}]}}
        stages = (program_folder(KWOK) / "kwok.yaml").read_text(encoding="utf-8")
        config = self.folder / "kwok.yaml"
        config.write_text(f"{stages}\n---\n{json.dumps(logs)}\n", encoding="utf-8")
        return config

    def run(
        self,
        program: str,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        launcher: Sequence[str] = (),
    ) -> None:
        """Start another program of those that are built; it ends with the others.

        Args:
            program: Its name.
            arguments: Its command line.
            environment: Further variables.
            launcher: Words before the program, which replace themselves by it.

        Raises:
            Missing: If it is not built.
        """
        need(program)
        self._run(program, *arguments, environment=environment, launcher=launcher)

    def _run(
        self,
        program: str,
        *arguments: str,
        environment: Mapping[str, str] | None = None,
        launcher: Sequence[str] = (),
    ) -> None:
        assert program not in self._processes
        # `setpriv` lets the kernel end the process when this one is killed.
        command = ["setpriv", "--pdeathsig", "KILL", *launcher, str(program_file(program)), *arguments]
        with self._log(program).open("ab") as log:
            self._processes[program] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env=os.environ | dict(environment or {}),
                start_new_session=True,
            )

    def _end(self, program: str) -> None:
        process = self._processes.pop(program)
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def _log(self, program: str) -> Path:
        return self.folder / f"{program}.log"

    @cached_property
    def _opener(self) -> OpenerDirector:
        # Without proxies, which are read from the environment: a command in this process may be changing that.
        return build_opener(ProxyHandler({}), HTTPSHandler(context=self._trust))

    @cached_property
    def _trust(self) -> ssl.SSLContext:
        return ssl.create_default_context(cafile=str(self.authority))

    def _answers(self, path: str) -> bool:
        try:
            self.request("GET", path)
        except (OSError, Refused):
            return False
        return True


@contextmanager
def control_plane(folder: Path, listen_at: str = LOOPBACK) -> Iterator[ControlPlane]:
    """A control plane whose API server answers; nothing of it is left afterwards.

    Args:
        folder: An empty one.
        listen_at: Where its API server listens, beside the loopback interface; in a network of its own alone.

    Raises:
        Missing: If its programs are not built.
    """
    plane = ControlPlane(folder, listen_at)
    try:
        plane.start()
        yield plane
    finally:
        plane.stop()
        shutil.rmtree(folder, ignore_errors=True)


@cache
def _programs() -> dict[str, Any]:
    programs: dict[str, Any] = runpy.run_path(str(ROOT / "tools" / "kube" / "programs.py"))["PROGRAMS"]
    return programs


def need(*programs: str) -> None:
    """Returns if programs are built.

    Raises:
        Missing: If one is not.
    """
    if missing := [name for name in programs if not program_file(name).exists()]:
        raise Missing(f"needs Kubernetes' own programs ({', '.join(missing)}): make kube")


def program_folder(name: str) -> Path:
    """The folder of a program's versions: files beside it are there, too."""
    folder: Path = _programs()[name].folder()
    return folder


def program_file(name: str) -> Path:
    """Where a program is, or would be."""
    return program_folder(name) / "bin" / name
