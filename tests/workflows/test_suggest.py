import csv
import shutil
from pathlib import Path

import numpy as np
import pytest

from images import fill, save
from tigranet.workflows.suggest import THUMBNAIL_SIZE, suggest


@pytest.fixture
def unlabelled(tmp_path):
    """Twenty images of three brightnesses, and one that is also labelled."""
    folder = tmp_path / "unlabelled"
    generator = np.random.default_rng(9)
    for number in range(20):
        save(folder / f"{number}.png", (generator.integers(0, 60, (12, 12)) + 60 * (number % 3)).astype(np.uint8))
    return folder


def test_labelled_images_are_not_suggested_and_their_labels_are_checked(folder, model, unlabelled, tmp_path):
    known = folder / "a" / "000.png"
    (unlabelled / "known.png").write_bytes(known.read_bytes())
    known.rename(folder / "b" / "wrong.png")
    result = suggest(model, unlabelled, tmp_path / "out", train=folder, count=5, command="tigranet suggest")
    assert (result.images.examined, result.images.labelled, len(result.images.images)) == (20, 1, 5)
    assert [(Path(label.path).name, label.suggested) for label in result.labels.labels] == [("wrong.png", "a")]
    page = result.page.read_text()
    assert page.count("<img ") == 6
    with open(tmp_path / "out" / "suspicious_labels.csv") as file:
        (row,) = csv.DictReader(file)
    assert (row["label"], row["suggested"]) == ("b", "a")


def test_images_of_an_archive_have_thumbnails(model, unlabelled, tmp_path):
    shutil.make_archive(tmp_path / "all", "zip", unlabelled)
    result = suggest(model, tmp_path / "all.zip", tmp_path / "out", count=3)
    assert all("all.zip" in image.path for image in result.images.images)
    assert result.page.read_text().count("<img ") == 3


def test_without_labels_and_without_a_folder_only_images_are_suggested(model, unlabelled):
    result = suggest(model, [unlabelled], count=2)
    assert (result.labels, result.page) == (None, None)
    assert len(result.images.images) == 2


def test_thumbnails_of_arrays_are_their_pixels(model, unlabelled, tmp_path):
    generator = np.random.default_rng(0)
    labels = np.arange(40) % 2
    images = (generator.integers(0, 60, (40, 12, 12)) + 90 * labels[:, None, None]).astype(np.uint8)
    labels[3] = 0
    np.savez(tmp_path / "data.npz", images=images, labels=labels)
    result = suggest(model, unlabelled, tmp_path / "out", train=tmp_path / "data.npz", count=1)
    assert [label.position for label in result.labels.labels] == [3]
    assert result.labels.labels[0].path is None
    assert result.page.read_text().count("<img ") == 2
    assert THUMBNAIL_SIZE < 200


def test_output_that_would_mix_with_the_input_is_refused(folder, model, unlabelled, tmp_path):
    with pytest.raises(ValueError, match="folder of the images"):
        suggest(model, unlabelled, folder, train=folder)
    with pytest.raises(ValueError, match="inside the folder"):
        suggest(model, unlabelled, folder / "page", train=folder)
    table = tmp_path / "out" / "suspicious_labels.csv"
    table.parent.mkdir()
    table.write_text("path,label\n" + "".join(f"{path},{path.parent.name}\n" for path in folder.rglob("*.png")))
    with pytest.raises(ValueError, match="would be replaced"):
        suggest(model, unlabelled, tmp_path / "out", train=table)
    (tmp_path / "file").write_text("precious")
    with pytest.raises(NotADirectoryError, match="file"):
        suggest(model, unlabelled, tmp_path / "file")
    assert fill(folder, {}) == folder
    assert not (folder / "page").exists()
