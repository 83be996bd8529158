"""The portable network computes the logits of the network, without its kernels and for any size."""

import pytest
import torch
from torch import nn

from export.conftest import NETWORKS, calibrated
from tigranet.export.portable_network import PortableNetwork, _portable


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("shape", [(16, 17), (9, 24)])
def test_it_equals_the_network(name, shape):
    architecture, options = NETWORKS[name]
    net = calibrated(architecture, **options)
    images = torch.rand(3, 2, *shape)
    with torch.inference_mode():
        expected = net(images)
        torch.testing.assert_close(PortableNetwork(net)(images), expected, rtol=1e-4, atol=1e-4)


def test_it_has_no_gradients_and_leaves_the_network_as_it_was():
    net = calibrated("MC[4,2]-OP[2]-S[1]-FC[3]")
    before = {name: tensor.clone() for name, tensor in net.state_dict().items()}
    requires_grad = [parameter.requires_grad for parameter in net.parameters()]
    portable = PortableNetwork(net)
    assert not any(parameter.requires_grad for parameter in portable.parameters())
    assert [parameter.requires_grad for parameter in net.parameters()] == requires_grad
    assert all(torch.equal(tensor, before[name]) for name, tensor in net.state_dict().items())


def test_a_layer_without_a_portable_version_is_named():
    with pytest.raises(TypeError, match="Tanh"):
        _portable(nn.Tanh())
