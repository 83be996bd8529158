import pytest
import torch
from torch import nn

from tigranet.data import rotate
from tigranet.evaluation.rotation_protocol import (
    PROTOCOL_ANGLES,
    RotationAccuracies,
    mean_colour,
    rotate_with_colour,
    rotation_protocol,
)

COLOUR = torch.tensor([0.2, 0.7])


class BrighterTop(nn.Module):
    """Class 0 if the upper half is brighter, class 1 otherwise."""

    def forward(self, images):
        half = images.shape[2] // 2
        upper = images[:, :, :half].mean((1, 2, 3))
        return torch.stack([upper, images.mean((1, 2, 3))], 1)


class Brightest(nn.Module):
    """The channel with the brightest pixel, wherever that is."""

    def forward(self, images):
        return images.amax((2, 3))


def test_the_protocol_has_37_angles_with_the_upright_image_twice():
    assert len(PROTOCOL_ANGLES) == 37
    assert (PROTOCOL_ANGLES[0], PROTOCOL_ANGLES[-1], PROTOCOL_ANGLES[4]) == (0, 360, 40)
    by_angle = {angle: 100.0 if angle % 360 == 0 else 26.0 for angle in PROTOCOL_ANGLES}
    assert RotationAccuracies(by_angle, at_45=0.0).mean == pytest.approx((2 * 100 + 35 * 26) / 37)


@pytest.mark.parametrize("size", [31, 32, 7])
@pytest.mark.parametrize("degrees", [90.0, 180.0, 270.0, 360.0])
def test_bilinear_rotation_by_quarter_turns_is_exact_up_to_rounding(size, degrees):
    images, offset = torch.rand(2, 2, size, size), COLOUR[:, None, None]
    interpolated = rotate(images - offset, torch.full((2,), degrees)) + offset
    permuted = rotate_with_colour(images, degrees, COLOUR)
    assert torch.equal(permuted, torch.rot90(images, int(degrees) // 90, (2, 3)))
    torch.testing.assert_close(interpolated, permuted, atol=2e-5, rtol=0)


@pytest.mark.parametrize("shape", [(9, 9), (7, 12)])
@pytest.mark.parametrize("degrees", [10.0, 45.0, 130.0, 350.0])
def test_it_is_the_rotation_of_normalised_images_with_zeros_outside(shape, degrees):
    images = torch.rand(3, 2, *shape, dtype=torch.float64)
    mean, deviation = COLOUR.double()[:, None, None], torch.tensor([0.3, 0.6], dtype=torch.float64)[:, None, None]
    normalised = rotate((images - mean) / deviation, torch.full((3,), degrees))
    torch.testing.assert_close(rotate_with_colour(images, degrees, COLOUR), normalised * deviation + mean)


def test_the_colour_enters_at_the_corners():
    rotated = rotate_with_colour(torch.ones(1, 2, 16, 16), 45.0, COLOUR)
    torch.testing.assert_close(rotated[0, :, 0, 0], COLOUR)
    torch.testing.assert_close(rotated[0, :, 8, 8], torch.ones(2))


def test_an_image_of_one_colour_stays_the_same():
    images = COLOUR[None, :, None, None].expand(1, 2, 11, 11)
    torch.testing.assert_close(rotate_with_colour(images, 30.0, COLOUR), images)


def test_images_that_are_not_square_keep_their_canvas():
    images = torch.rand(1, 2, 6, 10)
    assert rotate_with_colour(images, 90.0, COLOUR).shape == images.shape
    assert torch.equal(rotate_with_colour(images, 180.0, COLOUR), images.flip(2, 3))


def test_the_accuracies_are_those_at_each_angle():
    images, labels = torch.rand(40, 2, 12, 12), torch.arange(40) % 2
    images[:20, :, :6] += 0.3
    result = rotation_protocol(BrighterTop(), images, labels, COLOUR)
    offset = COLOUR[:, None, None]
    for angle in (0, 10, 90, 200, 360):
        rotated = rotate(images - offset, torch.full((40,), float(angle))) + offset
        expected = 100 * (BrighterTop()(rotated).argmax(1) == labels).double().mean()
        assert result.by_angle[angle] == pytest.approx(float(expected))
    assert tuple(result.by_angle) == PROTOCOL_ANGLES
    assert result.mean == pytest.approx(sum(result.by_angle.values()) / 37)
    assert (result.upright, result.at_90) == (result.by_angle[0], result.by_angle[90])
    assert result.upright != result.at_90
    rotated = rotate(images - offset, torch.full((40,), 45.0)) + offset
    assert result.at_45 == pytest.approx(100 * float((BrighterTop()(rotated).argmax(1) == labels).double().mean()))


def test_an_invariant_network_has_its_upright_accuracy_at_quarter_turns():
    images = torch.rand(60, 2, 9, 9)
    labels = Brightest()(images).argmax(1)
    result = rotation_protocol(Brightest(), images, labels, COLOUR)
    assert [result.by_angle[angle] for angle in (0, 90, 180, 270, 360)] == [100] * 5


def test_all_numbers_can_be_written():
    by_angle = {angle: float(angle) for angle in PROTOCOL_ANGLES}
    written = RotationAccuracies(by_angle, at_45=45.0).to_json()
    assert (written["mean"], written["upright"], written["at_45"], written["at_90"]) == (180, 0, 45, 90)
    assert written["by_angle"]["350"] == 350


def test_the_mean_colour_is_that_of_all_pixels():
    images = torch.rand(5, 3, 4, 6)
    expected = [sum(images[:, channel].flatten().tolist()) / 120 for channel in range(3)]
    torch.testing.assert_close(mean_colour(images), torch.tensor(expected))


def test_wrong_inputs_are_refused():
    images, labels = torch.rand(2, 3, 4, 4), torch.zeros(2, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"3 values.*\(2,\)"):
        rotation_protocol(BrighterTop(), images, labels, COLOUR)
    with pytest.raises(ValueError, match="at least 1 image"):
        rotation_protocol(BrighterTop(), images[:0], labels[:0], torch.zeros(3))
