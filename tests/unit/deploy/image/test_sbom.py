"""Bills of materials."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from alipes.deploy.image.contents import Hashes, text
from alipes.deploy.image.packages import Package
from alipes.deploy.image.sbom import bill_of_materials
from alipes.deploy.image.system_packages import SystemPackage, system_packages

FILES = {"a/__init__.py": text(""), "a/b.py": text("x")}


def package(name: str, licence: str = "MIT") -> Package:
    return Package(name, "1.2", licence, dict(FILES), False)


def written(tmp_path: Path, *packages: Package, time_s: int = 0) -> bytes:
    library = tmp_path / "libx.so.1"
    library.write_bytes(b"library")
    owners = {library: SystemPackage("libx1", "1:2.0-3", "amd64", "debian", None)}
    return bill_of_materials(packages, {"libx.so.1": library}, owners, Hashes(), time_s)


def components(bill: bytes) -> dict[str, dict[str, Any]]:
    return {one["name"]: one for one in json.loads(bill)["components"]}


def test_packages_and_libraries_are_named_as_indexes_and_distributions_do(tmp_path: Path) -> None:
    found = components(written(tmp_path, package("My_Package")))
    assert found["My_Package"]["purl"] == "pkg:pypi/my-package@1.2"
    assert found["libx.so.1"]["purl"] == "pkg:deb/debian/libx1@1%3A2.0-3?arch=amd64"
    assert len(found["libx.so.1"]["hashes"][0]["content"]) == 64
    assert found["python"]["licenses"] == [{"expression": "Python-2.0"}]


@pytest.mark.parametrize(
    ("licence", "expected"),
    [
        ("MIT", [{"license": {"name": "MIT"}}]),
        ("MIT AND BSD-3-Clause", [{"expression": "MIT AND BSD-3-Clause"}]),
        ("", None),
    ],
)
def test_a_licence_is_in_the_words_of_the_metadata(licence: str, expected: object, tmp_path: Path) -> None:
    assert components(written(tmp_path, package("a", licence)))["a"].get("licenses") == expected


def test_the_same_content_is_the_same_document(tmp_path: Path) -> None:
    first = written(tmp_path, package("a"))
    assert written(tmp_path, package("a")) == first
    assert json.loads(first)["metadata"]["timestamp"] == "1970-01-01T00:00:00Z"
    later, other = json.loads(written(tmp_path, package("a"), time_s=1)), json.loads(written(tmp_path, package("b")))
    assert len({json.loads(first)["serialNumber"], later["serialNumber"], other["serialNumber"]}) == 3


def test_another_file_of_a_package_is_another_digest(tmp_path: Path) -> None:
    changed = Package("a", "1.2", "MIT", FILES | {"a/b.py": text("y")}, False)
    digests = {components(written(tmp_path, one))["a"]["properties"][0]["value"] for one in (package("a"), changed)}
    assert len(digests) == 2


def test_files_of_no_package_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    assert system_packages([tmp_path / "mine"]) == {}
    assert system_packages([]) == {}


@pytest.mark.extra("deploy")
def test_the_document_is_valid_by_the_published_schema(tmp_path: Path) -> None:
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    validator = JsonStrictValidator(SchemaVersion.V1_6)
    licences = ("MIT", "MIT OR Apache-2.0", "", "BSD License, MIT License")
    bill = written(tmp_path, *(package(f"p{index}", licence) for index, licence in enumerate(licences))).decode()
    assert validator.validate_str(bill) is None
    assert validator.validate_str(bill.replace('"bomFormat"', '"form"')) is not None
