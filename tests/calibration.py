"""Networks with nontrivial biases and normalisation statistics, for tests of untrained networks."""

import torch

from tigranet.testing import blobs


def calibrate(net, size=28, in_maps=1):
    """Draw random biases, compute the running statistics on smooth images, and return the network in evaluation mode.

    A new network has zero biases and the statistics (0, 1), with which a test could miss an error.
    """
    for name, parameter in net.named_parameters():
        if name.endswith("bias"):
            torch.nn.init.normal_(parameter, std=0.3)
    for module in net.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            module.momentum = None  # use the average over all batches
    net.train()
    with torch.no_grad():
        net(blobs(seed=99, size=size, batch=32).expand(-1, in_maps, -1, -1))
    return net.eval()
