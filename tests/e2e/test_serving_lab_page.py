"""The lab's page: a person chooses a JPEG in a browser and reads what food is on it, whoever runs the model."""

from __future__ import annotations

import base64
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from support.browser import WAIT_S, browser
from support.example import EXAMPLES, load_example
from support.server import ServerProcess

pytestmark = [pytest.mark.extra("examples"), pytest.mark.timeout(300)]

EXAMPLE = EXAMPLES / "serving-lab"
make_weights, served = load_example("serving-lab", "make_weights", "served")


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = Path(shutil.copytree(EXAMPLE, tmp_path_factory.mktemp("lab"), dirs_exist_ok=True))
    make_weights.write(folder)
    return folder


@contextmanager
def page(lab: Path, **variables: str) -> Iterator[str]:
    """The page, asking who the variables say; its address."""
    command = [sys.executable, "-m", "flask", "--app", "page", "run", "--port", "0"]
    others = {name: value for name, value in os.environ.items() if "SERVER_URL" not in name and "FOOD11" not in name}
    log = lab / "page.log"
    with served.Served(tuple(command), lab, log, others | variables) as running:
        yield f"http://127.0.0.1:{running.port}/"


@pytest.fixture
def asked(lab: Path, serve: Callable[..., ServerProcess], request: pytest.FixtureRequest) -> Iterator[str]:
    """The page in front of the server that the test names."""
    if request.param == "fastapi":
        command = (sys.executable, "-m", "uvicorn", "--port", "0", "fastapi_onnx:app")
        with (
            served.Served(command, lab, lab / "fastapi.log") as server,
            page(lab, FASTAPI_SERVER_URL=f"http://127.0.0.1:{server.port}") as address,
        ):
            yield address
    else:
        model = "food_classifier_onnx" if request.param == "models-onnx" else "food_classifier"
        server = serve(lab / request.param)
        with page(lab, TRITON_SERVER_URL=server.http, FOOD11_MODEL_NAME=model) as address:
            yield address


@pytest.mark.slow("a server, a page and a browser start")
@pytest.mark.parametrize("asked", ["fastapi", "models", "models-native", "models-onnx"], indirect=True)
def test_a_jpeg_that_a_person_chooses_gets_its_label(asked: str, lab: Path) -> None:
    picture = lab / "test_image.jpeg"
    with browser() as window:
        from selenium.webdriver.common.by import By
        from selenium.webdriver.support.ui import WebDriverWait

        window.get(asked)
        window.find_element(By.ID, "file").send_keys(str(picture))
        window.find_element(By.ID, "submit").click()
        result = WebDriverWait(window, WAIT_S).until(lambda _: window.find_element(By.ID, "result"))
        label, _, share = result.text.partition(", ")
        assert label == "Soup"
        assert 70 < float(share.removesuffix(" %")) <= 100
        # The page shows the picture that was sent, and the browser can read it.
        shown = window.find_element(By.ID, "picture")
        assert shown.get_attribute("src") == f"data:image/jpeg;base64,{base64.b64encode(picture.read_bytes()).decode()}"
        assert shown.get_property("naturalWidth") == make_weights.SIZE[0]
        window.save_screenshot(str(lab / "page.png"))


@pytest.mark.slow("a server, a page and a browser start")
@pytest.mark.parametrize("asked", ["models-native"], indirect=True)
def test_a_file_that_is_no_picture_gets_a_sentence(asked: str, lab: Path) -> None:
    text = lab / "food.txt"
    text.write_text("soup")
    with browser() as window:
        from selenium.webdriver.common.by import By
        from selenium.webdriver.support.ui import WebDriverWait

        window.get(asked)
        window.find_element(By.ID, "file").send_keys(str(text))
        window.find_element(By.ID, "submit").click()
        error = WebDriverWait(window, WAIT_S).until(lambda _: window.find_element(By.ID, "error"))
        assert error.text.startswith("Nobody can tell:")
        assert "no picture" in error.text
        assert not window.find_elements(By.ID, "result")


@pytest.mark.slow("a page starts")
def test_a_page_without_a_server_says_so(lab: Path) -> None:
    import requests

    with page(lab, TRITON_SERVER_URL="127.0.0.1:9") as address:
        assert requests.post(address, timeout=WAIT_S).status_code == 400
        with (lab / "test_image.jpeg").open("rb") as file:
            answer = requests.post(address, files={"file": file}, timeout=WAIT_S)
        assert answer.status_code == 502
        assert "Nobody can tell:" in answer.text


def test_a_page_without_variables_does_not_start(lab: Path) -> None:
    with pytest.raises(subprocess.CalledProcessError) as failed:
        others = {name: value for name, value in os.environ.items() if "SERVER_URL" not in name}
        subprocess.run(
            [sys.executable, "-c", "import page"], cwd=lab, env=others, check=True, capture_output=True, text=True
        )
    assert "TRITON_SERVER_URL" in failed.value.stderr
