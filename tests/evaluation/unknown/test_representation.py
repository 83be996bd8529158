import torch

from tigranet import TIGraNet
from tigranet.evaluation.unknown.representation import known_images, measure_canonical, represent


def test_it_ends_in_the_logits_of_the_network():
    net = TIGraNet("SC[3,2]-S[2]-FC[8]-FC[7]", 3).eval()
    images = torch.rand(4, 1, 12, 12)
    with torch.inference_mode():
        measurements = measure_canonical(net)(images)
        representation = represent(net)(measurements)
        torch.testing.assert_close(representation.logits.float(), net(images))
    assert representation.hidden.shape == (4, 7)
    torch.testing.assert_close(representation.contrast.float(), images.flatten(1).std(1, correction=0))
    known = known_images(net, measurements, torch.arange(4) % 3)
    torch.testing.assert_close(known.images.hidden @ known.weight.T + known.bias, known.images.logits)


def test_images_without_finite_numbers_are_left_out(net):
    measurements = torch.rand(4, net.num_features + 1).double()
    measurements[2, 0] = torch.inf
    known = known_images(net, measurements, torch.tensor([0, 1, 2, 1]))
    assert known.labels.tolist() == [0, 1, 1]
    assert len(known.images.logits) == 3
