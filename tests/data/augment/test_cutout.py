"""Each image loses one square. The positions of the squares have the symmetries of the grid."""

import pytest
import torch

from tigranet.data.augment.cutout import cutout, erase_square, square_positions

SHAPES = [(8, 8), (9, 9), (7, 12), (12, 7), (2, 1)]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("maps", [1, 3])
@pytest.mark.parametrize("shape", SHAPES)
def test_one_visible_square_has_the_mean_of_the_image_and_the_rest_is_unchanged(shape, maps, dtype):
    images = torch.rand(200, maps, *shape, dtype=dtype)
    side = round(0.5 * min(shape))
    changed = cutout(images, 0.5)
    assert changed.dtype == dtype
    means = images.mean((2, 3), keepdim=True).expand_as(images)
    is_erased = (changed != images).any(1)
    assert torch.equal(changed, torch.where(is_erased[:, None], means, images))
    heights, widths = is_erased.any(2).sum(1), is_erased.any(1).sum(1)
    assert torch.equal(is_erased.sum((1, 2)), heights * widths)  # a rectangle
    if side:
        assert (heights.max(), widths.max()) == (side, side)
        assert min(heights.min(), widths.min()) >= side // 2


def test_all_pixels_away_from_the_border_are_erased_equally_often():
    images = torch.rand(3000, 1, 6, 9)
    share = (cutout(images, 0.5) != images).float().mean((0, 1))
    assert (
        share[1:-1, 1:-1] - 9 / (6 * 9)
    ).abs().max() < 0.04  # 9 of the 6 x 9 positions of a 3x3 square cover a pixel
    assert share.min() > 0.04


@pytest.mark.parametrize("length", range(1, 12))
def test_reversing_an_axis_reverses_the_positions(length):
    for side in range(length + 1):
        first, last = square_positions(length, side)
        assert {length - side - start for start in range(first, last + 1)} == set(range(first, last + 1))
        centres = [start + side / 2 for start in (first, last)]
        assert 0 <= centres[0] <= centres[1] <= length


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("side", [1, 2, 3])
def test_erasing_commutes_with_quarter_turns_and_mirror_images(shape, side):
    """With the position that the first corner of the moved square has."""
    images = torch.rand(50, 3, *shape, dtype=torch.float64)
    width = shape[1]
    top, left = (torch.randint(-1, length, (50,)) for length in shape)
    erased = erase_square(images, top, left, side)
    turned = erase_square(torch.rot90(images, 1, (2, 3)), width - side - left, top, side)
    torch.testing.assert_close(turned, torch.rot90(erased, 1, (2, 3)))
    mirrored = erase_square(images.flip(3), top, width - side - left, side)
    torch.testing.assert_close(mirrored, erased.flip(3))


def test_cutout_commutes_with_linear_changes_of_the_values():
    images = torch.rand(20, 2, 8, 9)
    torch.manual_seed(1)
    expected = 1 - 0.5 * cutout(images, 0.4)
    torch.manual_seed(1)
    torch.testing.assert_close(cutout(1 - 0.5 * images, 0.4), expected)


def test_squares_below_half_a_pixel_change_nothing():
    images = torch.rand(4, 1, 5, 5)
    assert torch.equal(cutout(images, 0.09), images)
