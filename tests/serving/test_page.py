"""The web page in a real browser, with shipped networks and digits."""

import base64
import io
import threading
import time
from contextlib import contextmanager

import numpy as np
import pytest
import torch
import uvicorn
from PIL import Image
from selenium.webdriver import ActionChains
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select

from browser import Browser
from serving.conftest import spots
from tigranet import TIGraNet
from tigranet.data.augment.rigid import rotate
from tigranet.evaluation.row_writer import open_row_writer
from tigranet.serving.application import create_application
from tigranet.serving.http_protocol import DeadlineProtocol
from tigranet.serving.predictor import Predictor
from tigranet.serving.request_guard import CONTENT_SECURITY_POLICY
from tigranet.serving.server import GracefulServer, bind, url_of
from tigranet.workflows.explain import explain

TOKEN = "a-token-of-this-test"
ORIENTED, PAPER, TINY, COLOR, SPOTS = "oriented-mnist-012", "paper-mnist-012", "tiny", "color", "spots"
LONG_NAME = "a_class_name_" * 8
REFUSED = "Failed to load resource"
"""How the console begins what it says about a response with an error."""


@contextmanager
def serving(predictors, **options):
    """Serve models on a free port of this machine, and yield the address of the page."""
    with bind("127.0.0.1", 0) as reserved:
        application = create_application(predictors, **options)
        config = uvicorn.Config(
            application, http=DeadlineProtocol, ws="none", lifespan="on", log_config=None, access_log=False
        )
        server = GracefulServer(config)
        thread = threading.Thread(target=server.run, args=([reserved],))
        thread.start()
        try:
            while not server.started:
                time.sleep(0.01)
            yield f"{url_of(reserved)}/"
        finally:
            server.should_exit = True
            thread.join()


@pytest.fixture(scope="module")
def models(tmp_path_factory, detecting_model):
    folder = tmp_path_factory.mktemp("tiny")
    torch.manual_seed(0)
    names = ["=1+1", LONG_NAME, "ç"]
    TIGraNet("SC[4,3]-DP[40]-S[3]", 3, class_names=names, image_size=12).save_pretrained(folder)
    TIGraNet("SC[4,3]-DP[40]-S[3]", 3, 3, class_names=["a", "b", "c"], image_size=12).save_pretrained(folder / "color")
    paths = {ORIENTED: ORIENTED, PAPER: PAPER, TINY: folder, COLOR: folder / "color", SPOTS: detecting_model}
    return {name: Predictor(path, device="cpu", batch_size=4) for name, path in paths.items()}


@pytest.fixture(scope="module")
def address(browser, models):
    with serving(models) as url:
        yield url


@pytest.fixture(scope="module")
def browser(tmp_path_factory):
    browser = Browser(tmp_path_factory.mktemp("browser"))
    yield browser
    browser.close()


@pytest.fixture
def page(browser, address):
    """The page, just opened. It asks no other server, and the console shows no error."""
    browser.open(address)
    browser.wait(lambda: browser.texts("#model option"), "the list of models")
    yield browser
    assert browser.requested() == {address.rstrip("/")}
    assert browser.complaints() == []


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Files of six digits, two of each class."""
    from tigranet.data import load

    test = load("mnist-012", seed=0).test
    folder = tmp_path_factory.mktemp("digits")
    for label in range(3):
        for number, position in enumerate((test.labels == label).nonzero()[:2, 0].tolist()):
            pixels = (test.images[position, 0] * 255).round().byte().numpy()
            Image.fromarray(pixels).save(folder / f"{label}-{number}.png")
    return sorted(folder.iterdir())


@pytest.fixture(scope="module")
def photo(tmp_path_factory):
    """A smooth image in colour that is neither square nor of the size of a network."""
    corners = np.random.default_rng(0).integers(0, 256, (5, 4, 3), dtype=np.uint8)
    path = tmp_path_factory.mktemp("photo") / "photo.png"
    Image.fromarray(corners).resize((61, 90), Image.Resampling.BICUBIC).save(path)
    return path


def wait_for_answers(page, angle, models=(ORIENTED,)):
    """Wait until all cards show the answer at an angle, and return their probabilities by model and class."""
    expected = [(model, str(angle)) for model in models]
    cards = "[...document.querySelectorAll('#cards article')]"
    script = f"return {cards}.map((card) => [card.dataset.model, card.dataset.angle])"
    page.wait(lambda: [tuple(card) for card in page.driver.execute_script(script)] == expected, f"answers at {angle}")
    script = f"""
        return {cards}.map((card) => [...card.querySelectorAll('tbody tr')].map((row) =>
          [row.querySelector('th').textContent, Number(row.querySelector('.number').dataset.value)]))
    """
    return dict(zip(models, map(dict, page.driver.execute_script(script)), strict=True))


def open_image(page, path, models=(ORIENTED,)):
    page.choose("#image_input", [path])
    page.wait(lambda: page.texts("#file_name") == [path.name], "the name of the file")
    return wait_for_answers(page, 0, models)


def rotate_to(page, angle):
    script = "const a = document.querySelector('#angle'); a.value = args[0]; a.dispatchEvent(new Event('input'))"
    page.run(script, angle)


def file_script(action):
    """JavaScript that makes a file of the base64 text in ``args[0]``, and gives it to a drop or to the clipboard."""
    return f"""
        const bytes = Uint8Array.from(atob(args[0]), (character) => character.charCodeAt(0));
        const transfer = new DataTransfer();
        transfer.items.add(new File([bytes], args[1], {{ type: "image/png" }}));
        {action}
    """


DROP = file_script("window.dispatchEvent(new DragEvent('drop', { dataTransfer: transfer, cancelable: true }))")
PASTE = file_script("document.dispatchEvent(new ClipboardEvent('paste', { clipboardData: transfer, bubbles: true }))")


def test_the_answers_are_those_of_python(page, models, digits, tmp_path):
    photograph = tmp_path / "digit.jpg"
    with Image.open(digits[0]) as image:
        image.resize((300, 300)).save(photograph, quality=60)
    for path in (*digits[::2], photograph):
        answers = open_image(page, path)[ORIENTED]
        (explanation,) = explain(ORIENTED, path, device="cpu").explanations
        assert page.find(".label").text == explanation.prediction.label
        assert answers[explanation.prediction.label] == pytest.approx(explanation.prediction.probability, abs=2e-6)
        expected = models[ORIENTED]({"image": path.read_bytes()})["probabilities"]
        np.testing.assert_allclose([answers[name] for name in models[ORIENTED].class_names], expected, atol=1e-5)
    assert f"“{explanation.explained_class}”" in page.find(".evidence").text


@pytest.mark.parametrize("kind", ["digit", "photo"])
def test_quarter_turns_give_exactly_the_same_answer(page, kind, digits, photo):
    upright = open_image(page, digits[4] if kind == "digit" else photo)
    for angle in (90, 180, 270, 0):
        page.find("#turn_left").click()
        assert wait_for_answers(page, angle) == upright
        assert page.find(".change").text == (f"at {angle}°: exactly as at 0°" if angle else "at 0°")
    rotate_to(page, 33)
    between = wait_for_answers(page, 33)
    assert between != upright
    assert page.find("#angle").get_attribute("aria-valuetext") == "33 degrees counter-clockwise"
    label = max(upright[ORIENTED], key=upright[ORIENTED].get)
    change = between[ORIENTED][label] - upright[ORIENTED][label]
    if page.find(".label").text == label:
        assert f"{abs(change):.6f} against 0°" in page.find(".change").text


def test_the_page_rotates_as_tigranet_does_and_sends_the_exact_pixels(page):
    rng = np.random.default_rng(0)
    script = """
        const [{ rotated }, { pngOf }] = await Promise.all([import("/static/rotation.js"), import("/static/png.js")]);
        const [side, channels, data, background, degrees] = args;
        const frame = rotated({ side, channels, data: Uint8Array.from(data), background }, degrees);
        const bytes = new Uint8Array(await (await pngOf(frame)).arrayBuffer());
        return btoa(String.fromCharCode(...bytes));
    """
    for side, channels, degrees in [(9, 1, 30), (8, 3, 211.5), (7, 3, 90), (8, 1, 180), (6, 3, -90), (5, 1, 360)]:
        pixels = rng.integers(0, 256, (side, side, channels), dtype=np.uint8)
        background = [37, 80, 200][:channels]
        png = base64.b64decode(page.run(script, side, channels, pixels.ravel().tolist(), background, degrees))
        with Image.open(io.BytesIO(png)) as image:
            assert image.mode == ("L" if channels == 1 else "RGB")
            actual = np.asarray(image).reshape(pixels.shape)
        if degrees % 90 == 0:
            np.testing.assert_array_equal(actual, np.rot90(pixels, degrees // 90))
            continue
        difference = torch.from_numpy(pixels - np.array(background, float)).permute(2, 0, 1)[None].float()
        expected = rotate(difference, torch.tensor([float(degrees)]))[0].permute(1, 2, 0).numpy() + background
        np.testing.assert_allclose(actual, expected, atol=0.51)


def test_dropped_and_pasted_images_give_the_answers_of_chosen_ones(page, digits):
    chosen = [open_image(page, path) for path in digits[:2]]
    for script, path, expected in zip((DROP, PASTE), digits, chosen, strict=False):
        name = f"given-{path.name}"
        page.run(script, base64.b64encode(path.read_bytes()).decode(), name)
        page.wait(lambda name=name: page.texts("#file_name") == [name], "the other file")
        assert wait_for_answers(page, 0) == expected


def test_a_broken_file_gives_a_message_and_the_page_goes_on(page, digits, tmp_path):
    expected = open_image(page, digits[0])
    broken = tmp_path / "broken.png"
    broken.write_bytes(digits[0].read_bytes()[:60])
    page.choose("#image_input", [broken])
    message = page.wait(lambda: page.find("#message").text, "a message")
    assert "broken.png" in message
    assert page.find("#message").get_attribute("role") == "alert"
    assert page.texts("#file_name") == [digits[0].name]
    assert open_image(page, digits[1]) != expected
    assert not page.find("#message").is_displayed()
    assert all(text.startswith(page.driver.current_url.split("#")[0]) for text in page.complaints())


def test_a_format_that_browsers_do_not_know_is_converted_by_the_server(page, models, digits, tmp_path):
    path = tmp_path / "digit.tiff"
    with Image.open(digits[2]) as image:
        Image.fromarray(np.asarray(image).astype(np.uint16) * 257).save(path)
    expected = models[ORIENTED]({"image": path.read_bytes()})
    answers = open_image(page, path)[ORIENTED]
    assert "8 bits" in page.find("#file_note").text
    assert answers[expected["label"]] == pytest.approx(expected["probability"], abs=1e-5)


def test_two_models_are_compared(page, models, digits):
    open_image(page, digits[3])
    Select(page.find("#other")).select_by_value(PAPER)
    answers = wait_for_answers(page, 0, (ORIENTED, PAPER))
    for name, values in answers.items():
        expected = models[name]({"image": digits[3].read_bytes()})["probabilities"]
        np.testing.assert_allclose([values[label] for label in models[name].class_names], expected, atol=1e-5)
    rotate_to(page, 180)
    assert wait_for_answers(page, 180, (ORIENTED, PAPER)) == answers


def test_a_model_for_colour_reads_a_grey_image_in_three_channels(page, models, digits):
    Select(page.find("#model")).select_by_value(COLOR)
    Select(page.find("#other")).select_by_value(ORIENTED)
    answers = open_image(page, digits[0], (COLOR, ORIENTED))
    with Image.open(digits[0]) as image:
        expected = models[COLOR]({"image": np.asarray(image.convert("RGB"))})["probabilities"]
    np.testing.assert_allclose([answers[COLOR][name] for name in "abc"], expected, atol=1e-5)


def test_a_model_that_cannot_answer_says_so_in_its_card_and_the_other_goes_on(page, digits, models, monkeypatch):
    Select(page.find("#other")).select_by_value(PAPER)
    answers = open_image(page, digits[0], (ORIENTED, PAPER))
    with monkeypatch.context() as patch:
        patch.setattr(models[PAPER], "explain_prepared", lambda image, explained_class: 1 / 0)
        rotate_to(page, 90)
        page.wait(lambda: page.texts(".card .message")[1], "a message")
        page.wait(lambda: page.texts(".change")[0].startswith("at 90°"), "the other answer")
    assert page.texts(".card .message")[0] == ""
    assert all(REFUSED in text and "500" in text for text in page.complaints())
    rotate_to(page, 180)
    assert wait_for_answers(page, 180, (ORIENTED, PAPER)) == answers
    assert page.texts(".card .message") == ["", ""]


def test_at_most_one_request_per_model_is_in_work_and_the_last_angle_is_answered(page, digits):
    open_image(page, digits[0])
    page.run("""
        const original = window.fetch;
        window.inWork = window.mostInWork = window.numRequests = 0;
        window.fetch = async (...request) => {
          window.mostInWork = Math.max(window.mostInWork, ++window.inWork);
          window.numRequests++;
          try { return await original(...request); } finally { window.inWork--; }
        };
        const angle = document.querySelector("#angle");
        for (let degrees = 1; degrees <= 40; degrees++) {
          angle.value = degrees;
          angle.dispatchEvent(new Event("input"));
          await new Promise((resolve) => setTimeout(resolve, 2));
        }
    """)
    wait_for_answers(page, 40)
    most, count = page.driver.execute_script("return [window.mostInWork, window.numRequests]")
    assert most == 1
    assert count < 40


def test_a_full_turn_measures_all_around_and_stops_where_it_began(page, digits):
    page.resize(1280, prefers_reduced_motion="reduce")
    open_image(page, digits[5])
    rotate_to(page, 5)
    page.find("#full_turn").click()
    caption = "Probability of “2” at 37 measured angles"
    page.wait(lambda: page.texts(".plot figcaption")[0].startswith(caption), "the full turn")
    wait_for_answers(page, 5)
    page.wait(lambda: page.texts("#full_turn") == ["Measure a full turn"], "the end of the turn")
    assert len(page.all(".plot circle")) == 38  # 0 degrees is drawn at both ends
    assert "37 measured angles" in page.find(".probability_plot").get_attribute("aria-label")
    assert page.find("#angle_text").text == "5°"


def test_the_image_is_rotated_by_dragging(page, digits):
    open_image(page, digits[0])
    stage = page.find("#stage")
    radius = stage.size["width"] // 3
    actions = ActionChains(page.driver, duration=20).move_to_element_with_offset(stage, radius, 0).click_and_hold()
    actions.move_by_offset(-radius, -radius).release().perform()
    wait_for_answers(page, 90)  # from the right to the top


def test_the_keyboard_suffices(page, digits):
    def focus(selector):
        for _ in range(15):
            page.driver.switch_to.active_element.send_keys(Keys.TAB)
            if page.driver.switch_to.active_element == page.find(selector):
                outline = page.driver.execute_script("return getComputedStyle(document.activeElement).outlineStyle")
                assert outline == "solid"
                return page.driver.switch_to.active_element
        raise AssertionError(f"{selector} cannot be reached")

    page.run("""
        window.opened = false;
        document.querySelector("#image_input").addEventListener("click", (event) => {
          window.opened = true;
          event.preventDefault(); // the dialog of the system
        });
    """)
    focus(".skip")
    focus("#start [data-action=choose]").send_keys(Keys.ENTER)
    assert page.driver.execute_script("return window.opened")
    open_image(page, digits[1])
    assert page.driver.switch_to.active_element == page.find("#angle")  # the button is not there any more
    page.find("#angle").send_keys(Keys.ARROW_RIGHT * 3)
    wait_for_answers(page, 3)
    focus("#turn_right").send_keys(Keys.SPACE)
    wait_for_answers(page, 273)
    box = focus("#show_evidence")
    box.send_keys(Keys.SPACE)
    assert not box.is_selected()
    page.wait(lambda: page.texts("#announcement")[0].endswith("at 273 degrees"), "an announcement")


def test_a_picture_from_the_camera_is_classified(page):
    page.find("#start [data-action=camera]").click()
    page.wait(lambda: page.driver.execute_script("return document.querySelector('video').videoWidth > 0"), "the camera")
    page.find("#camera_take").click()
    page.wait(lambda: page.texts("#file_name") == ["camera.png"], "the picture")
    assert sum(wait_for_answers(page, 0)[ORIENTED].values()) == pytest.approx(1, abs=1e-4)


def rows_of(page):
    script = """
        return [...document.querySelectorAll('#answers tbody tr')].map((row) =>
          [row.cells[1].textContent, row.cells[2].textContent, Number(row.cells[3].dataset.value)])
    """
    return [tuple(row) for row in page.driver.execute_script(script)]


def wait_for_table(page, count):
    page.wait(lambda: not page.find("#stop").is_displayed() and len(rows_of(page)) == count, f"{count} answers")
    return rows_of(page)


def python_answers(predictor, paths):
    answers = predictor({"image": [path.read_bytes() for path in paths]})
    values = zip(paths, answers["label"].tolist(), answers["probability"].tolist(), strict=True)
    return {path.name: (label, value) for path, label, value in values}


def test_a_folder_is_a_table_that_sorts_filters_and_is_saved(page, models, digits, tmp_path):
    page.find("#to_folder").click()
    others = [tmp_path / "notes.txt", tmp_path / "broken.png"]
    for path in others:
        path.write_text("no image")
    page.choose("#files_input", [*digits, *others])
    rows = wait_for_table(page, len(digits))
    expected = python_answers(models[ORIENTED], digits)
    assert {name: label for name, label, _ in rows} == {name: label for name, (label, _) in expected.items()}
    assert all(value == pytest.approx(expected[name][1], abs=1e-5) for name, _, value in rows)
    assert [value for _, _, value in rows] == sorted((value for _, _, value in rows), reverse=True)
    assert "1 file of another kind" in page.find("#folder_status").text
    assert page.texts("#unreadable summary") == ["1 file without an answer"]
    assert page.complaints() != []  # the broken file
    page.find("th[data-column=confidence] button").click()
    assert rows_of(page) == rows[::-1]
    assert page.find("th[data-column=confidence]").get_attribute("aria-sort") == "ascending"
    Select(page.find("#filter")).select_by_value("1")
    assert rows_of(page) == [row for row in rows[::-1] if row[1] == "1"]
    page.find("th[data-column=path] button").click()
    assert [name for name, _, _ in rows_of(page)] == ["1-0.png", "1-1.png"]
    page.find("#answers tbody button").click()
    page.wait(lambda: page.texts("#file_name") == ["1-0.png"], "the image of the row")
    wait_for_answers(page, 0)


def test_unknown_images_are_marked_and_come_last(page, models, tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (12, 12), dtype=np.uint8)
    paths = [tmp_path / f"{name}.png" for name in ("first", "second", "noise")]
    for path, image in zip(paths, (*spots(2, seed=1), noise), strict=True):
        Image.fromarray(image).save(path)
    expected = python_answers(models[SPOTS], paths)
    assert [label == "unknown" for label, _ in expected.values()] == [False, False, True]
    Select(page.find("#model")).select_by_value(SPOTS)
    for path in (paths[0], paths[-1]):
        upright = open_image(page, path, (SPOTS,))
        page.find("#turn_left").click()
        assert wait_for_answers(page, 90, (SPOTS,)) == upright
        assert page.find(".label").text == expected[path.name][0]
        assert page.find(".unknown").is_displayed() == (path is paths[-1])
    assert max(upright[SPOTS], key=upright[SPOTS].get) in page.find(".probability").text
    page.find("#to_folder").click()
    page.choose("#files_input", paths)
    rows = wait_for_table(page, len(paths))
    assert {name: label for name, label, _ in rows} == {name: label for name, (label, _) in expected.items()}
    assert rows[-1][0] == "noise.png"
    Select(page.find("#filter")).select_by_value("unknown")
    assert [name for name, _, _ in rows_of(page)] == ["noise.png"]


def test_the_saved_table_is_that_of_predict(page, models, digits, tmp_path):
    Select(page.find("#model")).select_by_value(TINY)
    page.find("#to_folder").click()
    page.choose("#files_input", digits)
    rows = wait_for_table(page, len(digits))
    assert "=1+1" in {label for _, label, _ in rows}  # would be executed by a spreadsheet
    page.find("#download").click()
    saved = page.downloaded("answers.csv")
    with open_row_writer(("path", "label", "probability"), tmp_path / "expected.csv") as write:
        for name, label, value in rows:
            write({"path": name, "label": label, "probability": value})
    assert saved == (tmp_path / "expected.csv").read_text()
    assert "'=1+1" in saved


def test_a_folder_with_sub_folders_is_chosen(page, digits, tmp_path):
    for number, path in enumerate(digits[:3]):
        target = tmp_path / "images" / f"part {number % 2}" / path.name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    page.find("#to_folder").click()
    page.choose("#folder_input", [tmp_path / "images"])
    rows = wait_for_table(page, 3)
    assert {name for name, _, _ in rows} == {
        f"images/part {number % 2}/{path.name}" for number, path in enumerate(digits[:3])
    }


def test_the_token_is_asked_for_and_kept_in_memory_only(browser, models, digits):
    with serving({ORIENTED: models[ORIENTED]}, token=TOKEN) as url:
        browser.open(url)
        for text, is_right in (("another-token-here", False), (TOKEN, True)):
            browser.wait(lambda: browser.find("#token").is_displayed(), "the question")
            browser.find("#token").send_keys(text + Keys.ENTER)
            if not is_right:
                browser.wait(lambda: browser.find("#message").is_displayed(), "the refusal")
        browser.wait(lambda: browser.texts("#model option") == [ORIENTED], "the list of models")
        assert not browser.find("#other_field").is_displayed()  # there is no other model
        open_image(browser, digits[0])
        stored = "return [localStorage.length, sessionStorage.length, document.cookie, args[0].value]"
        assert browser.run(stored, browser.find("#token")) == [0, 0, "", ""]
        browser.driver.refresh()
        browser.wait(lambda: browser.find("#token").is_displayed(), "the question after a reload")
        assert browser.requested() == {url.rstrip("/")}
        assert all(REFUSED in text and "401" in text for text in browser.complaints())


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_nothing_is_wider_than_a_phone(page, scheme, digits):
    def check():
        widths = "return [document.documentElement.scrollWidth, document.documentElement.clientWidth]"
        scroll, client = page.driver.execute_script(widths)
        assert scroll <= client == 360

    page.resize(360, prefers_color_scheme=scheme)
    check()
    Select(page.find("#model")).select_by_value(TINY)
    Select(page.find("#other")).select_by_value(PAPER)
    open_image(page, digits[0], (TINY, PAPER))
    check()
    page.find("#to_folder").click()
    page.choose("#files_input", digits)
    wait_for_table(page, len(digits))
    check()
    background = page.driver.execute_script("return getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, background[4:-1].split(","))) < 200) == (scheme == "dark")


def test_the_policy_stops_scripts_and_requests_that_are_not_of_this_server(page):
    violations = page.run("""
        const violations = [];
        document.addEventListener("securitypolicyviolation", (event) => violations.push(event.effectiveDirective));
        const script = document.createElement("script");
        script.textContent = "window.executed = true";
        document.body.append(script);
        document.body.setAttribute("style", "color: red");
        await fetch("http://127.0.0.1:1/").catch(() => null);
        await new Promise((resolve) => setTimeout(resolve, 50));
        return [...violations.sort(), window.executed ?? false];
    """)
    assert violations == ["connect-src", "script-src-elem", "style-src-attr", False]
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    assert len(page.complaints()) >= 3
