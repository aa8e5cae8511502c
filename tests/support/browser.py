"""Chromium without a window, which a test drives as a person would."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Final

import pytest

if TYPE_CHECKING:
    from selenium.webdriver import Chrome

# No sandbox, since root may not make one; no shared memory file system, which containers keep small.
_OPTIONS = ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu", "--window-size=900,900")
WAIT_S = 60.0


_BROKEN_WORDS: Final = """
const cells = [...document.querySelectorAll('th, td')].filter(one => !/\\s/.test(one.textContent));
return cells.filter(one => {
  const range = document.createRange();
  range.selectNodeContents(one);
  return new Set([...range.getClientRects()].map(rect => Math.round(rect.top))).size > 1;
}).map(one => one.textContent);
"""
_HEIGHTS: Final = "return [...document.querySelectorAll('svg text')].map(one => one.getBoundingClientRect().height)"

NARROW: Final = 400
"""Pixels of a telephone's window."""


def overflow(driver: Chrome, url: str, width: int = NARROW) -> int:
    """By how many pixels a page is wider than a window of this width."""
    window = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": True}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", window)
    driver.get(url)
    return int(
        driver.execute_script("const page = document.documentElement; return page.scrollWidth - page.clientWidth")
    )


def broken_words(driver: Chrome) -> list[str]:
    """The words in tables of the page that stand on several lines, as numbers do in columns that are too narrow."""
    return [f"{word}" for word in driver.execute_script(_BROKEN_WORDS)]


def letter_heights(driver: Chrome) -> list[float]:
    """Heights of the texts in the page's pictures, in pixels."""
    return [float(height) for height in driver.execute_script(_HEIGHTS)]


@contextmanager
def browser() -> Iterator[Chrome]:
    """A browser; the test is skipped where Debian's chromium and chromium-driver, or selenium, are not installed."""
    webdriver = pytest.importorskip("selenium.webdriver")
    programs = [shutil.which(program) for program in ("chromium", "chromedriver")]
    if None in programs:
        pytest.skip("chromium and chromium-driver are not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = programs[0]
    for option in _OPTIONS:
        options.add_argument(option)
    # Chromium leaves folders behind where temporary files go.
    with TemporaryDirectory(prefix="alipes-") as folder:
        service = webdriver.ChromeService(programs[1], env=os.environ | {"TMPDIR": folder})
        driver = webdriver.Chrome(options, service)
        try:
            driver.set_page_load_timeout(WAIT_S)
            yield driver
        finally:
            driver.quit()
