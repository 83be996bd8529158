import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from images import fill
from tigranet import TIGraNet
from tigranet.data import LabelledImages
from tigranet.workflows import label_suggestions
from tigranet.workflows.label_suggestions import MAX_SHARE, suggest_labels
from tigranet.workflows.labelled_data import LabelledData


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model"
    TIGraNet("SC[2,2]-S[2]", 3, class_names=["a", "b", "c"], image_size=12).save_pretrained(path)
    return path


@pytest.fixture
def photos(tmp_path):
    """Three classes of different brightness, with two images in the wrong folder."""
    folder = fill(tmp_path / "photos", {"a": 20, "b": 20, "c": 20})
    shutil.move(folder / "a" / "003.png", folder / "c" / "wrong.png")
    shutil.move(folder / "c" / "007.png", folder / "b" / "also wrong.png")
    return folder


def summary(result):
    return [(Path(label.path).name, label.label, label.suggested) for label in result.labels]


def test_images_in_the_wrong_folder_are_found(model, photos):
    result = suggest_labels(model, photos)
    assert set(summary(result)) == {("wrong.png", "c", "a"), ("also wrong.png", "b", "c")}
    assert result.examined == 60
    assert 90 < result.accuracy < 100
    assert all(0 < label.score <= 1 and label.evidence == "predicted" for label in result.labels)
    assert json.loads(json.dumps(result.to_json()))["labels"][0]["position"] == result.labels[0].position


def test_neither_quarter_turns_nor_names_change_the_result(model, photos):
    expected = suggest_labels(model, photos)
    for number, file in enumerate(sorted(photos.rglob("*.png"))):
        with Image.open(file) as image:
            turned = image.rotate(90 * (number % 4))
        file.unlink()
        turned.save(file if "wrong" in file.name else file.with_name(f"{997 * (number + 1) % 1009}.png"))
    result = suggest_labels(model, photos)
    assert summary(result) == summary(expected)
    assert [label.score for label in result.labels] == [label.score for label in expected.labels]


def test_identical_images_with_two_labels_are_named_first(model, photos):
    with Image.open(photos / "a" / "000.png") as image:
        image.rotate(90).save(photos / "b" / "same.bmp")
    shutil.copy(photos / "a" / "001.png", photos / "a" / "copy.png")
    result = suggest_labels(model, photos)
    assert set(summary(result)[:2]) == {("000.png", "a", "b"), ("same.bmp", "b", "a")}
    assert [label.evidence for label in result.labels] == ["identical image"] * 2 + ["predicted"] * 2
    assert (result.duplicates, result.examined) == (2, 59)


def test_classes_of_one_and_two_images_are_not_judged(model, photos):
    fill(photos, {"lonely": 1, "pair": 2}, seed=5)
    result = suggest_labels(model, photos)
    assert (result.unjudged_classes, result.unjudged_images) == (("lonely", "pair"), 3)
    assert result.examined == 60
    for name in ("b", "c"):
        shutil.rmtree(photos / name)
    with pytest.raises(ValueError, match="at least 2 classes with 3 different images, got 1 of 3"):
        suggest_labels(model, photos)


def test_groups_of_the_training_are_never_on_both_sides(model, photos, tmp_path, monkeypatch):
    shutil.copytree(model, tmp_path / "model")
    (tmp_path / "model" / "training.json").write_text(json.dumps({"group": r"\d\d"}))
    seen = []

    def fold(labels, groups, folds, seed):
        seen.append(groups)
        return label_folds(labels, groups, folds, seed)

    label_folds = label_suggestions.label_folds
    monkeypatch.setattr(label_suggestions, "label_folds", fold)
    for name in ("wrong", "also wrong"):
        (file,) = photos.rglob(f"{name}.png")
        file.rename(file.with_name(f"{name} 00.png"))
    suggest_labels(tmp_path / "model", photos)
    assert set(seen[0]) == {"00", "01"}
    (photos / "a" / "none.png").write_bytes((photos / "a" / "000.png").read_bytes())
    with pytest.raises(ValueError, match=r"group.*training\.json"):
        suggest_labels(tmp_path / "model", photos)


def test_no_more_than_a_share_of_the_labels_is_listed(model):
    """Labels without any relation to the images."""
    generator = torch.Generator().manual_seed(0)
    images = torch.rand(60, 1, 12, 12, generator=generator)
    data = LabelledData(("a", "b"), LabelledImages(images, torch.arange(60) % 2))
    result = suggest_labels(model, data)
    assert len(result.labels) <= MAX_SHARE * 60
    assert result.left_out == max(0, result.left_out)
    assert result.labels == () or result.labels[0].path is None


def test_many_images_are_judged_by_regressions_on_some(model, monkeypatch):
    monkeypatch.setattr(label_suggestions, "MAX_FITTED_IMAGES", 30)
    generator = np.random.default_rng(0)
    labels = torch.arange(90) % 3
    pixels = torch.from_numpy(generator.random((90, 1, 12, 12), np.float32)) / 4 + labels[:, None, None, None] / 4
    given = labels.clone()
    given[5] = 0
    result = suggest_labels(model, LabelledData(("a", "b", "c"), LabelledImages(pixels, given)))
    assert result.examined == 90
    assert [label.position for label in result.labels] == [5]


def test_the_training_images_of_a_data_set_are_judged(model, small):
    result = suggest_labels(model, small)
    assert result.examined == 30
    assert result.accuracy > 60
