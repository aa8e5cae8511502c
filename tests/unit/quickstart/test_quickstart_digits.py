from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from alipes.errors import RepositoryError
from alipes.quickstart import digits


def test_the_shipped_model_reads_the_shipped_scans() -> None:
    data = digits.held_out()
    session = onnxruntime.InferenceSession(digits.REPOSITORY / digits.MODEL / "1" / "model.onnx")
    (probabilities,) = session.run([digits.OUTPUT], {digits.INPUT: data.scans.astype(np.float32)})
    assert np.allclose(probabilities.sum(axis=1), 1, atol=1e-5)
    assert (probabilities.argmax(axis=1) == data.labels).mean() > 0.96


def test_scans_are_pictures_of_every_digit() -> None:
    data = digits.held_out()
    assert data.scans.shape == (len(data.labels), 8, 8)
    assert len(data.labels) >= 300
    assert (data.scans.min(), data.scans.max()) == (0, digits.INK)
    assert set(data.labels.tolist()) == set(range(10))


def test_a_copy_holds_what_the_tour_uses(tmp_path: Path) -> None:
    folder = tmp_path / "with spaces" / "demo"
    digits.copy_to(folder)
    copied = {path.relative_to(folder) for path in folder.rglob("*")}
    assert copied == {path.relative_to(digits.FOLDER) for path in digits.FOLDER.rglob("*")}
    assert digits.REQUEST.relative_to(digits.FOLDER) in copied


@pytest.mark.parametrize("kind", ["folder", "file"])
def test_a_copy_never_mixes_with_what_is_there(tmp_path: Path, kind: str) -> None:
    target = tmp_path / "demo"
    mine = target / "mine" if kind == "folder" else target
    mine.parent.mkdir(exist_ok=True)
    mine.write_text("mine")
    with pytest.raises(RepositoryError, match="exists and is not an empty folder"):
        digits.copy_to(target)
    assert mine.read_text() == "mine"
