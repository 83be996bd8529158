import pytest
import torch
from explorations.augmentation import Augmentation, smooth
from explorations.oriented_fields import FieldConv, FieldNet, FieldNorm, circular_harmonics, coarsen


@pytest.mark.parametrize("size", [9, 16])
@pytest.mark.parametrize("orientations", [4, 8])
def test_quarter_turns_and_their_orientation_commute_with_every_layer(size, orientations):
    torch.manual_seed(0)
    x = torch.rand(2, orientations * 3, size, size, dtype=torch.float64)
    turn = orientations // 4

    def rotate(field):
        return torch.rot90(field, 1, (2, 3)).unflatten(1, (orientations, -1)).roll(turn, 1).flatten(1, 2)

    for layer in (FieldConv(3, 5, orientations, 5).double(), FieldNorm(3).double(), coarsen):
        torch.testing.assert_close(layer(rotate(x)), rotate(layer(x)), rtol=0, atol=1e-6)


def test_filters_are_rotated_by_the_angle_of_their_orientation():
    """A quarter turn of a filter is the filter two orientations of 45 degrees further."""
    filters = circular_harmonics(5, 8)
    for orientation in range(8):
        turned = torch.rot90(filters[orientation], 1, (1, 2))
        torch.testing.assert_close(turned, filters[(orientation + 2) % 8], rtol=0, atol=1e-6)


@pytest.mark.parametrize("size", [14, 17])
def test_the_network_gives_quarter_turns_the_same_logits(size):
    torch.manual_seed(0)
    net = FieldNet(1, 3, 8, (2, 3), 1, head=8).eval()
    x = torch.rand(3, 1, size, size)
    for turns in (1, 2, 3):
        torch.testing.assert_close(net(torch.rot90(x, turns, (2, 3))), net(x), rtol=1e-4, atol=1e-4)


def test_smoothing_keeps_constants_and_means():
    assert torch.equal(smooth(torch.ones(1, 2, 5, 6)), torch.ones(1, 2, 5, 6))


def test_augmentation_without_strength_changes_nothing():
    x = torch.rand(4, 3, 8, 8)
    still = Augmentation(shift=0, unchanged=1.0, tone=0.0)
    assert torch.equal(still(x), x)
    changed = Augmentation(flip=True, blur=1.0, cutout=4, rotate=True, shift=2, unchanged=0.0)(x)
    assert changed.shape == x.shape
    assert not torch.equal(changed, x)
