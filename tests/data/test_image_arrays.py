import numpy as np
import pytest
import torch

from tigranet.data.image_arrays import ImageFormat, find_max_value, num_channels, shape_of_images


def test_rows_of_pixels_are_square_images_unless_their_shape_is_given():
    assert shape_of_images(np.zeros((2, 36))) == (6, 6)
    assert shape_of_images(np.zeros((2, 36)), (4, 9)) == (4, 9)
    assert shape_of_images(np.zeros((2, 36)), (4, 3, 3)) == (4, 3, 3)
    assert shape_of_images(np.zeros((2, 35))) == (1, 35)


def test_images_have_their_own_shape():
    assert shape_of_images(np.zeros((2, 4, 9)), (6, 6)) == (4, 9)
    assert [num_channels(shape_of_images(np.zeros(shape))) for shape in ((2, 4, 9), (2, 4, 9, 3))] == [1, 3]


@pytest.mark.parametrize(
    ("shape", "image_shape", "message"),
    [
        ((2, 10), (3, 4), r"\(3, 4\) has 12 pixels.* n_features=10"),
        ((2, 3, 12, 12), None, r"\(3, 12, 12\).* X\.transpose\(0, 2, 3, 1\)"),
        ((2, 108), (3, 6, 6), r"\(3, 6, 6\).* X\.reshape\(-1, 3, 6, 6\)\.transpose\(0, 2, 3, 1\)"),
    ],
)
def test_shapes_that_cannot_be_images_are_errors(shape, image_shape, message):
    with pytest.raises(ValueError, match=message):
        shape_of_images(np.zeros(shape), image_shape)


@pytest.mark.parametrize(
    ("pixels", "white"),
    [
        (np.array([3], np.uint8), 255),
        (np.array([3], np.int8), 127),
        (np.array([3], np.uint16), 65535),
        (np.array([0, 1]), 1),
        (np.array([0, 2]), 255),
        (np.array([256]), 65535),
        (np.array([-1, 1]), 1),
        (np.array([-256]), 255),
        (np.array([0.0, 1.0]), 1),
        (np.array([0.0, 1.5]), None),
        (np.array([-0.1]), None),
    ],
)
def test_the_value_of_white(pixels, white):
    assert find_max_value(pixels) == white


def test_integers_of_more_than_16_bits_are_an_error():
    with pytest.raises(ValueError, match=r"16 bits, got 65536 .*\[0, 1\]"):
        find_max_value(np.array([65536]))


def test_channels_are_moved_to_the_front_and_pixels_divided():
    pixels = np.random.default_rng(0).integers(0, 256, (2, 4, 5, 3), dtype=np.uint8)
    images = ImageFormat.of(pixels).to_tensor(pixels, "Estimator")
    assert images.dtype == torch.float32
    torch.testing.assert_close(images, torch.from_numpy(pixels).permute(0, 3, 1, 2) / 255)
    rows = ImageFormat.of(pixels).to_tensor(pixels.reshape(2, -1), "Estimator")
    assert torch.equal(rows, images)


def test_wide_integers_are_divided_by_the_white_of_the_format():
    image_format = ImageFormat((1, 2), 255)
    assert image_format.to_tensor(np.array([[0, 51]]), "Estimator").flatten().tolist() == pytest.approx([0, 0.2])
    unchanged = ImageFormat((1, 2), None).to_tensor(np.array([[0, 51]]), "Estimator")
    assert unchanged.flatten().tolist() == [0, 51]


@pytest.mark.parametrize(
    ("pixels", "message"),
    [
        (np.zeros((2, 5)), r"5 features.* Estimator .*expecting 6 features.* \(2, 3\)"),
        (np.zeros((2, 4, 5, 3)), r"Estimator .*\(2, 3\), channels: 1; got .*\(2, 4, 5, 3\), channels: 3"),
        (np.full((2, 2, 3), 300), r"Estimator .*\[0, 255\], got integers up to 300"),
    ],
)
def test_arrays_of_another_format_are_errors(pixels, message):
    with pytest.raises(ValueError, match=message):
        ImageFormat((2, 3), 255).to_tensor(pixels, "Estimator")
