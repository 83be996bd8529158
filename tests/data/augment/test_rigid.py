import pytest
import torch
from scipy import ndimage

from tigranet.data import Isometry, jitter, rotate, shift
from tigranet.data.augment.rigid import mirror, random_shift


@pytest.mark.parametrize("size", [(6, 6), (7, 7), (5, 8)])
@pytest.mark.parametrize("interpolation", ["bilinear", "nearest"])
def test_quarter_turns_are_exact(size, interpolation):
    images = torch.rand(2, 3, *size, dtype=torch.float64)
    for turns in range(4) if size[0] == size[1] else (0, 2):
        angle = torch.full((2,), 90.0 * turns, dtype=torch.float64)
        expected = torch.rot90(images, turns, (2, 3))
        torch.testing.assert_close(rotate(images, angle, interpolation), expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [(28, 28), (21, 34)])
@pytest.mark.parametrize("angle", [17.0, 45.0, 133.0, 301.5])
def test_bilinear_rotation_agrees_with_scipy(size, angle):
    images = torch.zeros(1, 1, *size, dtype=torch.float64)
    images[..., 5:-5, 5:-5] = torch.rand(size[0] - 10, size[1] - 10, dtype=torch.float64)
    expected = ndimage.rotate(images[0, 0].numpy(), angle, reshape=False, order=1, mode="grid-constant")
    rotated = rotate(images, torch.tensor([angle], dtype=torch.float64))[0, 0]
    torch.testing.assert_close(rotated, torch.from_numpy(expected), rtol=0, atol=1e-6)


def test_reflection_padding_continues_the_image_in_a_mirror():
    images = torch.rand(2, 1, 9, 9) + 1
    rotated = rotate(images, torch.tensor([45.0, 200.0]), padding="reflection")
    assert rotated.min() >= 1
    torch.testing.assert_close(rotated[0, 0, 2:7, 2:7], rotate(images, torch.tensor([45.0, 0]))[0, 0, 2:7, 2:7])
    moved = shift(images, torch.tensor([2, 0]), torch.tensor([0, -1]), padding="reflection")
    assert torch.equal(moved[0, 0, 0], images[0, 0, 2])
    assert torch.equal(moved[1, 0, :, -1], images[1, 0, :, -2])
    assert Isometry(rotated=True, padding="reflection")(images, torch.Generator()).min() >= 1


def test_each_image_has_its_own_angle():
    images = torch.rand(1, 1, 9, 9).repeat(3, 1, 1, 1)
    rotated = rotate(images, torch.tensor([0.0, 90.0, 33.0]))
    torch.testing.assert_close(rotated[1], torch.rot90(images[1], 1, (1, 2)), rtol=0, atol=1e-5)
    torch.testing.assert_close(rotated[2:], rotate(images[:1], torch.tensor([33.0])))


@pytest.mark.parametrize("size", [(6, 6), (5, 8)])
def test_shifts_agree_with_scipy_and_fill_with_zeros(size):
    images = torch.rand(7, 2, *size)
    down, right = torch.tensor([0, 1, -1, 0, 3, -4, 9]), torch.tensor([0, 0, 2, -3, -1, 4, 0])
    for image, moved, d, r in zip(images, shift(images, down, right), down.tolist(), right.tolist(), strict=True):
        expected = ndimage.shift(image.numpy(), (0, d, r), order=0)
        torch.testing.assert_close(moved, torch.from_numpy(expected), rtol=0, atol=0)


def test_angles_cover_the_circle_and_shifts_cover_the_square():
    images = torch.zeros(4000, 1, 17, 17, dtype=torch.float64)
    images[:, :, 8, 13] = 1
    generator = torch.Generator().manual_seed(0)
    coordinates = torch.arange(17, dtype=torch.float64) - 8
    rotated = Isometry(rotated=True)(images, generator).squeeze(1)
    angles = torch.atan2(-(rotated.sum(2) * coordinates).sum(1), (rotated.sum(1) * coordinates).sum(1)).rad2deg() % 360
    assert torch.histc(angles, 8, 0, 360).min() > 400
    images = images.roll(-5, -1)
    moved = Isometry(max_shift=3)(images, generator).squeeze(1)
    positions = moved.flatten(1).argmax(1)
    assert set((positions // 17 - 8).tolist()) == set((positions % 17 - 8).tolist()) == set(range(-3, 4))
    assert moved.sum() == 4000


def test_an_isometry_is_a_pure_function_of_its_generator():
    images, isometry = torch.rand(3, 1, 9, 9), Isometry(rotated=True, max_shift=2)
    results = [isometry(images, torch.Generator().manual_seed(seed)) for seed in (0, 0, 1)]
    assert torch.equal(results[0], results[1])
    assert not torch.equal(results[0], results[2])
    assert torch.equal(Isometry()(images, torch.Generator()), images)
    assert str(isometry) == "rotated and shifted by up to 2 pixels"


def test_jitter_is_a_bilinear_shift_by_at_most_the_reach():
    images = torch.zeros(200, 1, 9, 9, dtype=torch.float64)
    images[:, :, 4, 4] = 1
    moved = jitter(images, reach=0.5).squeeze(1)
    coordinates = torch.arange(9, dtype=torch.float64)
    down, right = (moved.sum(2) * coordinates).sum(1) - 4, (moved.sum(1) * coordinates).sum(1) - 4  # centres of mass
    torch.testing.assert_close(moved.sum((1, 2)), torch.ones(200, dtype=torch.float64))
    for step in (down, right):
        assert step.abs().max() <= 0.5
        assert step.std().item() == pytest.approx(0.5 / 3**0.5, rel=0.15)
        expected = ndimage.shift(images[0, 0].numpy(), (down[0], right[0]), order=1)
        torch.testing.assert_close(moved[0], torch.from_numpy(expected), rtol=0, atol=1e-12)
    assert abs(torch.corrcoef(torch.stack([down, right]))[0, 1]) < 0.3


def test_jitter_with_reach_zero_changes_nothing():
    images = torch.rand(3, 2, 5, 7)
    assert torch.equal(jitter(images, reach=0.0), images)


def test_within_the_frame_no_pixel_is_lost_and_all_possible_shifts_occur():
    images = torch.zeros(200, 1, 9, 11)
    images[:, :, 1:6, 4:7] = torch.rand(200, 1, 5, 3) + 0.1  # free: 1 row above and 3 below, 4 columns on each side
    images[0] = 0
    moved = Isometry(max_shift=6, keep_inside=True)(images, torch.Generator().manual_seed(0))
    torch.testing.assert_close(moved.flatten(1).sort().values, images.flatten(1).sort().values)
    rows, columns = (moved[1:] != 0).any(1).any(2).int().argmax(1), (moved[1:] != 0).any(1).any(1).int().argmax(1)
    assert set(rows.tolist()) == set(range(5))
    assert set(columns.tolist()) == set(range(9))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("maps", [1, 3])
@pytest.mark.parametrize("size", [(8, 8), (7, 12)])
def test_random_shifts_are_uniform_up_to_the_fraction_of_each_side(size, maps, dtype):
    images = torch.zeros(600, maps, *size, dtype=dtype)
    images[:, :, 3, 4] = 1
    moved = random_shift(images, 0.25)
    assert moved.dtype == dtype
    assert torch.equal(moved.sum((2, 3)), torch.ones(600, maps, dtype=dtype))
    for axis, start, reach in ((2, 3, round(size[0] / 4)), (1, 4, round(size[1] / 4))):
        steps = (moved[:, 0].amax(axis).argmax(1) - start).tolist()
        counts = [steps.count(step) for step in range(-reach, reach + 1)]
        assert sum(counts) == 600
        assert min(counts) > 0.6 * 600 / len(counts)


def test_the_background_enters_with_a_random_shift():
    images = torch.full((40, 2, 6, 9), 0.7)
    images[:, :, 2:4, 3:5] = 0.1
    moved = random_shift(images, 0.3)
    assert torch.equal(moved.flatten(1).sort().values, images.flatten(1).sort().values)
    assert torch.equal(random_shift(images, 0.05), images)  # less than half a pixel


def test_half_of_the_images_are_mirrored():
    images = torch.rand(1000, 3, 4, 5)
    changed = mirror(images)
    is_mirrored, is_same = ((changed == each).flatten(1).all(1) for each in (images.flip(3), images))
    assert torch.equal(is_mirrored, ~is_same)
    assert 450 < is_mirrored.sum() < 550


@pytest.mark.parametrize("size", [(6, 6), (5, 8), (1, 3)])
def test_a_mirrored_image_that_is_rotated_is_a_rotated_image_that_is_mirrored(size):
    """It is rotated in the opposite direction. A network that is invariant to rotations sees no difference."""
    images = torch.rand(20, 2, *size, dtype=torch.float64)
    torch.manual_seed(1)
    once = mirror(images)
    is_same = (once == images).flatten(1).all(1)[:, None, None, None]
    torch.manual_seed(1)
    turned = mirror(torch.rot90(images, 1, (2, 3)))
    assert torch.equal(turned, torch.where(is_same, torch.rot90(once, 1, (2, 3)), torch.rot90(once, -1, (2, 3))))
