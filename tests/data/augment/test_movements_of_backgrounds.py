"""What enters a moved image does not depend on which value is called black.

Interpolation weights sum to 1. If pixels from outside take values of the image itself, every movement therefore
commutes with an affine change of the values, and an image of one colour does not change.
"""

from functools import partial

import pytest
import torch
import torch.nn.functional as F
from scipy import ndimage

from tigranet.data import Isometry, jitter, rotate, shift
from tigranet.data.augment.blur import blur
from tigranet.data.augment.cutout import cutout
from tigranet.data.augment.deform import deform
from tigranet.data.augment.rigid import mirror, random_shift

ANGLES = torch.tensor([0.0, 17.0, 90.0, 133.0, 301.5])
DOWN, RIGHT = torch.tensor([0, 2, -1, 0, 5]), torch.tensor([0, -1, 3, -2, 4])
NOT_ZEROS = ("reflection", "border", "background")
MOVEMENTS = {
    "jitter": jitter,
    "jitter by a pixel": partial(jitter, reach=1.0),
    "random shift": partial(random_shift, fraction=0.3),
    "mirror": mirror,
    "blur": partial(blur, weight=0.9),
    "cutout": partial(cutout, fraction=0.4),
    "deform": partial(deform, reach=0.5, zoom=0.2, stretch=0.15, warp=0.05),
    **{f"rotate, {padding}": partial(rotate, degrees=ANGLES, padding=padding) for padding in NOT_ZEROS},
    **{
        f"rotate, nearest, {padding}": partial(rotate, degrees=ANGLES, interpolation="nearest", padding=padding)
        for padding in NOT_ZEROS
    },
    **{f"shift, {padding}": partial(shift, down=DOWN, right=RIGHT, padding=padding) for padding in NOT_ZEROS},
    **{
        f"isometry, {padding}": lambda images, padding=padding: Isometry(True, 3, padding, keep_inside=True)(
            images, torch.Generator().manual_seed(1)
        )
        for padding in NOT_ZEROS
    },
}
IMAGES = {
    "photographs": torch.rand(5, 2, 9, 12, generator=torch.Generator().manual_seed(0)),
    "objects on black": F.pad(torch.rand(5, 2, 5, 8, generator=torch.Generator().manual_seed(0)), (2, 2, 2, 2)),
    "an object at the border": F.pad(torch.rand(5, 2, 5, 9, generator=torch.Generator().manual_seed(0)), (3, 0, 2, 2)),
}


def move(movement, images):
    torch.manual_seed(3)
    return MOVEMENTS[movement](images)


@pytest.mark.parametrize("images", IMAGES)
@pytest.mark.parametrize("movement", MOVEMENTS)
def test_movements_commute_with_affine_changes_of_the_values(movement, images):
    images = IMAGES[images]
    torch.testing.assert_close(move(movement, 1 - images), 1 - move(movement, images), rtol=0, atol=1e-5)
    torch.testing.assert_close(move(movement, 0.3 * images + 2), 0.3 * move(movement, images) + 2, rtol=0, atol=1e-5)


@pytest.mark.parametrize("value", [0.0, 0.1, 1.0])
@pytest.mark.parametrize("movement", MOVEMENTS)
def test_an_image_of_one_colour_does_not_change(movement, value):
    image = torch.full((5, 2, 9, 12), value)
    torch.testing.assert_close(move(movement, image), image, rtol=1e-6, atol=0)


@pytest.mark.parametrize("value", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("movement", ["jitter", "rotate, background", "shift, background"])
def test_the_background_continues_outside_the_image(movement, value):
    """A movement agrees with one of a larger image that has more of the background, cropped afterwards."""
    images = value + (1 - 2 * value) * IMAGES["an object at the border"].double()
    larger = F.pad(images, (6, 6, 6, 6), value=value)
    inside = move(movement, larger)[..., 6:-6, 6:-6]
    torch.testing.assert_close(move(movement, images), inside, rtol=0, atol=1e-6)


@pytest.mark.parametrize("movement", ["jitter", "rotate, background"])
def test_border_pixels_continue_outside_an_image_without_background(movement):
    images = IMAGES["photographs"].double()
    larger = F.pad(images, (6, 6, 6, 6), "replicate")
    inside = move(movement, larger)[..., 6:-6, 6:-6]
    torch.testing.assert_close(move(movement, images), inside, rtol=0, atol=1e-6)


@pytest.mark.parametrize(
    ("padding", "mode"), [("border", "nearest"), ("background", "nearest"), ("reflection", "mirror")]
)
@pytest.mark.parametrize("scale", [1, 6])
def test_shifts_agree_with_scipy(padding, mode, scale):
    """With scale 6, images move by more than their own size."""
    images = IMAGES["photographs"]
    moved = shift(images, scale * DOWN, scale * RIGHT, padding)
    for image, result, down, right in zip(images, moved, DOWN.tolist(), RIGHT.tolist(), strict=True):
        expected = ndimage.shift(image.numpy(), (0, scale * down, scale * right), order=0, mode=mode)
        assert torch.equal(result, torch.from_numpy(expected))


def test_shifts_on_a_uniform_background_agree_with_scipy():
    images = 1 - IMAGES["an object at the border"]
    moved = shift(images, DOWN, RIGHT, "background")
    for image, result, down, right in zip(images, moved, DOWN.tolist(), RIGHT.tolist(), strict=True):
        expected = ndimage.shift(image.numpy(), (0, down, right), order=0, mode="constant", cval=1)
        assert torch.equal(result, torch.from_numpy(expected))


@pytest.mark.parametrize("padding", ["border", "background"])
@pytest.mark.parametrize("angle", [30.0, 45.0, 200.0])
def test_rotations_of_photographs_agree_with_scipy(padding, angle):
    images = IMAGES["photographs"].double()
    expected = ndimage.rotate(images.numpy(), angle, axes=(2, 3), reshape=False, order=1, mode="nearest")
    rotated = rotate(images, torch.full((5,), angle, dtype=torch.float64), padding=padding)
    torch.testing.assert_close(rotated, torch.from_numpy(expected), rtol=0, atol=1e-6)


@pytest.mark.parametrize("reach", [0.5, 1.0])
def test_on_a_black_background_the_background_is_padding_with_zeros(reach):
    """Bit for bit, also where strokes touch the border, so that trainings on MNIST give the same weights as ever."""
    images = IMAGES["an object at the border"]
    assert torch.equal(rotate(images, ANGLES, padding="background"), rotate(images, ANGLES))
    assert torch.equal(shift(images, DOWN, RIGHT, padding="background"), shift(images, DOWN, RIGHT))
    torch.manual_seed(5)
    moved = jitter(images, reach)
    torch.manual_seed(5)
    for axis, padding in ((-2, (0, 0, 1, 1)), (-1, (1, 1, 0, 0))):
        step = (2 * torch.rand(5, 1, 1, 1) - 1) * reach
        padded, size = F.pad(images, padding), images.shape[axis]
        before, after = padded.narrow(axis, 0, size), padded.narrow(axis, 2, size)
        images = (1 - step.abs()) * images + step.clamp(min=0) * before + (-step).clamp(min=0) * after
    assert torch.equal(moved, images)


def test_within_the_frame_an_object_on_white_moves_as_on_black():
    images = torch.zeros(200, 1, 9, 11)
    images[:, :, 1:6, 4:7] = torch.rand(200, 1, 5, 3) / 2 + 0.25
    isometry = Isometry(max_shift=6, keep_inside=True, padding="background")
    black, white = (isometry(each, torch.Generator().manual_seed(0)) for each in (images, 1 - images))
    torch.testing.assert_close(white, 1 - black)
    assert len(black.flatten(1).argmax(1).unique()) > 20


def test_within_the_frame_a_photograph_does_not_move():
    images = torch.rand(5, 1, 9, 9)
    assert torch.equal(Isometry(max_shift=3, keep_inside=True)(images, torch.Generator()), images)
