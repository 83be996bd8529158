import copy

import pytest
import torch
import torch.nn.functional as F

from tigranet.baselines import GroupCNN, ResNet, baseline, group_cnn, resnet
from tigranet.baselines.memory_format import channels_last_on_gpu

NETWORKS = {
    "ResNet": lambda maps: ResNet("RB[8,1]-RB[12,2]-FC[9]", 3, 12, maps),
    "ResNet for large images": lambda maps: ResNet("RB[8,1]-RB[12,1]", 3, 50, maps),
    "GroupCNN": lambda maps: GroupCNN("LC[4,3]-P[2]-GC[4]-FC[5]", 3, 12, maps),
}


def logits_and_gradients(net, images):
    logits = net(images)
    loss = F.cross_entropy(logits, torch.arange(len(images), device=images.device) % 3)
    return [logits.detach(), *torch.autograd.grad(loss, list(net.parameters()))]


def test_maps_on_the_cpu_stay_as_they_are():
    maps = torch.rand(2, 3, 4, 5)
    assert channels_last_on_gpu(maps) is maps


@pytest.mark.gpu
def test_maps_on_a_gpu_have_their_channels_last():
    maps = torch.rand(2, 3, 4, 5).cuda()
    result = channels_last_on_gpu(maps)
    assert torch.equal(result, maps)
    assert result.is_contiguous(memory_format=torch.channels_last)
    assert channels_last_on_gpu(result) is result


@pytest.mark.parametrize("maps", [1, 3])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_give_the_same_with_the_channels_last(name, maps, monkeypatch):
    net = NETWORKS[name](maps).double()
    images = torch.rand(6, *net.input_shape, dtype=torch.float64)
    expected = logits_and_gradients(net, images)
    for module in (baseline, group_cnn, resnet):
        monkeypatch.setattr(
            module, "channels_last_on_gpu", lambda maps: maps.contiguous(memory_format=torch.channels_last)
        )
    torch.testing.assert_close(logits_and_gradients(net, images), expected, rtol=1e-9, atol=1e-12)


@pytest.mark.gpu
@pytest.mark.parametrize("maps", [1, 3])
@pytest.mark.parametrize("name", NETWORKS)
def test_networks_on_a_gpu_give_the_results_of_the_cpu(name, maps):
    net = NETWORKS[name](maps).double()
    images = torch.rand(6, *net.input_shape, dtype=torch.float64)
    on_gpu = logits_and_gradients(copy.deepcopy(net).cuda(), images.cuda())
    torch.testing.assert_close(
        [values.cpu() for values in on_gpu], logits_and_gradients(net, images), rtol=1e-8, atol=1e-11
    )
