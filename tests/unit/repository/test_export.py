"""Exporting versions: all of one or nothing, whoever exports beside."""

from __future__ import annotations

import ast
import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import onnx
import pytest
from alipes import repository as qv
from alipes.errors import ExportError, NoExporter, RepositoryUseError
from alipes.repository.export.compare import check_numbers
from alipes.repository.export.find import _HOMES, _kinds
from alipes.repository.export.request import ExportRequest
from alipes.repository.export.tensorrt import copy_newest, profile_sizes
from support.exported import scaled


class Recipe:
    """What `Failing` exports."""


class Failing(qv.Exporter):
    """Declares and writes something, and fails then."""

    platform: ClassVar[qv.Platform] = qv.Platform.ONNX

    @classmethod
    def handles(cls, source: Any) -> bool:
        return isinstance(source, Recipe)

    def export(self, source: Any, request: ExportRequest) -> None:
        request.config.add_input("half", (None, 1))
        (request.folder / "model.onnx").touch()
        raise OSError("disk full")


@pytest.fixture
def repo(tmp_path: Path) -> qv.ModelRepository:
    return qv.ModelRepository(tmp_path / "repo")


@pytest.fixture
def model(repo: qv.ModelRepository) -> qv.Model:
    return repo.add("m", qv.Platform.ONNX)


def files(repo: qv.ModelRepository) -> set[str]:
    root = Path(str(repo.fs))
    return {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}


def test_the_first_export_declares_what_the_file_says(repo: qv.ModelRepository, model: qv.Model) -> None:
    assert model.export_version(scaled(columns="n")) == "m/1/model.onnx"
    assert files(repo) == {"m/config.pbtxt", "m/1/model.onnx"}
    assert model.inputs["x"].shape == (None, None)
    assert {path.name for path in Path(str(repo.fs)).iterdir()} == {"m"}


def test_a_file_is_exported_unchanged(model: qv.Model, tmp_path: Path) -> None:
    file = tmp_path / "trained.onnx"
    file.write_bytes(scaled(datatype=onnx.TensorProto.DOUBLE).SerializeToString())
    for source in (file, str(file)):
        path = model.export_version(source, input_shapes={"x": (-1, 4)}, output_names=["y"])
        assert Path(str(model.fs), path).read_bytes() == file.read_bytes()
    assert model.inputs["x"].datatype == "FP64"


def test_weights_beside_a_file_come_along(model: qv.Model, tmp_path: Path) -> None:
    onnx.save(
        scaled(), str(tmp_path / "big.onnx"), save_as_external_data=True, location="weights.bin", size_threshold=0
    )
    model.export_version(tmp_path / "big.onnx")
    assert (Path(str(model.fs)) / "m" / "1" / "weights.bin").is_file()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"input_shapes": {"x": (None, 5)}}, r"was given as \[None, 5\], the file has shape \[None, 4\]"),
        ({"input_shapes": {"z": (None, 4)}}, "no such input, only x"),
        ({"input_shapes": (None, 4)}, "expected shapes by name"),
        ({"output_names": ["z"]}, "output names 'z', but the file's are 'y'"),
        ({"output_names": ["y", "y"]}, "not all different"),
        ({"version": 0}, "whole number from 1"),
        ({"version": True}, "whole number from 1"),
        ({"opset_version": 17}, "unknown option 'opset_version'"),
    ],
)
def test_what_does_not_fit_the_file_leaves_nothing(
    repo: qv.ModelRepository, model: qv.Model, options: dict[str, Any], message: str
) -> None:
    before = str(model.config)
    with pytest.raises(ExportError, match=message):
        model.export_version(scaled(), **options)
    assert files(repo) == set()
    assert model.versions == []
    assert str(model.config) == before


@pytest.mark.parametrize("earlier", [0, 1])
def test_an_export_that_fails_changes_neither_disk_nor_memory(
    repo: qv.ModelRepository, model: qv.Model, earlier: int
) -> None:
    for _ in range(earlier):
        model.export_version(scaled())
    model.config.add_instance_group("cpu", count=2)
    before, there = str(model.config), files(repo)
    with pytest.raises(ExportError, match="model 'm' as ONNX failed: OSError: disk full") as caught:
        model.export_version(Recipe())
    assert isinstance(caught.value.__cause__, OSError)
    assert str(model.config) == before
    assert files(repo) == there
    assert model.versions == list(range(1, earlier + 1))
    # An empty folder would keep a server that follows the repository from being ready.
    assert [path.name for path in Path(str(repo.fs)).iterdir()] == ["m"] * earlier


class Interrupted:
    """What `Interrupting` exports."""


class Interrupting(qv.Exporter):
    """Is interrupted by a person while it writes."""

    platform: ClassVar[qv.Platform] = qv.Platform.ONNX

    @classmethod
    def handles(cls, source: Any) -> bool:
        return isinstance(source, Interrupted)

    def export(self, source: Any, request: ExportRequest) -> None:
        (request.folder / "model.onnx").touch()
        raise KeyboardInterrupt


@pytest.mark.parametrize("made", [False, True])
def test_an_interrupted_export_leaves_nothing(repo: qv.ModelRepository, model: qv.Model, made: bool) -> None:
    root = Path(str(repo.fs))
    if made:
        (root / "m").mkdir()
    with pytest.raises(KeyboardInterrupt):
        model.export_version(Interrupted())
    assert list(root.iterdir()) == []
    assert model.export_version(scaled()) == "m/1/model.onnx"


FULL_DISK = """
import resource, signal, sys
from alipes import repository as qv

model = qv.ModelRepository(sys.argv[1]).add("m", "onnx")
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
try:
    model.export_version(sys.argv[2])
except Exception as error:
    print(type(error).__name__, error)
"""


def test_a_full_disk_leaves_nothing_and_is_named(repo: qv.ModelRepository, tmp_path: Path) -> None:
    (tmp_path / "model.onnx").write_bytes(scaled().SerializeToString())
    command = [sys.executable, "-c", FULL_DISK, str(repo.fs), str(tmp_path / "model.onnx")]
    run = subprocess.run(command, capture_output=True, text=True, check=True)
    assert run.stdout.startswith("ExportError ")
    assert "File too large" in run.stdout
    assert list(Path(str(repo.fs)).iterdir()) == []


def test_a_repository_that_is_gone_is_named(repo: qv.ModelRepository, model: qv.Model) -> None:
    repo.delete()
    message = r"export of model 'm' to .*: No such file or directory; nothing was written"
    with pytest.raises(ExportError, match=message) as caught:
        model.export_version(scaled())
    assert isinstance(caught.value, OSError)


def test_later_versions_have_the_same_inputs_and_outputs(model: qv.Model) -> None:
    model.export_version(scaled())
    for other, message in (
        (scaled(columns=5), r"'x' of model 'm' was declared with shape \[None, 4\], the export gives \[None, 5\]"),
        (scaled("z"), "has the inputs 'x', the export gives 'z'"),
        (scaled(result="z"), "has the outputs 'y', the export gives 'z'"),
        (scaled(datatype=onnx.TensorProto.DOUBLE), "was declared as FP32, the export gives FP64"),
    ):
        with pytest.raises(ExportError, match=message):
            model.export_version(other)
    assert model.export_version(scaled(factor=7.0)) == "m/2/model.onnx"


def test_a_version_is_replaced_as_a_whole(model: qv.Model, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    onnx.save(scaled(), str(tmp_path / "a.onnx"), save_as_external_data=True, location="w.bin", size_threshold=0)
    model.export_version(tmp_path / "a.onnx")
    assert model.export_version(scaled(factor=9.0), version=1) == "m/1/model.onnx"
    assert model.versions == [1]
    assert model.fs.list("m/1") == ["model.onnx"]
    assert "version 1 of model 'm' is replaced" in caplog.text
    assert model.export_version(scaled(), version=5) == "m/5/model.onnx"


def test_a_batching_model_is_exported_with_its_batch_axis(model: qv.Model) -> None:
    model.export_version(scaled(), max_batch_size=8)
    assert list(model.config.input[0].dims) == [4]
    assert (model.config.max_batch_size, model.config.HasField("dynamic_batching")) == (8, True)
    model.export_version(scaled(), input_shapes={"x": (None, 4)})
    with pytest.raises(ExportError, match="was given as"):
        model.export_version(scaled(), input_shapes={"x": (4,)})


def test_an_export_that_fails_does_not_begin_to_batch(model: qv.Model) -> None:
    with pytest.raises(ExportError, match="disk full"):
        model.export_version(Recipe(), max_batch_size=8)
    assert model.config.max_batch_size == 0
    model.export_version(scaled())
    assert (model.config.max_batch_size, list(model.config.input[0].dims)) == (0, [-1, 4])


def test_a_refused_export_names_the_right_platform(repo: qv.ModelRepository, model: qv.Model) -> None:
    with pytest.raises(TypeError, match=r"cannot export a builtins\.dict as ONNX for model 'm'$"):
        model.export_version({})
    with pytest.raises(NoExporter, match="it can be exported as ONNX"):
        repo.add("t", qv.Platform.TORCHSCRIPT).export_version(scaled())
    with pytest.raises(NoExporter, match=r"cannot export nothing as ONNX .*; it can be exported as ENSEMBLE"):
        model.export_version(None)


def test_a_file_that_is_no_model_is_refused(model: qv.Model, tmp_path: Path) -> None:
    (tmp_path / "not.onnx").write_text("no")
    with pytest.raises(ExportError, match="ONNX Runtime cannot load the file"):
        model.export_version(tmp_path / "not.onnx")
    with pytest.raises(ExportError, match="No such file"):
        model.export_version(tmp_path / "missing.onnx")


def export_many(root: str, count: int, start: Any, found: Any) -> None:
    model = qv.ModelRepository(root).add("m", qv.Platform.ONNX)
    start.wait()  # what has been exported cannot be added any more
    found.put([model.export_version(scaled()) for _ in range(count)])


def test_exporters_beside_each_other_get_versions_of_their_own(repo: qv.ModelRepository) -> None:
    workers, each = 4, 5
    context = multiprocessing.get_context("fork")
    start, found = context.Barrier(workers), context.Queue()
    processes = [context.Process(target=export_many, args=(str(repo.fs), each, start, found)) for _ in range(workers)]
    for process in processes:
        process.start()
    paths = [path for _ in processes for path in found.get(timeout=60)]
    for process in processes:
        process.join(60)
    assert sorted(paths) == sorted(f"m/{version}/model.onnx" for version in range(1, workers * each + 1))
    assert files(repo) == {*paths, "m/config.pbtxt"}
    assert list(qv.ModelRepository(str(repo.fs)).models) == ["m"]


def test_threads_beside_each_other_do_too(model: qv.Model) -> None:
    threads = [threading.Thread(target=model.export_version, args=(scaled(),)) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert model.versions == list(range(1, 9))


def test_of_two_first_exports_that_differ_one_is_refused(repo: qv.ModelRepository, model: qv.Model) -> None:
    other = qv.ModelRepository(str(repo.fs)).add("m", qv.Platform.ONNX)
    other.export_version(scaled(columns=5))
    with pytest.raises(RepositoryUseError, match="changed by another program"):
        model.export_version(scaled(columns=4))
    assert model.versions == [1]
    assert model.inputs == {}


@pytest.fixture
def killed(repo: qv.ModelRepository) -> Iterator[Path]:
    """What an exporter leaves that was killed, beside one that is at work."""
    root = Path(str(repo.fs))
    left = root / ".exporting-killed"
    (left / "version").mkdir(parents=True)
    with repo.fs.stage() as busy:
        yield left
        assert busy.is_dir()


def test_only_abandoned_staging_folders_are_swept(repo: qv.ModelRepository, model: qv.Model, killed: Path) -> None:
    model.export_version(scaled())
    assert not killed.exists()
    assert list(qv.ModelRepository(str(repo.fs)).models) == ["m"]


ONE = np.ones(3, np.float32)


def test_a_configuration_is_replaced_atomically(model: qv.Model) -> None:
    model.export_version(scaled())
    place = Path(str(model.fs), "m", "config.pbtxt")
    seen, written, done = set[str](), {place.read_text()}, threading.Event()

    def read() -> None:
        while not done.is_set():
            seen.add(place.read_text())

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for count in range(1, 101):
            model.config.metric_tags.clear()
            model.config.metric_tags.update({f"tag{number}": "x" * 500 for number in range(count)})
            model.config.write()
            written.add(place.read_text())
    finally:
        done.set()
        reader.join()
    assert len(written) == 101
    assert seen <= written
    assert [path.name for path in place.parent.iterdir() if path.is_file()] == ["config.pbtxt"]


@pytest.mark.parametrize(
    ("found", "message"),
    [
        (ONE + 1e-2, r"differs at \[0\]: 1 in the source, 1\.00999999 in the exported file"),
        (ONE * np.nan, "differs at"),
        (np.ones(4, np.float32), r"has shape \[4\] in the exported file and \[3\] in the source"),
    ],
)
def test_numbers_that_differ_are_reported_with_their_index(found: np.ndarray, message: str) -> None:
    with pytest.raises(ExportError, match=message):
        check_numbers("m", ["y"], [ONE], [found])


def test_numbers_within_the_tolerance_are_the_same() -> None:
    nan = np.array([np.nan, np.inf, -np.inf], np.float32)
    large = np.array([1e6, 1.0], np.float32)
    words = np.array(["a", "b"], object)
    check_numbers("m", list("abcde"), [ONE, nan, large, words, ONE[:0]], [ONE + 1e-6, nan, large + 10, words, ONE[:0]])
    check_numbers("m", ["y"], [ONE], [ONE + 0.1], tolerance=0.2)
    with pytest.raises(ExportError, match="differs at"):
        check_numbers("m", ["y"], [np.arange(3)], [np.arange(3) + 1])
    with pytest.raises(ExportError, match="differs between"):
        check_numbers("m", ["y"], [words], [words[::-1]])


def test_a_plan_is_refused_where_it_cannot_be_built(repo: qv.ModelRepository) -> None:
    model = repo.add("plan", qv.Platform.TENSORRT)
    with pytest.raises(ExportError, match=r"(not installed|this machine has none); export it as Platform\.ONNX"):
        model.export_version(scaled())
    with pytest.raises(ExportError, match="would have to unpickle"):
        model.export_version(scaled(), endpoint="http://localhost:5000/onnx")
    assert (model.versions, files(repo)) == ([], set())


def test_a_plan_is_built_of_the_newest_version_of_a_model(model: qv.Model, tmp_path: Path) -> None:
    with pytest.raises(ExportError, match="has no version yet"):
        copy_newest(model, tmp_path / "model.onnx")
    for factor in (2.0, 3.0):
        model.export_version(scaled(factor=factor))
    copy_newest(model, tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").read_bytes() == scaled(factor=3.0).SerializeToString()


def test_one_profile_of_a_plan_covers_all_inputs_and_batches() -> None:
    assert profile_sizes((None, 2, 8), 16) == ([1, 2, 8], [8, 2, 8], [16, 2, 8])
    assert profile_sizes((None, 2), 1) == ([1, 2], [1, 2], [1, 2])
    assert profile_sizes((3, 2), 16) == ([3, 2], [3, 2], [3, 2])
    with pytest.raises(ExportError, match=r"\[None, None\]"):
        profile_sizes((None, None), 16)


def test_every_exporter_is_found_by_the_platform_that_it_writes() -> None:
    homes = {(kind.platform, kind.__module__.rpartition(".")[2]) for kind in _kinds(*qv.Platform)}
    ours = {(platform, home) for platform, names in _HOMES.items() for home in names}
    assert ours <= homes
    assert {platform for platform, home in homes - ours if home in {name for _, name in ours}} == set()


def test_an_export_imports_the_exporters_of_its_platform_alone(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "from alipes import repository as qv\n"
        "model = qv.ModelRepository(sys.argv[1]).add('steps', qv.Platform.ENSEMBLE)\n"
        "try:\n    model.export_version(None)\nexcept Exception:\n    pass\n"
        "print([name.rpartition('.')[2] for name in sys.modules if name.startswith('alipes.repository.export.')])"
    )
    run = subprocess.run([sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True)
    imported = set(ast.literal_eval(run.stdout))
    assert "ensemble" in imported
    assert imported.isdisjoint({"torch_onnx", "keras", "sklearn", "python_app"})
