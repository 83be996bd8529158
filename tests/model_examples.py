"""Networks and images for the tests of the whole network."""

import torch

from oracles import blank_with_patch
from tigranet import TIGraNet

GROUP_PYRAMID = "LC[4,5]-D-GB[3]-D-GC[8,3]-GB[5]-D-GC[16,3]-GB[5]-MO[64]-S[0]"
"""The layers of a small network of group convolutions and coarsenings."""


def difficult_images(size=28, dtype=torch.float32):
    """Noise, patches on a blank background, constant images, a diagonal line and a line along the border."""
    images = [
        torch.rand(3, 1, size, size, dtype=dtype),
        blank_with_patch(size, dtype=dtype),
        torch.zeros(1, 1, size, size, dtype=dtype),
        torch.full((1, 1, size, size), 0.7, dtype=dtype),
        torch.eye(size, dtype=dtype).reshape(1, 1, size, size),
    ]
    border_line = torch.zeros(1, 1, size, size, dtype=dtype)
    border_line[..., 0, :] = 1
    return torch.cat([*images, border_line])


def active_sets(net, size):
    """A function from images to the active sets of all pooling layers, as images."""

    def function(images):
        sets = [maps.active for maps in net.maps(images) if maps.active is not None]
        return torch.cat(sets, dim=1).unflatten(-1, (size, size)).float()

    return function


def oriented_network(products="OP", boundary="free", dtype=torch.float32):
    """A small oriented network in evaluation mode. Its running moments come from a batch of difficult images."""
    net = TIGraNet(f"MC[6,3]-{products}[3]-MC[6,3]-{products}[3]-S[3]-FC[8]", 4, boundary=boundary).to(dtype)
    net.train()(difficult_images(17, dtype))
    return net.eval()
