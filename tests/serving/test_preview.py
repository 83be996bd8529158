import io

import numpy as np
import pytest
import tifffile
from PIL import Image

from tigranet.data.image_errors import UnreadableImageError
from tigranet.serving.preview import PREVIEW_SIDE, preview_png


def tiff(array, **options):
    file = io.BytesIO()
    tifffile.imwrite(file, array, **options)
    return file.getvalue()


def decoded(content):
    with Image.open(io.BytesIO(content)) as image:
        assert image.format == "PNG"
        return np.asarray(image)


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 3)])
def test_sixteen_bits_become_eight(shape):
    eight = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    np.testing.assert_array_equal(decoded(preview_png(tiff(eight.astype(np.uint16) * 257), 100)), eight)


def test_other_numbers_of_channels_become_their_mean():
    pages = np.stack([np.full((4, 6), value, np.uint8) for value in (10, 20, 30, 40)])
    content = tiff(pages, photometric="minisblack")
    np.testing.assert_array_equal(decoded(preview_png(content, 100)), np.full((4, 6), 25))


def test_large_images_are_reduced():
    content = tiff(np.zeros((10, 3 * PREVIEW_SIDE), np.uint8))
    assert decoded(preview_png(content, 10**6)).shape == (3, PREVIEW_SIDE)


def test_unusable_files_are_refused_with_a_reason():
    with pytest.raises(UnreadableImageError, match=r"5 x 7.*34"):
        preview_png(tiff(np.zeros((5, 7), np.uint8)), 34)
    with pytest.raises(UnreadableImageError, match="supported format"):
        preview_png(b"no image", 100)
