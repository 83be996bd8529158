import base64
import hashlib
import json
import re
from contextlib import contextmanager
from dataclasses import replace
from html.parser import HTMLParser
from itertools import pairwise
from typing import get_args

import pytest
import torch

from figures.conftest import HOSTILE_NAMES, measured_report
from tigranet.atomic_files import atomic_write
from tigranet.data.augment.rigid import Padding
from tigranet.evaluation.class_report import ClassMetrics
from tigranet.evaluation.report import PLAIN_CNN, ROTATED_CNN
from tigranet.evaluation.report_subject import QuarterTurn
from tigranet.evaluation.training_history import TrainingHistory
from tigranet.figures.report import PADDING_TEXT, render, save_report
from tigranet.figures.report_tables import MAX_TABLE_ROWS, interval_text
from tigranet.figures.report_text import MAX_PAGE_NAME_LENGTH


class Page(HTMLParser):
    """The text of a page, its elements, and the addresses that it would load."""

    def __init__(self, html):
        super().__init__()
        self.texts, self.tags, self.addresses, self.attributes = [], [], [], []
        self.feed(html)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.attributes.append((tag, dict(attributes)))
        self.addresses += [value for name, value in attributes if name in ("src", "href", "xlink:href")]

    def handle_data(self, data):
        if self.get_starttag_text() == "<wbr>":  # no space: the parts of a name stand side by side
            self.texts[-1] += data
        elif self.tags and self.tags[-1] not in ("style", "script"):
            self.texts.append(data)

    def values_of(self, tag, attribute):
        return [values[attribute] for name, values in self.attributes if name == tag and attribute in values]

    def __str__(self):
        return re.sub(r"\s+", " ", " ".join(self.texts))


@pytest.fixture(scope="module")
def html(measured):
    """The page of this report, which most tests read."""
    return render(*measured)


def count_pictures(report):
    """Return the number of images of the turntable, of the examples, of the uncertain answers and of the errors."""
    examples = sum(len(each.right) + len(each.wrong) for each in report.examples)
    return len(report.turned) + examples + len(report.least_certain) + len(report.confident_mistakes)


def test_the_page_has_every_section_and_figure(measured, html):
    page = Page(html)
    text = str(page)
    for words in (
        "robustness report", "Rotation", "Translation", "Change of the network output", "Results per class",
        "Calibration", "Most confident errors", "Data", "How this report was made", "plain CNN",
        "CNN trained with rotations", "Examples of each class", "Least certain answers", "When to say 'unknown'",
        "What to do next", "Small test set",
        "rotated by 270 degrees",
        "tigranet report 'a <model>' noise", "SC[2,2]-DP[40]-S[2]", "C[2]-P[2]", "seed", "versions", "machine",
    ):  # fmt: skip
        assert words in text
    for label in ("accuracy (%)", "mean confidence (%)", "rotation angle (degrees)", "shift (pixels)"):
        assert label in text
    assert page.tags.count("svg") == 8
    assert page.tags.count("img") == count_pictures(measured[0])
    assert 'id="training"' not in html


def test_the_tables_have_the_measured_numbers(measured, html):
    report, _ = measured
    text, network = str(Page(html)), report.subjects[0]
    rotated = [f"{s.robustness.moved['rotated']} {s.robustness.drop('rotated'):z.1f}" for s in report.subjects]
    assert f"rotated at random {' '.join(rotated)}" in text
    assert f"95 % interval {' '.join(interval_text(subject.interval) for subject in report.subjects)}" in text
    for row, train in zip(report.classes[:2], report.data.images["train"], strict=False):
        precision = "\N{EN DASH}" if row.precision is None else f"{100 * row.precision:.1f}"
        assert f"{row.name} {train} {row.support} {precision} {100 * row.recall:.1f}" in text
    assert f"all answers 100.0 % {network.robustness.upright:.1f} % {interval_text(network.interval)}" in text
    mistake = report.confident_mistakes[0]
    prediction, truth = (
        name.replace("\udce9", "\N{REPLACEMENT CHARACTER}") for name in (mistake.answer, mistake.truth)
    )
    assert f"predicted: {prediction} ({100 * mistake.probability:.1f} %) true class: {truth}" in text


def test_the_page_loads_nothing_and_runs_its_own_script_only(html):
    page = Page(html)
    assert all(address.startswith(("data:image/", "data:text/csv", "#")) for address in page.addresses)
    assert not {"link", "iframe", "object", "form"} & set(page.tags)
    assert "url(" not in re.sub(r"url\(#\w+\)", "", html)
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    (policy,) = page.values_of("meta", "content")[-1:]
    assert policy.startswith("default-src 'none'")
    assert policy.endswith(f"script-src 'sha256-{digest}'")
    assert not [name for _, values in page.attributes for name in values if name.startswith("on")]


def test_the_slider_has_the_answers_of_all_networks_at_every_angle(measured, html):
    report, _ = measured
    page = Page(html)
    rows = [json.loads(text) for text in page.values_of("li", "data-answers")]
    assert len(rows) == 3 * len(report.turned) == 12
    first = report.turned[0]
    for row, network in zip(rows, ("TIGraNet", PLAIN_CNN, ROTATED_CNN), strict=False):
        assert [is_right for _, _, is_right in row] == [label == first.truth for label in first.classes[network]]
        assert [int(percent) for _, percent, _ in row] == [round(100 * p) for p in first.probabilities[network]]
    (slider,) = [values for tag, values in page.attributes if tag == "input"]
    assert (slider["min"], slider["max"], slider["step"]) == ("0", "345", "15")
    assert slider["id"] in page.values_of("label", "for")


def test_headings_are_in_order_and_every_picture_has_a_description(html):
    page = Page(html)
    levels = [int(tag[1]) for tag in page.tags if re.fullmatch(r"h\d", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    assert len(page.values_of("img", "alt")) == page.tags.count("img")
    identifiers = [values["id"] for _, values in page.attributes if "id" in values]
    assert {address[1:] for address in page.values_of("a", "href") if address[0] == "#"} <= set(identifiers)


@pytest.mark.usefixtures("undrawn_figures")
def test_the_training_curve_is_drawn_where_it_is_known(measured):
    report, test = measured
    history = TrainingHistory((1, 2, 3), (1.0, 0.5, 0.25), (2,), (0.6,), (90.0,), 200.0)
    page = Page(render(replace(report, history=history), test))
    assert page.tags.count("svg") == 10
    assert "3 epochs in 3 min" in str(page)
    unvalidated = replace(history, validation_epochs=(), validation_losses=(), validation_accuracies=())
    assert Page(render(replace(report, history=unvalidated), test)).tags.count("svg") == 9


@pytest.mark.usefixtures("undrawn_figures")
def test_there_is_no_negative_zero(measured):
    report, test = measured
    network = report.subjects[0]
    moved = {
        how: accuracy._replace(mean=network.robustness.upright + 0.01)
        for how, accuracy in network.robustness.moved.items()
    }
    same = replace(network, robustness=replace(network.robustness, moved=moved))
    page = str(Page(render(replace(report, subjects=(same,)), test)))
    assert "-0.0" not in page
    assert "the same as upright" in page


@pytest.mark.usefixtures("undrawn_figures")
def test_names_are_broken_between_words_only(measured):
    report, test = measured
    names = ("copepod_calanoid_eggs", *report.data.class_names[1:])
    classes = (replace(report.classes[0], name=names[0]), *report.classes[1:])
    html = render(replace(report, data=replace(report.data, class_names=names), classes=classes), test)
    assert "copepod_<wbr>calanoid_<wbr>eggs" in html
    assert "overflow-wrap: anywhere" not in html
    assert "word-break" not in html


def test_names_are_escaped_and_shown_as_they_are(html):
    text = str(Page(html))
    for name in HOSTILE_NAMES[:3]:
        assert name in text
    assert "caf\N{REPLACEMENT CHARACTER}" in text
    assert "<noise>" in text


@pytest.mark.usefixtures("undrawn_figures")
def test_the_summary_counts_the_predictions_that_quarter_turns_change(measured, html):
    report, test = measured
    network = report.subjects[0]
    summary = str(Page(html)).split("Upright")[0]
    assert "none of the 20 predictions" in summary
    assert f"{network.right} are correct" in summary
    assert f"{network.right}, {network.right}, {network.right} of 20 correct" in str(Page(html))
    inexact = replace(network, quarter_turns=tuple(QuarterTurn(degrees, 3, 2) for degrees in (90, 180, 270)))
    summary = str(Page(render(replace(report, subjects=(inexact,)), test))).split("Upright")[0]
    assert "2, 2, 2 of the 20 predictions" in summary
    assert f"{network.right} are correct for upright images" in summary
    assert "3, 3, 3 for rotated images" in summary


def test_many_classes_one_without_images_and_no_baseline():
    names = tuple(f"class {number}" for number in range(40))
    report, test = measured_report(names, baseline=False, test_classes=19)
    page = Page(render(report, test))
    assert "class 39 1 0 \N{EN DASH}" in str(page)
    assert "CNN" not in str(page)


@pytest.mark.usefixtures("undrawn_figures")
def test_calibration_errors_are_shown_with_and_without_temperature(measured, html):
    report, test = measured
    page = str(Page(html))
    error = report.calibration.errors["upright"]
    assert f"calibration error upright {error:.1f} rotated by 90 degrees {error:.1f} rotated at random" in page
    assert "temperature" not in page
    scaled = replace(
        report.calibration,
        temperature=1.25,
        scaled_errors=dict.fromkeys(report.calibration.errors, 77.7),
        scaled_bins=report.calibration.bins,
    )
    page = str(Page(render(replace(report, calibration=scaled), test)))
    assert "The temperature 1.25 was fitted on validation images" in page
    assert f"with temperature upright {error:.1f} 77.7" in page
    assert "Calibration" not in str(Page(render(replace(report, calibration=None), test)))


@pytest.mark.usefixtures("undrawn_figures")
def test_the_evidence_for_errors_is_shown_where_there_is_any(measured, html):
    report, test = measured
    first = report.confident_mistakes[0].image
    page = Page(render(report, test, {first: torch.randn(12, 12)}))
    assert page.tags.count("img") == count_pictures(report) + 1
    assert "orange pixels speak for the predicted class" in str(page)
    assert "orange pixels" not in html


@pytest.mark.usefixtures("undrawn_figures")
def test_a_report_without_errors(measured):
    report, test = measured
    flawless = replace(report, mistakes=0, confident_mistakes=())
    page = Page(render(flawless, test))
    assert "all 20 upright test images are classified correctly" in str(page)
    assert page.tags.count("img") == count_pictures(flawless)


@pytest.mark.usefixtures("undrawn_figures")
def test_page_and_numbers_are_written_completely_or_not_at_all(measured, tmp_path, monkeypatch):
    report, test = measured
    page = save_report(tmp_path / "a" / "r", report, test)
    assert page == tmp_path / "a" / "r" / "report.html"
    assert page.read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    numbers = json.loads((page.parent / "report.json").read_text())
    assert numbers["subjects"][0]["right"] == report.subjects[0].right
    before = page.read_bytes()
    monkeypatch.setattr("tigranet.figures.report.render", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        save_report(page.parent, report, test)
    assert page.read_bytes() == before
    assert sorted(path.name for path in page.parent.iterdir()) == ["report.html", "report.json"]


def test_every_padding_has_a_text():
    assert set(PADDING_TEXT) == set(get_args(Padding))


def test_of_many_classes_some_are_shown_and_the_page_says_how_many(measured, tmp_path):
    """The numbers of all classes are in the JSON file; their curves do not depend on the number of classes."""
    small, test = measured
    names = tuple(f"class {number}" for number in range(600))
    confusion = [[0] * 600 for _ in names]
    for label in range(600):
        confusion[label][label] = 1
    confusion[77][78] = 20
    metrics = [ClassMetrics(name, 1, 1.0, 1.0, 1.0) for name in names]
    counts = {"train": (*[1] * 599, 50), "validation": (1,) * 600, "test": (1,) * 600}
    report = replace(
        small,
        data=replace(small.data, class_names=names, images=counts),
        confusion=tuple(map(tuple, confusion)),
        classes=tuple(metrics),
    )
    folder = save_report(tmp_path, report, test).parent
    html = (folder / "report.html").read_text(encoding="utf-8")
    page = Page(html)
    text = str(page)
    assert text.count("40 of 600 classes drawn") == 2  # in the figure and below it
    assert text.count(f"{MAX_TABLE_ROWS} of 600 classes shown") == 2
    assert page.tags.count("tr") < 2 * MAX_TABLE_ROWS + 40
    assert "class 77 1 1 100.0" in text  # a class with errors
    assert "class 599 50 1 1" in text  # a frequent class
    assert "class 598" not in text
    assert len(html) < 1_000_000
    numbers = json.loads((folder / "report.json").read_text())
    assert len(numbers["classes"]) == len(numbers["confusion"]) == len(numbers["confusion"][599]) == 600


def test_validation_images_are_never_called_test_images(measured, html):
    report, images = measured
    html_of_test_images = html
    data = replace(report.data, images=report.data.images | {"test": (0,) * 4})
    html = render(replace(report, data=data, part="validation"), images)
    text = str(Page(html))
    assert "No test images" in text.split("Upright")[0]  # before the first number
    assert "20 validation images" in text
    assert "test image" not in html.replace("No test images", "")
    assert "No test images" not in html_of_test_images


@pytest.mark.parametrize(
    "names",
    [("", "x" * 10_000, "a\nb\x1b[31m\x00", "\u202egnp"), ("\ud800", "_", "[/]", "👩\u200d🔬")],
    ids=["control characters", "symbols"],
)
def test_any_class_name_is_shown(measured, tmp_path, names):
    report, test = measured
    classes = tuple(replace(row, name=name) for row, name in zip(report.classes, names, strict=True))
    mistakes = tuple(
        replace(mistake, truth=name, answer=name)
        for mistake, name in zip(report.confident_mistakes, names, strict=False)
    )
    hostile = replace(
        report, data=replace(report.data, class_names=names), classes=classes, confident_mistakes=mistakes
    )
    page = save_report(tmp_path, hostile, test).read_text(encoding="utf-8")
    assert not set(page) & set("\x00\x1b\u202e\ud800")
    assert "x" * MAX_PAGE_NAME_LENGTH not in page
    assert [row["name"] for row in json.loads((tmp_path / "report.json").read_text())["classes"]] == list(names)


@pytest.mark.parametrize("full", ["report.html", "report.json"])
@pytest.mark.usefixtures("undrawn_figures")
def test_a_full_disk_leaves_both_older_files(measured, tmp_path, monkeypatch, full):
    """The new page and the old numbers would contradict each other."""
    report, test = measured
    for name in ("report.html", "report.json"):
        (tmp_path / name).write_text("older")

    class FullDisk:
        """A file whose content does not fit on the disk, which is noticed when its buffer is written."""

        def write(self, text):
            if len(text) > 10_000:
                self.flush()

        def flush(self):
            raise OSError(28, "No space left on device")

    @contextmanager
    def write_to_full_disk(path):
        with atomic_write(path) as file:
            yield FullDisk() if path.name == full else file

    monkeypatch.setattr("tigranet.figures.report.atomic_write", write_to_full_disk)
    with pytest.raises(OSError, match="No space left"):
        save_report(tmp_path, report, test)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {
        "report.html": "older",
        "report.json": "older",
    }


def test_images_whose_orientation_is_not_known_are_not_called_upright(measured):
    report, test = measured
    robustness = replace(report.subjects[0].robustness, unmoved="as they are")
    network = replace(report.subjects[0], robustness=robustness, quarter_turns=(QuarterTurn(90, 3, 2),) * 3)
    data = replace(report.data, unmoved="as they are")
    page = str(Page(render(replace(report, data=data, subjects=(network,)), test)))
    assert "are correct for images as they are" in page
    assert "As they are" in page
    assert "upright" not in page.lower()
