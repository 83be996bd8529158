"""The static page of ``examples/browser`` gives the answers of onnxruntime in Python, in a real browser."""

import base64
import functools
import http.server
import json
import os
import shutil
import subprocess
import threading
from pathlib import Path

import numpy as np
import onnxruntime
import pytest
from filelock import FileLock
from PIL import Image
from selenium import webdriver
from selenium.webdriver.support.wait import WebDriverWait

from tigranet import TIGraNet
from tigranet.data.letterbox import letterbox
from tigranet.serving import Predictor
from tigranet.workflows.export import export

EXAMPLE = Path(__file__).parent.parent / "examples" / "browser"
NODE, NPM = shutil.which("node"), shutil.which("npm")
CHROMIUM, DRIVER = Path("/usr/bin/chromium"), Path("/usr/bin/chromedriver")
MODEL = "oriented-mnist-012"
SIZE = 28
DROP = """
const bytes = Uint8Array.from(atob(arguments[0]), (character) => character.charCodeAt(0));
const dataTransfer = new DataTransfer();
dataTransfer.items.add(new File([bytes], "dropped.png"));
document.getElementById("drop").dispatchEvent(new DragEvent("drop", { dataTransfer, bubbles: true, cancelable: true }));
"""
"""Drops a file, as the mouse does."""
TURN = """
document.getElementById("angle").value = arguments[0];
document.getElementById("angle").dispatchEvent(new Event("input"));
"""
"""Moves the slider to an angle."""
ANSWER = """
const result = document.getElementById("result");
if (result.hidden || result.ariaBusy !== "false") return null;
const rows = [...document.querySelectorAll("#probabilities tr")];
return {
  label: document.getElementById("answer").textContent,
  degrees: Number(document.getElementById("degrees").value),
  probabilities: rows.map((row) => row.querySelector("meter").value),
};
"""
"""Returns the answer that the page shows, or null while it is computed."""

pytestmark = pytest.mark.skipif(not NODE or not NPM, reason="Node.js or npm is not installed")


@pytest.fixture(scope="module")
def installed():
    """The packages of the example. They stay in its folder for the next run."""
    packages, locks = EXAMPLE / "node_modules", Path(__file__).parent.parent / ".pytest_cache"
    locks.mkdir(exist_ok=True)
    with FileLock(locks / "npm.lock"):
        lock, copy = EXAMPLE / "package-lock.json", packages / ".of-this-lock.json"
        if copy.is_file() and copy.read_bytes() == lock.read_bytes():
            return
        command = [NPM, "ci", "--no-audit", "--no-fund", "--fetch-retries=0"]
        result = subprocess.run(command, cwd=EXAMPLE, capture_output=True, text=True, check=False)
        if result.returncode:
            pytest.skip(f"npm cannot install the packages: {result.stderr.strip().splitlines()[-1:]}")
        shutil.copyfile(lock, copy)


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("model") / "model.onnx"
    export(MODEL, path, preprocess=True)
    return path


def build(*arguments):
    return subprocess.run([NODE, "build.js", *arguments], cwd=EXAMPLE, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def address(installed, model, tmp_path_factory):
    """The address of the built page, on this machine."""
    folder = tmp_path_factory.mktemp("built") / "page"
    result = build(model, folder)
    assert result.returncode == 0, result.stderr

    class QuietHandler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *arguments):
            pass

    handler = functools.partial(QuietHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


@pytest.fixture(scope="module")
def browser(address, tmp_path_factory):
    """The page, ready for images."""
    if not CHROMIUM.exists() or not DRIVER.exists():
        pytest.skip(f"there is no {CHROMIUM} or no {DRIVER}")
    options = webdriver.ChromeOptions()
    options.binary_location = str(CHROMIUM)
    for argument in ("--headless=new", "--disable-dev-shm-usage", f"--user-data-dir={tmp_path_factory.mktemp('user')}"):
        options.add_argument(argument)
    if os.geteuid() == 0:  # Chromium has no sandbox for the user root.
        options.add_argument("--no-sandbox")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options, webdriver.ChromeService(str(DRIVER)))
    try:
        driver.get(address)
        wait(driver).until(lambda driver: driver.find_element("id", "file").is_enabled())
        yield driver
    finally:
        driver.quit()


def wait(driver):
    return WebDriverWait(driver, 60, poll_frequency=0.02)


def answer(driver):
    return wait(driver).until(lambda driver: driver.execute_script(ANSWER))


def answer_for_file(driver, path):
    """Choose a file. The page turns it back to 0 degrees, so another angle tells the old answer from the new one."""
    if driver.find_element("id", "result").is_displayed():
        driver.execute_script(TURN, 1)
        answer(driver)
    driver.find_element("id", "file").send_keys(str(path))
    return wait(driver).until(
        lambda driver: (shown := driver.execute_script(ANSWER)) and shown["degrees"] == 0 and shown
    )


@pytest.fixture(scope="module")
def session(model):
    return onnxruntime.InferenceSession(model, providers=["CPUExecutionProvider"])


def probabilities(session, pixels):
    """The answer of onnxruntime for an image (height, width, 3)."""
    (result,) = session.run(None, {"pixels": np.ascontiguousarray(pixels[None])})
    return result[0]


def saved(path, pixels):
    Image.fromarray(pixels).save(path)
    return path


def test_digits_and_their_quarter_turns_have_the_answers_of_onnxruntime(browser, session, mnist_012, tmp_path):
    test = mnist_012.test
    for label in range(3):
        digit = (test.images[test.labels == label][0, 0] * 255).byte().numpy()
        shown = answer_for_file(browser, saved(tmp_path / f"{label}.png", digit))
        upright = shown["probabilities"]
        for turns in range(4):
            expected = probabilities(session, np.rot90(np.stack([digit] * 3, -1), turns))
            assert shown["degrees"] == 90 * turns
            assert shown["label"] == str(expected.argmax()) == str(label)
            assert shown["probabilities"] == pytest.approx(expected, abs=1e-4)
            assert shown["probabilities"] == pytest.approx(upright, abs=1e-5)
            browser.find_element("id", "quarter").click()
            shown = answer(browser)
        assert shown["degrees"] == 0


def test_the_answer_stays_at_other_angles(browser, mnist_012, tmp_path):
    digit = (mnist_012.test.images[2, 0] * 255).byte().numpy()
    upright = answer_for_file(browser, saved(tmp_path / "digit.png", digit))
    for degrees in range(15, 360, 45):
        browser.execute_script(TURN, degrees)
        turned = answer(browser)
        assert (turned["degrees"], turned["label"]) == (degrees, upright["label"])
        assert turned["probabilities"] == pytest.approx(upright["probabilities"], abs=0.1)
    change = browser.find_element("id", "change").text
    assert float(change.split()[-1]) == pytest.approx(
        np.abs(np.subtract(turned["probabilities"], upright["probabilities"])).max(), abs=1e-4
    )


@pytest.mark.parametrize("shape", [(61, 37, 3), (29, 100, 3), (13, 11, 3), (90, 90, 4), (1, 40, 3)])
def test_images_of_other_sizes_are_scaled_as_by_tigranet(shape, browser, session, tmp_path):
    rng = np.random.default_rng(0)
    coarse = rng.integers(0, 256, (6, 6, 3), np.uint8)
    smooth = Image.fromarray(coarse).resize(shape[1::-1], Image.Resampling.BICUBIC)
    if shape[2] == 4:
        smooth.putalpha(Image.fromarray(rng.integers(0, 2, shape[:2], np.uint8) * 255))
    path = saved(tmp_path / "image.png", np.asarray(smooth))
    opaque = Image.alpha_composite(Image.new("RGBA", smooth.size, "black"), smooth.convert("RGBA")).convert("RGB")
    square = letterbox(np.asarray(opaque, np.float32), SIZE)
    expected = probabilities(session, np.floor(square + 0.5).astype(np.uint8))
    shown = answer_for_file(browser, path)
    assert shown["probabilities"] == pytest.approx(expected, abs=1e-4)
    predicted = Predictor(MODEL, device="cpu")({"image": path.read_bytes()})["probabilities"]
    assert shown["probabilities"] == pytest.approx(predicted, abs=0.01)


def test_a_file_can_be_dropped_and_one_that_is_no_image_is_named(browser, session, tmp_path):
    white = np.full((SIZE, SIZE, 3), 255, np.uint8)
    answer_for_file(browser, saved(tmp_path / "white.png", white))
    browser.execute_script(TURN, 1)
    answer(browser)
    white[5:23, 13:16] = 0
    content = base64.b64encode(saved(tmp_path / "line.png", white).read_bytes()).decode()
    browser.execute_script(DROP, content)
    shown = wait(browser).until(lambda driver: (new := driver.execute_script(ANSWER)) and new["degrees"] == 0 and new)
    assert shown["probabilities"] == pytest.approx(probabilities(session, white), abs=1e-4)
    (tmp_path / "notes.png").write_text("no image")
    browser.find_element("id", "file").send_keys(str(tmp_path / "notes.png"))
    wait(browser).until(lambda driver: "'notes.png'" in driver.find_element("id", "status").text)
    assert answer(browser) == shown


def test_the_page_loads_nothing_from_elsewhere_and_runs_no_inline_scripts(browser, address):
    loaded = browser.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert {"model.onnx", "ort-wasm-simd-threaded.wasm"} <= {name.removeprefix(address) for name in loaded}
    assert all(name.startswith(address) for name in loaded)
    assert [entry["message"] for entry in browser.get_log("browser")] == []
    blocked = browser.execute_async_script(
        """
        const [done] = arguments;
        const script = document.createElement("script");
        script.append("document.title = 'changed'");
        document.head.append(script);
        document.addEventListener("securitypolicyviolation", (event) => {
          if (event.blockedURI.startsWith("http:")) done([document.title, event.effectiveDirective]);
        });
        fetch("http://127.0.0.1:9/").catch(() => {});
        """
    )
    assert blocked == ["Classify an image in the browser", "connect-src"]
    browser.get_log("browser")  # the two violations


def node(code, *arguments):
    """Run a JavaScript module that imports from the page, and return what it prints as JSON."""
    command = [NODE, "--input-type=module", "--eval", code, *map(str, arguments)]
    result = subprocess.run(command, cwd=EXAMPLE, capture_output=True, text=True, check=True)
    return json.loads(result.stdout)


READ_METADATA = """
import { readFileSync } from "node:fs";
import { readMetadata } from "./page/onnx_metadata.js";
const results = process.argv.slice(1).map((path) => {
  try { return Object.fromEntries(readMetadata(readFileSync(path))); } catch (error) { return error.message; }
});
console.log(JSON.stringify(results));
"""


def test_the_metadata_are_those_that_onnxruntime_reads_in_python(tmp_path):
    names = ["ß", '"quoted"', "a" * 300, "", "__proto__"]
    TIGraNet("SC[2,2]-S[2]", 5, class_names=names, image_size=12).save_pretrained(tmp_path / "model")
    written = export(tmp_path / "model", tmp_path / "model.onnx", preprocess=True)
    content = written.path.read_bytes()
    damaged = [content[:-1], b"GIF89a" + content, b"\xff" * 20]
    for number, part in enumerate(damaged):
        (tmp_path / f"{number}.onnx").write_bytes(part)
    read, *errors = node(READ_METADATA, written.path, *(tmp_path / f"{number}.onnx" for number in range(len(damaged))))
    assert read == onnxruntime.InferenceSession(written.path).get_modelmeta().custom_metadata_map == written.metadata
    assert json.loads(read["class_names"]) == names
    assert errors == ["this is not an ONNX file"] * len(damaged)


def test_the_build_refuses_what_the_page_cannot_use(installed, model, tmp_path):
    export(MODEL, tmp_path / "logits.onnx")
    TIGraNet("SC[2,2]-S[2]", 2).save_pretrained(tmp_path / "sizeless")
    export(tmp_path / "sizeless", tmp_path / "sizeless.onnx", preprocess=True)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "letter.txt").write_text("mine")
    for arguments, words in [
        ((), "npm run build -- model.onnx"),
        ((tmp_path / "none.onnx",), "none.onnx"),
        ((tmp_path / "logits.onnx",), "--preprocess"),
        ((tmp_path / "sizeless.onnx",), "image size"),
        ((tmp_path / "full" / "letter.txt",), "not an ONNX file"),
        ((model, tmp_path / "full"), "letter.txt"),
        ((model, tmp_path / "full" / "letter.txt"), "letter.txt"),
        ((tmp_path / "full",), "full"),
    ]:
        result = build(*arguments)
        assert result.returncode == 1
        assert words in result.stderr
        assert result.stderr.count("\n") == 1
    assert (tmp_path / "full" / "letter.txt").read_text() == "mine"


def test_all_packages_have_exact_versions_and_checksums():
    package, lock = (json.loads((EXAMPLE / name).read_text()) for name in ("package.json", "package-lock.json"))
    assert lock["packages"][""]["dependencies"] == package["dependencies"]
    for name, version in package["dependencies"].items():
        assert lock["packages"][f"node_modules/{name}"]["version"] == version
    assert all("integrity" in entry and "resolved" not in entry for name, entry in lock["packages"].items() if name)
