"""`alipes deploy image`: an image in the layout of the OCI, of what is installed here."""

from __future__ import annotations

import base64
import gzip
import io
import json
import os
import re
import shutil
import subprocess
import tarfile
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.request import Request, urlopen

import alipes
import pytest
from alipes.deploy.image.elf import read_elf
from alipes.deploy.image.interpreter import PYTHON, RELEASE
from alipes.deploy.image.libraries import find_libraries
from support import command
from support.command import alipes_process, check_readable
from support.images import Layout
from support.models import add_model, times
from support.registry import is_installed, registry
from support.waiting import TIMEOUT_S

# The image is made once.
pytestmark = [
    pytest.mark.xdist_group("image"),
    pytest.mark.slow("an image is made of all that is installed"),
    pytest.mark.timeout(900),
]

# alice, whose password is `secret`.
USERS = "alice:$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n"
LOGIN = base64.b64encode(b"alice:secret").decode()

OCI = "application/vnd.oci.image"
LOADED = """
import alipes._core, asyncio, ctypes, multiprocessing, numpy, sqlite3, ssl, sys
from alipes.backends.onnxruntime.library import find_library
ctypes.CDLL(str(find_library()))
print(sys.prefix, *sorted({line.split()[-1] for line in open("/proc/self/maps") if "/" in line}), sep="\\n")
"""


@dataclass(frozen=True)
class Made:
    """An image that was made, with what the command printed."""

    layout: Layout
    printed: dict[str, Any]
    models: Path
    cache: Path

    def again(self, *words: str, **environment: str) -> command.Done:
        """The command once more, with further variables."""
        with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(self.cache)} | environment):
            return command.alipes("deploy", "image", *words)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    folder = tmp_path_factory.mktemp("image")
    models = folder / "models"
    models.mkdir()
    add_model(models, "times", times())
    with mock.patch.dict(os.environ, {"XDG_CACHE_HOME": str(folder / "cache")}):
        words = (str(models), "--output", str(folder / "image"), "--json", "--label", "team=waves")
        done = command.alipes("deploy", "image", *words)
    assert (done.code, done.err) == (0, "")
    return Made(Layout(folder / "image"), json.loads(done.out), models, folder / "cache")


@pytest.fixture(scope="module")
def root(made: Made, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file system of the image, unpacked."""
    folder = tmp_path_factory.mktemp("root")
    made.layout.unpack(folder)
    return folder


def test_the_layout_is_that_of_the_specification(made: Made) -> None:
    made.layout.check_blobs()
    assert json.loads((made.layout.folder / "oci-layout").read_bytes()) == {"imageLayoutVersion": "1.0.0"}
    (listed,) = made.layout.index["manifests"]
    manifest, config = made.layout.manifest, made.layout.config
    assert listed["mediaType"] == manifest["mediaType"] == f"{OCI}.manifest.v1+json"
    assert listed["digest"] == made.printed["digest"]
    assert listed["platform"] == {"architecture": config["architecture"], "os": "linux"}
    assert manifest["config"]["mediaType"] == f"{OCI}.config.v1+json"
    assert {one["mediaType"] for one in manifest["layers"]} == {f"{OCI}.layer.v1.tar+gzip"}
    assert len(manifest["layers"]) == len(config["history"]) == len(made.printed["layers"]) == 5


@pytest.mark.proof
def test_each_layer_unpacks_to_what_the_configuration_says(made: Made) -> None:
    blobs = [made.layout.blob(one["digest"]) for one in made.layout.manifest["layers"]]
    ids = [f"sha256:{sha256(gzip.decompress(blob.read_bytes())).hexdigest()}" for blob in blobs]
    assert made.layout.config["rootfs"] == {"type": "layers", "diff_ids": ids}


def test_what_goes_in_and_stays_out_is_printed_with_how_to_load_it(made: Made, tmp_path: Path) -> None:
    (tmp_path / "app.py").touch()
    (tmp_path / "key.pem").write_text("-----BEGIN PRIVATE KEY-----\nMIGH\n-----END PRIVATE KEY-----\n")
    archive = tmp_path / "alipes.tar"
    done = made.again(str(tmp_path / "app.py"), "--output", str(archive))
    assert "1 file went in for app.py\nleft out: key.pem (a private key)\n" in done.out
    assert f"docker load --input {archive}" in done.out
    folder = tmp_path / "layout"
    assert f"podman pull oci:{folder}" in made.again(str(tmp_path / "app.py"), "--output", str(folder)).out


def test_it_runs_as_a_user_without_rights_on_the_usual_ports(made: Made) -> None:
    config = made.layout.config["config"]
    assert config["User"] == "10001:10001"
    assert config["Entrypoint"] == ["alipes", "serve", "/models"]
    assert set(config["ExposedPorts"]) == {"8000/tcp", "8001/tcp", "8002/tcp"}
    assert config["StopSignal"] == "SIGTERM"
    assert "PYTHONDONTWRITEBYTECODE=1" in config["Env"]
    assert config["Labels"]["team"] == "waves"
    assert config["Labels"]["org.opencontainers.image.version"] == alipes.__version__
    assert made.layout.manifest["annotations"] == config["Labels"]


def test_it_is_small(made: Made) -> None:
    assert made.printed["unpacked"] < 300e6
    assert made.printed["unpacked"] == sum(one["unpacked"] for one in made.printed["layers"])


def test_another_build_has_the_same_digest_and_makes_no_layer(made: Made, tmp_path: Path) -> None:
    done = made.again(str(made.models), "--output", str(tmp_path / "x.tar"), "--json", "--label", "team=waves")
    again = json.loads(done.out)
    assert again["digest"] == made.printed["digest"]
    assert [one["cached"] for one in made.printed["layers"]] == [False] * 5
    assert [one["cached"] for one in again["layers"]] == [True] * 5
    with tarfile.open(tmp_path / "x.tar") as archive:
        names = archive.getnames()
        docker = json.load(archive.extractfile("manifest.json") or io.BytesIO())
    assert {name for name in names if name.startswith("blobs/")} == {
        str(path.relative_to(made.layout.folder)) for path in (made.layout.folder / "blobs" / "sha256").iterdir()
    }
    assert docker[0]["RepoTags"] == [f"localhost/alipes:{alipes.__version__}"]
    assert set(docker[0]["Layers"]) < set(names)


def test_another_model_makes_one_layer_anew(made: Made, tmp_path: Path) -> None:
    models = tmp_path / "models"
    models.mkdir()
    add_model(models, "more", times())
    # In the place of an image that is there, whose other layers go.
    shutil.copytree(made.layout.folder, tmp_path / "image")
    done = made.again(str(models), "--output", str(tmp_path / "image"), "--json")
    Layout(tmp_path / "image").check_blobs()
    assert {one["name"]: one["cached"] for one in json.loads(done.out)["layers"]} == {
        "interpreter": True,
        "packages": True,
        "alipes": True,
        "sbom": True,
        "models": False,
    }


def test_the_table_says_what_went_in(made: Made, tmp_path: Path) -> None:
    done = made.again("--output", str(tmp_path / "image"), "--name", "team/models:7")
    assert [row[0] for row in done.rows] == [
        *("LAYER", "interpreter", "packages", "alipes", "sbom", "image", "digest", "written", "load"),
    ]
    assert done.rows[-3][1].startswith("sha256:")
    assert done.rows[-2][-1] == "localhost/team/models:7"


def test_python_in_it_loads_nothing_of_this_machine(root: Path) -> None:
    python = root / PYTHON
    elf = read_elf(python)
    assert elf is not None
    libraries = root / str(find_libraries(python, []).folder).lstrip("/")
    packages = root / "opt" / "alipes" / "lib" / f"python{RELEASE}" / "site-packages"
    done = subprocess.run(
        # As in a container, where nothing else is: the loader of the image, which searches where it would there.
        [root / elf.interpreter.lstrip("/"), "--inhibit-cache", "--library-path", libraries, python, "-c", LOADED],
        env={"PYTHONPATH": str(packages), "PYTHONHOME": str(root / "usr" / "local"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    prefix, *files = done.stdout.splitlines()
    assert prefix == str(root / "usr" / "local")
    # Words for the messages of other languages, and tables of other encodings, which glibc does without.
    spare = re.compile(r"/usr/lib\S*/(locale|gconv)/|/dev/|/memfd:")
    elsewhere = [path for path in files if not path.startswith(f"{root}/") and not spare.match(path)]
    assert len(files) > 20
    assert elsewhere == []


def test_anybody_may_write_into_the_folder_for_temporary_files(made: Made) -> None:
    with tarfile.open(made.layout.blob(made.layout.manifest["layers"][0]["digest"])) as archive:
        writable = {one.name: oct(one.mode) for one in archive if one.mode & 0o002 and not one.issym()}
    assert writable == {"tmp": "0o1777"}


def test_users_certificates_and_models_are_there(root: Path) -> None:
    assert "alipes:x:10001:10001:" in (root / "etc" / "passwd").read_text()
    assert (root / "etc" / "ssl" / "certs" / "ca-certificates.crt").read_text().count("BEGIN CERTIFICATE") > 10
    assert (root / "models" / "times" / "1" / "model.onnx").is_file()
    assert [path for path in root.rglob("*") if path.is_file() and not path.stat().st_mode & 0o004] == []


def test_the_bill_of_materials_names_what_is_in_it(root: Path) -> None:
    bill = json.loads((root / "usr" / "share" / "sbom" / "alipes.cdx.json").read_bytes())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.6")
    found = {one["name"]: one for one in bill["components"]}
    assert found["alipes"]["licenses"] == [{"license": {"name": "Apache-2.0"}}]
    assert found["numpy"]["purl"].startswith("pkg:pypi/numpy@")
    packages = root / "opt" / "alipes" / "lib" / f"python{RELEASE}" / "site-packages"
    installed = {path.name.split("-")[0].lower().replace("_", "-") for path in packages.glob("*.dist-info")}
    assert installed == {
        one["name"].lower().replace("_", "-")
        for one in bill["components"]
        if one.get("purl", "").startswith("pkg:pypi/")
    }
    (libc,) = root.glob("**/libc.so.6")
    assert found["libc.so.6"]["hashes"] == [{"alg": "SHA-256", "content": sha256(libc.read_bytes()).hexdigest()}]
    assert len({one["bom-ref"] for one in bill["components"]}) == len(bill["components"])


@pytest.mark.skipif(not is_installed(), reason="docker-registry is not installed")
@pytest.mark.proof
def test_a_real_registry_has_what_was_pushed_by_who_is_logged_in(made: Made, tmp_path: Path) -> None:
    (tmp_path / "users").write_text(USERS)
    (tmp_path / "data").mkdir()
    with registry(tmp_path, f"auth: {{htpasswd: {{realm: here, path: {tmp_path}/users}}}}") as address:
        words = (str(made.models), "--push", f"{address}/team/models:1", "--json", "--label", "team=waves")
        refused = made.again(*words, DOCKER_CONFIG=str(tmp_path), HOME=str(tmp_path))
        assert "log in with" in refused.message
        (tmp_path / "config.json").write_text(json.dumps({"auths": {address: {"auth": LOGIN}}}))
        done = made.again(*words, DOCKER_CONFIG=str(tmp_path))
        assert (done.code, done.err) == (0, "")
        digest = made.printed["digest"]
        assert json.loads(done.out)["digest"] == digest
        assert fetched(address, "manifests/1") == made.layout.blob(digest).read_bytes()
        for one in made.layout.manifest["layers"]:
            assert fetched(address, f"blobs/{one['digest']}", "HEAD") == b""
        # This registry is older than the list of what is attached: it is a tag there.
        (listed,) = json.loads(fetched(address, f"manifests/{digest.replace(':', '-')}"))["manifests"]
        assert listed["artifactType"] == "application/vnd.cyclonedx+json"
        (bill,) = json.loads(fetched(address, f"manifests/{listed['digest']}"))["layers"]
        assert json.loads(fetched(address, f"blobs/{bill['digest']}"))["bomFormat"] == "CycloneDX"


def fetched(address: str, path: str, method: str = "GET") -> bytes:
    """What the registry has for alice."""
    url = f"http://{address}/v2/team/models/{path}"
    headers = {"Authorization": f"Basic {LOGIN}", "Accept": f"{OCI}.manifest.v1+json, {OCI}.index.v1+json"}
    with urlopen(Request(url, headers=headers, method=method), timeout=TIMEOUT_S) as opened:
        return bytes(opened.read())


@pytest.mark.proof
def test_two_builds_that_share_nothing_have_one_digest(made: Made, tmp_path: Path) -> None:
    words = (str(made.models), "--output", str(tmp_path / "image"), "--json", "--label", "team=waves")
    variables = {"XDG_CACHE_HOME": str(tmp_path / "cache"), "PYTHONHASHSEED": "3", "ELSEWHERE": "x" * 1000}
    done = alipes_process("deploy", "image", *words, environment=variables)
    again = json.loads(done.out)
    assert [one["cached"] for one in again["layers"]] == [False] * 5
    assert again == made.printed


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["modls"], "did you mean"),
        (["empty"], "holds no models"),
        (["gs://bucket/models"], "--model-repository=gs://bucket/models"),
        (["--output", "other"], "holds no image"),
        (["--output", "file/image"], "cannot be written"),
        (["--output", "other.tar"], "is a folder"),
        (["--output", "file/x.tar"], "cannot be written"),
        (["--name", "Models"], "no name of an image"),
        (["--label", "team"], "--label KEY=VALUE"),
        (["--extra", "sklern"], "did you mean sklearn?"),
        (["--package", "no-such-package"], "pip install no-such-package"),
    ],
)
def test_each_mistake_is_one_message_and_nothing_is_written(words: list[str], message: str, tmp_path: Path) -> None:
    for name in ("models", "empty", "other", "other.tar"):
        (tmp_path / name).mkdir()
    for name in ("file", "other/text"):
        (tmp_path / name).write_text("")
    before = sorted(tmp_path.rglob("*"))
    done = command.alipes("deploy", "image", *words, folder=tmp_path)
    check_readable(done)
    assert message in done.message
    assert done.code in (1, 2)
    assert sorted(tmp_path.rglob("*")) == before


def test_a_time_that_is_none_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "yesterday")
    done = command.alipes("deploy", "image", folder=tmp_path)
    assert "SOURCE_DATE_EPOCH is 'yesterday'" in done.message
