"""The file for Compose and the unit of systemd, read by the real ones where they are installed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from alipes.deploy import described
from alipes.deploy.compose import compose_document
from alipes.deploy.quantities import bytes_of, cores_of
from alipes.deploy.systemd import socket_unit, systemd_unit
from alipes.deploy.yaml_text import yaml_of
from alipes.errors import ConfigError

pytestmark = pytest.mark.extra("deploy")

FULL: dict[str, Any] = {
    "repository": "/srv/models",
    "tls": {"secret": "/srv/tls"},
    "key": {"secret": "/srv/key.env"},
    "resources": {"memory": "4Gi", "cpuLimit": "1500m", "gpus": 2, "sharedMemory": "64Mi"},
    "environment": {"A": 'two words, "quoted"', "B": "50%"},
    "arguments": ["--log-verbose=1", "--load-model=price $5"],
    "exitTimeoutS": 60,
}
SETS = {"nothing": {"repository": "/srv/models"}, "everything": FULL, "bucket": {"repository": "gs://bucket/models"}}


@pytest.mark.parametrize("name", SETS)
def test_systemd_takes_the_unit_without_a_warning(name: str, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    program = shutil.which("true")
    assert program is not None
    unit = tmp_path / "alipes.service"
    unit.write_text(systemd_unit(described(SETS[name]), program))
    done = subprocess.run(["systemd-analyze", "verify", unit], capture_output=True, text=True, check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if unit.name in line]) == (0, [])


def test_systemd_takes_the_unit_of_the_sockets(tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        pytest.skip("systemd is not installed")
    program = shutil.which("true")
    assert program is not None
    units = [tmp_path / "idle.service", tmp_path / "idle.socket"]
    units[0].write_text(systemd_unit(described(FULL), program, idle_exit_s=300))
    units[1].write_text(socket_unit(described(FULL)))
    done = subprocess.run(["systemd-analyze", "verify", *units], capture_output=True, text=True, check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if "idle." in line]) == (0, [])


def test_a_unit_that_ends_idle_is_started_by_its_sockets() -> None:
    unit = systemd_unit(described(FULL), idle_exit_s=300)
    assert "--idle-exit=300" in unit
    assert unit.endswith("Also=%p.socket\n")
    sockets = socket_unit(described(FULL | {"ports": {"http": 8081, "grpc": 8082}}))
    assert re.findall("^ListenStream=(.*)$", sockets, re.MULTILINE) == ["0.0.0.0:8081", "0.0.0.0:8082"]


def test_systemd_waits_longer_than_the_server_drains() -> None:
    unit = systemd_unit(described(FULL))
    assert "--exit-timeout-secs=60 " in unit
    (stop,) = re.findall(r"^TimeoutStopSec=(\d+)$", unit, re.MULTILINE)
    assert int(stop) > 61


def test_a_unit_says_what_its_server_alone_has() -> None:
    unit = systemd_unit(described(FULL))
    lines = set(unit.splitlines())
    assert {"MemoryMax=4294967296", "CPUQuota=150%", "EnvironmentFile=/srv/key.env"} <= lines
    assert {r'Environment="A=two words, \"quoted\""', "Environment=B=50%%"} <= lines
    assert "LoadCredential=tls.key:/srv/tls/tls.key" in lines
    assert "--http-server-key=${CREDENTIALS_DIRECTORY}/tls.key" in unit
    assert '"--load-model=price $$5"' in unit
    assert "--api-key-open=health,metrics" in unit
    assert "PrivateDevices" not in unit
    assert "PrivateDevices=yes" in systemd_unit(described({}))


def test_an_app_is_served_in_the_place_of_a_repository() -> None:
    app = described({"repository": "/srv/app/app.py"})
    assert "ExecStart=/opt/alipes/bin/alipes serve /srv/app/app.py --http-port=8000" in systemd_unit(app)
    (service,) = compose_document(app)["services"].values()
    assert (service["volumes"], service["command"][0]) == (["/srv/app:/app:ro"], "/app/app.py")
    (beside,) = compose_document(described({"repository": "app.py"}))["services"].values()
    assert beside["volumes"] == ["./.:/app:ro"]


@pytest.mark.parametrize("name", SETS)
def test_compose_reads_what_we_write(name: str, tmp_path: Path) -> None:
    if shutil.which("podman-compose") is None:
        pytest.skip("podman-compose is not installed")
    file = tmp_path / "compose.yaml"
    file.write_text(yaml_of([compose_document(described(SETS[name]))]))
    environment = {"PATH": "/usr/bin:/bin:/usr/sbin:/sbin", "HOME": str(tmp_path), "ALIPES_API_KEY": "s3cret"}
    done = subprocess.run(
        ["podman-compose", "--dry-run", "-f", file, "up"], capture_output=True, text=True, check=False, env=environment
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "--http-port=8000" in said
    assert said.count("ALIPES_API_KEY=s3cret") == (name == "everything")


def test_a_compose_file_says_what_its_server_has() -> None:
    service = compose_document(described(FULL))["services"]["alipes"]
    assert service["volumes"] == ["/srv/models:/models:ro", "/srv/tls:/etc/alipes/tls:ro"]
    assert service["deploy"]["resources"]["limits"] == {"memory": 4 << 30, "cpus": "1.5"}
    assert service["deploy"]["resources"]["reservations"]["devices"][0]["count"] == 2
    assert service["shm_size"] == 64 << 20
    assert "--load-model=price $$5" in service["command"]
    assert "https://localhost:8000/v2/health/ready" in json.dumps(service["healthcheck"])


def test_a_folder_is_no_name_of_a_volume() -> None:
    service = compose_document(described({"repository": "models"}))["services"]["alipes"]
    assert service["volumes"] == ["./models:/models:ro"]
    assert service["command"][0] == "/models"


@pytest.mark.parametrize("write", [compose_document, systemd_unit])
@pytest.mark.parametrize(
    "values", [{"replicas": 2}, {"scaling": {"kind": "hpa"}}, {"repository": "pvc://claim"}], ids=str
)
def test_what_one_machine_does_not_have_is_refused(write: Any, values: dict[str, Any]) -> None:
    with pytest.raises(ConfigError):
        write(described({"repository": "/srv/models"} | values))


def test_systemd_needs_whole_paths() -> None:
    with pytest.raises(ConfigError, match="systemd needs the whole path of 'models'"):
        systemd_unit(described({"repository": "models"}))


@pytest.mark.parametrize(
    ("quantity", "number"), [("2Gi", 2 << 30), ("1.5Ki", 1536), ("500M", 500_000_000), ("7", 7), ("3k", 3000)]
)
def test_quantities_are_bytes(quantity: str, number: int) -> None:
    assert bytes_of(quantity) == number


def test_quantities_are_cores() -> None:
    assert (cores_of("500m"), cores_of("2"), cores_of("1.5")) == (0.5, 2.0, 1.5)
