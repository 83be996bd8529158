import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest
import torch

from tigranet import TIGraNet
from tigranet.baselines import ConvNet
from tigranet.data import DataSet, LabelledImages
from tigranet.evaluation.report import QuarterTurn, report_on
from tigranet.figures.report import render, save_report

NASTY = ("<script>alert(1)</script>", "a & \"b\" 'c'", "$x^{$", "caf\udce9")


class Text(HTMLParser):
    """The words of a page, its elements, and what it would ask the network for."""

    def __init__(self, page):
        super().__init__()
        self.words, self.tags, self.sources = [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.sources += [value for name, value in attributes if name in ("src", "href", "xlink:href")]

    def handle_data(self, data):
        self.words.append(data)

    def __str__(self):
        return re.sub(r"\s+", " ", " ".join(self.words))


def made(class_names, rival=True, test_classes=None):
    torch.manual_seed(0)
    classes = len(class_names)
    parts = [
        LabelledImages(torch.rand(count, 1, 12, 12), torch.arange(count) % classes) for count in (classes, classes)
    ]
    test = LabelledImages(torch.rand(20, 1, 12, 12), torch.arange(20) % (test_classes or classes))
    data = DataSet("<noise>", class_names, *parts, test)
    net = TIGraNet("SC[2,2]-DP[40]-S[2]", classes).eval()
    command = {"command": "tigranet report 'a <model>' noise", "model": "a <model>", "boundary": "free"}
    return report_on(net, data, ConvNet("C[2]-P[2]", classes, 12) if rival else None, made=command), test


@pytest.fixture(scope="module")
def found():
    return made(NASTY)


def test_the_page_shows_every_part(found):
    page = render(*found)
    text = str(Text(page))
    for words in (
        "at every angle", "Turned by every angle", "Shifted", "How far the answer moves", "Class by class",
        "Most confident mistakes", "The data", "How this page was made", "plain CNN", "turned by 270 degrees",
        "tigranet report 'a <model>' noise", "SC[2,2]-DP[40]-S[2]", "C[2]-P[2]", "seed", "versions", "machine",
    ):  # fmt: skip
        assert words in text
    assert Text(page).tags.count("svg") == 6
    assert Text(page).tags.count("img") == min(12, found[0].mistakes)


def test_the_page_asks_nothing_of_the_network_and_runs_nothing(found):
    page = Text(render(*found))
    assert all(source.startswith(("data:image/png", "#")) for source in page.sources)
    assert not {"script", "link", "iframe", "object"} & set(page.tags)
    assert "url(http" not in render(*found)


def test_names_are_shown_as_they_are(found):
    text = str(Text(render(*found)))
    for name in NASTY[:3]:
        assert name in text
    assert "caf\N{REPLACEMENT CHARACTER}" in text
    assert "<noise>" in text


def test_the_headline_says_to_the_image_what_quarter_turns_do(found):
    report, test = found
    ours = report.subjects[0]
    text = str(Text(render(report, test)))
    assert f"not one of 20 answers changes: {ours.right} are right upright and {ours.right} are right turned." in text
    assert f"{ours.right}, {ours.right}, {ours.right} of 20 right" in text
    changed = replace(ours, quarter_turns=tuple(QuarterTurn(degrees, 3, 2) for degrees in (90, 180, 270)))
    text = str(Text(render(replace(report, subjects=(changed,)), test)))
    assert f"2, 2, 2 of 20 answers change: {ours.right} are right upright, 3, 3, 3 turned." in text


def test_many_classes_one_of_them_absent_and_no_rival():
    names = tuple(f"class {number}" for number in range(40))
    report, test = made(names, rival=False, test_classes=19)
    page = Text(render(report, test))
    assert "class 39 0 \N{EN DASH}" in str(page)
    assert "CNN" not in str(page)


def test_a_test_without_a_mistake(found):
    report, test = found
    text = str(Text(render(replace(report, mistakes=0, confident_mistakes=()), test)))
    assert "There is none: all 20 upright test images are answered rightly." in text


def test_page_and_numbers_are_written_whole(found, tmp_path, monkeypatch):
    report, test = found
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
