import numpy as np
import pytest
import torch

from tigranet.figures.evidence_overlay import AGAINST_COLOUR, FOR_COLOUR, GAP_PIXELS, draw_evidence


def halves(picture):
    width = (picture.shape[1] - GAP_PIXELS) // 2
    return picture[:, :width], picture[:, width + GAP_PIXELS :]


@pytest.mark.parametrize("channels", [1, 3, 4])
def test_the_halves_rotate_with_the_image(channels):
    image, evidence = torch.rand(channels, 20, 20), torch.randn(20, 20)
    picture = halves(draw_evidence(image, evidence))
    rotated = halves(draw_evidence(torch.rot90(image, 1, (1, 2)), torch.rot90(evidence, 1, (0, 1))))
    for half, rotated_half in zip(picture, rotated, strict=True):
        assert half.shape == (220, 220, 3)
        np.testing.assert_array_equal(np.rot90(half), rotated_half)


def test_evidence_for_the_class_is_orange_and_against_it_blue():
    evidence = torch.zeros(10, 10)
    evidence[0, 0], evidence[9, 9] = 1.0, -1.0
    image, overlay = halves(draw_evidence(torch.full((1, 10, 10), 0.5), evidence))
    assert (image == 128).all()
    assert np.ptp(overlay[110, 110]) == 0  # grey where there is no evidence
    for corner, colour in ((overlay[0, 0], FOR_COLOUR), (overlay[-1, -1], AGAINST_COLOUR)):
        assert np.abs(corner.astype(int) - colour).max() < 30


def test_a_large_image_and_a_map_without_evidence_are_drawn():
    picture = draw_evidence(torch.rand(1, 300, 260), torch.zeros(300, 260))
    assert picture.shape == (300, 2 * 260 + GAP_PIXELS, 3)
    assert np.ptp(halves(picture)[1], axis=2).max() == 0
