import pytest
import torch
from scipy import ndimage

from tigranet.data import jitter, random_angles, rotate


@pytest.mark.parametrize("size", [(6, 6), (7, 7), (5, 8)])
@pytest.mark.parametrize("interpolation", ["bilinear", "nearest"])
def test_quarter_turns_are_exact(size, interpolation):
    images = torch.rand(2, 3, *size, dtype=torch.float64)
    for turns in range(4) if size[0] == size[1] else (0, 2):
        angle = torch.full((2,), 90.0 * turns, dtype=torch.float64)
        wanted = torch.rot90(images, turns, (2, 3))
        torch.testing.assert_close(rotate(images, angle, interpolation), wanted, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [(28, 28), (21, 34)])
@pytest.mark.parametrize("angle", [17.0, 45.0, 133.0, 301.5])
def test_bilinear_rotation_is_scipys(size, angle):
    images = torch.zeros(1, 1, *size, dtype=torch.float64)
    images[..., 5:-5, 5:-5] = torch.rand(size[0] - 10, size[1] - 10, dtype=torch.float64)
    wanted = ndimage.rotate(images[0, 0].numpy(), angle, reshape=False, order=1, mode="grid-constant")
    came = rotate(images, torch.tensor([angle], dtype=torch.float64))[0, 0]
    torch.testing.assert_close(came, torch.from_numpy(wanted), rtol=0, atol=1e-6)


def test_each_image_has_its_own_angle():
    images = torch.rand(1, 1, 9, 9).repeat(3, 1, 1, 1)
    turned = rotate(images, torch.tensor([0.0, 90.0, 33.0]))
    torch.testing.assert_close(turned[1], torch.rot90(images[1], 1, (1, 2)), rtol=0, atol=1e-5)
    torch.testing.assert_close(turned[2:], rotate(images[:1], torch.tensor([33.0])))


def test_random_angles_cover_the_circle():
    angles = random_angles(10_000, torch.Generator().manual_seed(0))
    assert 0 <= angles.min() < 1
    assert 359 < angles.max() < 360
    assert angles.mean().item() == pytest.approx(180, abs=3)


def test_jitter_is_a_bilinear_shift_by_at_most_its_reach():
    images = torch.zeros(200, 1, 9, 9, dtype=torch.float64)
    images[:, :, 4, 4] = 1
    moved = jitter(images, reach=0.5).squeeze(1)
    where = torch.arange(9, dtype=torch.float64)
    down, right = (moved.sum(2) * where).sum(1) - 4, (moved.sum(1) * where).sum(1) - 4  # centres of mass
    torch.testing.assert_close(moved.sum((1, 2)), torch.ones(200, dtype=torch.float64))
    for step in (down, right):
        assert step.abs().max() <= 0.5
        assert step.std().item() == pytest.approx(0.5 / 3**0.5, rel=0.15)
        wanted = ndimage.shift(images[0, 0].numpy(), (down[0], right[0]), order=1)
        torch.testing.assert_close(moved[0], torch.from_numpy(wanted), rtol=0, atol=1e-12)
    assert abs(torch.corrcoef(torch.stack([down, right]))[0, 1]) < 0.3


def test_no_reach_no_change():
    images = torch.rand(3, 2, 5, 7)
    assert torch.equal(jitter(images, reach=0.0), images)
