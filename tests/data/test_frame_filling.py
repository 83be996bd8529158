import numpy as np
import pytest
import torch

from tigranet.data.frame_filling import MAX_EXAMINED_IMAGES, FrameFilling, examine_frames
from tigranet.data.letterbox import letterbox
from tigranet.data.sources.registry import load


def photographs(count, channels=3, shape=(20, 20), size=20, seed=0):
    """Noise that fills its frame, letterboxed to a square."""
    pixels = np.random.default_rng(seed).random((count, *shape, channels), dtype=np.float32)
    return torch.from_numpy(np.stack([letterbox(image, size) for image in pixels])).permute(0, 3, 1, 2)


def objects(count, channels=3, shape=(20, 20), size=20, background=1.0):
    """Noise on a plain background, letterboxed to a square."""
    pixels = np.full((count, *shape, channels), background, np.float32)
    height, width = shape
    pixels[:, height // 4 : -(height // 4), width // 4 : -(width // 4)] = 0.5
    pixels[:, height // 2, :] = 0.3  # touches two borders
    return torch.from_numpy(np.stack([letterbox(image, size) for image in pixels])).permute(0, 3, 1, 2)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("shape", [(20, 20), (20, 15), (12, 20), (20, 19), (40, 24)])
def test_photographs_fill_their_frame_and_objects_do_not(channels, shape):
    assert examine_frames(photographs(4, channels, shape)) == FrameFilling(4, 4)
    for background in (0.0, 1.0, 0.25):
        assert examine_frames(objects(4, channels, shape, background=background)) == FrameFilling(4, 0)


def test_plain_images_and_no_images_do_not_fill_their_frame():
    assert examine_frames(torch.full((2, 1, 5, 7), 0.3)) == FrameFilling(2, 0)
    assert examine_frames(torch.zeros(0, 1, 5, 7)) == FrameFilling(0, 0)
    assert examine_frames(torch.rand(3, 1, 1, 8)) == examine_frames(torch.rand(3, 1, 8, 2)) == FrameFilling(3, 0)
    assert not FrameFilling(0, 0).is_typical


def test_a_plain_sky_above_a_landscape_is_a_part_of_a_photograph():
    image = torch.rand(1, 3, 12, 12)
    image[..., :6, :] = 1
    assert examine_frames(image) == FrameFilling(1, 1)


def test_a_background_need_not_be_exactly_plain():
    images = objects(3) + 0.02 * torch.randn(3, 3, 20, 20)
    assert examine_frames(images) == FrameFilling(3, 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_quarter_turns_reflections_and_changes_of_the_values_do_not_matter(dtype):
    images = torch.cat([photographs(3), photographs(2, shape=(14, 20)), objects(4), objects(1, shape=(10, 20))])
    images = images.to(dtype)
    expected = FrameFilling(10, 5)
    for turns in range(4):
        turned = images.rot90(turns, (2, 3))
        assert examine_frames(turned) == examine_frames(turned.flip(3)) == expected
        assert examine_frames(1 - turned) == examine_frames(turned / 2) == expected


def test_more_than_half_is_typical():
    assert not FrameFilling(4, 2).is_typical
    assert FrameFilling(5, 3).is_typical


def test_images_are_examined_at_equal_distances():
    count = 3 * MAX_EXAMINED_IMAGES
    images = torch.zeros(count, 1, 4, 4)
    images[::3] = torch.rand(MAX_EXAMINED_IMAGES, 1, 4, 4)
    assert examine_frames(images) == FrameFilling(MAX_EXAMINED_IMAGES, MAX_EXAMINED_IMAGES)
    images = torch.zeros(count, 1, 4, 4)
    images[1::3] = torch.rand(MAX_EXAMINED_IMAGES, 1, 4, 4)
    assert examine_frames(images) == FrameFilling(MAX_EXAMINED_IMAGES, 0)


def test_digits_lie_on_a_plain_background():
    assert not examine_frames(load("mnist-012").train.images).is_typical


def test_images_that_are_not_finite_are_examined_too():
    assert examine_frames(torch.full((1, 1, 4, 4), torch.nan)).examined == 1
