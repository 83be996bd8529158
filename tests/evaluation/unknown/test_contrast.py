import pytest
import torch

from tigranet import TIGraNet
from tigranet.evaluation.unknown.contrast import ContrastRange, image_contrast


def test_the_contrast_is_that_of_the_channel_that_varies_most():
    images = torch.rand(3, 2, 9, 9)
    images[:, 1] = 0.5
    net = TIGraNet("SC[2,2]-S[2]", 2, in_maps=2)
    torch.testing.assert_close(image_contrast(net, images).float(), images[:, 0].flatten(1).std(1, correction=0))


def test_what_the_network_does_not_see_does_not_count():
    images = torch.full((1, 1, 16, 16), 0.25)
    images[..., 0, 0] = 1
    assert image_contrast(TIGraNet("SC[2,2]-S[2]", 2), images) > 0.01
    assert image_contrast(TIGraNet("SC[2,2]-S[2]", 2, window="disc"), images) < 1e-6


@pytest.mark.parametrize("level", [0.0, 0.3, 1.0])
def test_a_frame_of_one_colour_is_blank_unless_a_known_image_is(level):
    net = TIGraNet("SC[2,2]-S[2]", 2)
    known = image_contrast(net, torch.rand(9, 1, 8, 8))
    frame = image_contrast(net, torch.full((1, 1, 8, 8), level))
    assert ContrastRange.measure(known).novelty(frame) > 5
    assert (ContrastRange.measure(known).novelty(known) < 1).all()
    assert ContrastRange.measure(torch.cat([known, frame])).novelty(frame) <= 1
