import re

import numpy as np
import pytest
from PIL import Image

from images import save
from tigranet.data.sources.published_files import PublishedFiles, read_resized

FILES = PublishedFiles(
    title="Nuts and bolts",
    npz_name="nuts.npz",
    pattern="nuts*/**/*.png",
    file_name=re.compile(r"(nut|bolt)(\d+)\.png"),
    folder_example="nuts-2003",
)


@pytest.fixture
def folder(tmp_path):
    """Two original files, and one of another name."""
    for name in ("nut1", "bolt2", "readme"):
        save(tmp_path / "nuts-2003" / "images" / f"{name}.png", np.full((4, 6), 100, np.uint8))
    return tmp_path


def test_original_files_are_found_by_name_and_sorted(folder):
    assert [path.name for path in FILES.find(folder)] == ["bolt2.png", "nut1.png"]
    assert FILES.require(folder) == FILES.find(folder)
    assert [FILES.parse_name(path) for path in FILES.find(folder)] == [("bolt", "2"), ("nut", "1")]


def test_the_npz_file_has_precedence(folder):
    (folder / "nuts.npz").write_bytes(b"")
    assert FILES.find(folder) == [folder / "nuts.npz"]


def test_missing_files_are_an_error_only_if_they_are_required(tmp_path):
    assert FILES.find(tmp_path) == []
    with pytest.raises(
        FileNotFoundError, match=rf"Nuts and bolts in '{tmp_path}'.*nuts\.npz.*nuts-2003.*TIGRANET_DATA"
    ):
        FILES.require(tmp_path)


@pytest.mark.parametrize("images", [np.zeros((2, 4, 4), np.float32), np.zeros((2, 4, 5), np.uint8)])
def test_images_must_be_bytes_of_the_expected_shape(tmp_path, images):
    with pytest.raises(ValueError, match=rf"\(2, 4, 4\), got {images.dtype} of shape {re.escape(str(images.shape))}"):
        FILES.check_images(tmp_path, images, (2, 4, 4))
    FILES.check_images(tmp_path, np.zeros((2, 4, 4), np.uint8), (2, 4, 4))


@pytest.mark.parametrize(("mode", "shape"), [("L", (2, 3, 3)), ("RGB", (2, 3, 3, 3))])
def test_images_are_resized_to_a_square(folder, mode, shape):
    images = read_resized(FILES.find(folder), mode, 3, Image.Resampling.BOX)
    assert images.dtype == np.uint8
    assert images.shape == shape
    assert (images == 100).all()
