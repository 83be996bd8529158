import csv
import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
import torch

from tigranet.data import UnreadableFile
from tigranet.evaluation.suggestions import ImageSuggestion, ImageSuggestions, LabelSuggestion, LabelSuggestions
from tigranet.figures import suggestions
from tigranet.figures.suggestions import MAX_SHOWN, render_suggestions, save_suggestions

HOSTILE = "<img src=x onerror=alert(1)>\"'\x1b[31m\udcff.png"
IMAGES = ImageSuggestions(
    (
        ImageSuggestion(HOSTILE, "<b>nut</b>", 0.5, "bolt", 0.25, 0.75),
        ImageSuggestion("=cmd", "bolt", 0.5, None, 0.0, 0.5),
    ),
    examined=1234,
    labelled=3,
    duplicates=2,
    unreadable_files=(UnreadableFile(Path("broken.png"), "empty"),),
)
LABELS = LabelSuggestions(
    (
        LabelSuggestion("a/1.png", 4, "bolt", "nut", 1.0, "identical image"),
        LabelSuggestion(None, 7, "bolt", "<i>nut</i>", 0.875, "predicted"),
    ),
    examined=50,
    accuracy=81.25,
    duplicates=1,
    unjudged_classes=tuple(f"rare {number}" for number in range(30)),
    unjudged_images=33,
    left_out=5,
)
ORIGIN = {"model": "<u>model</u>", "command": "tigranet suggest model/ 'a b'"}


class Elements(HTMLParser):
    """Collects the tags of a page and the text of its body."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.attributes, self.text = [], [], ""
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.attributes += attrs

    def handle_data(self, data):
        self.text += data


def render(images=IMAGES, labels=LABELS, thumbnails=None):
    return render_suggestions(images, labels, thumbnails or {}, {7: torch.rand(1, 5, 5)}, ORIGIN)


def test_names_are_text_and_nothing_is_loaded_from_elsewhere():
    page = Elements(render(thumbnails={HOSTILE: torch.rand(3, 4, 4)}))
    assert not {"script", "i-frame", "link", "u"} & set(page.tags)
    assert not [name for name, _ in page.attributes if name.startswith("on")]
    sources = [value for name, value in page.attributes if name in ("src", "href")]
    assert len(sources) == 2
    assert all(source.startswith("data:image/") for source in sources)
    assert "<img src=x onerror=alert(1)>" in page.text
    assert "\x1b" not in page.text
    assert "\ufffd" in page.text


def test_the_page_says_what_was_left_out_and_why():
    text = " ".join(Elements(render()).text.split())
    for words in ("1,234 unlabelled images", "labelled already: 3", "copies: 2", "unreadable: 1", "of 50 labels",
                  "81.2", "5 more labels", "33 images of 30 classes", "rare 19 and others", "image 7",
                  "the same image is also labelled nut", "(score 0.88)", "tigranet suggest model/ 'a b'"):  # fmt: skip
        assert words in text, words


def test_without_labels_and_without_images_the_page_says_so():
    text = Elements(render(replace(IMAGES, images=()), None)).text
    assert "every image is labelled already" in text
    assert "Labels to check" not in text
    assert "None of the 50 labels" in Elements(render(labels=replace(LABELS, labels=()))).text


def test_there_are_at_most_so_many_pictures():
    images = replace(IMAGES, images=tuple(replace(IMAGES.images[0], path=f"{number}.png") for number in range(500)))
    page = render(images, None, {f"{number}.png": torch.rand(1, 2, 2) for number in range(500)})
    assert len(re.findall("<img ", page)) == MAX_SHOWN
    assert f"first {MAX_SHOWN} of 500" in page


def test_it_adapts_to_the_screen_and_to_a_dark_mode():
    page = render()
    for words in ("prefers-color-scheme: dark", "max-width: 34rem", "width=device-width", "default-src 'none'"):
        assert words in page


def test_the_tables_have_all_rows_and_no_formulas(tmp_path):
    page = save_suggestions(tmp_path / "new", IMAGES, LABELS, {}, {}, ORIGIN)
    assert page.read_text().endswith("</html>\n") or page.read_text().endswith("</html>")
    with open(tmp_path / "new" / "suggestions.csv", newline="", errors="surrogateescape") as file:
        rows = list(csv.DictReader(file))
    assert [row["path"] for row in rows] == [HOSTILE, "'=cmd"]
    assert rows[0]["uncertainty"] == "0.75"
    with open(tmp_path / "new" / "suspicious_labels.csv", newline="") as file:
        assert [(row["path"], row["suggested"]) for row in csv.DictReader(file)] == [
            ("a/1.png", "nut"), ("", "<i>nut</i>"),
        ]  # fmt: skip
    save_suggestions(tmp_path / "other", IMAGES, None, {}, {}, ORIGIN)
    assert {path.name for path in (tmp_path / "other").iterdir()} == {"suggestions.html", "suggestions.csv"}


def test_an_error_leaves_the_older_files(tmp_path, monkeypatch):
    save_suggestions(tmp_path, IMAGES, LABELS, {}, {}, ORIGIN)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}

    def fail(*arguments):
        raise OSError("no space left")

    monkeypatch.setattr(suggestions, "open_row_writer", fail)
    with pytest.raises(OSError, match="no space left"):
        save_suggestions(tmp_path, replace(IMAGES, images=()), None, {}, {}, ORIGIN)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
