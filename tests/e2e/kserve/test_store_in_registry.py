"""Models in a real registry of images: KServe's modelcars, and artifacts of single files."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from alipes.errors import RepositoryError
from alipes.repository.model_store import ModelStore
from alipes.repository.storage.oci import OciSource
from alipes.repository.storage.patterns import read_patterns
from support.pushed_files import layer, push
from support.registry import is_installed, registry

pytestmark = pytest.mark.skipif(
    not is_installed(), reason="docker-registry is not installed: tools/install-system-tools"
)

NEVER = threading.Event()


@pytest.fixture(scope="module")
def host(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with registry(tmp_path_factory.mktemp("registry")) as address:
        yield address


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """What is held lies in a folder of the test."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))


def files(folder: Path) -> dict[str, bytes]:
    return {str(one.relative_to(folder)): one.read_bytes() for one in sorted(folder.rglob("*")) if one.is_file()}


def test_a_modelcar_is_its_folder_of_models_layer_upon_layer(host: str) -> None:
    below = layer({"etc/passwd": b"root", "models/digits/model.onnx": b"old", "models/gone/model.onnx": b"old"})
    above = layer({"models/digits/model.onnx": b"new", "models/.wh.gone": b""})
    digest = push(host, "team/digits", "v1", [below, above])
    source = OciSource(f"oci://{host}/team/digits:v1")
    folder = source.fetch(NEVER)
    assert files(folder) == {"digits/model.onnx": b"new"}
    assert OciSource(f"oci://{host}/team/digits@{digest}").fetch(NEVER) == folder
    store = ModelStore(Path("oci:digits"), "", "oci://digits", OciSource(f"oci://{host}/team/digits:v1"))
    store.fetch()
    store.refresh()
    assert store.names() == ["digits"]
    store.close()


def test_patterns_choose_files_of_a_modelcar(host: str) -> None:
    push(host, "team/two", "v1", [layer({"models/one.onnx": b"one", "models/two.onnx": b"two"})])
    source = OciSource(f"oci://{host}/team/two:v1")
    patterns = read_patterns({"STORAGE_IGNORE_PATTERNS": "two*"})
    store = ModelStore(Path("oci:two"), "digits", "oci://two", source, patterns)
    store.fetch()
    store.refresh()
    folder = store.folder_of("digits")
    assert folder is not None and [one.name for one in (folder / "1").iterdir()] == ["one.onnx"]
    store.close()


def test_an_artifact_is_its_files_by_their_names(host: str) -> None:
    push(host, "team/artifact", "latest", [b"model", b"labels"], {0: "model.onnx", 1: "more/labels.txt"})
    folder = OciSource(f"oci://{host}/team/artifact").fetch(NEVER)
    assert files(folder) == {"model.onnx": b"model", "more/labels.txt": b"labels"}


def test_a_layer_that_leads_out_is_refused_and_never_served(host: str, tmp_path: Path) -> None:
    push(host, "team/evil", "v1", [layer({"../../evil": b"evil"})])
    push(host, "team/evil", "v2", [b"evil"], {0: "../../evil"})
    for tag in ("v1", "v2", "v1"):
        with pytest.raises(
            RepositoryError, match=f"cannot fetch oci://{host}/team/evil:{tag}: .*leads out of its folder"
        ):
            OciSource(f"oci://{host}/team/evil:{tag}").fetch(NEVER)
    assert not list(tmp_path.rglob("evil"))


def test_what_is_not_there_says_so(host: str) -> None:
    with pytest.raises(RepositoryError, match=f"{host} answers 404"):
        OciSource(f"oci://{host}/team/absent:v1").fetch(NEVER)


@pytest.mark.parametrize(
    "address", ["oci://", "oci://host", "oci://host/UPPER", "oci://host/a:b c", "oci://u:p@host/a"]
)
def test_what_is_no_address_of_an_image_is_refused(address: str) -> None:
    with pytest.raises(RepositoryError, match="expected oci://HOST/NAME"):
        OciSource(address)
