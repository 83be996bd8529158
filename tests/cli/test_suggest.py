import json

import pytest

from images import fill
from tigranet import TIGraNet


@pytest.fixture
def model(tmp_path):
    TIGraNet("SC[2,2]-S[2]", 2, class_names=["a", "b"], image_size=12).save_pretrained(tmp_path / "m")
    return tmp_path / "m"


def test_it_writes_a_page_and_prints_what_is_in_it(tigranet, tmp_path, model):
    photos = fill(tmp_path / "photos", {"a": 12, "b": 12})
    (photos / "a" / "004.png").rename(photos / "b" / "[red]wrong.png")
    new = fill(tmp_path / "new", {"x": 30}, seed=3)
    (new / "broken.png").write_bytes(b"")
    command = ("suggest", model, new, "--train", photos, "-o", tmp_path / "out", "--count", "12")
    code, out, err = tigranet(*command)
    assert code == 0, err
    for words in ("12 images to label, chosen from 30", "and 2 more", "[red]wrong.png: b, or a (score", "of 24 labels",
                  "suggestions.html"):  # fmt: skip
        assert words in out, words
    assert "broken.png" in err
    assert "not known which images" in err
    assert {path.name for path in (tmp_path / "out").iterdir()} == {
        "suggestions.html", "suggestions.csv", "suspicious_labels.csv",
    }  # fmt: skip
    assert str(photos) in (tmp_path / "out" / "suggestions.html").read_text().replace("<wbr>", "")
    _, out, _ = tigranet(*command, "--json")
    result = json.loads(out)
    assert len(result["images"]["images"]) == 12
    assert [label["suggested"] for label in result["labels"]["labels"]] == ["a"]
    assert result["images"]["unreadable_files"][0]["path"] == str(new / "broken.png")


def test_without_labelled_images_no_label_is_checked(tigranet, tmp_path, model):
    new = fill(tmp_path / "new", {"x": 3})
    code, out, err = tigranet("suggest", model, new, "-o", tmp_path / "out", "--json")
    assert code == 0, err
    assert json.loads(out)["labels"] is None
    assert not (tmp_path / "out" / "suspicious_labels.csv").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--count", "0"), "1 to 2,000, got 0"),
        (("--train", "nowhere/"), "nowhere"),
        (("--train", "one-class"), "one-class"),
        (("-o", "file"), "file"),
    ],
)
def test_wrong_options_are_errors_of_one_line(tigranet, tmp_path, model, monkeypatch, arguments, words):
    monkeypatch.chdir(tmp_path)
    fill(tmp_path / "one-class", {"a": 5})
    (tmp_path / "file").write_text("precious")
    code, _, err = tigranet("suggest", model, fill(tmp_path / "new", {"x": 3}), *arguments)
    assert code == 1
    assert words in err
    assert err.count("\n") == 1
    assert not (tmp_path / "suggestions").exists()
