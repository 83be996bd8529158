"""A real browser for tests of web pages: Chromium without a window, driven by Selenium."""

import json
import shutil
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.remote.webelement import WebElement

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
FLAGS = (
    "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--hide-scrollbars",
    "--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
    "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
)  # fmt: skip
"""The last two give the page a camera that shows a test picture."""
SECONDS = 30
"""How long tests wait for the page."""


class Browser:
    """One browser process. Pages that it loads are checked: they ask no other server, and report no error."""

    def __init__(self, folder: Path) -> None:
        browser = next((path for path in map(shutil.which, NAMES) if path), None)
        driver = shutil.which("chromedriver")
        if browser is None or driver is None:
            pytest.skip("needs chromium and chromedriver; 'make browser' installs them on Debian")
        options = webdriver.ChromeOptions()
        options.binary_location = browser
        for flag in (*FLAGS, f"--user-data-dir={tempfile.mkdtemp(dir=folder)}"):
            options.add_argument(flag)
        self.downloads = folder / "downloads"
        options.add_experimental_option("prefs", {"download.default_directory": str(self.downloads)})
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.driver = webdriver.Chrome(options=options, service=Service(driver))
        self.driver.set_script_timeout(SECONDS)

    def open(self, url: str) -> None:
        """Load a page anew, in a window of ordinary size."""
        self.resize(1280)
        self.driver.get("about:blank")  # otherwise an address that differs in its fragment only is not loaded
        self.driver.get(url)

    def resize(self, width: int, **media: str) -> None:
        """Set the width of the window in pixels, and media features such as ``prefers_color_scheme``."""
        metrics = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        features = [{"name": name.replace("_", "-"), "value": value} for name, value in media.items()]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})

    def find(self, selector: str) -> WebElement:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[WebElement]:
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def texts(self, selector: str) -> list[str]:
        script = "return [...document.querySelectorAll(arguments[0])].map((element) => element.textContent)"
        return self.driver.execute_script(script, selector)

    def run(self, script: str, *arguments: Any) -> Any:
        """Run the body of an asynchronous function in the page."""
        code = """
            const done = arguments[arguments.length - 1];
            (async (...args) => { %s })(...[...arguments].slice(0, -1)).then(
              (value) => done({ value }), (error) => done({ error: String(error) }));
        """
        result = self.driver.execute_async_script(code % script, *arguments)
        assert "error" not in result, result
        return result.get("value")

    def wait(self, condition: Callable[[], Any], what: str) -> Any:
        """Wait until a condition holds, and return its value."""
        end = time.monotonic() + SECONDS
        while time.monotonic() < end:
            if value := condition():
                return value
            time.sleep(0.02)
        raise AssertionError(f"{what} did not happen; the page says: {self.find('body').text[:500]}")

    def choose(self, selector: str, paths: Sequence[Path]) -> None:
        """Choose files in a file input, which may be hidden behind a button."""
        self.find(selector).send_keys("\n".join(map(str, paths)))

    def downloaded(self, name: str) -> str:
        """Return the text of a file that the page has saved, and delete it."""
        path = self.downloads / name
        self.wait(path.exists, f"the download of {name}")
        text = path.read_bytes().decode()
        path.unlink()
        return text

    def requested(self) -> set[str]:
        """Return scheme and host of all requests over a network since the last call.

        A browser that starts slowly may still load its own first page, ``chrome-untrusted://new-tab-page``.
        """
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        own = ("about", "blob", "chrome", "chrome-untrusted", "data")  # of the browser itself, such as its new tab
        return {f"{parts.scheme}://{parts.netloc}" for parts in map(urlsplit, sent) if parts.scheme not in own}

    def complaints(self) -> list[str]:
        """Return the errors and warnings that the console has shown since the last call."""
        return [e["message"] for e in self.driver.get_log("browser") if e["level"] in ("SEVERE", "WARNING")]

    def close(self) -> None:
        self.driver.quit()
