import base64
import io

import numpy as np
import pytest
import torch
from PIL import Image

from tigranet.figures.report_pictures import MAX_PICTURE_PIXELS, evidence_uri, thumbnail_uri, turned_uri


def decode(uri):
    """Return the kind of a picture and its pixels."""
    header, content = uri.split(",")
    with Image.open(io.BytesIO(base64.b64decode(content))) as picture:
        return header, np.asarray(picture)


def test_a_small_image_is_encoded_exactly():
    image = torch.arange(12).reshape(1, 3, 4) / 255
    header, pixels = decode(thumbnail_uri(image))
    assert header == "data:image/png;base64"
    assert pixels.tolist() == (255 * image[0]).int().tolist()


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_the_size_of_a_picture_is_bounded(channels):
    torch.manual_seed(0)
    uri = thumbnail_uri(torch.rand(channels, 300, 600))
    _, pixels = decode(uri)
    assert pixels.shape[:2] == (MAX_PICTURE_PIXELS // 2, MAX_PICTURE_PIXELS)
    assert pixels.ndim == (3 if channels == 3 else 2)
    assert len(uri) < 10_000


def test_pixels_that_are_not_finite_are_shown():
    assert decode(thumbnail_uri(torch.tensor([[[float("nan"), float("inf"), -1.0]]])))[1].tolist() == [[0, 255, 0]]


def test_the_angles_are_one_below_the_other():
    image = torch.zeros(1, 8, 8)
    image[0, 0, 0] = 1
    _, pixels = decode(turned_uri(image, (0, 90, 180, 270), "zeros"))
    assert pixels.shape == (32, 8)
    corners = [np.argwhere(tile == 255).tolist() for tile in np.split(pixels, 4)]
    assert corners == [[[0, 0]], [[7, 0]], [[7, 7]], [[0, 7]]]  # counter-clockwise


def test_an_image_that_is_not_square_stays_in_place():
    _, pixels = decode(turned_uri(torch.ones(1, 4, 8), (0, 90), "zeros"))
    upright, turned = np.split(pixels, 2)
    assert upright.shape == turned.shape == (8, 8)
    assert np.array_equal(np.rot90(upright), turned)


def test_evidence_is_shown_in_colour_where_there_is_any():
    assert evidence_uri(torch.rand(1, 8, 8), None) is None
    assert decode(evidence_uri(torch.rand(1, 8, 8), torch.randn(8, 8)))[1].shape == (8, 8, 3)
